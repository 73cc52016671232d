//! [`Watch`]: shows the results of every operator of a graph.

use super::cached_op::CachedOp;
use super::call_options::CallOptions;
use super::prepared::fits;
use super::started::call_error;
use super::state_updates::push_copy;
use crate::compile::flags::CachedOpFlags;
use crate::compile::interrupt::Interrupter;
use crate::compile::options::BuildOptions;
use crate::symbol::{Listener, Symbol, WatchedGraph, WatchedSource, WatchedValue};
use mxrt_engine::{Engine, FailureKind, OpError};
use mxrt_ops::RandomState;
use mxrt_tensor::NDArray;
use std::sync::Arc;

/// Computes a graph operator by operator and shows the results in between.
///
/// A compiled graph has no results in between, so a watched graph is compiled once more, with the
/// results of all operators as outputs.
pub struct Watch {
    op: CachedOp,
    inputs: Vec<String>,
    shown: Vec<WatchedValue>,
    heads: Vec<WatchedSource>,
}

/// Everything that one run of a watched graph computed.
pub struct WatchedRun<'a> {
    watch: &'a Watch,
    inputs: Vec<NDArray>,
    results: Vec<NDArray>,
}

impl WatchedRun<'_> {
    fn array(&self, source: WatchedSource) -> &NDArray {
        match source {
            WatchedSource::Input(place) => &self.inputs[place],
            WatchedSource::Result(place) => &self.results[place],
        }
    }

    /// Copies the results of the graph itself to arrays of the caller.
    pub fn store(&self, outputs: &[&NDArray]) -> Result<(), OpError> {
        let heads: Vec<&NDArray> = self.watch.heads.iter().map(|head| self.array(*head)).collect();
        fits(outputs, &heads.iter().map(|array| array.tensor_type()).collect::<Vec<_>>())?;
        heads.iter().zip(outputs).try_for_each(|(from, to)| push_copy(from, to))
    }

    /// Shows name and array of each value.
    pub fn show(&self, show: &mut dyn FnMut(&str, &NDArray)) {
        self.watch.shown.iter().for_each(|value| show(&value.name, self.array(value.source)));
    }
}

impl Watch {
    /// Prepares a graph. With `all`, the inputs of operators are shown too.
    pub fn new(engine: &'static Engine, symbol: &Symbol, options: BuildOptions, all: bool) -> Result<Watch, OpError> {
        let graph = WatchedGraph::new(symbol, Listener::Monitor, all)?;
        let inputs = graph.everything.list_inputs();
        let op = CachedOp::compile(engine, &graph.everything, &CachedOpFlags::default(), options)?;
        Ok(Watch { op, inputs, shown: graph.values, heads: graph.heads })
    }

    /// Takes the numbers of random operators from this stream.
    pub fn with_random(mut self, random: Arc<RandomState>) -> Watch {
        self.op = self.op.with_random(random);
        self
    }

    /// Computes everything for the arrays of the variables, and shows name and array of each value.
    pub fn run(
        &self,
        array_of: &dyn Fn(&str) -> Option<NDArray>,
        show: &mut dyn FnMut(&str, &NDArray),
    ) -> Result<(), OpError> {
        self.compute(array_of)?.show(show);
        Ok(())
    }

    /// Computes everything for the arrays of the variables.
    pub fn compute(&self, array_of: &dyn Fn(&str) -> Option<NDArray>) -> Result<WatchedRun<'_>, OpError> {
        let missing = |name: &String| OpError::new(FailureKind::Value, format!("'{name}' has no array"));
        let inputs = self
            .inputs
            .iter()
            .map(|name| array_of(name).ok_or_else(|| missing(name)))
            .collect::<Result<Vec<_>, _>>()?;
        let refs: Vec<&NDArray> = inputs.iter().collect();
        let started = self.op.call(&refs, None, &CallOptions::default(), &mut Interrupter::never())?;
        let results = started.arrays().map_err(call_error)?.into_vec();
        Ok(WatchedRun { watch: self, inputs, results })
    }
}
