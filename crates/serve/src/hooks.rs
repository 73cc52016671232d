//! Hooks: a user's functions, in another language. One reads the files of a model; the others are
//! called before and after the model by the endpoints for files. Inference by the protocol calls none.

use crate::refusal::{Outcome, Refusal};
use hyper::StatusCode;
use mxrt_tensor::DType;
use std::path::Path;
use std::sync::Arc;

/// Array that is passed to or from a hook.
#[derive(Clone, Debug)]
pub struct HookArray {
    /// name of the input or output; empty: the only one
    pub name: String,
    /// type of the elements
    pub dtype: DType,
    /// extents, the outermost first
    pub shape: Vec<usize>,
    /// elements, row-major and little-endian
    pub bytes: Vec<u8>,
}

/// Request in the form in which a hook gets it.
#[derive(Debug)]
pub struct HookRequest<'a> {
    /// body as the client sent it
    pub body: &'a [u8],
    /// headers, with names in lower case
    pub headers: &'a [(String, String)],
}

/// Error of a hook.
#[derive(Clone, Debug)]
pub enum HookError {
    /// wrong request, with a message for the client
    Refused(String),
    /// failure of the hook, with a message for the log
    Failed(String),
}

/// Hooks of a model. They are called in threads that may wait.
pub trait Hooks: Send + Sync {
    /// Reads a file of the model, such as one that is encrypted. `None` leaves that to the server.
    fn read(&self, _file: &Path) -> Result<Option<Vec<u8>>, HookError> {
        Ok(None)
    }

    /// Makes the inputs of the model from a request. `None` leaves the decoding of the body to the
    /// server.
    fn before(&self, request: &HookRequest<'_>) -> Result<Option<Vec<HookArray>>, HookError>;
    /// Makes the body and content type of the response. `None` leaves the encoding to the server.
    fn after(&self, outputs: &[HookArray]) -> Result<Option<(Vec<u8>, String)>, HookError>;
}

/// Loads the hooks of a file. The error is a message for the operator.
pub type HookLoader = Arc<dyn Fn(&Path) -> Result<Arc<dyn Hooks>, String> + Send + Sync>;

impl HookError {
    /// Returns the message for the operator.
    pub(crate) fn message(&self) -> &str {
        match self {
            HookError::Refused(words) | HookError::Failed(words) => words,
        }
    }

    /// Returns the refusal for the client, and the message for the log that the client does not
    /// get.
    pub(crate) fn refusal(self) -> (Refusal, Option<String>) {
        match self {
            HookError::Refused(words) => (Refusal::invalid(words), None),
            HookError::Failed(words) => {
                let message = "a hook of the model failed; the server's log says how";
                (Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, Outcome::Hook, message), Some(words))
            }
        }
    }
}
