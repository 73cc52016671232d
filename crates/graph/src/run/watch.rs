//! [`Watch`]: shows the results of every operator of a graph.

use super::cached_op::CachedOp;
use super::call_options::CallOptions;
use super::started::call_error;
use crate::compile::flags::CachedOpFlags;
use crate::compile::interrupt::Interrupter;
use crate::compile::options::BuildOptions;
use crate::symbol::{Listener, Symbol, WatchedGraph, WatchedSource, WatchedValue};
use mxrt_engine::{Engine, FailureKind, OpError};
use mxrt_tensor::NDArray;

/// Computes a graph operator by operator and shows the results in between.
///
/// A compiled graph has no results in between, so a watched graph is compiled once more, with the
/// results of all operators as outputs.
pub struct Watch {
    op: CachedOp,
    inputs: Vec<String>,
    shown: Vec<WatchedValue>,
}

impl Watch {
    /// Prepares a graph. With `all`, the inputs of operators are shown too.
    pub fn new(engine: &'static Engine, symbol: &Symbol, options: BuildOptions, all: bool) -> Result<Watch, OpError> {
        let graph = WatchedGraph::new(symbol, Listener::Monitor, all)?;
        let inputs = graph.everything.list_inputs();
        let op = CachedOp::compile(engine, &graph.everything, &CachedOpFlags::default(), options)?;
        Ok(Watch { op, inputs, shown: graph.values })
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
        for value in &self.shown {
            match value.source {
                WatchedSource::Input(place) => show(&value.name, &inputs[place]),
                WatchedSource::Result(place) => show(&value.name, &results[place]),
            }
        }
        Ok(())
    }
}
