//! Running a plan: one request, step by step.

use super::build::{Operand, Packed, Place, Plan, Step};
use super::consts::{ConstEnv, ConstSet, ValueKey, pack_with};
use mxrt_engine::memory::MemoryPool;
use mxrt_engine::{FailureKind, OpError};

use mxrt_ops::{KernelCall, Par, RandomKey};
use mxrt_tensor::{TensorMut, TensorRef};
use smallvec::SmallVec;
use std::time::Instant;

/// What one request brings along.
pub struct Request<'a> {
    /// splits loops over idle cores
    pub par: &'a dyn Par,
    /// where the arena comes from
    pub memory: &'static MemoryPool,
    /// arguments, in the order of the graph's inputs
    pub inputs: &'a [TensorRef<'a>],
    /// variable, version and offset of each argument
    pub keys: &'a [ValueKey],
    /// pieces of the random stream, one for each random step
    pub random: &'a [RandomKey],
}

/// A piece of the arena, handed to exactly one step at a time.
enum Slice<'a> {
    Read(&'a [u8]),
    Write(&'a mut [u8]),
    /// already given to the step
    Taken,
}

impl Plan {
    /// Runs all steps in an arena of [`Plan::arena_bytes`], aligned as blocks of memory are. Fails with the first step's
    /// error, which names operator, node, attributes and shapes.
    pub fn run(&self, request: &Request<'_>, arena: &mut [u8], outputs: &mut [TensorMut<'_>]) -> Result<(), OpError> {
        self.run_steps(request, arena, outputs, &mut || {})
    }

    /// The same, and how long each step took in nanoseconds.
    pub fn run_timed(
        &self,
        request: &Request<'_>,
        arena: &mut [u8],
        outputs: &mut [TensorMut<'_>],
    ) -> Result<Vec<u64>, OpError> {
        let mut marks = Vec::with_capacity(self.steps.len() + 1);
        self.run_steps(request, arena, outputs, &mut || marks.push(Instant::now()))?;
        Ok(marks.windows(2).map(|pair| (pair[1] - pair[0]).as_nanos() as u64).collect())
    }

    /// Runs all steps; `mark` is called before each of them and after the last.
    fn run_steps(
        &self,
        request: &Request<'_>,
        arena: &mut [u8],
        outputs: &mut [TensorMut<'_>],
        mark: &mut dyn FnMut(),
    ) -> Result<(), OpError> {
        let env = ConstEnv { par: request.par, memory: request.memory, inputs: request.inputs, keys: request.keys };
        let consts = self.consts.current(&env, &|packing, inputs| {
            let step = &self.steps[packing.step];
            pack_with(&*step.kernel, request.memory, inputs).map_err(|e| e.op(step.stands_for).node(&*step.name))
        })?;
        let mut random = request.random.iter().copied();
        for step in &self.steps {
            mark();
            let key = if step.random { random.next() } else { None };
            run_step(step, request, &consts, arena, outputs, key).map_err(|e| describe(e, step))?;
        }
        mark();
        Ok(())
    }
}

fn describe(error: OpError, step: &Step) -> OpError {
    error
        .op(step.stands_for)
        .node(&*step.name)
        .attrs(step.attrs.clone())
        .shapes(step.inputs.iter().map(|o| o.tensor.shape.to_vec()).collect())
        .dtypes(step.inputs.iter().map(|o| o.tensor.dtype.name()).collect())
}

fn run_step(
    step: &Step,
    request: &Request<'_>,
    consts: &ConstSet,
    arena: &mut [u8],
    outputs: &mut [TensorMut<'_>],
    random: Option<RandomKey>,
) -> Result<(), OpError> {
    let mut slices = cut(step, arena);
    let mut results = split_results(step, outputs);
    let mut outs: SmallVec<[TensorMut<'_>; 2]> = SmallVec::new();
    for operand in &step.outputs {
        let source = match operand.place {
            Place::Arena(i) => &mut slices[i],
            Place::Output(j) => &mut results[j],
            _ => return Err(misplaced()),
        };
        let Slice::Write(bytes) = std::mem::replace(source, Slice::Taken) else { return Err(misplaced()) };
        let bytes = bytes.get_mut(..operand.tensor.bytes()).ok_or_else(misplaced)?;
        outs.push(TensorMut::new(operand.tensor.dtype, &operand.tensor.shape, bytes));
    }
    let mut take = |i: Option<usize>| match i.map(|i| std::mem::replace(&mut slices[i], Slice::Taken)) {
        Some(Slice::Write(bytes)) => bytes,
        _ => &mut [],
    };
    let workspace = take(step.workspace);
    let fresh = take(match step.packed {
        Some(Packed::Arena(i)) => Some(i),
        _ => None,
    });
    let mut ins: SmallVec<[TensorRef<'_>; 4]> = SmallVec::new();
    for operand in &step.inputs {
        ins.push(readable(operand, request, consts, &slices, &results)?);
    }
    let packed = match (step.packed, step.kernel.packing()) {
        (Some(Packed::Const(slot)), _) => Some(consts.blocks[slot].bytes()),
        (Some(Packed::Arena(_)), Some(packing)) => {
            let chosen: SmallVec<[TensorRef<'_>; 4]> =
                packing.inputs().iter().filter_map(|i| ins.get(*i).copied()).collect();
            packing.pack(&chosen, fresh)?;
            Some(&*fresh)
        }
        _ => None,
    };
    let mut call = KernelCall { par: request.par, inputs: &ins, outputs: &mut outs, workspace, packed, random };
    step.kernel.run(&mut call)
}

/// Plans are laid out so that this cannot happen; if one is not, the request fails instead of reading wrong bytes.
fn misplaced() -> OpError {
    OpError::new(FailureKind::Operator, "the plan places two operands of a step on the same memory")
}

fn readable<'a>(
    operand: &'a Operand,
    request: &Request<'a>,
    consts: &'a ConstSet,
    slices: &'a [Slice<'_>],
    results: &'a [Slice<'_>],
) -> Result<TensorRef<'a>, OpError> {
    let bytes = match operand.place {
        Place::Input(i) => request.inputs.get(i).map(|t| t.bytes()),
        Place::Const(slot) => consts.blocks.get(slot).map(|b| b.bytes()),
        Place::Arena(i) => match &slices[i] {
            Slice::Read(bytes) => bytes.get(..operand.tensor.bytes()),
            _ => None,
        },
        Place::Output(j) => match &results[j] {
            Slice::Read(bytes) => Some(*bytes),
            _ => None,
        },
    };
    let bytes = bytes.ok_or_else(misplaced)?;
    Ok(TensorRef::new(operand.tensor.dtype, &operand.tensor.shape, bytes))
}

/// Cuts the arena into the pieces of a step.
fn cut<'a>(step: &Step, arena: &'a mut [u8]) -> SmallVec<[Slice<'a>; 8]> {
    let mut rest = arena;
    let mut at = 0;
    let mut slices = SmallVec::new();
    for piece in &step.pieces {
        let (_, tail) = std::mem::take(&mut rest).split_at_mut(piece.offset - at);
        let (bytes, tail) = tail.split_at_mut(piece.bytes);
        rest = tail;
        at = piece.offset + piece.bytes;
        slices.push(if piece.written { Slice::Write(bytes) } else { Slice::Read(bytes) });
    }
    slices
}

/// The results of the call as a step sees them: those it makes are writable, the others readable.
fn split_results<'a>(step: &Step, outputs: &'a mut [TensorMut<'_>]) -> SmallVec<[Slice<'a>; 2]> {
    let touches = |o: &Operand| matches!(o.place, Place::Output(_));
    if !step.inputs.iter().chain(&step.outputs).any(touches) {
        return SmallVec::new();
    }
    outputs
        .iter_mut()
        .enumerate()
        .map(|(j, tensor)| {
            let written = step.outputs.iter().any(|o| o.place == Place::Output(j));
            if written { Slice::Write(tensor.bytes_mut()) } else { Slice::Read(&*tensor.bytes_mut()) }
        })
        .collect()
}
