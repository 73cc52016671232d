//! Imperative execution: one operator, pushed at once.

use super::bound_operator::BoundOperator;
use super::operator_cache::{BoundOperatorCache, CallAttrs};
use super::{KernelOptions, RandomState};
use crate::definition::{Attrs, OpDef};
use mxrt_engine::{Engine, OpError};
use mxrt_tensor::{Context, NDArray};
use smallvec::SmallVec;
use std::sync::Arc;

/// The context and options with which an operator runs.
pub struct Invocation<'a> {
    /// engine that orders the work
    pub engine: &'static Engine,
    /// context of the outputs when no input determines it
    pub context: Context,
    /// plan-wide choices
    pub options: KernelOptions,
    /// source of randomness
    pub random: &'a RandomState,
}

/// Runs one operator: infers the outputs' types, binds a kernel and pushes it. Returns before it
/// has run.
///
/// `outputs` are arrays to be overwritten (`out=`); without them new ones are made. Shape, type and
/// attribute errors come at once; errors of values stay in the outputs until a read raises them.
#[cfg_attr(debug_assertions, track_caller)]
pub fn invoke(
    call: &Invocation<'_>,
    def: &'static OpDef,
    attrs: &Attrs,
    inputs: &[&NDArray],
    outputs: Option<&[&NDArray]>,
) -> Result<SmallVec<[NDArray; 2]>, OpError> {
    let result = match BoundOperator::new(def, attrs.clone(), call.options, inputs, outputs) {
        Ok(bound) => Arc::new(bound).push(call, inputs, outputs),
        Err(error) => Err(error),
    };
    result.map_err(|e| e.device(context_of(call, inputs, outputs).to_string()))
}

/// Invokes an operator with attributes that are still to be parsed; the bound operator stays in
/// `cache` for the next similar call.
#[cfg_attr(debug_assertions, track_caller)]
pub fn invoke_cached(
    call: &Invocation<'_>,
    cache: &BoundOperatorCache,
    def: &'static OpDef,
    given: CallAttrs<'_>,
    inputs: &[&NDArray],
    outputs: Option<&[&NDArray]>,
) -> Result<SmallVec<[NDArray; 2]>, OpError> {
    let result = match cache.get(def, given, call.options, inputs, outputs) {
        Ok(bound) => bound.push(call, inputs, outputs),
        Err(error) => Err(error),
    };
    result.map_err(|e| e.device(context_of(call, inputs, outputs).to_string()))
}

/// The context of a call's outputs.
pub(super) fn context_of(call: &Invocation<'_>, inputs: &[&NDArray], outputs: Option<&[&NDArray]>) -> Context {
    inputs.first().or_else(|| outputs?.first()).map_or(call.context, |a| a.context())
}
