//! Ops that run in the thread that waits for them.

use super::{Sched, Wake, WorkerJob};
use crate::engine::Engine;
use crate::op::block::{OpBlock, WAITER_MAY_RUN};
use crate::process::slot;
use crate::sched::parker::Parker;
use crate::var::Var;
use std::sync::atomic::Ordering;

/// An op that its waiter runs, and what belongs to that.
struct InlineWait {
    op: *mut OpBlock,
    token: usize,
    wake: Wake,
    /// The worker that was woken for it and may not run yet.
    woken: Option<&'static Parker>,
}

impl Sched {
    /// Whether the only op in the queue is one that a waiting thread runs itself.
    pub(super) fn next_is_for_waiter(&self) -> bool {
        let state = self.lock();
        let op = state.queues.peek().filter(|_| state.queues.len() == 1);
        // SAFETY: queued ops belong to the queues, which are locked.
        op.is_some_and(|op| unsafe { OpBlock::has(op, WAITER_MAY_RUN) && !(*op).class.has_token() })
    }

    /// Takes the next op off the queue if a thread that waits for `var` may run it, with a token
    /// for that. This happens only while no thread computes: when there are other requests, a
    /// worker is better, because it continues with the next request, or helps, without being woken.
    fn take_for_waiter(&self, var: &Var) -> Option<InlineWait> {
        let mut state = self.lock();
        if self.tokens.free() < self.tokens.len() {
            return None;
        }
        let op = state.queues.peek()?;
        // SAFETY: queued ops belong to the queues, which are locked.
        let awaited = unsafe {
            OpBlock::has(op, WAITER_MAY_RUN) && !(*op).class.has_token() && OpBlock::writes(op, var.as_ptr())
        };
        let token = if awaited { self.tokens.take() } else { None }?;
        state.queues.pop();
        state.kept.release_one();
        self.queued.store(state.queues.len(), Ordering::Release);
        self.jobs.store(self.jobs.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        let woken = state.woken.filter(|worker| worker.is_woken());
        Some(InlineWait { op, token, wake: self.wake_rule(&mut state), woken })
    }
}

impl Engine {
    /// Runs the op that this thread is about to wait for, if it is the next in the queue and all
    /// cores are free: the thread would only sleep, and its core is awake. The worker that was
    /// woken for the op helps.
    pub(crate) fn run_inline_wait(&'static self, var: &Var) {
        if self.sched.queue_is_empty() {
            return;
        }
        let slot = slot::current();
        slot.enter();
        if let Some(InlineWait { op, token, wake, woken }) = self.sched.take_for_waiter(var) {
            // The system expected this thread to sleep and may have put the worker behind it.
            if let Some(worker) = woken {
                worker.keep_away();
            }
            self.do_job(slot, WorkerJob::Run(op), token, wake);
            self.sched.give_back(self, token);
        }
        slot.exit();
    }
}
