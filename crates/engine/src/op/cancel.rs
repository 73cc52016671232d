//! Cancelling: ops that have not started are complete without running, with a failure that says so;
//! running ones finish.
//!
//! A cancelled op keeps its place in the queues of its variables and fails when it would be
//! granted, so order and dependants need no second rule. One that is ready and waits for a core is
//! taken off the ready queue, under the queue's lock, and completed by the thread that cancels it;
//! one whose deadline has passed by the thread that notices: a thread that waits for a result of
//! it, or the next core that looks for work. No caller has to be notified of a cancellation that
//! its caller asked for: such failures count as observed.

use crate::engine::Engine;
use crate::failure::{FailureKind, OpError};
use crate::op::block::{Chain, Class, OpBlock};
use crate::op::ctx::{OnComplete, RunCtx};
use crate::op::spec::{Access, OpKind, OpSpec};
use crate::process::slot::{self, Slot};
use crate::push::complete::inherited;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::var::Var;
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

impl Engine {
    /// Cancels every write of the variable that was pushed before and has not started. An op does
    /// not run when all it writes was cancelled; an op that still has another wanted result runs.
    /// What was cancelled holds a failure of kind `Cancelled` until it is overwritten. An op that
    /// waits for a core is completed here, in this thread; this looks at every op in the ready
    /// queue.
    pub fn cancel(&'static self, var: &Var) {
        if self.cancel_in_turn(var) {
            self.with_gate(|| {
                let ops = self.sched.take_cancelled_ops();
                // SAFETY: they came off the queue, so they are ready and ours; we are inside the
                // gate.
                unsafe { self.complete_unrun(slot::current(), ops) };
            });
        }
    }

    /// Cancels like [`cancel`](Engine::cancel), but every op is completed when its turn comes.
    /// Nothing else happens in this thread, so it may hold locks. True: an op that writes the
    /// variable has all its inputs and may be waiting for a core.
    pub fn cancel_in_turn(&'static self, var: &Var) -> bool {
        self.cancelling.store(true, Ordering::Relaxed);
        var.cancel_pushed_writes()
    }

    /// Completes the queued ops whose deadline has passed.
    pub(crate) fn fail_late_ops(&'static self) {
        self.with_gate(|| {
            let ops = self.sched.take_late_ops();
            // SAFETY: they came off the queue, so they are ready and ours; we are inside the gate.
            unsafe { self.complete_unrun(slot::current(), ops) };
        });
    }

    /// Completes ops that are cancelled or late, and what becomes ready by that and will not run
    /// either; the rest goes to the thread that runs it. A loop, not a recursion: chains of
    /// dependants are long.
    ///
    /// # Safety
    /// The ops are ready, belong to the caller, which is inside the gate, and are unwanted or late.
    pub(crate) unsafe fn complete_unrun(&'static self, slot: &'static Slot, mut ops: Chain) {
        let mut rest = Chain::new();
        while let Some(op) = ops.take() {
            let mut ready = Chain::new();
            // SAFETY: contract; what becomes ready is ours, too.
            unsafe {
                self.execute(slot, op, &mut ready);
                while let Some(op) = ready.take() {
                    if self.will_not_run(op) { ops.add(op) } else { rest.add(op) }
                }
            }
        }
        // SAFETY: contract.
        unsafe { self.publish(slot, rest) };
    }

    /// Whether a ready op is complete without running. What devices do is not asked: such an op
    /// waits its turn.
    ///
    /// # Safety
    /// All accesses of `op` are granted.
    unsafe fn will_not_run(&self, op: *mut OpBlock) -> bool {
        // SAFETY: contract.
        unsafe {
            let skips = matches!((*op).class, Class::Strict | Class::Async) && inherited(op).is_some();
            !self.devices.in_use() && (skips || ((*op).class.can_be_cancelled() && self.is_unwanted(op)))
        }
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
