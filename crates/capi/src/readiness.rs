//! Results that come later: asking, being called, giving up.

use crate::border::{Error, c_functions};
use crate::handles::{NDArrayHandle, get};
use crate::pointers::{OnReady, put};
use mxrt::NDArray;
use std::ffi::{c_int, c_void};

pub use crate::pointers::MXRTReadyCallback;

c_functions! {
    /// Whether an array has its value, or the failure that took its place: 1 or 0.
    fn MXRTNDArrayIsReady(handle: NDArrayHandle, out: *mut c_int) {
        let array = get::<NDArray>(handle)?;
        put(out, c_int::from(array.engine().is_ready(array.var())), "out")
    }

    /// Calls `callback(data, kind, message)` once, when the array has its value or a failure: now,
    /// or in a thread of the library. `kind` and `message` are null, or say what failed. The
    /// function may start work, but not wait.
    fn MXRTNDArrayOnReady(handle: NDArrayHandle, callback: MXRTReadyCallback, data: *mut c_void) {
        let array = get::<NDArray>(handle)?;
        let Some(callback) = OnReady::new(callback, data) else {
            return Err(Error::value("the argument callback is a null pointer"));
        };
        array.engine().on_ready(array.var(), move |outcome| match outcome {
            Ok(()) => callback.call(None),
            Err(failure) => {
                failure.mark_observed();
                let kind = failure.kind();
                callback.call(Some((kind.name(), &kind.coded(failure.message()))));
            }
        });
        Ok(())
    }

    /// Operators that should compute the array and have not started do not run, unless another
    /// result of theirs is wanted. The array then holds a failure of the kind `cancelled`.
    fn MXRTNDArrayCancel(handle: NDArrayHandle) {
        let array = get::<NDArray>(handle)?;
        array.engine().cancel(array.var());
        Ok(())
    }
}
