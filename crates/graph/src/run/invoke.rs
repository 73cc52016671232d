//! Imperative calls of operators.

use super::cached_op::CachedOp;
use super::call_options::CallOptions;
use super::started::Started;
use crate::compile::{BuildOptions, CachedOpFlags, Interrupter};
use crate::symbol::Symbol;
use mxrt_engine::{Engine, OpError};
use mxrt_ops::{
    BoundOperatorCache, CallAttrs, Invocation, OpDef, invoke_cached, invoke_data_dependent, invoke_stored,
    knows_storage,
};
use mxrt_tensor::NDArray;
use std::collections::BTreeMap;

/// Runs an operator on arrays. `outputs` are arrays to be overwritten; without them new ones are
/// made. With the naive engine the call is over when this returns.
#[cfg_attr(debug_assertions, track_caller)]
pub fn invoke(
    call: &Invocation<'_>,
    cache: &BoundOperatorCache,
    def: &'static OpDef,
    given: CallAttrs<'_>,
    inputs: &[&NDArray],
    outputs: Option<&[&NDArray]>,
    interrupter: &mut Interrupter<'_>,
) -> Result<Started, OpError> {
    let started = match (def.is_data_dependent(), outputs) {
        (false, _) if knows_storage(def, given, inputs, outputs) => {
            Started::from_iter(invoke_stored(call, cache, def, given, inputs, outputs)?)
        }
        (false, _) => Started::from_iter(invoke_cached(call, cache, def, given, inputs, outputs)?),
        (true, None) => Started::from_iter(invoke_data_dependent(call, def, given, inputs)?),
        (true, Some(outputs)) => {
            Started::from_iter(invoke_data_dependent(call, def, given, inputs)?).stored(outputs, interrupter)?
        }
    };
    started.report(call.engine, interrupter)?;
    Ok(started)
}

/// Runs an operator of the program on arrays, each with the name of its input or none: a graph of
/// one node. `outputs` are arrays to be overwritten; without them new ones are made.
#[cfg_attr(debug_assertions, track_caller)]
pub fn invoke_custom(
    engine: &'static Engine,
    def: &'static OpDef,
    attrs: BTreeMap<String, String>,
    arrays: Vec<(Option<String>, NDArray)>,
    outputs: Option<&[&NDArray]>,
    options: BuildOptions,
    interrupter: &mut Interrupter<'_>,
) -> Result<Started, OpError> {
    let variables = (0..arrays.len()).map(|i| Symbol::variable(&format!("input{i}"), BTreeMap::new()));
    let inputs = arrays.iter().zip(variables).map(|((name, _), variable)| (name.clone(), variable));
    let symbol = Symbol::create(def, def.name.to_lowercase(), attrs, inputs.collect())?;
    let op = CachedOp::compile(engine, &symbol, &CachedOpFlags::default(), options)?;
    // In the order of the graph's inputs, which is that of the operator's.
    let mut ordered = Vec::new();
    for name in symbol.list_inputs() {
        let given = name.strip_prefix("input").and_then(|number| number.parse::<usize>().ok());
        ordered.push(&given.and_then(|i| arrays.get(i)).ok_or_else(|| missing(def, &name))?.1);
    }
    op.call(&ordered, outputs, &CallOptions::default(), interrupter)
}

fn missing(def: &OpDef, name: &str) -> OpError {
    let message = format!("the input '{}' is missing", name.strip_prefix("custom_").unwrap_or(name));
    OpError::new(mxrt_engine::FailureKind::Value, message).op(def.name)
}
