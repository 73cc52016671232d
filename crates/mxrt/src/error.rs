//! [`Error`]: what every call of a model may return.

use mxrt_engine::{Details, WrongInput};
use mxrt_engine::{Failure, FailureKind, OpError, WaitError};
use mxrt_graph::GraphError;
use mxrt_io::params::ParamsError;
use mxrt_io::{DataError, FileError};
use std::fmt;

/// The kind of an error.
pub type ErrorKind = FailureKind;

/// An error of a model: of its files, of what was passed, or of an operator while it ran.
///
/// All other errors of this crate convert into it, so that `?` works everywhere. Clones are the
/// same event; an error may be kept, sent to other threads and returned as often as needed.
///
/// ```
/// # fn main() -> Result<(), mxrt::Error> {
/// use mxrt::{ErrorKind, Model};
///
/// let error = Model::load("no/such/model", 0).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::FileNotFound);
/// assert!(error.to_string().contains("no/such/model-symbol.json"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Error(Failure);

impl Error {
    /// An error of a program's own, as operators of programs return it.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        OpError::new(kind, message).into()
    }

    /// The kind of this error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind()
    }

    /// The message, without operator and node where these are known apart from it.
    pub fn message(&self) -> &str {
        self.0.message()
    }

    /// Name of the operator that failed.
    pub fn operator(&self) -> Option<&str> {
        self.details().op.as_deref().filter(|op| !op.is_empty())
    }

    /// Name of the node of the graph.
    pub fn node(&self) -> Option<&str> {
        self.0.node()
    }

    /// Name of the model's input that is to blame.
    pub fn input(&self) -> Option<&str> {
        self.wrong_input().map(|input| input.name.as_str())
    }

    /// The value that was passed as that input, such as a shape or an element type. None: nothing
    /// was.
    pub fn got(&self) -> Option<&str> {
        self.wrong_input()?.got.as_deref()
    }

    /// The expected value of that input. None if there is no such input.
    pub fn wanted(&self) -> Option<&str> {
        self.wrong_input()?.wanted.as_deref()
    }

    /// Attributes of the operator, shapes and element types of its inputs, device, request.
    pub fn details(&self) -> &Details {
        self.0.details()
    }

    /// Whether both are clones of one event.
    pub fn same_event(&self, other: &Error) -> bool {
        self.0.same_event(&other.0)
    }

    fn wrong_input(&self) -> Option<&WrongInput> {
        self.details().input.as_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.details().full_message())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.kind())
    }
}

impl std::error::Error for Error {}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        Error(failure)
    }
}

impl From<OpError> for Error {
    fn from(error: OpError) -> Error {
        let failure = error.to_failure();
        failure.mark_observed();
        Error(failure)
    }
}

impl From<Error> for OpError {
    /// A new error with the same parts: where an operator of a program returns it, it becomes a
    /// failure of that operator.
    fn from(error: Error) -> OpError {
        error.details().clone().into()
    }
}

/// Errors that are errors of operators.
macro_rules! convert {
    ($($error:ty),+) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Error {
                OpError::from(error).into()
            }
        }
    )+};
}

convert!(WaitError, GraphError, ParamsError, DataError, FileError, mxrt_engine::EngineError);
