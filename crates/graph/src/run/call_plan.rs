//! Plans of the calls of one signature: a plan, or one that runs several times over the parts of a large
//! batch.
//!
//! Parts follow from the signature alone, so bits never depend on load. Several parts run
//! concurrently, one on each core; a part that runs alone is split over the cores. Between groups
//! of parts a request may let other requests go first.

use super::device_plan::DevicePlan;
use super::inputs::BatchRows;
use crate::compile::report::{BatchParts, PlanReport};
use crate::execute::MissingResults;
use crate::plan::{GraphInputs, Plan, PlanRequest};
use mxrt_engine::{DeviceKind, Engine, OpError};
use mxrt_ops::RandomKey;
use mxrt_tensor::{TensorMut, TensorType};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Approximate time after which a request yields to waiting ones.
const YIELD_NS: u64 = 30_000_000;

/// Runs that are not noted. The first one computes constants and touches memory for the first time.
const WARM_UP: usize = 2;

/// An immutable plan of the calls of one signature.
pub struct CallPlan {
    body: CallPlanBody,
    outputs: Vec<TensorType>,
    cost_ns: u64,
    last_used: AtomicU64,
    /// plan of devices with kernels of their own, from the first call on one
    native: OnceLock<(DeviceKind, Arc<DevicePlan>)>,
}

enum CallPlanBody {
    Whole(Arc<Plan>),
    Parts(DividedBatch),
}

/// A batch in parts.
pub struct DividedBatch {
    /// rows of the batch
    pub rows: usize,
    /// rows of every part except the last
    pub each: usize,
    /// whether parts run concurrently
    pub side_by_side: bool,
    /// whether each input of the graph is divided
    pub divided: Vec<bool>,
    /// plan for a part
    pub part: Arc<CallPlan>,
    /// plan for the rows that are left over
    pub rest: Option<Arc<CallPlan>>,
}

/// Progress of a request: the next part, and the failures so far.
#[derive(Default)]
pub struct BatchCursor {
    next: usize,
    failed: MissingResults,
}

/// Outcome of a group of parts.
pub enum GroupEnd {
    /// More parts are left.
    Again,
    /// The last part has run, and these results are missing.
    Done(MissingResults),
}

impl CallPlan {
    pub fn whole(plan: Plan) -> CallPlan {
        let (outputs, cost_ns) = (plan.outputs().to_vec(), plan.cost_ns());
        CallPlan {
            body: CallPlanBody::Whole(Arc::new(plan)),
            outputs,
            cost_ns,
            last_used: AtomicU64::new(0),
            native: OnceLock::new(),
        }
    }

    pub fn parts(parts: DividedBatch, outputs: Vec<TensorType>) -> CallPlan {
        let rest = parts.rest.as_ref().map_or(0, |rest| rest.cost_ns);
        let cost_ns = parts.part.cost_ns.saturating_mul((parts.rows / parts.each) as u64).saturating_add(rest);
        CallPlan {
            body: CallPlanBody::Parts(parts),
            outputs,
            cost_ns,
            last_used: AtomicU64::new(0),
            native: OnceLock::new(),
        }
    }

    /// Types of the results.
    pub fn outputs(&self) -> &[TensorType] {
        &self.outputs
    }

    /// Estimated time on one core, in nanoseconds.
    pub fn cost_ns(&self) -> u64 {
        self.cost_ns
    }

    /// Number of pieces of the random stream that one request draws. A graph that draws is never
    /// divided.
    pub fn random_draws(&self) -> usize {
        match &self.body {
            CallPlanBody::Whole(plan) => plan.random_draws(),
            CallPlanBody::Parts(_) => 0,
        }
    }

    /// The plans: one, or those of the parts.
    pub fn plans(&self) -> SmallVec<[&Plan; 2]> {
        match &self.body {
            CallPlanBody::Whole(plan) => smallvec::smallvec![&**plan],
            CallPlanBody::Parts(p) => p.part.plans().into_iter().chain(p.rest.iter().flat_map(|r| r.plans())).collect(),
        }
    }

    /// Bytes of the arena of a request whose parts run one after the other.
    pub fn arena_bytes(&self) -> usize {
        self.plans().iter().map(|plan| plan.arena_bytes()).max().unwrap_or(0)
    }

    /// Whether a request yields between groups of parts on a machine with `cores` cores.
    pub fn yields(&self, cores: usize) -> bool {
        match &self.body {
            CallPlanBody::Whole(_) => false,
            CallPlanBody::Parts(parts) => parts.group(0, cores) < parts.count(),
        }
    }

    /// Time of the last use, on the clock of the cache.
    pub fn last_used(&self) -> u64 {
        self.last_used.load(Ordering::Relaxed)
    }

    pub fn use_at(&self, time: u64) {
        self.last_used.store(time, Ordering::Relaxed);
    }

    /// The plan of a device with kernels of its own for the same graph. `build` lowers the graph
    /// at the first call.
    pub fn native(
        &self,
        kind: DeviceKind,
        build: impl FnOnce() -> Result<DevicePlan, OpError>,
    ) -> Result<Arc<DevicePlan>, OpError> {
        if let Some((of, plan)) = self.native.get()
            && *of == kind
        {
            return Ok(plan.clone());
        }
        let plan = Arc::new(build()?);
        let _ = self.native.set((kind, plan.clone()));
        Ok(plan)
    }

    /// Runs the next group of parts of a request.
    pub fn run_group(
        &self,
        engine: &'static Engine,
        cursor: &mut BatchCursor,
        request: &PlanRequest<'_>,
        outputs: &mut [TensorMut<'_>],
    ) -> Result<GroupEnd, OpError> {
        match &self.body {
            CallPlanBody::Whole(plan) => plan.run(request, outputs).map(GroupEnd::Done),
            CallPlanBody::Parts(parts) => {
                let group = parts.group(cursor.next, engine.cores());
                parts.run(cursor.next, group, request, outputs, &mut cursor.failed)?;
                cursor.next += group;
                let over = cursor.next >= parts.count() || cursor.failed.len() == outputs.len();
                Ok(if over { GroupEnd::Done(std::mem::take(&mut cursor.failed)) } else { GroupEnd::Again })
            }
        }
    }

    /// Runs a request `rounds` times and notes the time of every step in each run. For a divided
    /// batch it measures one part.
    pub fn measure(
        &self,
        rounds: usize,
        request: &PlanRequest<'_>,
        outputs: &mut [TensorMut<'_>],
        clock: &dyn Fn() -> u64,
        note: &mut dyn FnMut(&[u64]),
    ) -> Result<MissingResults, OpError> {
        match &self.body {
            CallPlanBody::Whole(plan) => {
                let mut failed = MissingResults::new();
                for run in 0..WARM_UP + rounds {
                    let (result, times) = plan.run_clocked(request, outputs, clock)?;
                    if run >= WARM_UP {
                        note(&times);
                    }
                    failed = result;
                }
                Ok(failed)
            }
            CallPlanBody::Parts(parts) => {
                let mut slices = parts.slices(0..1, outputs);
                let rows = parts.rows_of(0, request.inputs);
                let part = PlanRequest { inputs: &rows, ..*request };
                parts.part.measure(rounds, &part, &mut slices[0], clock, note)?;
                drop(slices);
                let mut failed = MissingResults::new();
                parts.run(0, parts.count(), request, outputs, &mut failed)?;
                Ok(failed)
            }
        }
    }

    /// Describes the plan, without times.
    pub fn report(&self) -> PlanReport {
        match &self.body {
            CallPlanBody::Whole(plan) => plan.report(),
            CallPlanBody::Parts(p) => {
                let parts = BatchParts { rows: p.rows, each: p.each, side_by_side: p.side_by_side };
                PlanReport { parts: Some(parts), ..p.part.report() }
            }
        }
    }
}

impl DividedBatch {
    fn count(&self) -> usize {
        self.rows.div_ceil(self.each)
    }

    /// Number of parts in the group that begins with part `next`. The last few parts are left for a
    /// group of their own, which is split over the cores.
    fn group(&self, next: usize, cores: usize) -> usize {
        let left = self.count() - next.min(self.count());
        let per_yield = (YIELD_NS / self.part.cost_ns.max(1)).clamp(1, 1 << 20) as usize;
        if !self.side_by_side {
            return per_yield.min(left);
        }
        let cores = cores.max(1);
        if left < cores {
            left.min(per_yield)
        } else {
            (per_yield.max(cores) / cores * cores).min(left / cores * cores)
        }
    }

    fn part_plan(&self, index: usize) -> &CallPlan {
        match &self.rest {
            Some(rest) if index + 1 == self.count() => rest,
            _ => &self.part,
        }
    }

    fn rows_of<'a>(&'a self, index: usize, inputs: &'a dyn GraphInputs) -> BatchRows<'a> {
        let types = match &self.part_plan(index).body {
            CallPlanBody::Whole(plan) => plan.inputs.as_slice(),
            CallPlanBody::Parts(_) => &[],
        };
        BatchRows { all: inputs, types, divided: &self.divided, first: index * self.each }
    }

    /// The parts of the results that each part of the batch writes.
    fn slices<'a>(
        &'a self,
        parts: std::ops::Range<usize>,
        outputs: &'a mut [TensorMut<'_>],
    ) -> Vec<SmallVec<[TensorMut<'a>; 2]>> {
        let mut slices: Vec<SmallVec<[TensorMut<'a>; 2]>> = parts.clone().map(|_| SmallVec::new()).collect();
        for (j, output) in outputs.iter_mut().enumerate() {
            let bytes = self.part.outputs[j].bytes();
            let mut left = output.bytes_mut().split_at_mut_checked(parts.start * bytes).map_or(&mut [][..], |(_, b)| b);
            for (slice, index) in slices.iter_mut().zip(parts.clone()) {
                let tensor = &self.part_plan(index).outputs[j];
                let (here, behind) = std::mem::take(&mut left).split_at_mut(tensor.bytes());
                slice.push(TensorMut::new(tensor.dtype, &tensor.shape, here));
                left = behind;
            }
        }
        slices
    }

    /// Runs some parts. Returns the error of the first part that has one, whichever part ran first.
    fn run(
        &self,
        first: usize,
        count: usize,
        request: &PlanRequest<'_>,
        outputs: &mut [TensorMut<'_>],
        failed: &mut MissingResults,
    ) -> Result<(), OpError> {
        let random: &[RandomKey] = &[];
        let run = |index: usize, outputs: &mut [TensorMut<'_>]| -> Result<MissingResults, OpError> {
            let rows = self.rows_of(index, request.inputs);
            match &self.part_plan(index).body {
                CallPlanBody::Whole(plan) => plan.run(&PlanRequest { inputs: &rows, random, ..*request }, outputs),
                CallPlanBody::Parts(_) => Ok(MissingResults::new()),
            }
        };
        let slices = self.slices(first..first + count, outputs);
        let mut results = Vec::with_capacity(count);
        if self.side_by_side && count > 1 {
            // Here all idle cores can help with constants; inside of a part they could not.
            self.part.plans().into_iter().for_each(|plan| drop(plan.constants(request)));
            let slices: Vec<_> = slices.into_iter().map(Mutex::new).collect();
            let done: Vec<_> = (0..count).map(|_| OnceLock::new()).collect();
            request.site.par().run(count, 0, &|k, _| {
                let _ = done[k].set(run(first + k, &mut slices[k].lock()));
            });
            results.extend(done.into_iter().filter_map(OnceLock::into_inner));
        } else {
            results.extend(slices.into_iter().enumerate().map(|(k, mut slice)| run(first + k, &mut slice)));
        }
        for result in results {
            for (output, failure) in result? {
                if failed.iter().all(|(other, _)| *other != output) {
                    failed.push((output, failure));
                }
            }
        }
        Ok(())
    }
}
