//! Ops that run in parts, so that others need not wait for the end of a long one.
//!
//! Between two parts the op goes to the tail of the ready queue if a thread waits there, or it is
//! suspended until it is resumed. It keeps its variables; its closure holds what it carries over
//! from part to part.

use crate::engine::Engine;
use crate::failure::{Failure, OpError, panic_error};
use crate::op::ctx::{OnComplete, RunCtx};
use crate::op::spec::{OpKind, OpSpec};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The status that a part of an op returns when it ends.
pub enum PartStatus {
    /// There is more to do.
    Again,
    /// The next part waits for something outside of the engine, which this function begins. It gets
    /// the [`Resume`] and returns at once. Until then the op occupies no thread, no core and no
    /// place in the gate.
    Suspended(Box<dyn FnOnce(Resume) + Send>),
    /// The op is complete; these writes, by number, have failed.
    Done(Vec<(usize, Failure)>),
}

/// Lets a suspended op continue, in any thread. The op fails with kind `NotCompleted` if this is
/// dropped unused.
pub struct Resume(Box<dyn FnOnce() + Send>);

impl Resume {
    /// Queues the next part. Returns at once.
    pub fn resume(self) {
        (self.0)();
    }
}

/// How the turn of an op ends.
enum OpTurn {
    Yield,
    Suspend(Box<dyn FnOnce(Resume) + Send>),
    Done(Vec<(usize, Failure)>),
}

impl Engine {
    /// Pushes an op that calls `run` until it is done or fails, on the pool. The context of the
    /// first call alone knows the op's variables. A strict op is skipped when an input has failed,
    /// others are not.
    pub fn push_in_parts<F>(&'static self, spec: OpSpec<'_>, run: F)
    where
        F: FnMut(&RunCtx<'_>) -> Result<PartStatus, OpError> + Send + 'static,
    {
        let priority = spec.priority;
        self.push_async(spec, move |ctx, token| self.run_parts(ctx, run, token, priority));
    }

    fn run_parts<F>(&'static self, ctx: &RunCtx<'_>, mut run: F, token: OnComplete, priority: i32)
    where
        F: FnMut(&RunCtx<'_>) -> Result<PartStatus, OpError> + Send + 'static,
    {
        // The turns after the first are ops that no thread waits for: a panic has to reach the
        // token.
        let turn = catch_unwind(AssertUnwindSafe(|| {
            loop {
                match run(ctx)? {
                    PartStatus::Again if self.has_queued() && !self.is_naive() => return Ok(OpTurn::Yield),
                    PartStatus::Again => {}
                    PartStatus::Suspended(begin) => return Ok(OpTurn::Suspend(begin)),
                    PartStatus::Done(fails) => return Ok(OpTurn::Done(fails)),
                }
            }
        }));
        let result = match turn {
            Ok(Ok(OpTurn::Yield)) => return self.push_turn(run, token, priority),
            Ok(Ok(OpTurn::Suspend(begin))) => {
                return begin(Resume(Box::new(move || self.push_turn(run, token, priority))));
            }
            Ok(Ok(OpTurn::Done(fails))) => Ok(fails),
            Ok(Err(error)) => Err(error),
            Err(payload) => Err(panic_error(ctx.name(), payload)),
        };
        // As for other ops: when dependants start, nothing of the closure is left.
        drop(run);
        token.complete_selectively(result);
    }

    fn push_turn<F>(&'static self, run: F, token: OnComplete, priority: i32)
    where
        F: FnMut(&RunCtx<'_>) -> Result<PartStatus, OpError> + Send + 'static,
    {
        // Without variables: those of the op are granted already.
        let spec = OpSpec::new(token.name(), &[]).kind(OpKind::NoSkip).priority(priority);
        self.push(spec, move |ctx| {
            self.run_parts(ctx, run, token, priority);
            Ok(())
        });
    }
}
