//! The border to C: results become return codes, and panics stop here.

use mxrt::{GraphError, OpError, WaitError};
use mxrt::{io::DataError, params::ParamsError};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// An error as a C caller sees it: MXNet's name for its kind, and the message.
pub(crate) struct Error {
    class: &'static str,
    message: String,
}

impl Error {
    /// An invalid argument.
    pub(crate) fn value(message: impl Into<String>) -> Error {
        Error { class: "ValueError", message: message.into() }
    }

    /// A function that there is not.
    pub(crate) fn absent(message: impl Into<String>) -> Error {
        Error { class: "NotImplementedError", message: message.into() }
    }

    /// An error without a class of its own.
    pub(crate) fn plain(message: impl Into<String>) -> Error {
        Error { class: "MXNetError", message: message.into() }
    }
}

impl From<OpError> for Error {
    fn from(error: OpError) -> Error {
        Error { class: error.kind.c_class(), message: error.to_string() }
    }
}

impl From<WaitError> for Error {
    fn from(error: WaitError) -> Error {
        let class = match &error {
            WaitError::Failed(failure) => failure.kind().c_class(),
            _ => "MXNetError",
        };
        Error { class, message: error.to_string() }
    }
}

impl From<GraphError> for Error {
    fn from(error: GraphError) -> Error {
        OpError::from(error).into()
    }
}

impl From<ParamsError> for Error {
    fn from(error: ParamsError) -> Error {
        OpError::from(error).into()
    }
}

impl From<DataError> for Error {
    fn from(error: DataError) -> Error {
        OpError::from(error).into()
    }
}

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::new(CString::default());
}

/// Runs the body of a C function. Returns 0, or -1 with the error stored for `MXGetLastError`.
pub(crate) fn guard(body: impl FnOnce() -> Result<(), Error>) -> c_int {
    let error = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return 0,
        Ok(Err(error)) => error,
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
            let message = format!("mxrt panicked, which is a fault of mxrt: {}", text.unwrap_or("no message"));
            Error { class: "InternalError", message }
        }
    };
    remember(&error);
    -1
}

/// Functions of the C interface whose bodies return a `Result`. The bodies are unsafe: they use the
/// caller's pointers through `pointers`.
macro_rules! c_functions {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> std::ffi::c_int {
            $crate::border::guard(|| {
                // SAFETY: the caller keeps the promises of the header.
                #[allow(unused_unsafe, reason = "some bodies use no pointer")]
                let done: Result<(), $crate::border::Error> = unsafe { $body };
                done
            })
        }
    )*};
}
pub(crate) use c_functions;

fn remember(error: &Error) {
    let text: String = format!("{}: {}", error.class, error.message).replace('\0', "\\0");
    // A thread that is ending has no caller that could ask.
    let _ = LAST_ERROR.try_with(|last| {
        if let (Ok(mut last), Ok(text)) = (last.try_borrow_mut(), CString::new(text)) {
            *last = text;
        }
    });
}

/// The message of this thread's last error; empty when there was none. Valid until the thread's
/// next error.
#[unsafe(no_mangle)]
pub extern "C" fn MXGetLastError() -> *const c_char {
    const NOTHING: &CStr = c"";
    let pointer = LAST_ERROR.try_with(|last| last.try_borrow().map(|last| last.as_ptr()));
    pointer.ok().and_then(Result::ok).unwrap_or(NOTHING.as_ptr())
}

/// As `MXGetLastError`.
#[unsafe(no_mangle)]
pub extern "C" fn NNGetLastError() -> *const c_char {
    MXGetLastError()
}

/// Sets this thread's last error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NNAPISetLastError(msg: *const c_char) {
    // SAFETY: the caller promises a text.
    let Ok(message) = (unsafe { crate::pointers::text(msg, "msg") }) else { return };
    let _ = LAST_ERROR.try_with(|last| {
        if let (Ok(mut last), Ok(text)) = (last.try_borrow_mut(), CString::new(message)) {
            *last = text;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last() -> String {
        // SAFETY: the function gives a text that is valid until the next error of this thread.
        unsafe { CStr::from_ptr(MXGetLastError()) }.to_str().expect("UTF-8").to_owned()
    }

    #[test]
    fn a_panic_is_a_return_code_and_a_message() {
        assert_eq!(guard(|| panic!("a bug of number {}", 7)), -1);
        assert_eq!(last(), "InternalError: mxrt panicked, which is a fault of mxrt: a bug of number 7");
    }

    #[test]
    fn a_zero_byte_does_not_cut_a_message_short() {
        assert_eq!(guard(|| Err(Error::value("before\0after"))), -1);
        assert_eq!(last(), "ValueError: before\\0after");
    }
}
