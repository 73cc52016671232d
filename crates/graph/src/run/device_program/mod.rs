//! Calls on a device with kernels of its own. A graph is lowered to a list of its kernels, which
//! run as one op in an arena of the device.
//!
//! Values that depend on parameters alone are computed once (`constants.rs`). Later calls submit
//! the kernels together, as recorded work (`replay.rs`).

mod constants;
mod layout;
mod lower;
mod replay;
#[cfg(test)]
mod tests;

use self::constants::ConstantSets;
pub(crate) use self::constants::DeviceConstants;
use self::lower::{DeviceTarget, LoweredSteps};
use self::replay::Recordings;
use super::inputs::InputSource;
use crate::compile::interrupt::Interrupter;
use crate::compile::lower::lower;
use crate::compile::options::BuildOptions;
use crate::ir::{Graph, describe};
use crate::passes::COMPILE_CHAINS;
use mxrt_engine::device::{KernelScope, OpenDevice, SpareMemory};
use mxrt_engine::{DeviceCtx, DeviceId, DevicePtr, Engine, ForkSafeMutex, OpError, OpKind};
use mxrt_ops::{DeviceKernel, DeviceOperands, RandomKey};
use mxrt_tensor::{CallLaunch, DeviceArguments, DeviceLaunch, NDArray, TensorType, launch_native};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Place of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum DevicePlace {
    /// input of the graph
    Input(usize),
    /// result of the call
    Output(usize),
    /// byte of the arena
    Arena(usize),
    /// byte of the array of constants
    Constant(usize),
}

struct DeviceStep {
    kernel: Arc<dyn DeviceKernel>,
    inputs: Vec<DevicePlace>,
    outputs: Vec<DevicePlace>,
    /// number of the step's piece of the random stream
    random: Option<usize>,
    node: Arc<StepNode>,
}

/// Subject of the errors of a step: operator, node, and types.
#[derive(Clone)]
struct StepNode {
    op: &'static str,
    name: Arc<str>,
    attrs: Arc<Vec<(String, String)>>,
    inputs: Vec<TensorType>,
    reach: Reach,
}

/// Dependence of each result of the graph on some value: true if the value reaches the result.
type Reach = Vec<bool>;

/// A graph for one signature and one kind of device.
pub(crate) struct DeviceProgram {
    lowered: LoweredSteps,
    constants: Arc<ConstantSets>,
    recordings: Recordings,
    /// devices for which the kernels were prepared; `None` if no kernel needs this
    prepared: Option<ForkSafeMutex<Vec<DeviceId>>>,
}

/// Addresses of the operands of a running program.
struct OperandAddresses<'a> {
    inputs: &'a dyn Fn(usize) -> DevicePtr,
    outputs: &'a [DevicePtr],
    arena: DevicePtr,
    constants: DevicePtr,
}

impl DeviceProgram {
    /// Lowers a graph. Fails for an operator that has no kernel.
    pub fn build(
        graph: &Graph,
        inputs: &[TensorType],
        options: &BuildOptions,
        constants: &DeviceConstants,
        device: DeviceId,
    ) -> Result<DeviceProgram, OpError> {
        let target = DeviceTarget::new(options, device);
        let lowered = lower(target, graph, inputs, options, &mut Interrupter::never())?;
        let constants = constants.made_by(&lowered.constant_steps, lowered.constant_bytes);
        let recordings = Recordings::new(options.gpu_recordings);
        let prepared = options.passes.runs(COMPILE_CHAINS).then(ForkSafeMutex::default);
        Ok(DeviceProgram { lowered, constants, recordings, prepared })
    }

    /// Prepares the kernels for a device, unless they are prepared.
    fn prepare(&self, open: &OpenDevice) {
        let Some(prepared) = self.prepared.as_ref().filter(|prepared| !prepared.lock().contains(&open.id())) else {
            return;
        };
        self.lowered.constant_steps.iter().chain(&self.lowered.steps).for_each(|step| step.kernel.prepare(open));
        prepared.lock().push(open.id());
    }

    /// Pushes a call with these arrays for the inputs of the graph.
    pub fn push(
        self: &Arc<DeviceProgram>,
        engine: &'static Engine,
        open: &OpenDevice,
        call: &CallLaunch<'_>,
        sources: &Arc<[InputSource]>,
        random: SmallVec<[RandomKey; 2]>,
    ) -> Result<(), OpError> {
        let device = open.id();
        self.prepare(open);
        let params = call.params.map_or(&[][..], |set| set.arrays());
        // Every call reads them and few ops write them: they need not remember their readers.
        params.iter().for_each(|array| engine.freeze(array.var()));
        let mut inputs: Vec<&NDArray> = call.inputs.iter().copied().chain(params).collect();
        let (sources, first_param) = (sources.clone(), call.inputs.len());
        let place = move |input: usize| match sources.get(input) {
            Some(InputSource::Data(i)) => *i,
            Some(InputSource::Param(i)) => first_param + i,
            None => usize::MAX,
        };
        let constants = self.constants(engine, device, &inputs, &place)?;
        let last = inputs.len();
        inputs.extend(constants.as_ref().map(|set| &set.array));
        let outputs = inputs.len()..inputs.len() + call.outputs.len();
        let work = DeviceLaunch {
            kind: OpKind::Selective,
            priority: call.priority,
            deadline: call.deadline,
            ..DeviceLaunch::new(device, call.name.clone(), &inputs, call.outputs)
        };
        let (program, set) = (self.clone(), constants.clone());
        launch_native(engine, &work, move |ctx, at| {
            let (heirs, place_of, first) = (program.clone(), place.clone(), outputs.start);
            ctx.inherit(move |access| {
                let reached = if access == last {
                    heirs.lowered.constant_reach.clone()
                } else {
                    heirs.reach_of(access, &place_of)
                };
                reached.iter().enumerate().filter(|(_, reached)| **reached).map(|(output, _)| first + output).collect()
            });
            let submit = |at: &DeviceArguments, constants: Option<DevicePtr>| {
                let constants = constants.or(at.inputs.get(last).copied()).unwrap_or(DevicePtr(0));
                let places = OperandAddresses {
                    inputs: &|input| at.inputs.get(place(input)).copied().unwrap_or(DevicePtr(0)),
                    outputs: &at.outputs,
                    arena: at.scratch,
                    constants,
                };
                run(&program.lowered.steps, ctx, &places, &random, Some(&outputs))
            };
            let fresh = set.as_ref().is_none_or(|set| set.is_of(&program.versions(ctx, &place)));
            if fresh && random.is_empty() && program.replay(ctx, at, first_param, |at| submit(at, None))? {
                return Ok(());
            }
            let scratch =
                if program.lowered.arena_bytes > 0 { ctx.scratch(program.lowered.arena_bytes)? } else { DevicePtr(0) };
            let at = DeviceArguments { scratch, ..at.clone() };
            let Some(set) = set.as_ref().filter(|_| !fresh) else { return submit(&at, None) };
            // A parameter was written since: this call computes its own constants.
            set.stale.store(true, Ordering::Relaxed);
            let constants = ctx.scratch(program.lowered.constant_bytes)?;
            let places = OperandAddresses {
                inputs: &|input| at.inputs.get(place(input)).copied().unwrap_or(DevicePtr(0)),
                outputs: &[],
                arena: DevicePtr(0),
                constants,
            };
            run(&program.lowered.constant_steps, ctx, &places, &[], Some(&outputs))?;
            submit(&at, Some(constants))
        })
    }

    /// The results that depend on an array of the call.
    fn reach_of(&self, access: usize, place: &impl Fn(usize) -> usize) -> Reach {
        let of = self.lowered.input_reach.iter().filter(|(input, _)| place(**input) == access).map(|(_, reach)| reach);
        of.fold(Reach::new(), joined)
    }
}

/// Submits the steps. `results` are the accesses of the results: if a kernel rejects its data,
/// those that depend on its step fail. Without `results` the whole op fails.
fn run(
    steps: &[DeviceStep],
    ctx: &DeviceCtx<'_>,
    at: &OperandAddresses<'_>,
    random: &[RandomKey],
    results: Option<&Range<usize>>,
) -> Result<(), OpError> {
    let address = |place: &DevicePlace| match *place {
        DevicePlace::Input(i) => (at.inputs)(i),
        DevicePlace::Output(i) => at.outputs.get(i).copied().unwrap_or(DevicePtr(0)),
        DevicePlace::Arena(offset) => at.arena.offset(offset),
        DevicePlace::Constant(offset) => at.constants.offset(offset),
    };
    for step in steps {
        let inputs: SmallVec<[DevicePtr; 8]> = step.inputs.iter().map(address).collect();
        let outputs: SmallVec<[DevicePtr; 4]> = step.outputs.iter().map(address).collect();
        let random = step.random.and_then(|n| random.get(n).copied());
        let operands = DeviceOperands { inputs: &inputs, outputs: &outputs, random };
        let enqueue = || step.kernel.enqueue(ctx, &operands);
        let enqueued = match results {
            Some(results) => ctx.within(step.node.clone(), results.clone(), enqueue),
            None => enqueue(),
        };
        enqueued.map_err(|e| step.node.describe(e))?;
    }
    Ok(())
}

impl KernelScope for StepNode {
    fn describe(&self, error: OpError) -> OpError {
        describe(error, (self.op, &self.name, &self.attrs), self.inputs.iter())
    }

    fn reaches(&self, output: usize) -> bool {
        self.reach.get(output) == Some(&true)
    }
}

impl SpareMemory for DeviceProgram {
    fn give_up(&self) {
        self.constants.give_up();
        self.recordings.give_up();
    }
}

fn joined(mut all: Reach, reach: &Reach) -> Reach {
    all.resize(all.len().max(reach.len()), false);
    all.iter_mut().zip(reach).for_each(|(all, one)| *all |= one);
    all
}
