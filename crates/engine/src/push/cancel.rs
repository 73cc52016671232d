//! Cancelling: ops that have not started are complete without running, with a failure that says so;
//! running ones finish.
//!
//! A cancelled op keeps its place in the queues of its variables and fails when it would be
//! granted, so order and dependants need no second rule. One that is ready and waits for a core is
//! taken off the ready queue, under the queue's lock, and completed by the thread that cancels it;
//! one whose deadline has passed by the thread that notices: a thread that waits for a result of
//! it, or the next core that looks for work. One that becomes ready later is completed by the
//! thread that makes it ready. No caller has to be notified of a cancellation that
//! its caller asked for: such failures count as observed.

use crate::engine::Engine;
use crate::op::block::{Chain, Class, OpBlock};
use crate::op::cancel::every_write_cancelled;
use crate::process::slot::{self, Slot};
use crate::push::complete::inherited;
use crate::sync::atomic::Ordering;
use crate::var::Var;
use std::time::Instant;

impl Engine {
    /// Cancels every write of the variable that was pushed before and has not started. An op does
    /// not run when all it writes was cancelled; an op that still has another wanted result runs.
    /// A cancelled variable holds a failure of kind `Cancelled` until it is overwritten. An op that
    /// waits for a core is completed here, in this thread; this looks at every op in the ready
    /// queue.
    pub fn cancel(&'static self, var: &Var) {
        if self.cancel_in_turn(var) {
            self.without_fork(|| {
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
        self.without_fork(|| {
            let ops = self.sched.take_late_ops();
            // SAFETY: they came off the queue, so they are ready and ours; we are inside the fork
            // gate.
            unsafe { self.complete_unrun(slot::current(), ops) };
        });
    }

    /// Completes ops that are cancelled or late, and what becomes ready by that and will not run
    /// either; the rest goes to the thread that runs it. A loop, not a recursion: chains of
    /// dependants are long.
    ///
    /// # Safety
    /// The ops are ready, belong to the caller, which is inside the fork gate, and are unwanted or
    /// late.
    pub(crate) unsafe fn complete_unrun(&'static self, slot: &'static Slot, mut ops: Chain) {
        let mut rest = Chain::new();
        while let Some(op) = ops.take() {
            let mut ready = Chain::new();
            // SAFETY: contract; what becomes ready is ours, too.
            unsafe {
                self.execute(slot, op, &mut ready);
                self.divide(ready, &mut ops, &mut rest);
            }
        }
        // SAFETY: contract.
        unsafe { self.publish_all(slot, rest) };
    }

    /// Completes the ops of a chain that will not run, which no `cancel` and no waiter has found in
    /// the queue before, and queues the rest.
    ///
    /// # Safety
    /// The ops are ready and belong to the caller, which is inside the fork gate.
    #[cold]
    pub(crate) unsafe fn publish_wanted(&'static self, slot: &'static Slot, ready: Chain) {
        let (mut unrun, mut rest) = (Chain::new(), Chain::new());
        // SAFETY: contract.
        unsafe {
            self.divide(ready, &mut unrun, &mut rest);
            self.publish_all(slot, rest);
            self.complete_unrun(slot, unrun);
        }
    }

    /// Divides ready ops into those that are complete without running, and the rest.
    ///
    /// # Safety
    /// The ops are ready and belong to the caller.
    unsafe fn divide(&self, mut ready: Chain, unrun: &mut Chain, rest: &mut Chain) {
        while let Some(op) = ready.take() {
            // SAFETY: contract.
            unsafe { if self.will_not_run(op) { unrun.add(op) } else { rest.add(op) } };
        }
    }

    /// Whether a ready op is complete without running: it is late, unwanted, or inherits a failure.
    /// What devices do is not asked: an op of which they may decide waits its turn.
    ///
    /// # Safety
    /// All accesses of `op` are granted.
    unsafe fn will_not_run(&self, op: *mut OpBlock) -> bool {
        // SAFETY: contract.
        unsafe {
            // Its closure looks at the clock again, and then returns the failure.
            if OpBlock::deadline(op).is_some_and(|deadline| Instant::now() > deadline) {
                return true;
            }
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
