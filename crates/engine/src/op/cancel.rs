//! The request to cancel ops: the handle that a caller holds, the limits that an op checks before it
//! starts, and the cancelled writes of a variable. `push/cancel.rs` completes what is cancelled.

use crate::failure::{FailureKind, OpError};
use crate::op::block::OpBlock;
use crate::op::ctx::{OnComplete, RunCtx};
use crate::op::spec::{Access, OpKind, OpSpec};
use crate::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Instant;

/// Cancels the ops that were pushed with it, by [`OpSpec::cancel`](crate::OpSpec::cancel). Clones
/// cancel the same ops.
#[derive(Clone, Debug, Default)]
pub struct CancelHandle(Arc<AtomicBool>);

impl CancelHandle {
    /// A handle no thread has used yet.
    pub fn new() -> Self {
        CancelHandle::default()
    }

    /// Ops of this handle that have not started will not run. Ops pushed with it later will not
    /// either.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether [`cancel`](CancelHandle::cancel) was called. A long op that holds a clone may look
    /// and give up.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Conditions that an op checks before it starts.
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
        if let Some(deadline) = spec.deadline {
            let written = spec.vars.iter().filter(|(_, access)| *access != Access::Read);
            written.for_each(|(var, _)| var.set_deadline(deadline));
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
                    "operator {name} did not run: it had not started {:.3} ms after its deadline; \
                     allow more time, or send less work",
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

    /// Wraps `run` like `before`, for an op that completes by its token.
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

/// # Safety
/// All accesses of `op` are granted.
#[cold]
pub(crate) unsafe fn every_write_cancelled(op: *mut OpBlock) -> bool {
    let mut writes = 0;
    // SAFETY: a grant keeps the variable alive and its version stable.
    unsafe {
        for i in 0..OpBlock::len(op) {
            let e = OpBlock::entry(op, i);
            if !(*e).mode().writes() {
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
