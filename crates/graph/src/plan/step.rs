//! Steps of a plan: a kernel, and where its operands are stored.

use super::{Plan, PlanRequest};
use crate::ir::describe;
use mxrt_engine::OpError;
use mxrt_ops::{Kernel, KernelCall, RandomKey, par_chunks_mut};
use mxrt_tensor::{TensorMut, TensorRef, TensorType};
use std::sync::Arc;

/// Place of an operand of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperandPlace {
    /// argument of the call
    Input(usize),
    /// constant of the plan
    Const(usize),
    /// piece of the arena, by its number among the pieces that the step uses
    Arena(usize),
    /// result of the call
    Output(usize),
    /// place of the step's first output, which overwrites the operand
    Shared,
    /// no place: the step reads its packed form, a constant
    Packed,
}

/// An operand: its place and its type.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    pub place: OperandPlace,
    pub tensor: TensorType,
}

/// A piece of the arena that a step uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArenaPiece {
    pub offset: usize,
    pub bytes: usize,
    pub written: bool,
}

/// Place of the packed weights of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PackedPlace {
    /// among the constants
    Const(usize),
    /// packed again for every request, because the weights are not constant; piece number
    Arena(usize),
    /// packed before the first iteration of the loop that runs the plan; number among those
    Once(usize),
}

/// A value that a step reads, for failures that it inherits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepNeed {
    /// argument of the call
    Input(usize),
    /// constant of the plan
    Const(usize),
    /// value that an earlier step makes
    Step(usize),
}

impl Step {
    /// Whether the packed form of this input is a constant, which the kernel reads instead.
    pub fn is_packed(&self, input: usize) -> bool {
        matches!(self.packed, Some(PackedPlace::Const(_)))
            && self.kernel.packing().is_some_and(|packing| packing.inputs().contains(&input))
    }

    /// Bytes of the packed weights that the step reads, which are constants.
    pub fn packed_bytes(&self) -> usize {
        match (&self.body, self.packed, self.kernel.packing()) {
            (Some(body), ..) => body.packed_bytes(),
            (None, Some(PackedPlace::Const(_)), Some(packing)) => packing.bytes(),
            _ => 0,
        }
    }

    /// Adds the node of the user's symbol and the types of its inputs to an error, unless a step
    /// inside this one has done so.
    pub fn describe(&self, error: OpError) -> OpError {
        if self.body.is_some() && error.node.is_some() {
            return error;
        }
        let inputs = self.inputs.iter().map(|operand| &operand.tensor);
        describe(error, (self.stands_for, &self.name, &self.attrs), inputs)
    }
}

/// One kernel with its operands.
pub(crate) struct Step {
    pub kernel: Box<dyn Kernel>,
    /// plans that run instead of the kernel, if the step has some
    pub body: Option<Arc<dyn StepBody>>,
    /// operator of the plan, for its text
    pub op: &'static str,
    /// operator of the user's symbol, for messages
    pub stands_for: &'static str,
    pub name: Arc<str>,
    pub attrs: Arc<Vec<(String, String)>>,
    pub inputs: Vec<Operand>,
    pub outputs: Vec<Operand>,
    /// pieces of the arena, by offset; no two overlap
    pub pieces: Vec<ArenaPiece>,
    /// piece number of the workspace
    pub workspace: Option<usize>,
    pub packed: Option<PackedPlace>,
    /// whether the step draws from the random stream
    pub random: bool,
    /// needs of the step, in the order of its operands
    pub needs: Vec<StepNeed>,
}

/// A step with plans of its own, as control flow is. A kernel knows neither parameters nor the site
/// of the run, so such a step runs its plans itself.
pub(crate) trait StepBody: Send + Sync {
    /// Runs the plans. Errors of their steps name node and iteration.
    fn run(&self, call: BodyCall<'_, '_>) -> Result<(), OpError>;
    /// The plans, and those inside them.
    fn plans(&self) -> Vec<&Plan>;
    /// The inputs of the outer graph that the plans read unpacked, by number.
    fn inputs_read(&self) -> Vec<usize>;
    /// Bytes of the packed weights that the steps of the plans for each iteration read.
    fn packed_bytes(&self) -> usize;
}

/// Arguments of a step with plans of its own.
pub(crate) struct BodyCall<'a, 'o> {
    pub request: &'a PlanRequest<'a>,
    pub inputs: &'a [TensorRef<'a>],
    pub outputs: &'a mut [TensorMut<'o>],
    pub workspace: &'a mut [u8],
    /// the step's piece of the random stream, if its plans draw
    pub random: Option<RandomKey>,
}

/// Copies a value to another place that needs it: a result that is an argument, a constant or
/// another result, or a part of a joined value.
pub(crate) struct CopyKernel;

/// Bytes of a chunk of a copy.
const COPY_CHUNK: usize = 256 << 10;

impl Kernel for CopyKernel {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        let from = call.inputs[0].bytes();
        par_chunks_mut(call.par, call.outputs[0].bytes_mut(), COPY_CHUNK, |i, to| {
            to.copy_from_slice(&from[i * COPY_CHUNK..][..to.len()]);
        });
        Ok(())
    }

    fn describe(&self) -> String {
        "copy".to_owned()
    }
}
