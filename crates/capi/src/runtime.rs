//! The state that all objects of the process share.

use crate::border::{Error, guard};
use crate::pointers::put;
use mxrt::internal::{Engine, Process, Settings};
use std::ffi::{c_char, c_int};

/// The version of MXNet whose interface this is: 1.9.1.
const MXNET_VERSION: c_int = 10901;

/// The settings from the environment.
pub(crate) fn settings() -> Result<&'static Settings, Error> {
    Process::settings().map_err(Error::value)
}

/// The shared state, which the first use starts.
pub(crate) fn runtime() -> Result<&'static Process, Error> {
    Process::get().map_err(Error::value)
}

/// The engine of the process.
pub(crate) fn engine() -> Result<&'static Engine, Error> {
    runtime().map(|runtime| runtime.engine)
}

/// The version of MXNet whose interface this is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXGetVersion(out: *mut c_int) -> c_int {
    // SAFETY: the caller promises a place for the number.
    guard(|| unsafe { put(out, MXNET_VERSION, "out") })
}

/// The version of mxrt, as static text.
#[unsafe(no_mangle)]
pub extern "C" fn MXRTGetVersion() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
