//! Graphs in several stages, and the types of their calls.

use super::executable::Executable;
use super::plan_cache::CallSignature;
use crate::compile::interrupt::Interrupter;
use crate::ir::{Graph, GraphNode, PartialType, Types, Value, infer_checked, infer_inputs};
use mxrt_engine::ForkSafeMutex as Mutex;
use mxrt_engine::{FailureKind, OpError};
use mxrt_tensor::TensorType;
use std::collections::HashMap;
use std::sync::Arc;

/// Signatures that are remembered to fit the graph.
const MAX_CHECKED: usize = 64;

/// A graph in several stages.
pub(super) struct Staged {
    pub graph: Graph,
    pub executable: Arc<Executable>,
    /// results of the user; those after them are new states
    outputs: usize,
    data_dependent: bool,
    checked: Mutex<HashMap<CallSignature, Arc<CheckedCall>>>,
}

/// Facts about the calls of a signature.
pub(super) struct CheckedCall {
    /// types of the results; none if they follow from contents
    pub outputs: Option<Vec<TensorType>>,
    pub cost_ns: u64,
}

impl Staged {
    pub fn new(graph: Graph, executable: Executable, outputs: usize) -> Staged {
        let data_dependent = graph.nodes.iter().any(GraphNode::is_data_dependent);
        Staged { graph, executable: Arc::new(executable), outputs, data_dependent, checked: Mutex::default() }
    }

    /// Whether shapes of results may follow from contents.
    pub fn is_data_dependent(&self) -> bool {
        self.data_dependent
    }

    /// Types of all values of the graph; none if some follow from contents. Fails where types of
    /// inputs do not fit, whatever the inputs hold.
    pub fn types(&self, inputs: &[TensorType], interrupter: &mut Interrupter<'_>) -> Result<Option<Types>, OpError> {
        if self.data_dependent {
            let known: Vec<PartialType> = inputs.iter().map(PartialType::from).collect();
            return infer_inputs(&self.graph, &known).map(|_| None);
        }
        infer_checked(&self.graph, inputs, &mut || interrupter.check()).map(Some)
    }

    /// Types of the results for these of the inputs; none if they follow from contents. Builds plans.
    pub fn result_types(
        &self,
        inputs: &[TensorType],
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Option<Vec<TensorType>>, OpError> {
        Ok(self.check(inputs, interrupter)?.outputs.clone())
    }

    /// Facts about a call of these types. The first of a signature builds plans.
    pub fn check(&self, inputs: &[TensorType], interrupter: &mut Interrupter<'_>) -> Result<Arc<CheckedCall>, OpError> {
        let known = self.checked.lock().get(inputs).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        if interrupter.is_quick() {
            return Err(interrupter.give_up());
        }
        let types = self.types(inputs, interrupter)?;
        let cost_ns = self.executable.prepare(inputs, types.as_ref(), interrupter)?;
        let outputs = types.map(|types| self.output_types(inputs, &types)).transpose()?;
        let checked = Arc::new(CheckedCall { outputs, cost_ns });
        let mut all = self.checked.lock();
        if all.len() >= MAX_CHECKED {
            all.clear();
        }
        all.insert(inputs.iter().cloned().collect(), checked.clone());
        Ok(checked)
    }

    fn output_types(&self, inputs: &[TensorType], types: &Types) -> Result<Vec<TensorType>, OpError> {
        let one = |value: &Value| match value {
            Value::Input(i) => inputs.get(*i),
            Value::Node(..) => types.get(value),
        };
        let unknown = || OpError::new(FailureKind::Shape, "the type of a result cannot be told").op("CachedOp");
        self.graph.outputs[..self.outputs].iter().map(|value| one(value).cloned().ok_or_else(unknown)).collect()
    }
}
