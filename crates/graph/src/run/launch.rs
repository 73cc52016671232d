//! Pushes a plan and its arrays as an op of the engine.

use super::cached_op::CachedOp;
use super::call_options::CallOptions;
use super::call_plan::{BatchCursor, CallPlan, GroupEnd};
use super::device_plan::DevicePlan;
use super::host_site::HostSite;
use super::inputs::CallInputs;
use super::on_device;
use super::prepared::{Binding, PreparedCall, fits};
use super::segment::Segment;
use crate::plan::PlanRequest;
use mxrt_engine::{Cost, DeviceId, FailureKind, OpError, RequestScope};
use mxrt_ops::{EnginePar, check_device_kernels};
use mxrt_tensor::{CallLaunch, CallProgress, Context, Interest, NDArray, TensorMut, TensorType, launch_call};
use smallvec::SmallVec;
use std::sync::Arc;

impl CachedOp {
    /// Makes arrays for the results of a plan.
    pub(super) fn results(
        &self,
        plan: &CallPlan,
        context: Context,
        options: &CallOptions,
    ) -> Result<SmallVec<[NDArray; 2]>, OpError> {
        let make = |t: &TensorType| {
            let array = NDArray::new(self.engine(), context, t.clone())?;
            Ok(if options.cancel_on_drop { array.cancel_on_drop() } else { array })
        };
        plan.outputs().iter().map(make).collect()
    }

    /// Pushes a call of a graph that is one plan.
    #[cfg_attr(debug_assertions, track_caller)]
    pub(super) fn start(
        &self,
        segment: &Segment,
        plan: Arc<CallPlan>,
        call: &PreparedCall<'_>,
    ) -> Result<SmallVec<[NDArray; 2]>, OpError> {
        let results = match call.outputs {
            None => self.results(&plan, call.binding.context(call.data), call.options)?,
            Some(outputs) => {
                fits(outputs, plan.outputs())?;
                outputs.iter().map(|a| (*a).clone()).collect()
            }
        };
        self.push_plan(segment, plan, call, &results)?;
        Ok(results)
    }

    #[cfg_attr(debug_assertions, track_caller)]
    fn push_plan(
        &self,
        segment: &Segment,
        plan: Arc<CallPlan>,
        call: &PreparedCall<'_>,
        results: &[NDArray],
    ) -> Result<(), OpError> {
        let engine = self.engine();
        let outputs: SmallVec<[&NDArray; 2]> = results.iter().collect();
        let launch = CallLaunch {
            params: call.binding.params.as_ref(),
            priority: call.options.priority,
            deadline: call.options.deadline,
            in_parts: plan.yields(engine.cores()),
            ..CallLaunch::new(self.name().clone(), call.data, &outputs, Cost::of(plan.cost_ns()))
        };
        let (of_op, mut cursor) = (plan.clone(), BatchCursor::default());
        self.push(segment, &plan, call.binding, launch, move |request, outs| {
            Ok(match of_op.run_group(engine, &mut cursor, request, outs)? {
                GroupEnd::Again => CallProgress::Again,
                GroupEnd::Done(missing) => CallProgress::Done(missing),
            })
        })
    }

    #[cfg_attr(debug_assertions, track_caller)]
    fn push<F>(
        &self,
        segment: &Segment,
        plan: &CallPlan,
        binding: &Binding,
        call: CallLaunch<'_>,
        mut run: F,
    ) -> Result<(), OpError>
    where
        F: FnMut(&PlanRequest<'_>, &mut [TensorMut<'_>]) -> Result<CallProgress, OpError> + Send + 'static,
    {
        // What fails in here names the request.
        let _request = RequestScope::begin();
        let random: SmallVec<[_; 2]> = (0..plan.random_draws()).map(|_| self.draw()).collect();
        let context = call.context();
        if let Some(elsewhere) = call.outputs.iter().find(|a| a.context().device() != context.device()) {
            let message = format!("an output array is on {}, but the inputs are on {context}", elsewhere.context());
            return Err(OpError::new(FailureKind::Device, message).op("CachedOp"));
        }
        if let Some(device) = context.device() {
            let open = self.engine().device(device)?;
            if !open.backend().host_addressable() {
                check_device_kernels(open)?;
                let native = plan.native(device.kind(), || self.lower(segment, &call, binding, device))?;
                return native.push(self.engine(), open, &call, &binding.sources, random);
            }
            return on_device::push(self.engine(), device, &call, plan, &binding.sources, random, run);
        }
        let (sources, all_bound) = (binding.sources.clone(), binding.all_bound);
        let wanted: SmallVec<[Interest; 2]> = call.outputs.iter().filter_map(|a| a.interest()).collect();
        let cores = self.options.cores;
        launch_call(self.engine(), call, move |part| {
            let _limited = cores.map(|limit| part.ctx.limit_cores(limit));
            let inputs = CallInputs { sources: &sources, all_bound, arrays: part.inputs };
            let site = HostSite::new(EnginePar(part.ctx), &inputs, &wanted);
            run(&PlanRequest { site: &site, inputs: &inputs, random: &random }, part.outputs)
        });
        Ok(())
    }

    /// Lowers the graph for a device with kernels of its own, for the types of this call.
    fn lower(
        &self,
        segment: &Segment,
        call: &CallLaunch<'_>,
        binding: &Binding,
        device: DeviceId,
    ) -> Result<DevicePlan, OpError> {
        let types = (0..segment.graph().inputs.len()).map(|input| {
            let array = binding.array(input, call.inputs).map(|array| array.tensor_type());
            array.ok_or_else(|| OpError::new(FailureKind::Value, format!("input {input} has no array")))
        });
        let types = types.collect::<Result<Vec<TensorType>, OpError>>()?;
        DevicePlan::build(segment.graph(), &types, &self.options, &segment.device_constants, device)
    }

    /// Pushes a request for these inputs whose steps are timed. `run` runs them.
    pub(super) fn push_measured<F>(
        &self,
        segment: &Segment,
        plan: &CallPlan,
        inputs: &[&NDArray],
        run: F,
    ) -> Result<SmallVec<[NDArray; 2]>, OpError>
    where
        F: FnMut(&PlanRequest<'_>, &mut [TensorMut<'_>]) -> Result<CallProgress, OpError> + Send + 'static,
    {
        let results = self.results(plan, self.unbound.context(inputs), &CallOptions::default())?;
        let outputs: SmallVec<[&NDArray; 2]> = results.iter().collect();
        let call = CallLaunch::new(self.name().clone(), inputs, &outputs, Cost::Large);
        self.push(segment, plan, &self.unbound, call, run)?;
        drop(outputs);
        Ok(results)
    }
}
