//! Calls on a device with kernels of its own. A graph is lowered to a list of its kernels, which
//! run as one op in an arena of the device.
//!
//! Values that depend on parameters alone are computed once (`constants.rs`). Later calls submit
//! the kernels together, as recorded work (`replay.rs`).

mod constants;
mod layout;
mod lower;
mod replay;
mod step;
#[cfg(test)]
mod tests;

pub(crate) use self::constants::DeviceConstants;
use self::constants::{ConstantSet, ConstantSets};
use self::lower::{DeviceTarget, LoweredSteps};
use self::replay::Recordings;
use self::step::{DevicePlace, DeviceStep, Reach, joined};
use super::inputs::{InputSource, frozen_inputs};
use crate::compile::interrupt::Interrupter;
use crate::compile::lower::lower;
use crate::compile::options::BuildOptions;
use crate::ir::Graph;
use crate::passes::COMPILE_CHAINS;
use mxrt_engine::device::{KernelScope, OpenDevice, SpareMemory};
use mxrt_engine::{DeviceCtx, DeviceId, DevicePtr, Engine, ForkSafeMutex, OpError, OpKind};
use mxrt_ops::{DeviceOperands, LibraryUse, RandomKey};
use mxrt_tensor::{CallLaunch, DeviceArguments, DeviceLaunch, InputUse, TensorType, launch_native};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A graph for one signature and one kind of device.
pub(crate) struct DevicePlan {
    lowered: LoweredSteps,
    constants: Arc<ConstantSets>,
    /// recordings of each device, which work in its memory
    recordings: ForkSafeMutex<Vec<(DeviceId, Arc<Recordings>)>>,
    /// number of recordings that are kept for each device
    recordings_kept: usize,
    /// devices for which the kernels were prepared; `None` if no kernel needs this
    prepared: Option<ForkSafeMutex<Vec<DeviceId>>>,
}

/// Addresses of the operands of a running plan.
struct OperandAddresses<'a> {
    inputs: &'a dyn Fn(usize) -> DevicePtr,
    outputs: &'a [DevicePtr],
    arena: DevicePtr,
    constants: DevicePtr,
}

impl DevicePlan {
    /// Lowers a graph. Fails for an operator that has no kernel.
    pub fn build(
        graph: &Graph,
        inputs: &[TensorType],
        options: &BuildOptions,
        constants: &DeviceConstants,
        device: DeviceId,
    ) -> Result<DevicePlan, OpError> {
        let target = DeviceTarget::new(options, device);
        let lowered = lower(target, graph, inputs, options, &mut Interrupter::never())?;
        let constants = constants.made_by(&lowered.constant_steps, lowered.constant_bytes);
        let (recordings, recordings_kept) = (ForkSafeMutex::default(), options.gpu_recordings);
        let prepared = options.passes.runs(COMPILE_CHAINS).then(ForkSafeMutex::default);
        Ok(DevicePlan { lowered, constants, recordings, recordings_kept, prepared })
    }

    /// Prepares the kernels for a device, unless they are prepared.
    fn prepare(&self, open: &OpenDevice) {
        let Some(prepared) = self.prepared.as_ref().filter(|prepared| !prepared.lock().contains(&open.id())) else {
            return;
        };
        self.lowered.constant_steps.iter().chain(&self.lowered.steps).for_each(|step| step.kernel.prepare(open));
        prepared.lock().push(open.id());
    }

    /// Libraries that may compute steps, with the nodes that they compute on a device, and the nodes
    /// that mxrt's kernels compute in their place.
    pub fn libraries(&self, open: &OpenDevice) -> Result<BTreeMap<&'static str, [Vec<String>; 2]>, OpError> {
        let mut found: BTreeMap<&'static str, [Vec<String>; 2]> = BTreeMap::new();
        for step in self.lowered.constant_steps.iter().chain(&self.lowered.steps) {
            let library = step.kernel.library(open).map_err(|e| step.node.describe(e))?;
            if let Some(LibraryUse { library, used }) = library {
                found.entry(library).or_default()[usize::from(!used)].push(step.node.name.to_string());
            }
        }
        Ok(found)
    }

    /// The recordings of a device.
    fn recordings(&self, device: DeviceId) -> Arc<Recordings> {
        let mut all = self.recordings.lock();
        if let Some((_, known)) = all.iter().find(|(of, _)| *of == device) {
            return known.clone();
        }
        let made = Arc::new(Recordings::new(self.recordings_kept));
        all.push((device, made.clone()));
        made
    }

    /// Pushes a call with these arrays for the inputs of the graph.
    pub fn push(
        self: &Arc<DevicePlan>,
        engine: &'static Engine,
        open: &OpenDevice,
        call: &CallLaunch<'_>,
        sources: &Arc<[InputSource]>,
        random: SmallVec<[RandomKey; 2]>,
    ) -> Result<(), OpError> {
        self.prepare(open);
        let device = open.id();
        let mut inputs = frozen_inputs(engine, call);
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
        let (plan, set) = (self.clone(), constants.clone());
        launch_native(engine, &work, move |ctx, at| {
            let (heirs, place_of, first) = (plan.clone(), place.clone(), outputs.start);
            ctx.inherit(move |access| {
                let reached = heirs.reach_of(access, last, &place_of);
                reached.iter().enumerate().filter(|(_, reached)| **reached).map(|(output, _)| first + output).collect()
            });
            let call = Submission { plan: &plan, place: &place, first_param, last, outputs, random: &random };
            call.submit(ctx, at, set.as_deref())
        })
    }

    /// The results that depend on an array of the call. The constants are access number `constants`.
    fn reach_of(&self, access: usize, constants: usize, place: &impl Fn(usize) -> usize) -> Reach {
        if access == constants {
            return self.lowered.constant_reach.clone();
        }
        let of = self.lowered.input_reach.iter().filter(|(input, _)| place(**input) == access).map(|(_, reach)| reach);
        of.fold(Reach::new(), joined)
    }
}

/// The work of one call, in the op that submits it.
struct Submission<'a, P> {
    plan: &'a Arc<DevicePlan>,
    /// the number of the access that an input of the graph is
    place: &'a P,
    /// the number of the first access that is a parameter
    first_param: usize,
    /// the number of the access that the constants are, if there are any
    last: usize,
    /// accesses of the results
    outputs: Range<usize>,
    random: &'a [RandomKey],
}

impl<P: Fn(usize) -> usize> Submission<'_, P> {
    /// Submits the call, as recorded work if that is possible. `set` are its constants.
    fn submit(&self, ctx: &DeviceCtx<'_>, at: &DeviceArguments, set: Option<&ConstantSet>) -> Result<(), OpError> {
        let plan = self.plan;
        let uses = self.input_uses(at);
        let fresh = set.is_none_or(|set| set.is_of(&plan.versions(ctx, self.place)));
        if fresh && self.random.is_empty() && plan.replay(ctx, at, &uses, |at| self.steps(ctx, at, None))? {
            return Ok(());
        }
        let scratch = if plan.lowered.arena_bytes > 0 { ctx.scratch(plan.lowered.arena_bytes)? } else { DevicePtr(0) };
        let at = DeviceArguments { scratch, ..at.clone() };
        let Some(set) = set.filter(|_| !fresh) else { return self.steps(ctx, &at, None) };
        // A parameter was written since: this call computes its own constants.
        set.stale.store(true, Ordering::Relaxed);
        let constants = self.constants(ctx, &at)?;
        self.steps(ctx, &at, Some(constants))
    }

    /// The uses of the inputs by a recording: data differs from call to call, and so does what is
    /// in memory of the call alone.
    fn input_uses(&self, at: &DeviceArguments) -> SmallVec<[InputUse; 4]> {
        let mut uses: SmallVec<[InputUse; 4]> = smallvec::smallvec![InputUse::Unread; at.inputs.len()];
        let read = self.plan.lowered.step_inputs.iter().map(|input| (self.place)(*input));
        for access in read.chain([self.last]).filter(|access| *access < at.inputs.len()) {
            let copied = access < self.first_param || at.aside[access];
            uses[access] = if copied { InputUse::Copied } else { InputUse::Fixed };
        }
        uses
    }

    /// Submits the steps, which read these constants or those of the call.
    fn steps(&self, ctx: &DeviceCtx<'_>, at: &DeviceArguments, constants: Option<DevicePtr>) -> Result<(), OpError> {
        let constants = constants.or(at.inputs.get(self.last).copied()).unwrap_or(DevicePtr(0));
        let places = OperandAddresses {
            inputs: &|input| at.inputs.get((self.place)(input)).copied().unwrap_or(DevicePtr(0)),
            outputs: &at.outputs,
            arena: at.scratch,
            constants,
        };
        run(&self.plan.lowered.steps, ctx, &places, self.random, Some(&self.outputs))
    }

    /// Submits the computation of constants for this call alone.
    fn constants(&self, ctx: &DeviceCtx<'_>, at: &DeviceArguments) -> Result<DevicePtr, OpError> {
        let constants = ctx.scratch(self.plan.lowered.constant_bytes)?;
        let places = OperandAddresses {
            inputs: &|input| at.inputs.get((self.place)(input)).copied().unwrap_or(DevicePtr(0)),
            outputs: &[],
            arena: DevicePtr(0),
            constants,
        };
        run(&self.plan.lowered.constant_steps, ctx, &places, &[], Some(&self.outputs))?;
        Ok(constants)
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

impl SpareMemory for DevicePlan {
    fn give_up(&self, device: DeviceId) {
        self.constants.give_up(device);
        self.recordings(device).give_up();
    }
}
