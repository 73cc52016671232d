//! The thread's current context, and what captures of others mean for it. The driver acts on both, and
//! a caller's thread may belong to a user of another library, so every call leaves them as they were.

use crate::api::Api;
use crate::errors::check;
use cudarc::driver::sys::CUcontext;
use mxrt_engine::device::DeviceError;
use std::ffi::c_uint;

/// A context of the driver: valid for the rest of the process, in any thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Context(pub CUcontext);

// SAFETY: the primary context of a device, which is retained once and never released; the driver's
// functions may be called from any thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// The mode in which captures of other libraries forbid a thread nothing. PyTorch captures in one that
/// forbids all other threads calls that might wait, whatever their streams, and breaks by them.
pub(crate) const RELAXED: c_uint = 2;

/// A context is current as long as this lives, and captures of others are no matter.
pub(crate) struct Current<'a> {
    api: &'a Api,
    /// The mode before.
    mode: c_uint,
    /// The context that was current before, if it was another one.
    before: Option<CUcontext>,
}

impl<'a> Current<'a> {
    /// Makes a context current.
    pub fn enter(api: &'a Api, context: Context) -> Result<Current<'a>, DeviceError> {
        let mut before: CUcontext = std::ptr::null_mut();
        // SAFETY: a variable for the result.
        check(unsafe { (api.cuCtxGetCurrent)(&mut before) })?;
        let mut mode = RELAXED;
        // SAFETY: a variable for the mode and what it was.
        check(unsafe { (api.cuThreadExchangeStreamCaptureMode)(&mut mode) })?;
        let mut current = Current { api, mode, before: None };
        if before != context.0 {
            // SAFETY: a context lives as long as the process.
            check(unsafe { (api.cuCtxSetCurrent)(context.0) })?;
            current.before = Some(before);
        }
        Ok(current)
    }
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        // SAFETY: a variable.
        let _ = unsafe { (self.api.cuThreadExchangeStreamCaptureMode)(&mut self.mode) };
        if let Some(before) = self.before {
            // SAFETY: what was current when this began. A failure leaves this device's context
            // current, which the next call of any library repairs for itself.
            let _ = unsafe { (self.api.cuCtxSetCurrent)(before) };
        }
    }
}
