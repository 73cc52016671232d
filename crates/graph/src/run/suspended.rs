//! Plans with operators of the program: a request stops at each of them, and goes on when the
//! program has answered.

use super::execute::{FailedSteps, MissingResults, PlanRequest, run_step};
use crate::compile::build::Plan;
use crate::compile::step::Step;
use crate::memory::constants::{ConstSet, allocate};
use mxrt_engine::memory::Block;
use mxrt_engine::{Engine, FailureKind, OpError, Resume};
use mxrt_ops::{CustomArrays, CustomResults, Kernel, KernelCall};
use mxrt_tensor::{TensorMut, TensorType};
use std::sync::{Arc, OnceLock};

/// How far a plan has come.
pub enum PlanEnd {
    /// To the end; these results are missing.
    Done(MissingResults),
    /// To an operator of the program, which this function calls.
    Suspended(Box<dyn FnOnce(Resume) + Send>),
}

/// A request between two steps of a plan.
pub struct SuspendedPlan {
    arena: Block,
    consts: Arc<ConstSet>,
    broken: FailedSteps,
    /// the step to go on with, and how many of those before it draw from the random stream
    next: usize,
    draws: usize,
    /// what the program answers to step `next`
    answer: Option<Arc<OnceLock<CustomResults>>>,
}

impl Plan {
    /// Whether any step calls an operator of the program.
    pub fn suspends(&self) -> bool {
        self.steps.iter().any(|step| step.kernel.custom().is_some())
    }

    /// As [`Plan::run`], up to the next operator of the program. `position` is None at first, and
    /// holds what is to be continued after that.
    pub fn run_until_custom(
        self: &Arc<Plan>,
        engine: &'static Engine,
        position: &mut Option<SuspendedPlan>,
        request: &PlanRequest<'_>,
        outputs: &mut [TensorMut<'_>],
    ) -> Result<PlanEnd, OpError> {
        let mut at = match position.take() {
            Some(at) => at,
            None => self.begin(request)?,
        };
        while let Some(step) = self.steps.get(at.next) {
            match self.advance(engine, &mut at, step, request, outputs) {
                Ok(None) => at.next += 1,
                Ok(Some(arrays)) => {
                    let answer = at.answer.insert(Arc::default()).clone();
                    let (plan, s) = (self.clone(), at.next);
                    *position = Some(at);
                    return Ok(PlanEnd::Suspended(Box::new(move |resume| plan.call(s, arrays, answer, resume))));
                }
                Err(error) => {
                    at.broken.add(at.next, request.site.failure(error));
                    at.next += 1;
                }
            }
        }
        Ok(PlanEnd::Done(at.broken.missing(self)))
    }

    fn begin(&self, request: &PlanRequest<'_>) -> Result<SuspendedPlan, OpError> {
        let consts = self.constants(request);
        let broken = FailedSteps::at_start(request, &consts);
        let arena = allocate(request.site.memory(), self.arena_bytes())?;
        Ok(SuspendedPlan { arena, consts, broken, next: 0, draws: 0, answer: None })
    }

    /// Runs a step, or ends it with the answer of the program. Some for a step that the program is
    /// to be asked about.
    fn advance(
        &self,
        engine: &'static Engine,
        at: &mut SuspendedPlan,
        step: &Step,
        request: &PlanRequest<'_>,
        outputs: &mut [TensorMut<'_>],
    ) -> Result<Option<CustomArrays>, OpError> {
        let answer = at.answer.take();
        let key = if step.random && answer.is_none() {
            at.draws += 1;
            request.random.get(at.draws - 1).copied()
        } else {
            None
        };
        if let Some(failure) = at.broken.inherited(step, request.inputs, &at.consts) {
            at.broken.add(at.next, failure);
            return Ok(None);
        }
        let types: Vec<TensorType> = step.outputs.iter().map(|o| o.tensor.clone()).collect();
        let mut arrays = None;
        let mut run = |kernel: &dyn Kernel, call: &mut KernelCall<'_, '_>| match (kernel.custom(), &answer) {
            (None, _) => kernel.run(call),
            (Some(custom), None) => {
                arrays = Some(custom.arrays(engine, call.inputs, &types, call.random)?);
                Ok(())
            }
            (Some(custom), Some(answer)) => match answer.get() {
                Some(Ok(results)) => custom.store(results, call.outputs),
                Some(Err(error)) => Err(error.clone()),
                None => Err(not_answered()),
            },
        };
        run_step(step, request, &at.consts, at.arena.as_mut_slice(), outputs, key, &mut run)?;
        Ok(arrays)
    }

    /// Hands a step to the program.
    fn call(&self, step: usize, arrays: CustomArrays, answer: Arc<OnceLock<CustomResults>>, resume: Resume) {
        if let Some(custom) = self.steps.get(step).and_then(|step| step.kernel.custom()) {
            let reply = move |results| {
                let _ = answer.set(results);
                resume.resume();
            };
            custom.begin(arrays, Box::new(reply));
        }
    }
}

fn not_answered() -> OpError {
    OpError::new(FailureKind::NotCompleted, "the program did not answer the call of its operator")
}
