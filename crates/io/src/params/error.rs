//! Errors of parameter files.

use crate::FileError;
use mxrt_engine::{FailureKind, OpError, WaitError};

/// The reason why a parameter file could not be read or written. Every variant names the file.
#[derive(Debug, thiserror::Error)]
pub enum ParamsError {
    /// The system refused the file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The bytes are not what the format prescribes.
    #[error("'{path}' is not a valid parameter file: {place}, byte {offset}: {found}. {advice}")]
    Malformed {
        /// the file
        path: String,
        /// part that was being read, such as `dtype of array 2 of 5`
        place: String,
        /// position in the file
        offset: u64,
        /// value that was found, and the expected one
        found: String,
        /// advice for the next step
        advice: &'static str,
    },
    /// The file ends too early.
    #[error(
        "'{path}' is truncated: {place}, byte {offset}: {needed} bytes are needed, and the file ends after {left}. \
         Copy or download the file again"
    )]
    Truncated {
        /// the file
        path: String,
        /// part that was being read
        place: String,
        /// position in the file
        offset: u64,
        /// bytes wanted
        needed: u64,
        /// bytes there
        left: u64,
    },
    /// A sparse array whose positions are damaged.
    #[error("'{path}' is not a valid parameter file: {array}: {problem}. Copy or download the file again")]
    Positions {
        /// the file
        path: String,
        /// the array, by name where it has one
        array: String,
        /// the defect of the positions
        problem: String,
    },
    /// An array that was saved before it had a shape.
    #[error(
        "'{path}': {array} is empty (it was saved before it had a shape), so there is nothing to load. \
         Initialise all parameters (run the model once) before saving"
    )]
    NoArray {
        /// the file
        path: String,
        /// the array, by name where it has one
        array: String,
    },
    /// The file and the caller disagree on np-shape.
    #[error("'{path}': {array} {problem}")]
    NpShape {
        /// the file
        path: String,
        /// name of the array
        array: String,
        /// the disagreement, and what to do next
        problem: &'static str,
    },
    /// An array that the format cannot hold.
    #[error("saving '{path}': {array} {problem}")]
    Unsavable {
        /// the file
        path: String,
        /// name of the array
        array: String,
        /// the reason, and what to do next
        problem: String,
    },
    /// Memory for an array could not be had, or the array is too large for any machine.
    #[error("'{path}': {array}: {source}")]
    Memory {
        /// the file
        path: String,
        /// name of the array
        array: String,
        /// the engine's refusal
        source: OpError,
    },
    /// An array to be saved holds a failure, or waiting for it was interrupted.
    #[error("{0}")]
    Wait(WaitError),
}

impl From<ParamsError> for OpError {
    fn from(error: ParamsError) -> OpError {
        let kind = match &error {
            ParamsError::File(error) => error.failure_kind(),
            ParamsError::Unsavable { .. } => FailureKind::Value,
            ParamsError::Memory { .. } => FailureKind::Memory,
            ParamsError::Wait(WaitError::Failed(failure)) => return OpError::from(failure.clone()),
            _ => FailureKind::Data,
        };
        OpError::new(kind, error.to_string())
    }
}
