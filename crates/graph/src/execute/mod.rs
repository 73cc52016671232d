//! Runs a plan for one request, step by step.

mod control_flow;
mod iterations;

pub(crate) use control_flow::{ControlFlow, FlowKernel, FlowMemory, InnerPlan, InnerSource};

use crate::memory::constants::pack_with;
use crate::plan::{
    BodyCall, ConstSet, GraphInputs, Operand, OperandPlace, PackedPlace, Plan, PlanRequest, Step, StepNeed,
};
use mxrt_engine::{Failure, FailureKind, OpError};
use mxrt_ops::{Kernel, KernelCall, RandomKey, catch_refusal};
use mxrt_tensor::{TensorMut, TensorRef};
use smallvec::SmallVec;
use std::sync::Arc;

/// Results that could not be computed, by number, with the failure of each.
pub type MissingResults = Vec<(usize, Failure)>;

/// A piece of the arena, given to exactly one step at a time.
enum OperandBytes<'a> {
    Read(&'a [u8]),
    Write(&'a mut [u8]),
    /// already given to the step
    Taken,
}

impl Plan {
    /// Runs all steps except those that depend on a failed input, constant or step. Returns the
    /// results that are missing for that reason. The failure of a step names operator, node,
    /// attributes and shapes.
    pub fn run(&self, request: &PlanRequest<'_>, outputs: &mut [TensorMut<'_>]) -> Result<MissingResults, OpError> {
        self.run_steps(request, outputs, &mut || {})
    }

    /// Runs the plan as [`Plan::run`] does, and also returns the time of each step. The thread that
    /// runs the plan reads the clock.
    pub fn run_clocked(
        &self,
        request: &PlanRequest<'_>,
        outputs: &mut [TensorMut<'_>],
        clock: &dyn Fn() -> u64,
    ) -> Result<(MissingResults, Vec<u64>), OpError> {
        let mut marks = Vec::with_capacity(self.steps.len() + 1);
        let failed = self.run_steps(request, outputs, &mut || marks.push(clock()))?;
        Ok((failed, marks.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect()))
    }

    /// The constants for the parameters of a request. The first request computes them.
    pub fn constants(&self, request: &PlanRequest<'_>) -> Arc<ConstSet> {
        let set = self.consts.current(request, &|packing, inputs| {
            let step = &self.steps[packing.step];
            pack_with(&*step.kernel, request.site, inputs).map_err(|e| e.op(step.stands_for).node(&*step.name))
        });
        if set.is_fresh() {
            request.site.packed(self.packed_params(&set, request.inputs));
        }
        set
    }

    /// Packs, into these places, the weights that the steps of a loop pack before the first
    /// iteration.
    pub fn pack_once(&self, request: &PlanRequest<'_>, places: &mut [&mut [u8]]) -> Result<(), OpError> {
        for (s, place) in self.packed_once.iter().zip(places) {
            let step = &self.steps[*s];
            let packing = step.kernel.packing().ok_or_else(misplaced)?;
            let operand = |i: &usize| {
                let Operand { place: OperandPlace::Input(input), tensor } =
                    step.inputs.get(*i).ok_or_else(misplaced)?
                else {
                    return Err(misplaced());
                };
                Ok(TensorRef::new(tensor.dtype, &tensor.shape, request.inputs.tensor(*input)?.bytes()))
            };
            let operands = packing.inputs().iter().map(operand).collect::<Result<SmallVec<[TensorRef<'_>; 4]>, _>>()?;
            packing.pack(request.site.par(), &operands, place).map_err(|error| step.describe(error))?;
        }
        Ok(())
    }

    /// Runs all steps; `mark` is called before each of them and after the last.
    fn run_steps(
        &self,
        request: &PlanRequest<'_>,
        outputs: &mut [TensorMut<'_>],
        mark: &mut dyn FnMut(),
    ) -> Result<MissingResults, OpError> {
        let consts = self.constants(request);
        let mut random = request.random.iter().copied();
        let mut broken = FailedSteps::at_start(request, &consts);
        request.site.with_arena(self.arena_bytes, &mut |arena| {
            for (s, step) in self.steps.iter().enumerate() {
                mark();
                let key = if step.random { random.next() } else { None };
                if let Some(failure) = broken.inherited(step, request.inputs, &consts) {
                    broken.add(s, failure);
                    continue;
                }
                let run = &mut |kernel: &dyn Kernel, call: &mut KernelCall<'_, '_>| catch_refusal(|| kernel.run(call));
                if let Err(error) = run_step(step, request, &consts, arena, outputs, key, run) {
                    broken.add(s, request.site.failure(error));
                }
            }
            mark();
        })?;
        Ok(broken.missing(self))
    }
}

impl Plan {
    /// Runs all steps as a part of a step of another plan: with constants that have been looked up,
    /// in memory that is there, up to the first failure.
    pub fn run_once(
        &self,
        request: &PlanRequest<'_>,
        consts: &ConstSet,
        arena: &mut [u8],
        outputs: &mut [TensorMut<'_>],
    ) -> Result<(), OpError> {
        let mut random = request.random.iter().copied();
        let any = request.inputs.any_failed() || !consts.failures.is_empty();
        let broken = FailedSteps { any, steps: Vec::new() };
        for step in &self.steps {
            let key = if step.random { random.next() } else { None };
            if let Some(failure) = broken.inherited(step, request.inputs, consts) {
                return Err(failure.into());
            }
            let run = &mut |kernel: &dyn Kernel, call: &mut KernelCall<'_, '_>| catch_refusal(|| kernel.run(call));
            run_step(step, request, consts, arena, outputs, key, run)?;
        }
        Ok(())
    }
}

/// Steps that have failed in a request.
#[derive(Default)]
pub(super) struct FailedSteps {
    /// whether anything has failed; almost never
    any: bool,
    /// failures by step, in the order of the steps
    steps: Vec<(usize, Failure)>,
}

impl FailedSteps {
    /// The failures that are known before the first step.
    pub(super) fn at_start(request: &PlanRequest<'_>, consts: &ConstSet) -> FailedSteps {
        FailedSteps { any: request.inputs.any_failed() || !consts.failures.is_empty(), steps: Vec::new() }
    }

    pub(super) fn add(&mut self, step: usize, failure: Failure) {
        self.any = true;
        debug_assert!(self.steps.last().is_none_or(|(last, _)| *last < step), "steps run in their order");
        self.steps.push((step, failure));
    }

    /// The results of the call that failed steps would have made.
    pub(super) fn missing(&self, plan: &Plan) -> MissingResults {
        let missing = |(output, step): (usize, &usize)| Some((output, self.of_step(*step)?.clone()));
        plan.made_by.iter().enumerate().filter_map(missing).collect()
    }

    fn of_step(&self, step: usize) -> Option<&Failure> {
        let place = self.steps.binary_search_by_key(&step, |(s, _)| *s).ok()?;
        Some(&self.steps[place].1)
    }

    /// The failure of the first input, constant or step that has failed among those that a step
    /// needs.
    pub(super) fn inherited(&self, step: &Step, inputs: &dyn GraphInputs, consts: &ConstSet) -> Option<Failure> {
        if !self.any {
            return None;
        }
        let found = step.needs.iter().find_map(|need| match need {
            StepNeed::Input(i) => inputs.failure(*i),
            StepNeed::Const(slot) => consts.failures.get(*slot)?.as_ref(),
            StepNeed::Step(s) => self.of_step(*s),
        });
        found.cloned()
    }
}

/// A function that gets the kernel of a step and its operands.
pub(super) type RunKernel<'a> = &'a mut dyn FnMut(&dyn Kernel, &mut KernelCall<'_, '_>) -> Result<(), OpError>;

/// Gathers the operands of a step and calls `run` with them. The profiler records it as a layer of
/// its request.
pub(super) fn run_step(
    step: &Step,
    request: &PlanRequest<'_>,
    consts: &ConstSet,
    arena: &mut [u8],
    outputs: &mut [TensorMut<'_>],
    random: Option<RandomKey>,
    run: RunKernel<'_>,
) -> Result<(), OpError> {
    let mut go = || try_step(step, request, consts, arena, outputs, random, run).map_err(|error| step.describe(error));
    match request.site.profiled() {
        None => go(),
        Some(op) => op.step(&step.name, step.stands_for, go),
    }
}

fn try_step(
    step: &Step,
    request: &PlanRequest<'_>,
    consts: &ConstSet,
    arena: &mut [u8],
    outputs: &mut [TensorMut<'_>],
    random: Option<RandomKey>,
    run: RunKernel<'_>,
) -> Result<(), OpError> {
    let mut slices = cut(step, arena);
    let mut results = split_results(step, outputs);
    let mut outs = writable(step, &mut slices, &mut results)?;
    let mut take = |i: Option<usize>| match i.map(|i| std::mem::replace(&mut slices[i], OperandBytes::Taken)) {
        Some(OperandBytes::Write(bytes)) => bytes,
        _ => &mut [],
    };
    let workspace = take(step.workspace);
    let fresh = take(if let Some(PackedPlace::Arena(i)) = step.packed { Some(i) } else { None });
    let ins = step.inputs.iter().map(|operand| readable(operand, request, consts, &slices, &results));
    let ins = ins.collect::<Result<SmallVec<[TensorRef<'_>; 4]>, OpError>>()?;
    if let Some(body) = &step.body {
        return body.run(BodyCall { request, inputs: &ins, outputs: &mut outs, workspace, random });
    }
    let shared = step.inputs.iter().position(|operand| operand.place == OperandPlace::Shared);
    let packed = match (step.packed, step.kernel.packing()) {
        (Some(PackedPlace::Const(slot)), _) => Some(constant(consts, slot).ok_or_else(misplaced)?),
        (Some(PackedPlace::Once(k)), _) => Some(request.inputs.packed_once(k).ok_or_else(misplaced)?),
        (Some(PackedPlace::Arena(_)), Some(packing)) => {
            let chosen: SmallVec<[TensorRef<'_>; 4]> =
                packing.inputs().iter().filter_map(|i| ins.get(*i).copied()).collect();
            packing.pack(request.site.par(), &chosen, fresh)?;
            Some(&*fresh)
        }
        _ => None,
    };
    let mut call =
        KernelCall { par: request.site.par(), inputs: &ins, outputs: &mut outs, workspace, packed, random, shared };
    run(&*step.kernel, &mut call)
}

/// The error of a step whose operands overlap. Plans exclude this; if one does not, the request
/// fails instead of reading wrong bytes.
fn misplaced() -> OpError {
    OpError::new(FailureKind::Operator, "the plan places two operands of a step on the same memory")
}

/// Takes the memory of a step's outputs.
#[inline(always)]
fn writable<'a>(
    step: &'a Step,
    slices: &mut [OperandBytes<'a>],
    results: &mut StepResults<'a>,
) -> Result<SmallVec<[TensorMut<'a>; 2]>, OpError> {
    let mut outs = SmallVec::new();
    for operand in &step.outputs {
        let source = match operand.place {
            OperandPlace::Arena(i) => &mut slices[i],
            OperandPlace::Output(j) => results.get_mut(j).ok_or_else(misplaced)?,
            _ => return Err(misplaced()),
        };
        let OperandBytes::Write(bytes) = std::mem::replace(source, OperandBytes::Taken) else {
            return Err(misplaced());
        };
        let bytes = bytes.get_mut(..operand.tensor.bytes()).ok_or_else(misplaced)?;
        outs.push(TensorMut::new(operand.tensor.dtype, &operand.tensor.shape, bytes));
    }
    Ok(outs)
}

/// An input of a step. One that the kernel finds elsewhere has no bytes.
fn readable<'a>(
    operand: &'a Operand,
    request: &PlanRequest<'a>,
    consts: &'a ConstSet,
    slices: &'a [OperandBytes<'_>],
    results: &'a StepResults<'_>,
) -> Result<TensorRef<'a>, OpError> {
    let bytes = match operand.place {
        OperandPlace::Input(i) => Some(request.inputs.tensor(i)?.bytes()),
        OperandPlace::Const(slot) => constant(consts, slot),
        OperandPlace::Arena(i) => match &slices[i] {
            OperandBytes::Read(bytes) => bytes.get(..operand.tensor.bytes()),
            _ => None,
        },
        OperandPlace::Output(j) => match results.get(j) {
            Some(OperandBytes::Read(bytes)) => Some(*bytes),
            _ => None,
        },
        OperandPlace::Shared | OperandPlace::Packed => {
            return Ok(TensorRef::elsewhere(operand.tensor.dtype, &operand.tensor.shape));
        }
    };
    let bytes = bytes.ok_or_else(misplaced)?;
    Ok(TensorRef::new(operand.tensor.dtype, &operand.tensor.shape, bytes))
}

fn constant(consts: &ConstSet, slot: usize) -> Option<&[u8]> {
    Some(consts.blocks.get(slot)?.as_ref()?.bytes())
}

/// Cuts the arena into the pieces of a step.
fn cut<'a>(step: &Step, arena: &'a mut [u8]) -> SmallVec<[OperandBytes<'a>; 8]> {
    let mut rest = arena;
    let mut at = 0;
    let mut slices = SmallVec::new();
    for piece in &step.pieces {
        let (_, tail) = std::mem::take(&mut rest).split_at_mut(piece.offset - at);
        let (bytes, tail) = tail.split_at_mut(piece.bytes);
        rest = tail;
        at = piece.offset + piece.bytes;
        slices.push(if piece.written { OperandBytes::Write(bytes) } else { OperandBytes::Read(bytes) });
    }
    slices
}

/// Results of the call that a step uses, by number: those it makes are writable, the others
/// readable.
struct StepResults<'a>(SmallVec<[(usize, OperandBytes<'a>); 2]>);

impl<'a> StepResults<'a> {
    fn get_mut(&mut self, output: usize) -> Option<&mut OperandBytes<'a>> {
        self.0.iter_mut().find(|(j, _)| *j == output).map(|(_, bytes)| bytes)
    }

    fn get(&self, output: usize) -> Option<&OperandBytes<'a>> {
        self.0.iter().find(|(j, _)| *j == output).map(|(_, bytes)| bytes)
    }
}

fn split_results<'a>(step: &Step, outputs: &'a mut [TensorMut<'_>]) -> StepResults<'a> {
    let place = |o: &Operand| match o.place {
        OperandPlace::Output(j) => Some(j),
        _ => None,
    };
    let mut touched: SmallVec<[usize; 2]> = step.inputs.iter().chain(&step.outputs).filter_map(place).collect();
    touched.sort_unstable();
    touched.dedup();
    let mut results = SmallVec::new();
    let (mut rest, mut at) = (outputs, 0);
    for j in touched {
        let Some((tensor, tail)) = rest.get_mut(j - at..).and_then(<[_]>::split_first_mut) else { break };
        let written = step.outputs.iter().any(|o| o.place == OperandPlace::Output(j));
        let bytes = tensor.bytes_mut();
        results.push((j, if written { OperandBytes::Write(bytes) } else { OperandBytes::Read(bytes) }));
        (rest, at) = (tail, j + 1);
    }
    StepResults(results)
}
