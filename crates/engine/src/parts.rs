//! Ops that run in parts, so that others need not wait for the end of a long one.
//!
//! Between two parts the op goes to the tail of the ready queue if a thread waits there. It keeps
//! its variables; its closure holds what it carries over from part to part.

use crate::complete::panic_error;
use crate::ctx::{OnComplete, RunCtx};
use crate::engine::Engine;
use crate::failure::{Failure, OpError};
use crate::spec::{OpKind, OpSpec};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a part of an op says when it ends.
#[derive(Debug)]
pub enum PartStatus {
    /// There is more to do.
    Again,
    /// The op is complete; these writes, by number, have failed.
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
        // The turns behind the first are ops that no thread waits for: a panic has to reach the
        // token.
        let turn = catch_unwind(AssertUnwindSafe(|| {
            loop {
                match run(ctx)? {
                    PartStatus::Again if self.has_queued() && !self.is_naive() => return Ok(None),
                    PartStatus::Again => {}
                    PartStatus::Done(fails) => return Ok(Some(fails)),
                }
            }
        }));
        let result = match turn {
            Ok(Ok(None)) => {
                // Without variables: those of the op are granted already.
                let spec = OpSpec::new(token.name(), &[]).kind(OpKind::NoSkip).priority(priority);
                return self.push(spec, move |ctx| {
                    self.run_parts(ctx, run, token, priority);
                    Ok(())
                });
            }
            Ok(Ok(Some(fails))) => Ok(fails),
            Ok(Err(error)) => Err(error),
            Err(payload) => Err(panic_error(ctx.name(), payload)),
        };
        // As for other ops: when dependants start, nothing of the closure is left.
        drop(run);
        token.complete_selectively(result);
    }
}
