//! A call of a callback operator, from the stage of a graph to its results.

use super::{CustomNode, CustomOperator, Question};
use crate::prelude::*;
use mxrt_engine::{Engine, FailureKind, ForkSafeMutex};
use mxrt_tensor::{Context, NDArray, TensorRef, TensorType};
use std::sync::Arc;

/// An operator that the program computes, as graphs see it. A call is handed over and suspended
/// until the program has answered.
pub struct Callback {
    operator: Arc<dyn CustomOperator>,
    arguments: usize,
    outputs: usize,
}

/// Binds the kernel of a node whose operator runs as one.
pub(crate) fn custom_kernel(node: &CustomNode, signature: &Signature<'_>) -> BoundKernel {
    let absent = || not_implemented("an operator of the program is a stage of a graph; no kernel computes it");
    node.operator.kernel(signature).ok_or_else(absent)
}

impl Callback {
    /// Describes the operator of a node. `None` if it runs as a kernel.
    pub(crate) fn of(node: &CustomNode) -> Option<Callback> {
        let (operator, arguments, outputs) = (node.operator.clone(), node.arguments, node.outputs.len());
        (!operator.runs_as_kernel()).then_some(Callback { operator, arguments, outputs })
    }

    /// Runs a question about types in a thread of the program. Returns at once.
    pub fn ask(&self, question: Question) {
        self.operator.ask(question);
    }

    /// Makes the arrays of a call: inputs and states with these contents, and outputs of these
    /// types. Types after those of the visible outputs belong to the states.
    pub fn arrays(
        &self,
        engine: &'static Engine,
        inputs: &[TensorRef<'_>],
        outputs: &[TensorType],
    ) -> Result<CustomArrays, OpError> {
        let context = Context::default();
        let copy = |tensor: &TensorRef<'_>| {
            let of = TensorType { dtype: tensor.dtype, shape: tensor.shape.clone() };
            NDArray::from_bytes(engine, context, of, tensor.bytes())
        };
        let mut copies = inputs.iter().map(copy).collect::<Result<Vec<_>, _>>()?;
        let states = copies.split_off(self.arguments.min(copies.len()));
        let visible = outputs.get(..self.outputs).unwrap_or(outputs);
        let outputs = visible.iter().map(|of| NDArray::new(engine, context, of.clone()));
        Ok(CustomArrays { inputs: copies, states, outputs: outputs.collect::<Result<_, _>>()? })
    }

    /// Hands a call to the program. `reply` is called once, in any thread, unless the call is
    /// dropped.
    pub fn begin(&self, arrays: CustomArrays, reply: CustomReply) {
        self.operator.begin(CustomCall { arrays, reply: ForkSafeMutex::new(Some(reply)) });
    }

    /// Checks the results of a call against the types that were inferred.
    pub fn check(&self, results: &[Vec<u8>], types: &[TensorType]) -> Result<(), OpError> {
        if results.len() != types.len() {
            return Err(wrong_arity());
        }
        if results.iter().zip(types).any(|(bytes, tensor)| bytes.len() != tensor.bytes()) {
            return Err(shape_error("an output of an operator of the program has another size than inferred"));
        }
        Ok(())
    }
}

/// The arrays of a call. They belong to the program: no operator of a graph uses them.
pub struct CustomArrays {
    /// copies of the arguments
    pub inputs: Vec<NDArray>,
    /// copies of the auxiliary states, which the function may change
    pub states: Vec<NDArray>,
    /// zeros, which the function overwrites
    pub outputs: Vec<NDArray>,
}

/// Contents of the outputs, then of the states, or the error of the call.
pub type CustomResults = Result<Vec<Vec<u8>>, OpError>;

/// A function that takes the results.
pub type CustomReply = Box<dyn FnOnce(CustomResults) + Send>;

/// A call in a thread of the program.
pub struct CustomCall {
    arrays: CustomArrays,
    reply: ForkSafeMutex<Option<CustomReply>>,
}

impl CustomCall {
    /// The arrays that the function reads and writes.
    pub fn arrays(&self) -> &CustomArrays {
        &self.arrays
    }

    /// Ends the call after the function has ended. Waits until the ops that it has pushed have
    /// written the outputs and the states. Only the first call of this counts.
    pub fn finish(&self, result: Result<(), OpError>) {
        let results = result.and_then(|()| self.contents());
        let engine = self.arrays.engine();
        // A child has both halves of this or none.
        let answer = || {
            if let Some(reply) = self.reply.lock().take() {
                reply(results);
            }
        };
        match engine {
            Some(engine) => engine.without_fork(answer),
            None => answer(),
        }
    }

    fn contents(&self) -> CustomResults {
        let CustomArrays { outputs, states, .. } = &self.arrays;
        outputs.iter().chain(states).map(|array| Ok(array.to_bytes()?)).collect()
    }
}

impl Drop for CustomCall {
    fn drop(&mut self) {
        if let Some(reply) = self.reply.lock().take() {
            let message = "the program gave up the call of its operator without a result";
            reply(Err(OpError::new(FailureKind::NotCompleted, message)));
        }
    }
}

impl CustomArrays {
    /// The engine that the arrays belong to. `None` if there are no arrays.
    pub fn engine(&self) -> Option<&'static Engine> {
        let first = self.outputs.iter().chain(&self.states).chain(&self.inputs).next()?;
        Some(first.engine())
    }
}
