//! Calls on a device: a whole plan is one kernel there, on memory of the device. The kernels are
//! the host's, so the results have the same bits.

use super::call_plan::CallPlan;
use super::inputs::{InputSource, frozen_inputs};
use crate::plan::{GraphInputs, PackedParam, PlanRequest, RunSite, ValueKey};
use mxrt_engine::memory::MemoryPool;
use mxrt_engine::{DeviceCtx, DeviceId, Engine, Failure, FailureKind, KernelCtx, OpError, OpKind};
use mxrt_ops::{DevicePar, Par, RandomKey};
use mxrt_tensor::{CallLaunch, CallProgress, DeviceLaunch, TensorMut, TensorRef, launch_on};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;

/// Enqueues a call. `run` runs the plan; folded and packed parameters are computed from the
/// device's values, by the first call that needs them.
pub(super) fn push<F>(
    engine: &'static Engine,
    device: DeviceId,
    call: &CallLaunch<'_>,
    plan: &CallPlan,
    sources: &Arc<[InputSource]>,
    random: SmallVec<[RandomKey; 2]>,
    mut run: F,
) -> Result<(), OpError>
where
    F: FnMut(&PlanRequest<'_>, &mut [TensorMut<'_>]) -> Result<CallProgress, OpError> + Send + 'static,
{
    let inputs = frozen_inputs(engine, call);
    let values: Vec<(u64, usize)> = inputs.iter().map(|a| (a.value_key().0, a.value_key().2)).collect();
    // What was pushed before is enqueued by then, so the versions are those that the kernel will
    // meet.
    let keys = move |ctx: &DeviceCtx<'_>| -> Vec<ValueKey> {
        values.into_iter().enumerate().map(|(i, (var, offset))| (var, ctx.version_of(i), offset)).collect()
    };
    let (first_param, first_output) = (call.inputs.len(), inputs.len());
    let work = DeviceLaunch {
        scratch: plan.arena_bytes(),
        kind: OpKind::Selective,
        priority: call.priority,
        deadline: call.deadline,
        ..DeviceLaunch::new(device, call.name.clone(), &inputs, call.outputs)
    };
    let sources = sources.clone();
    launch_on(engine, work, keys, move |keys, ctx, ins, outs, arena| {
        let inputs = DeviceInputs { sources: &sources, first_param, arrays: ins, keys, failures: failures(ctx) };
        let site = DeviceSite { engine, par: DevicePar(ctx), scratch: Mutex::new(arena) };
        let request = PlanRequest { site: &site, inputs: &inputs, random: &random };
        let failed = run_to_end(|| run(&request, outs))?;
        failed.into_iter().for_each(|(output, failure)| ctx.fail_write(first_output + output, failure));
        Ok(())
    })
}

/// Runs all turns of a plan; returns the outputs that have failed. Plans that are suspended
/// are refused before they are pushed.
fn run_to_end(mut turn: impl FnMut() -> Result<CallProgress, OpError>) -> Result<Vec<(usize, Failure)>, OpError> {
    loop {
        match turn()? {
            CallProgress::Again => {}
            CallProgress::Suspended(_) => {
                return Err(OpError::new(FailureKind::Operator, "a kernel of a device cannot be suspended"));
            }
            CallProgress::Done(failed) => return Ok(failed),
        }
    }
}

/// Failures by number of access; empty when nothing has failed.
fn failures(ctx: &KernelCtx<'_>) -> Vec<(usize, Failure)> {
    ctx.failed_reads().filter_map(|i| Some((i, ctx.failure_of(i)?))).collect()
}

/// A kernel of a device.
struct DeviceSite<'a, 'k> {
    engine: &'static Engine,
    par: DevicePar<'a, 'k>,
    /// scratch memory of the op, for one part of the plan after the other
    scratch: Mutex<&'a mut [u8]>,
}

impl RunSite for DeviceSite<'_, '_> {
    fn par(&self) -> &dyn Par {
        &self.par
    }

    fn memory(&self) -> &'static MemoryPool {
        self.engine.memory()
    }

    fn failure(&self, error: OpError) -> Failure {
        self.par.0.failure(error)
    }

    /// Parameters stay: their memory is the device's.
    fn packed(&self, _: Vec<PackedParam>) {}

    fn with_arena(&self, bytes: usize, run: &mut dyn FnMut(&mut [u8])) -> Result<(), OpError> {
        match self.scratch.lock().get_mut(..bytes) {
            Some(arena) => {
                run(arena);
                Ok(())
            }
            None => Err(OpError::new(FailureKind::Operator, "the scratch memory of a call is smaller than its arena")),
        }
    }
}

/// The inputs of a graph: the data of the call, then the parameters.
struct DeviceInputs<'a> {
    sources: &'a [InputSource],
    first_param: usize,
    arrays: &'a [TensorRef<'a>],
    keys: Vec<ValueKey>,
    failures: Vec<(usize, Failure)>,
}

impl DeviceInputs<'_> {
    fn place(&self, input: usize) -> Option<usize> {
        Some(match *self.sources.get(input)? {
            InputSource::Data(i) => i,
            InputSource::Param(i) => self.first_param + i,
        })
    }
}

impl GraphInputs for DeviceInputs<'_> {
    fn tensor(&self, input: usize) -> Result<TensorRef<'_>, OpError> {
        let found = self.place(input).and_then(|place| self.arrays.get(place).copied());
        let missing = || format!("the plan reads input {input}, which the call does not have");
        found.ok_or_else(|| OpError::new(FailureKind::Operator, missing()))
    }

    fn key(&self, input: usize) -> ValueKey {
        self.place(input).and_then(|place| self.keys.get(place).copied()).unwrap_or_default()
    }

    fn failure(&self, input: usize) -> Option<&Failure> {
        let place = self.place(input)?;
        self.failures.iter().find(|(i, _)| *i == place).map(|(_, failure)| failure)
    }

    fn any_failed(&self) -> bool {
        !self.failures.is_empty()
    }

    fn params_key(&self) -> Option<(u64, u64)> {
        None
    }
}
