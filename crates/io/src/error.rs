//! Errors of reading data.

use crate::iterators::prefetch::Problem;
use mxrt_engine::{FailureKind, OpError};
use std::io;

/// An operation on a file that the system refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The file could not be opened.
    #[error("Open \"{path}\": {reason}. {}", advice(path, *.kind))]
    Open {
        /// the file
        path: String,
        /// the system's words
        reason: String,
        /// kind of refusal
        kind: io::ErrorKind,
    },
    /// The file could not be read or written.
    #[error("{doing} '{path}' failed: {reason}")]
    Io {
        /// "reading" or "writing"
        doing: &'static str,
        /// the file
        path: String,
        /// the system's words
        reason: String,
    },
}

/// The reason why a data iterator or a record file could not continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DataError {
    /// The system refused a file.
    #[error(transparent)]
    File(#[from] FileError),
    /// No file where one should be.
    #[error(
        "Cannot find any files that matches the URI pattern {0}. Check the path; it is relative to \
         the directory the program runs in"
    )]
    NoFiles(String),
    /// An argument that cannot be.
    #[error("{0}")]
    Argument(String),
    /// The content is not what the arguments promise, or not what the format prescribes.
    #[error("{place}: {problem}")]
    Content {
        /// file and position
        place: String,
        /// description of the problem
        problem: String,
    },
    /// Something is not supported.
    #[error("{0}")]
    Unsupported(String),
    /// No memory for a batch or a file.
    #[error("{0}")]
    Memory(String),
    /// The prefetcher itself could not continue.
    #[error("{0}")]
    Prefetch(Problem),
}

impl FileError {
    pub(crate) fn open(path: &str, error: &io::Error) -> FileError {
        FileError::Open { path: path.to_owned(), reason: reason(error), kind: error.kind() }
    }

    /// The kind of failure: a missing file or folder has its own kind.
    pub(crate) fn failure_kind(&self) -> FailureKind {
        match self {
            FileError::Open { kind: io::ErrorKind::NotFound, .. } => FailureKind::FileNotFound,
            _ => FailureKind::Data,
        }
    }

    pub(crate) fn io(doing: &'static str, path: &str, error: &io::Error) -> FileError {
        FileError::Io { doing, path: path.to_owned(), reason: reason(error) }
    }
}

/// The advice for a file that cannot be opened.
fn advice(path: &str, kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::NotFound if path.contains("://") => {
            "This is an address, and files are read by their paths: download the file first"
        }
        io::ErrorKind::NotFound => "Check the path; it is relative to the directory the program runs in",
        io::ErrorKind::PermissionDenied => "Check the permissions of the file and of the directories above it",
        io::ErrorKind::IsADirectory => "Name a file in that directory instead",
        _ => "Check that the path names an ordinary file",
    }
}

/// The system's words without the error number that `std` adds.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

impl From<DataError> for OpError {
    fn from(error: DataError) -> OpError {
        let kind = match &error {
            DataError::File(error) => error.failure_kind(),
            DataError::NoFiles(_) => FailureKind::FileNotFound,
            DataError::Argument(_) => FailureKind::Value,
            DataError::Unsupported(_) => FailureKind::NotImplemented,
            DataError::Memory(_) => FailureKind::Memory,
            DataError::Prefetch(Problem::Panicked(_)) => FailureKind::Panic,
            DataError::Prefetch(Problem::Interrupted) => FailureKind::Cancelled,
            _ => FailureKind::Data,
        };
        OpError::new(kind, error.to_string())
    }
}

impl From<FileError> for OpError {
    fn from(error: FileError) -> OpError {
        DataError::from(error).into()
    }
}
