//! A call of an operator of the program, from the step of a plan to its results.

use super::CustomNode;
use crate::prelude::*;
use mxrt_engine::{Engine, FailureKind, ForkSafeMutex, OpError};
use mxrt_tensor::{Context, NDArray, TensorMut, TensorRef, TensorType};
use std::sync::Arc;

/// Small work for a core: the arrays are copied. What the program does takes no core.
const BEGIN_NS: u64 = 100_000;

/// Takes a call, and returns at once.
pub type BeginCall = dyn Fn(CustomCall) + Send + Sync;

/// What a plan does instead of running a kernel: it hands a call over, and goes on when that has
/// been answered.
pub struct CustomKernel {
    begin: Arc<BeginCall>,
    arguments: usize,
    outputs: usize,
}

/// The kernel of a node: that of the operator, or one that cannot be run as others.
pub(crate) fn custom_kernel(node: &CustomNode, signature: &Signature<'_>) -> Box<dyn Kernel> {
    if let Some(kernel) = node.operator.kernel(signature).filter(|_| node.states() == 0) {
        return kernel;
    }
    let operator = node.operator.clone();
    Box::new(CustomKernel::new(Arc::new(move |call| operator.begin(call)), node.arguments, node.outputs.len()))
}

impl Kernel for CustomKernel {
    fn run(&self, _: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        Err(not_implemented("an operator of the program runs as a step of a plan on the cpu, and nowhere else"))
    }

    fn custom(&self) -> Option<&CustomKernel> {
        Some(self)
    }

    fn describe(&self) -> String {
        "in a thread of the program".to_owned()
    }

    fn cost_ns(&self) -> u64 {
        BEGIN_NS
    }
}

impl CustomKernel {
    /// What calls take and give: so many arguments, with states behind them, and so many outputs.
    pub fn new(begin: Arc<BeginCall>, arguments: usize, outputs: usize) -> CustomKernel {
        CustomKernel { begin, arguments, outputs }
    }

    /// Arrays for a call: inputs and states with these contents, and outputs of these types, of
    /// which those behind the visible ones belong to the states.
    pub fn arrays(
        &self,
        engine: &'static Engine,
        inputs: &[TensorRef<'_>],
        outputs: &[TensorType],
        random: Option<RandomKey>,
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
        Ok(CustomArrays { inputs: copies, states, outputs: outputs.collect::<Result<_, _>>()?, random })
    }

    /// Hands a call to the program. `reply` is called once, in any thread, unless the call is
    /// dropped.
    pub fn begin(&self, arrays: CustomArrays, reply: CustomReply) {
        (self.begin)(CustomCall { arrays, reply: ForkSafeMutex::new(Some(reply)) });
    }

    /// Writes the results of a call into the outputs of the step.
    pub fn store(&self, results: &[Vec<u8>], outputs: &mut [TensorMut<'_>]) -> Result<(), OpError> {
        if results.len() != outputs.len() {
            return Err(wrong_arity());
        }
        for (bytes, output) in results.iter().zip(outputs) {
            let to = output.bytes_mut();
            if to.len() != bytes.len() {
                return Err(shape_error("an output of an operator of the program has another size than inferred"));
            }
            to.copy_from_slice(bytes);
        }
        Ok(())
    }
}

/// The arrays of a call. They are the program's: no operator of a graph uses them.
pub struct CustomArrays {
    /// copies of the arguments
    pub inputs: Vec<NDArray>,
    /// copies of the auxiliary states, to be changed
    pub states: Vec<NDArray>,
    /// zeros, to be written
    pub outputs: Vec<NDArray>,
    /// the call's piece of the random stream of its model
    pub random: Option<RandomKey>,
}

/// Contents of the outputs, then of the states, or why there are none.
pub type CustomResults = Result<Vec<Vec<u8>>, OpError>;

/// Takes the results.
pub type CustomReply = Box<dyn FnOnce(CustomResults) + Send>;

/// A call in a thread of the program.
pub struct CustomCall {
    arrays: CustomArrays,
    reply: ForkSafeMutex<Option<CustomReply>>,
}

impl CustomCall {
    /// What the function reads and writes.
    pub fn arrays(&self) -> &CustomArrays {
        &self.arrays
    }

    /// The function has ended. Waits for what it has pushed to write the outputs and the states.
    /// Only the first call of this counts.
    pub fn finish(&self, result: Result<(), OpError>) {
        self.finish_with(result.and_then(|()| self.contents()));
    }

    /// The same with results that are not in the arrays.
    pub fn finish_with(&self, results: CustomResults) {
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
    /// The engine that the arrays belong to; None if there are no arrays.
    pub fn engine(&self) -> Option<&'static Engine> {
        let first = self.outputs.iter().chain(&self.states).chain(&self.inputs).next()?;
        Some(first.engine())
    }
}
