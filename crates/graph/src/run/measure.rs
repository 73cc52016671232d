//! Measures the time of the steps of a plan.

use super::cached_op::{CachedOp, CompiledBody};
use super::call_plan::CallPlan;
use super::plan_cache::CallSignature;
use super::segment::Segment;
use crate::compile::interrupt::Interrupter;
use crate::compile::report::PlanReport;
use mxrt_engine::{OpError, WaitError};
use mxrt_tensor::{CallProgress, NDArray, TensorType};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Instant;

/// Default number of runs whose steps are timed.
const MEASURED_RUNS: usize = 5;

impl CachedOp {
    /// Returns the plan for these inputs with the time that each step takes on them in several
    /// runs, on all idle cores. Waits for the runs and calls `poll` meanwhile, as a read of an
    /// array does.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn measured_plan(
        &self,
        inputs: &[&NDArray],
        poll: &mut dyn FnMut() -> bool,
    ) -> Result<Result<PlanReport, WaitError>, OpError> {
        let begin = Instant::now();
        self.measured_plan_by(inputs, MEASURED_RUNS, move || begin.elapsed().as_nanos() as u64, poll)
    }

    /// Measures `runs` runs, after two more that are not noted, as [`CachedOp::measured_plan`]
    /// does. Times are nanoseconds of `clock`, which the thread that runs the plan reads.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn measured_plan_by(
        &self,
        inputs: &[&NDArray],
        runs: usize,
        clock: impl Fn() -> u64 + Send + 'static,
        poll: &mut dyn FnMut() -> bool,
    ) -> Result<Result<PlanReport, WaitError>, OpError> {
        // How long the program's own operators take says nothing about plans, and some plans are
        // unknown before a call.
        let segment = match &self.body {
            CompiledBody::Plan(segment) if !self.has_lacking(inputs)? => segment,
            _ => return self.plan_for(inputs).map(Ok),
        };
        let times: Arc<Mutex<Vec<Vec<u64>>>> = Arc::default();
        let record = times.clone();
        let note = move |run: &[u64]| record.lock().push(run.to_vec());
        let plan = match self.measure(segment, inputs, runs, clock, note, poll)? {
            Ok(plan) => plan,
            Err(error) => return Ok(Err(error)),
        };
        let mut report = plan.report();
        times.lock().iter().for_each(|run| report.add_run(run));
        let types: Vec<TensorType> = inputs.iter().map(|array| array.tensor_type()).collect();
        self.note_libraries_of_calls(&mut report, self.unbound.context(inputs), &types)?;
        Ok(Ok(report))
    }

    /// Runs the plan for these inputs several times and notes the time of each step in each run.
    fn measure(
        &self,
        segment: &Segment,
        inputs: &[&NDArray],
        runs: usize,
        clock: impl Fn() -> u64 + Send + 'static,
        mut note: impl FnMut(&[u64]) + Send + 'static,
        poll: &mut dyn FnMut() -> bool,
    ) -> Result<Result<Arc<CallPlan>, WaitError>, OpError> {
        self.check_count(inputs.len())?;
        self.check_contexts(inputs.iter().copied().enumerate())?;
        let types: CallSignature = inputs.iter().map(|a| a.tensor_type()).collect();
        let plan = segment.plan_of_all(&types, &mut Interrupter::never())?;
        let plan_of_op = plan.clone();
        let results = self.push_measured(segment, &plan, inputs, move |request, outputs| {
            Ok(CallProgress::Done(plan_of_op.measure(runs, request, outputs, &clock, &mut note)?))
        })?;
        for result in &results {
            if let Err(error) = result.read_with(poll) {
                return Ok(Err(error));
            }
        }
        Ok(Ok(plan))
    }
}
