//! Cancelling: ops that have not started are complete without running, with a failure that says so; running ones finish.
//!
//! A cancelled op keeps its place in the queues of its variables and fails when its turn comes, so order and dependants
//! need no second rule. Nobody has to be told of a cancellation he asked for: such failures count as observed.

use crate::block::{Mode, OpBlock};
use crate::ctx::{OnComplete, RunCtx};
use crate::engine::Engine;
use crate::failure::{FailureKind, OpError};
use crate::spec::{OpKind, OpSpec};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::var::Var;
use std::sync::Arc;
use std::time::Instant;

/// Cancels the ops that were pushed with it, by [`OpSpec::cancel`](crate::OpSpec::cancel). Clones cancel the same ops.
#[derive(Clone, Debug, Default)]
pub struct CancelHandle(Arc<AtomicBool>);

impl CancelHandle {
    /// A handle nobody has used yet.
    pub fn new() -> Self {
        CancelHandle::default()
    }

    /// Ops of this handle that have not started will not run. Ops pushed with it later will not either.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether [`cancel`](CancelHandle::cancel) was called. A long op that holds a clone may look and give up.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// What an op looks at before it starts.
pub(crate) struct Limits {
    deadline: Option<Instant>,
    cancel: Option<CancelHandle>,
}

impl Limits {
    /// The limits of an op that has any. Clean-up always runs.
    #[inline(always)]
    pub fn of(spec: &OpSpec<'_>) -> Option<Self> {
        if (spec.deadline.is_none() && spec.cancel.is_none()) || spec.kind == OpKind::NoSkip {
            return None;
        }
        Some(Limits { deadline: spec.deadline, cancel: spec.cancel.cloned() })
    }

    fn check(&self, name: &str) -> Result<(), OpError> {
        if self.cancel.as_ref().is_some_and(CancelHandle::is_cancelled) {
            return Err(cancelled(name));
        }
        match self.deadline.map(|d| Instant::now().saturating_duration_since(d)) {
            Some(late) if !late.is_zero() => {
                let message = format!(
                    "operator {name} did not run: its turn came {:.3} ms after its deadline; allow more time, or send less work",
                    late.as_secs_f64() * 1e3
                );
                Err(OpError::new(FailureKind::Deadline, message))
            }
            _ => Ok(()),
        }
    }

    /// The closure with the look in front of it.
    pub fn before<F>(self, run: F) -> impl FnOnce(&RunCtx<'_>) -> Result<(), OpError> + Send + 'static
    where
        F: FnOnce(&RunCtx<'_>) -> Result<(), OpError> + Send + 'static,
    {
        move |ctx| {
            self.check(ctx.name())?;
            run(ctx)
        }
    }

    /// As `before`, for an op that completes by its token.
    pub fn before_async<F>(self, run: F) -> impl FnOnce(&RunCtx<'_>, OnComplete) + Send + 'static
    where
        F: FnOnce(&RunCtx<'_>, OnComplete) + Send + 'static,
    {
        move |ctx, token| match self.check(ctx.name()) {
            Ok(()) => run(ctx, token),
            Err(error) => token.complete(Err(error)),
        }
    }
}

pub(crate) fn cancelled(name: &str) -> OpError {
    OpError::new(FailureKind::Cancelled, format!("operator {name} did not run: it was cancelled"))
}

impl Engine {
    /// Cancels every write of the variable that was pushed before and has not started. An op does not run when all it
    /// writes was cancelled; an op that somebody else still wants a result of runs. What was cancelled holds a failure of
    /// kind `Cancelled` until it is overwritten.
    pub fn cancel(&'static self, var: &Var) {
        self.cancelling.store(true, Ordering::Relaxed);
        var.cancel_pushed_writes();
    }

    /// Whether everything this op writes was cancelled.
    ///
    /// # Safety
    /// All accesses of `op` are granted.
    #[inline(always)]
    pub(crate) unsafe fn is_unwanted(&self, op: *mut OpBlock) -> bool {
        // SAFETY: contract.
        self.cancelling.load(Ordering::Relaxed) && unsafe { every_write_cancelled(op) }
    }
}

/// # Safety
/// All accesses of `op` are granted.
#[cold]
pub(crate) unsafe fn every_write_cancelled(op: *mut OpBlock) -> bool {
    let mut writes = 0;
    // SAFETY: a grant keeps the variable alive and its version stable.
    unsafe {
        for i in 0..OpBlock::len(op) {
            let e = OpBlock::entry(op, i);
            if !matches!((*e).mode(), Mode::Write | Mode::Update) {
                continue;
            }
            let var = (*e).var;
            // This write makes the next version.
            if *(*var).version.get() >= (*var).cancelled() {
                return false;
            }
            writes += 1;
        }
    }
    writes > 0
}
