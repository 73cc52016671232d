//! A call whose arrays have been looked at, and where the inputs of its graph come from.

use super::call_options::CallOptions;
use super::call_plan::CallPlan;
use super::inputs::InputSource;
use super::plan_cache::CallSignature;
use mxrt_engine::{FailureKind, OpError};
use mxrt_tensor::{Context, NDArray, ParameterSet, TensorType};
use std::sync::Arc;

/// Sources of the inputs of a graph: arrays of the call, or arrays that are bound.
pub(super) struct Binding {
    /// source of each input
    pub sources: Arc<[InputSource]>,
    /// the arrays that are bound, if any
    pub params: Option<Arc<ParameterSet>>,
    /// whether any of them is sparse
    pub sparse: bool,
    /// whether all constant inputs of the graph are among them
    pub all_bound: bool,
}

impl Binding {
    /// Takes every input from the call.
    pub(super) fn unbound(sources: Arc<[InputSource]>) -> Binding {
        Binding { sources, params: None, sparse: false, all_bound: false }
    }

    /// The array of an input in a call with this data.
    pub(super) fn array<'a>(&'a self, input: usize, data: &[&'a NDArray]) -> Option<&'a NDArray> {
        match *self.sources.get(input)? {
            InputSource::Data(i) => data.get(i).copied(),
            InputSource::Param(i) => self.params.as_ref()?.arrays().get(i),
        }
    }

    /// Whether an input is among the arrays that are bound.
    pub(super) fn is_bound(&self, input: usize) -> bool {
        matches!(self.sources.get(input), Some(InputSource::Param(_)))
    }

    /// The context on which a call with these arrays runs.
    pub(super) fn context(&self, data: &[&NDArray]) -> Context {
        let bound = || self.params.as_ref()?.arrays().first();
        data.first().copied().or_else(bound).map_or_else(Context::default, NDArray::context)
    }
}

/// A call whose arrays have been looked at.
pub(super) struct PreparedCall<'a> {
    pub binding: &'a Binding,
    /// arrays of the inputs that are not bound
    pub data: &'a [&'a NDArray],
    /// inputs that these are; none: all
    pub given: Option<&'a [usize]>,
    /// arrays of the caller for the results
    pub outputs: Option<&'a [&'a NDArray]>,
    pub options: &'a CallOptions,
    /// the plan, where it was found without the types of all inputs
    pub known: Option<Arc<CallPlan>>,
    /// types of all inputs
    pub types: &'a dyn Fn() -> CallSignature,
}

/// Fails unless arrays of the caller have the types of the results.
pub(super) fn fits(outputs: &[&NDArray], types: &[TensorType]) -> Result<(), OpError> {
    if outputs.len() == types.len() && outputs.iter().zip(types).all(|(a, t)| a.tensor_type() == *t) {
        return Ok(());
    }
    let have: Vec<String> = outputs.iter().map(|a| a.tensor_type().to_string()).collect();
    let want: Vec<String> = types.iter().map(|t| t.to_string()).collect();
    let message = format!("the output arrays are {}, but {} are made", have.join(", "), want.join(", "));
    Err(OpError::new(FailureKind::Shape, message).op("CachedOp"))
}
