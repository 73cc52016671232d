//! [`Watch`]: shows the results of every operator of a graph.

use super::cached_op::CachedOp;
use super::call_options::CallOptions;
use super::started::call_error;
use crate::compile::flags::CachedOpFlags;
use crate::compile::interrupt::Interrupter;
use crate::compile::options::BuildOptions;
use crate::symbol::{NodeEntry, Symbol};
use mxrt_engine::{Engine, FailureKind, OpError};
use mxrt_tensor::NDArray;
use std::collections::HashMap;
use std::sync::Arc;

/// Source of a watched value.
#[derive(Clone, Copy)]
enum WatchedSource {
    /// a variable, by its place among the inputs
    Input(usize),
    /// an operator, by the place among the results
    Result(usize),
}

/// Computes a graph operator by operator and shows the results in between.
///
/// A compiled graph has no results in between, so a watched graph is compiled once more, with the
/// results of all operators as outputs.
pub struct Watch {
    op: CachedOp,
    inputs: Vec<String>,
    /// names and sources of the values, in the order in which they are shown
    shown: Vec<(String, WatchedSource)>,
}

impl Watch {
    /// Prepares a graph. With `all`, the inputs of operators are shown too.
    pub fn new(engine: &'static Engine, symbol: &Symbol, options: BuildOptions, all: bool) -> Result<Watch, OpError> {
        let nodes = symbol.topo();
        let (mut results, mut first) = (Vec::new(), HashMap::new());
        for node in nodes.iter().filter(|node| !node.is_variable()) {
            first.insert(Arc::as_ptr(node).addr(), results.len());
            results.extend((0..node.num_outputs()).map(|i| NodeEntry::new(node.clone(), i)));
        }
        let everything = Symbol::from_entries(results);
        let variables = everything.input_nodes();
        let places: HashMap<usize, usize> =
            variables.iter().enumerate().map(|(i, node)| (Arc::as_ptr(node).addr(), i)).collect();
        let source = |entry: &NodeEntry| {
            let node = Arc::as_ptr(&entry.node).addr();
            match first.get(&node) {
                Some(place) => Some(WatchedSource::Result(place + entry.index)),
                None => places.get(&node).copied().map(WatchedSource::Input),
            }
        };
        let mut shown = Vec::new();
        for node in nodes.iter().filter(|node| !node.is_variable()) {
            if all {
                for (entry, input) in node.inputs.iter().zip(node.input_names()) {
                    let Some(from) = source(entry) else { continue };
                    if entry.node.is_variable() {
                        shown.push((entry.node.name.clone(), from));
                    }
                    shown.push((format!("{}_{input}", node.name), from));
                }
            }
            let outputs = (0..node.num_outputs()).map(|i| NodeEntry::new(node.clone(), i));
            shown.extend(outputs.filter_map(|entry| Some((node.output_name(entry.index), source(&entry)?))));
        }
        let inputs = variables.iter().map(|node| node.name.clone()).collect();
        let op = CachedOp::compile(engine, &everything, &CachedOpFlags::default(), options)?;
        Ok(Watch { op, inputs, shown })
    }

    /// Computes everything for the arrays of the variables, and shows name and array of each value.
    pub fn run(
        &self,
        array_of: &dyn Fn(&str) -> Option<NDArray>,
        show: &mut dyn FnMut(&str, &NDArray),
    ) -> Result<(), OpError> {
        let missing = |name: &String| OpError::new(FailureKind::Value, format!("'{name}' has no array"));
        let inputs = self
            .inputs
            .iter()
            .map(|name| array_of(name).ok_or_else(|| missing(name)))
            .collect::<Result<Vec<_>, _>>()?;
        let refs: Vec<&NDArray> = inputs.iter().collect();
        let started = self.op.call(&refs, None, &CallOptions::default(), &mut Interrupter::never())?;
        let results = started.arrays().map_err(call_error)?;
        for (name, source) in &self.shown {
            match *source {
                WatchedSource::Input(place) => show(name, &inputs[place]),
                WatchedSource::Result(place) => show(name, &results[place]),
            }
        }
        Ok(())
    }
}
