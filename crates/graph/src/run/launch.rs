//! From a program and arrays to an op of the engine, and where it runs on the host.

use super::cached_op::{Binding, CachedOp};
use super::call_options::CallOptions;
use super::device_program::DeviceProgram;
use super::execute::{PlanRequest, RunSite};
use super::inputs::CallInputs;
use super::on_device;
use super::program::{BatchCursor, GroupEnd, Program};
use super::state_updates::push_copy;
use crate::memory::constants::allocate;
use crate::memory::release::{self, PackedParam};
use mxrt_engine::memory::MemoryPool;
use mxrt_engine::profile::ProfiledOp;
use mxrt_engine::{Cost, DeviceId, Failure, FailureKind, OpError, RequestScope};
use mxrt_ops::{EnginePar, Par, check_device_kernels};
use mxrt_tensor::{CallLaunch, CallProgress, Context, Interest, NDArray, TensorMut, TensorType, launch_call};
use smallvec::SmallVec;
use std::sync::Arc;

impl CachedOp {
    /// Arrays for the results of a program.
    pub(super) fn results(
        &self,
        program: &Program,
        context: Context,
        options: &CallOptions,
    ) -> Result<SmallVec<[NDArray; 2]>, OpError> {
        let make = |t: &TensorType| {
            let array = NDArray::new(self.engine, context, t.clone())?;
            Ok(if options.cancel_on_drop { array.cancel_on_drop() } else { array })
        };
        program.outputs().iter().map(make).collect()
    }

    /// Pushes a call whose inputs have been looked at.
    #[cfg_attr(debug_assertions, track_caller)]
    pub(super) fn start(
        &self,
        program: Arc<Program>,
        binding: &Binding,
        data: &[&NDArray],
        outputs: Option<&[&NDArray]>,
        options: &CallOptions,
    ) -> Result<SmallVec<[NDArray; 2]>, OpError> {
        if program.suspends() {
            return self.start_suspending(program, binding, data, outputs, options);
        }
        let results = match outputs {
            None => self.results(&program, binding.context(data), options)?,
            Some(outputs) => {
                fits(outputs, program.outputs())?;
                outputs.iter().map(|a| (*a).clone()).collect()
            }
        };
        self.push_program(program, binding, data, &results, options)?;
        Ok(results)
    }

    /// The same for programs with operators of the program. Results that the caller has made are
    /// copied: gates may stand in front of them.
    #[cfg_attr(debug_assertions, track_caller)]
    fn start_suspending(
        &self,
        program: Arc<Program>,
        binding: &Binding,
        data: &[&NDArray],
        outputs: Option<&[&NDArray]>,
        options: &CallOptions,
    ) -> Result<SmallVec<[NDArray; 2]>, OpError> {
        if let Some(outputs) = outputs {
            fits(outputs, &program.outputs()[..self.num_outputs()])?;
        }
        let mut results = self.results(&program, binding.context(data), options)?;
        self.states.in_order(|| {
            self.push_program(program, binding, data, &results, options)?;
            self.states.push(self.engine, &results[self.num_outputs()..], |input| binding.array(input, data));
            Ok::<(), OpError>(())
        })?;
        results.truncate(self.num_outputs());
        let Some(outputs) = outputs else { return Ok(results) };
        for (result, output) in results.iter().zip(outputs) {
            push_copy(self.engine, result, output);
        }
        Ok(outputs.iter().map(|a| (*a).clone()).collect())
    }

    #[cfg_attr(debug_assertions, track_caller)]
    fn push_program(
        &self,
        program: Arc<Program>,
        binding: &Binding,
        data: &[&NDArray],
        results: &[NDArray],
        options: &CallOptions,
    ) -> Result<(), OpError> {
        let engine = self.engine;
        let outputs: SmallVec<[&NDArray; 2]> = results.iter().collect();
        let call = CallLaunch {
            params: binding.params.as_ref(),
            priority: options.priority,
            deadline: options.deadline,
            in_parts: program.suspends() || program.yields(engine.cores()),
            ..CallLaunch::new(self.name.clone(), data, &outputs, Cost::of(program.cost_ns()))
        };
        let (of_op, mut cursor) = (program.clone(), BatchCursor::default());
        self.push(&program, binding, call, move |request, outs| {
            Ok(match of_op.run_group(engine, &mut cursor, request, outs)? {
                GroupEnd::Again => CallProgress::Again,
                GroupEnd::Suspended(begin) => CallProgress::Suspended(begin),
                GroupEnd::Done(missing) => CallProgress::Done(missing),
            })
        })
    }

    #[cfg_attr(debug_assertions, track_caller)]
    fn push<F>(&self, program: &Program, binding: &Binding, call: CallLaunch<'_>, mut run: F) -> Result<(), OpError>
    where
        F: FnMut(&PlanRequest<'_>, &mut [TensorMut<'_>]) -> Result<CallProgress, OpError> + Send + 'static,
    {
        // What fails in here names the request.
        let _request = RequestScope::begin();
        let drawn = |n: usize| binding.random.map_or_else(|| self.random.draw(), |key| key.inner(n as u64));
        let random: SmallVec<[_; 2]> = (0..program.random_draws()).map(drawn).collect();
        let context = call.context();
        if let Some(elsewhere) = call.outputs.iter().find(|a| a.context().device() != context.device()) {
            let message = format!("an output array is on {}, but the inputs are on {context}", elsewhere.context());
            return Err(OpError::new(FailureKind::Device, message).op("CachedOp"));
        }
        if let Some(device) = context.device() {
            if program.suspends() {
                let message =
                    format!("Custom: operators of the program run on the cpu, but the inputs are on {context}");
                return Err(OpError::new(FailureKind::NotImplemented, message).op("CachedOp"));
            }
            let open = self.engine.device(device)?;
            if !open.backend().host_addressable() {
                check_device_kernels(open)?;
                let native = program.native(device.kind(), || self.lower(&call, binding, device))?;
                return native.push(self.engine, open, &call, &binding.sources, random);
            }
            return on_device::push(self.engine, device, &call, program, &binding.sources, random, run);
        }
        let sources = binding.sources.clone();
        let wanted: SmallVec<[Interest; 2]> = call.outputs.iter().filter_map(|a| a.interest()).collect();
        let cores = self.options.cores;
        launch_call(self.engine, call, move |part| {
            let _limited = cores.map(|limit| part.ctx.limit_cores(limit));
            let inputs = CallInputs { sources: &sources, arrays: part.inputs };
            let site = HostSite::new(EnginePar(part.ctx), &inputs, &wanted);
            run(&PlanRequest { site: &site, inputs: &inputs, random: &random }, part.outputs)
        });
        Ok(())
    }

    /// The graph for a device with kernels of its own and the types of this call.
    fn lower(&self, call: &CallLaunch<'_>, binding: &Binding, device: DeviceId) -> Result<DeviceProgram, OpError> {
        let types = (0..self.graph().inputs.len()).map(|input| {
            let array = binding.array(input, call.inputs).map(|array| array.tensor_type());
            array.ok_or_else(|| OpError::new(FailureKind::Value, format!("input {input} has no array")))
        });
        let types = types.collect::<Result<Vec<TensorType>, OpError>>()?;
        DeviceProgram::build(self.graph(), &types, &self.options, &self.device_constants, device)
    }

    /// Pushes a request for these inputs whose steps are timed: `run` runs them.
    pub(super) fn push_measured<F>(
        &self,
        program: &Program,
        inputs: &[&NDArray],
        run: F,
    ) -> Result<SmallVec<[NDArray; 2]>, OpError>
    where
        F: FnMut(&PlanRequest<'_>, &mut [TensorMut<'_>]) -> Result<CallProgress, OpError> + Send + 'static,
    {
        let results = self.results(program, self.unbound.context(inputs), &CallOptions::default())?;
        let outputs: SmallVec<[&NDArray; 2]> = results.iter().collect();
        let call = CallLaunch::new(self.name.clone(), inputs, &outputs, Cost::Large);
        self.push(program, &self.unbound, call, run)?;
        drop(outputs);
        Ok(results)
    }
}

/// An op of the host.
pub(super) struct HostSite<'a, 'o> {
    par: EnginePar<'a, 'o>,
    inputs: &'a CallInputs<'a>,
    /// the results, where the call may be cancelled by dropping them
    wanted: &'a [Interest],
}

impl<'a, 'o> HostSite<'a, 'o> {
    pub(super) fn new(par: EnginePar<'a, 'o>, inputs: &'a CallInputs<'a>, wanted: &'a [Interest]) -> Self {
        HostSite { par, inputs, wanted }
    }
}

impl RunSite for HostSite<'_, '_> {
    fn par(&self) -> &dyn Par {
        &self.par
    }

    fn memory(&self) -> &'static MemoryPool {
        self.par.0.engine().memory()
    }

    fn with_arena(&self, bytes: usize, run: &mut dyn FnMut(&mut [u8])) -> Result<(), OpError> {
        run(allocate(self.memory(), bytes)?.as_mut_slice());
        Ok(())
    }

    fn failure(&self, error: OpError) -> Failure {
        self.par.0.failure(error)
    }

    fn is_cancelled(&self) -> bool {
        !self.wanted.is_empty() && self.wanted.iter().all(Interest::is_lost)
    }

    fn profiled(&self) -> Option<ProfiledOp> {
        self.par.0.profiled()
    }

    fn packed(&self, params: Vec<PackedParam>) {
        release::push_release(self.par.0.engine(), self.inputs, params);
    }
}

pub(super) fn fits(outputs: &[&NDArray], types: &[TensorType]) -> Result<(), OpError> {
    if outputs.len() == types.len() && outputs.iter().zip(types).all(|(a, t)| a.tensor_type() == *t) {
        return Ok(());
    }
    let have: Vec<String> = outputs.iter().map(|a| a.tensor_type().to_string()).collect();
    let want: Vec<String> = types.iter().map(|t| t.to_string()).collect();
    let message = format!("the output arrays are {}, but {} are made", have.join(", "), want.join(", "));
    Err(OpError::new(FailureKind::Shape, message).op("CachedOp"))
}
