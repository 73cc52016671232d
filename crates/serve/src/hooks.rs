//! Hooks: a user's functions, in another language. One reads the files of a model; the others are
//! called before and after the model: by the endpoints for files, and by inference by the protocol
//! if they declare its tensors.

use crate::protocol::Datatype;
use crate::refusal::{Cause, Refusal};
use std::path::Path;
use std::sync::Arc;

/// Array that is passed to or from a hook.
#[derive(Clone, Debug)]
pub struct HookArray {
    /// name of the input or output; empty: the only one
    pub name: String,
    /// type of the elements
    pub datatype: Datatype,
    /// extents, the outermost first
    pub shape: Vec<usize>,
    /// elements, row-major and little-endian; a string is its length in four bytes, and its bytes
    pub bytes: Vec<u8>,
}

/// Tensor that hooks declare.
#[derive(Clone, Debug)]
pub struct HookTensor {
    /// name of the input or output
    pub name: String,
    /// name of the element type in the protocol
    pub datatype: String,
    /// extents, of which a negative one is free
    pub shape: Vec<i64>,
}

/// Tensors of requests by the protocol that hooks declare in place of the model's own.
#[derive(Clone, Debug, Default)]
pub struct HookTensors {
    /// tensors that [`Hooks::decode`] gets; none: the model's inputs
    pub inputs: Option<Vec<HookTensor>>,
    /// tensors that [`Hooks::encode`] makes; none: the model's outputs
    pub outputs: Option<Vec<HookTensor>>,
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

    /// Returns whether [`Hooks::before`] or [`Hooks::after`] may do something with a body.
    fn takes_bodies(&self) -> Result<bool, HookError> {
        Ok(true)
    }

    /// Makes the inputs of the model from a request. `None` leaves the decoding of the body to the
    /// server.
    fn before(&self, request: &HookRequest<'_>) -> Result<Option<Vec<HookArray>>, HookError>;
    /// Makes the body and content type of the response. `None` leaves the encoding to the server.
    fn after(&self, outputs: &[HookArray]) -> Result<Option<(Vec<u8>, String)>, HookError>;

    /// Declares tensors of requests by the protocol. The model's own are the default.
    fn tensors(&self) -> Result<HookTensors, HookError> {
        Ok(HookTensors::default())
    }

    /// Makes the inputs of the model from the tensors of a request, which are declared.
    fn decode(&self, _inputs: &[HookArray]) -> Result<Vec<HookArray>, HookError> {
        Err(HookError::Failed("there is no hook that decodes".to_owned()))
    }

    /// Makes the tensors of the response, which are declared, from the outputs of the model.
    fn encode(&self, _outputs: &[HookArray]) -> Result<Vec<HookArray>, HookError> {
        Err(HookError::Failed("there is no hook that encodes".to_owned()))
    }
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
                (Refusal::new(Cause::Hook, message), Some(words))
            }
        }
    }
}
