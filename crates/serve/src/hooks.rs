//! What users do with requests and answers in another language: before a model is called, and
//! after. Paths that take files call it; inference by the protocol does not.

use crate::refusal::{Outcome, Refusal};
use hyper::StatusCode;
use mxrt_tensor::DType;
use std::path::Path;
use std::sync::Arc;

/// An array on its way to or from a hook.
#[derive(Clone, Debug)]
pub struct HookArray {
    /// name of the input or output; empty: the only one
    pub name: String,
    /// type of its elements
    pub dtype: DType,
    /// its shape
    pub shape: Vec<usize>,
    /// its elements, row-major and little-endian
    pub bytes: Vec<u8>,
}

/// A request as a hook gets it.
#[derive(Debug)]
pub struct HookRequest<'a> {
    /// its body
    pub body: &'a [u8],
    /// its headers, with names in lower case
    pub headers: &'a [(String, String)],
}

/// Why a hook gave nothing.
#[derive(Clone, Debug)]
pub enum HookError {
    /// the request is wrong, with a text for the client
    Refused(String),
    /// it failed, with a text for the log
    Failed(String),
}

/// The hooks of a model. They are called in threads that may wait.
pub trait Hooks: Send + Sync {
    /// Inputs of the model from a request; none: the request is a file that the server reads.
    fn before(&self, request: &HookRequest<'_>) -> Result<Option<Vec<HookArray>>, HookError>;
    /// Body and content type of the answer; none: a file that the server writes.
    fn after(&self, outputs: &[HookArray]) -> Result<Option<(Vec<u8>, String)>, HookError>;
}

/// Makes the hooks of a file. The error is a text for the operator.
pub type HookLoader = Arc<dyn Fn(&Path) -> Result<Arc<dyn Hooks>, String> + Send + Sync>;

impl HookError {
    /// What the client is told; what it is not told is the text for the log.
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
