//! The border to C: results become return codes, and panics stop here.

use crate::pointers::put;
use mxrt::internal::io::DataError;
use mxrt::internal::{FailureKind, GraphError, OpError, WaitError};
use mxrt::params::ParamsError;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// An error as a C caller sees it: its kind, for which MXNet has a name, and the message.
pub(crate) struct Error {
    kind: FailureKind,
    message: String,
}

impl Error {
    /// An invalid argument.
    pub(crate) fn value(message: impl Into<String>) -> Error {
        Error { kind: FailureKind::Value, message: message.into() }
    }

    /// A function that there is not.
    pub(crate) fn absent(message: impl Into<String>) -> Error {
        Error { kind: FailureKind::NotImplemented, message: message.into() }
    }

    /// An error of another kind.
    pub(crate) fn of_kind(kind: FailureKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into() }
    }

    /// An error without a kind of its own.
    pub(crate) fn plain(message: impl Into<String>) -> Error {
        Error { kind: FailureKind::Operator, message: message.into() }
    }
}

impl From<OpError> for Error {
    fn from(error: OpError) -> Error {
        Error { kind: error.kind, message: error.to_string() }
    }
}

impl From<mxrt::Error> for Error {
    fn from(error: mxrt::Error) -> Error {
        Error { kind: error.kind(), message: error.details().full_message() }
    }
}

impl From<WaitError> for Error {
    fn from(error: WaitError) -> Error {
        let kind = match &error {
            WaitError::Failed(failure) => failure.kind(),
            WaitError::Closed => FailureKind::Shutdown,
            _ => FailureKind::Operator,
        };
        Error { kind, message: error.to_string() }
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

/// The last error of a thread, as the thread can query it.
#[derive(Default)]
struct LastError {
    /// message with its code, prefixed with MXNet's name for the kind
    text: CString,
    kind: CString,
    message: CString,
}

thread_local! {
    static LAST_ERROR: RefCell<LastError> = RefCell::default();
}

/// Runs the body of a C function. Returns 0, or -1 with the error stored for `MXGetLastError`.
pub(crate) fn guard(body: impl FnOnce() -> Result<(), Error>) -> c_int {
    let error = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return 0,
        Ok(Err(error)) => error,
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
            let message = format!("mxrt panicked, which is a fault of mxrt: {}", text.unwrap_or("no message"));
            Error { kind: FailureKind::Panic, message }
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
    let message = error.kind.coded(&error.message.replace('\0', "\\0"));
    let text = format!("{}: {message}", error.kind.c_class());
    store(&text, error.kind, &message);
}

fn store(text: &str, kind: FailureKind, message: &str) {
    let c_text = |text: &str| CString::new(text).unwrap_or_default();
    let error = LastError { text: c_text(text), kind: c_text(kind.name()), message: c_text(message) };
    // A thread that is ending has no caller that could ask.
    let _ = LAST_ERROR.try_with(|last| last.try_borrow_mut().map(|mut last| *last = error));
}

/// Part of this thread's last error; empty when there was none.
fn last(part: impl FnOnce(&LastError) -> *const c_char) -> *const c_char {
    const NOTHING: &CStr = c"";
    let pointer = LAST_ERROR.try_with(|last| last.try_borrow().map(|last| part(&last)));
    pointer.ok().and_then(Result::ok).unwrap_or(NOTHING.as_ptr())
}

/// The message of this thread's last error; empty when there was none. Valid until the thread's
/// next error.
#[unsafe(no_mangle)]
pub extern "C" fn MXGetLastError() -> *const c_char {
    last(|error| error.text.as_ptr())
}

c_functions! {
    /// The kind of this thread's last error, such as `shape`, and its message. The message ends with
    /// the code of the kind, and has no name of a class in front. Both are empty when there was none,
    /// and valid until the thread's next error.
    fn MXRTGetLastError(out_kind: *mut *const c_char, out_message: *mut *const c_char) {
        let (kind, message) = (last(|error| error.kind.as_ptr()), last(|error| error.message.as_ptr()));
        put(out_kind, kind, "out_kind")?;
        put(out_message, message, "out_message")
    }
}

/// Alias of `MXGetLastError`.
#[unsafe(no_mangle)]
pub extern "C" fn NNGetLastError() -> *const c_char {
    MXGetLastError()
}

/// Sets this thread's last error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NNAPISetLastError(msg: *const c_char) {
    // SAFETY: the caller promises a text.
    let Ok(message) = (unsafe { crate::pointers::text(msg, "msg") }) else { return };
    store(message, FailureKind::Operator, message);
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
        assert_eq!(last(), "InternalError: mxrt panicked, which is a fault of mxrt: a bug of number 7 [MX-DEFECT]");
    }

    #[test]
    fn a_zero_byte_does_not_cut_a_message_short() {
        assert_eq!(guard(|| Err(Error::value("before\0after"))), -1);
        assert_eq!(last(), "MXNetError: before\\0after [MX-VALUE]");
    }
}
