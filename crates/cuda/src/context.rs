//! The thread's current context. The driver acts on it, and a caller's thread may belong to a user
//! of another library, so every call leaves it as it was.

use crate::api::Api;
use crate::errors::check;
use cudarc::driver::sys::CUcontext;
use mxrt_engine::device::DeviceError;

/// A context of the driver: valid for the rest of the process, in any thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Context(pub CUcontext);

// SAFETY: the primary context of a device, which is retained once and never released; the driver's
// functions may be called from any thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// A context is current as long as this lives.
pub(crate) struct Current<'a> {
    api: &'a Api,
    /// What was current before, if it was another one.
    before: Option<CUcontext>,
}

impl<'a> Current<'a> {
    /// Makes a context current.
    pub fn enter(api: &'a Api, context: Context) -> Result<Current<'a>, DeviceError> {
        let mut before: CUcontext = std::ptr::null_mut();
        // SAFETY: a variable for the result.
        check(unsafe { (api.cuCtxGetCurrent)(&mut before) })?;
        if before == context.0 {
            return Ok(Current { api, before: None });
        }
        // SAFETY: a context lives as long as the process.
        check(unsafe { (api.cuCtxSetCurrent)(context.0) })?;
        Ok(Current { api, before: Some(before) })
    }
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // SAFETY: what was current when this began. A failure leaves this device's context
            // current, which the next call of any library repairs for itself.
            let _ = unsafe { (self.api.cuCtxSetCurrent)(before) };
        }
    }
}
