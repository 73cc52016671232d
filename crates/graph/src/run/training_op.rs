//! Calls of graphs that compute as in training.

use super::cached_op::CachedOp;
use super::call_options::CallOptions;
use super::executor::ExecutorSite;
use super::started::Started;
use crate::compile::flags::CachedOpFlags;
use crate::compile::interrupt::Interrupter;
use crate::symbol::{Node, Symbol, TrainingScope};
use mxrt_engine::{FailureKind, ForkSafeMutex as Mutex, OpError};
use mxrt_tensor::NDArray;
use std::collections::HashMap;
use std::sync::Arc;

/// A graph as in training, which takes the inputs of the graph as in inference.
pub struct TrainingOp {
    op: CachedOp,
    /// position of each input among those of the graph as in inference
    places: Vec<usize>,
}

impl TrainingOp {
    /// Compiles what a symbol computes in training. `None` where that is the same.
    pub fn compile(site: &ExecutorSite, symbol: &Symbol) -> Result<Option<TrainingOp>, OpError> {
        let Some(form) = symbol.in_training(TrainingScope::WHOLE)? else { return Ok(None) };
        // Both graphs have the same variables.
        let inputs = symbol.input_nodes();
        let place_of: HashMap<*const Node, usize> =
            inputs.iter().enumerate().map(|(place, node)| (Arc::as_ptr(node), place)).collect();
        let places = form.input_nodes().iter().filter_map(|node| place_of.get(&Arc::as_ptr(node)).copied()).collect();
        let op = CachedOp::compile(site.engine, &form, &CachedOpFlags::default(), site.options)?;
        Ok(Some(TrainingOp { op: op.with_random(site.random.clone()), places }))
    }

    /// Begins a call; see [`CachedOp::call`].
    pub fn call(
        &self,
        inputs: &[&NDArray],
        outputs: Option<&[&NDArray]>,
        options: &CallOptions,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Started, OpError> {
        let taken: Option<Vec<&NDArray>> = self.places.iter().map(|place| inputs.get(*place).copied()).collect();
        let Some(taken) = taken else {
            let message = format!("{} inputs are too few for the graph as in training", inputs.len());
            return Err(OpError::new(FailureKind::Value, message).op("CachedOp"));
        };
        self.op.call(&taken, outputs, options, interrupter)
    }
}

/// A graph that calls run as in inference or as in training.
pub struct TwoModeOp {
    site: ExecutorSite,
    symbol: Symbol,
    op: CachedOp,
    /// the graph as in training, once it was asked for; `None` inside where it is the same
    training: Mutex<Option<Arc<Option<TrainingOp>>>>,
}

impl TwoModeOp {
    /// Compiles a symbol; its form in training is compiled at the first call that needs it.
    pub fn compile(site: ExecutorSite, symbol: Symbol, flags: &CachedOpFlags) -> Result<TwoModeOp, OpError> {
        let op = CachedOp::compile(site.engine, &symbol, flags, site.options)?.with_random(site.random.clone());
        Ok(TwoModeOp { site, symbol, op, training: Mutex::default() })
    }

    /// Begins a call, as in training or not; see [`CachedOp::call`].
    pub fn call(
        &self,
        trains: bool,
        inputs: &[&NDArray],
        outputs: Option<&[&NDArray]>,
        options: &CallOptions,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Started, OpError> {
        if trains {
            self.op.check_count(inputs.len())?;
            if let Some(op) = &*self.training()? {
                return op.call(inputs, outputs, options, interrupter);
            }
        }
        self.op.call(inputs, outputs, options, interrupter)
    }

    fn training(&self) -> Result<Arc<Option<TrainingOp>>, OpError> {
        if let Some(made) = &*self.training.lock() {
            return Ok(made.clone());
        }
        let made = Arc::new(TrainingOp::compile(&self.site, &self.symbol)?);
        Ok(self.training.lock().get_or_insert(made).clone())
    }
}
