//! Imperative calls of operators of the program.

use super::cached_op::CachedOp;
use super::call_options::CallOptions;
use crate::compile::{BuildOptions, CachedOpFlags};
use crate::symbol::Symbol;
use mxrt_engine::{Engine, OpError};
use mxrt_ops::OpDef;
use mxrt_tensor::NDArray;
use smallvec::SmallVec;
use std::collections::BTreeMap;

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
) -> Result<SmallVec<[NDArray; 2]>, OpError> {
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
    op.call_with(&ordered, outputs, &CallOptions::default())
}

fn missing(def: &OpDef, name: &str) -> OpError {
    let message = format!("the input '{}' is missing", name.strip_prefix("custom_").unwrap_or(name));
    OpError::new(mxrt_engine::FailureKind::Value, message).op(def.name)
}
