//! One call of a compiled graph, whatever it consists of.

use super::cached_op::{CachedOp, CompiledBody};
use super::call_plan::CallPlan;
use super::prepared::PreparedCall;
use super::segment::Segment;
use super::started::Started;
use crate::compile::interrupt::Interrupter;
use mxrt_engine::{Cost, EngineKind, OpError};
use mxrt_tensor::TensorType;
use std::sync::Arc;

/// Plans estimated below this run inline even where other threads wait for the calling thread.
const INLINE_NS: u64 = 10_000;

/// A call that must return at once looks no plan up by the types of more inputs.
const MAX_QUICK_INPUTS: usize = 4;

impl CachedOp {
    /// Begins a call. With the naive engine it is over when this returns.
    #[cfg_attr(debug_assertions, track_caller)]
    pub(super) fn begin(&self, call: PreparedCall<'_>, interrupter: &mut Interrupter<'_>) -> Result<Started, OpError> {
        let started = self.push_call(call, interrupter)?;
        started.report(self.engine(), interrupter)?;
        Ok(started)
    }

    #[cfg_attr(debug_assertions, track_caller)]
    fn push_call(&self, call: PreparedCall<'_>, interrupter: &mut Interrupter<'_>) -> Result<Started, OpError> {
        if let Some(graph) = self.parts(&call, interrupter)? {
            return self.start_parts(&graph, &call, interrupter);
        }
        match &self.body {
            CompiledBody::Plan(segment) => {
                let plan = self.call_plan(segment, &call, interrupter)?;
                Ok(self.start(segment, plan, &call)?.into_iter().collect())
            }
            CompiledBody::Stages(staged) => {
                let started = self.start_staged(staged, &call, interrupter)?;
                match call.outputs {
                    Some(outputs) => started.stored(outputs, interrupter),
                    None => Ok(started),
                }
            }
        }
    }

    /// Types of the results for these of all inputs; none if they follow from contents. Builds what a
    /// call of these needs.
    pub(super) fn result_types(
        &self,
        types: &[TensorType],
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Option<Vec<TensorType>>, OpError> {
        match &self.body {
            CompiledBody::Plan(segment) => Ok(Some(segment.plan_of_all(types, interrupter)?.outputs().to_vec())),
            CompiledBody::Stages(staged) => staged.result_types(types, interrupter),
        }
    }

    fn call_plan(
        &self,
        segment: &Segment,
        call: &PreparedCall<'_>,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Arc<CallPlan>, OpError> {
        let plan = match (&call.known, interrupter.is_quick()) {
            (Some(plan), _) => plan.clone(),
            (None, false) => {
                let types = (call.types)();
                return match call.given {
                    Some(given) => segment.plan(&types, given, interrupter),
                    None => segment.plan_of_all(&types, interrupter),
                };
            }
            (None, true) => {
                let few = call.binding.sources.len() <= MAX_QUICK_INPUTS;
                let found = if few { segment.find(&(call.types)()) } else { None };
                found.ok_or_else(|| interrupter.give_up())?
            }
        };
        if interrupter.is_quick() && !self.returns_at_once(&plan) {
            return Err(interrupter.give_up());
        }
        Ok(plan)
    }

    /// Whether a call returns within microseconds: it runs in a worker, or is short.
    fn returns_at_once(&self, plan: &CallPlan) -> bool {
        let here = plan.cost_ns() < Cost::SMALL_NS || self.engine().kind() == EngineKind::Naive;
        !here || plan.cost_ns() < INLINE_NS
    }
}
