//! How long the steps of a plan take.

use super::{CachedOp, CallOptions, Launched};
use crate::plan::describe::{StepReport, StepTimes};
use crate::plan::program::Program;
use mxrt_engine::{Cost, OpError, WaitError};
use mxrt_tensor::{NDArray, Progress};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Instant;

/// Runs whose steps are timed for [`CachedOp::measured_plan_text`].
const MEASURED_RUNS: usize = 5;

impl CachedOp {
    /// The plan for these inputs, as text, with the time that each step takes on them: the shortest of several runs, all of
    /// them on as many cores as are idle. Waits for the runs; `poll` as for reading an array.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn measured_plan_text(
        &self,
        inputs: &[&NDArray],
        poll: &mut dyn FnMut() -> bool,
    ) -> Result<Result<String, WaitError>, OpError> {
        let times: Arc<Mutex<StepTimes>> = Arc::default();
        let (record, begin) = (times.clone(), Instant::now());
        let clock = move || begin.elapsed().as_nanos() as u64;
        let note = move |run: &[u64]| record.lock().merge(run);
        let measured = self.measure(inputs, MEASURED_RUNS, clock, note, poll)?;
        Ok(measured.map(|program| program.text(Some(&times.lock()))))
    }

    /// The steps of the plan for these inputs, or of a part of a divided batch, and what each took in `runs` runs (after two
    /// more), in nanoseconds of `clock`, which is read in the thread that runs them. Waits for the runs; `poll` as for reading
    /// an array.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn measure_steps(
        &self,
        inputs: &[&NDArray],
        runs: usize,
        clock: fn() -> u64,
        poll: &mut dyn FnMut() -> bool,
    ) -> Result<Result<Vec<StepReport>, WaitError>, OpError> {
        let times: Arc<Mutex<Vec<Vec<u64>>>> = Arc::default();
        let record = times.clone();
        let note = move |run: &[u64]| record.lock().push(run.to_vec());
        let measured = self.measure(inputs, runs, clock, note, poll)?;
        Ok(measured.map(|program| {
            let mut reports = program.plans().first().map(|plan| plan.reports()).unwrap_or_default();
            for run in times.lock().iter() {
                reports.iter_mut().zip(run).for_each(|(report, ns)| report.ns.push(*ns));
            }
            reports
        }))
    }

    /// Runs the program for these inputs several times and notes what its steps took each time.
    fn measure(
        &self,
        inputs: &[&NDArray],
        runs: usize,
        clock: impl Fn() -> u64 + Send + 'static,
        mut note: impl FnMut(&[u64]) + Send + 'static,
        poll: &mut dyn FnMut() -> bool,
    ) -> Result<Result<Arc<Program>, WaitError>, OpError> {
        let program = self.prepare(inputs)?;
        let results = self.results(&program, inputs, None, &CallOptions::default())?;
        let program_of_op = program.clone();
        let launched = Launched { cost: Cost::Large, in_parts: false, ..Launched::new(inputs, &results) };
        self.push(&program, &self.arguments, launched, &CallOptions::default(), move |request, outputs| {
            Ok(Progress::Done(program_of_op.measure(runs, request, outputs, &clock, &mut note)?))
        })?;
        for result in &results {
            if let Err(error) = result.read_with(poll) {
                return Ok(Err(error));
            }
        }
        Ok(Ok(program))
    }
}
