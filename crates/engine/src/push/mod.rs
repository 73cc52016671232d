//! Pushing: build the block, register it, and run or queue it if it is ready.

pub(crate) mod bulk;
mod cancel;
pub(crate) mod complete;
pub(crate) mod protocol;
pub(crate) mod resumable;

use crate::engine::Engine;
use crate::failure::OpError;
use crate::op::block::{
    AsyncClosure, COUNTED, Chain, Class, DOOMED, EPOCH, FOLLOW_UP, ON_DEVICE, OpBlock, SMALL, SyncClosure,
};
use crate::op::cancel::Limits;
use crate::op::ctx::{OnComplete, RunCtx};
use crate::op::origin::{self, Site};
use crate::op::spec::{OpKind, OpSpec};
use crate::process::slot::{self, Slot};
use crate::profile;
use crate::push::bulk::is_bulkable;
use std::sync::atomic::Ordering;

/// Ops a thread may be inside of and still run another one at its push.
const INLINE_DEPTH: u32 = 4;

impl Engine {
    /// Pushes an op and returns at once. The op runs when everything it reads is complete and no
    /// other thread uses what it writes. An error it returns, or a panic, becomes a
    /// [`Failure`](crate::Failure) on everything it writes.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn push<F>(&'static self, spec: OpSpec<'_>, run: F)
    where
        F: FnOnce(&RunCtx<'_>) -> Result<(), OpError> + Send + 'static,
    {
        let class = Class::from(spec.kind);
        let caller = origin::caller();
        match Limits::of(&spec) {
            // SAFETY: the closure is of the type that the vtable treats it as.
            None => self.push_as(&spec, class, caller, |op| unsafe { SyncClosure::<F>::store(op, run) }),
            Some(limits) => {
                let run = limits.before(run);
                // SAFETY: as above.
                self.push_as(&spec, class, caller, |op| unsafe { SyncClosure::store(op, run) })
            }
        }
    }

    /// Pushes an op that submits work to a device. Its inputs need not be complete there.
    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn push_on_device<F>(&'static self, spec: OpSpec<'_>, run: F)
    where
        F: FnOnce(&RunCtx<'_>) -> Result<(), OpError> + Send + 'static,
    {
        let class = Class::from(spec.kind);
        let caller = origin::caller();
        match Limits::of(&spec) {
            // SAFETY: the block belongs to the push; the closure is of the type that the vtable
            // treats it as.
            None => self.push_as(&spec, class, caller, |op| unsafe {
                (*op).flags |= ON_DEVICE;
                SyncClosure::<F>::store(op, run)
            }),
            Some(limits) => {
                let run = limits.before(run);
                // SAFETY: as above.
                self.push_as(&spec, class, caller, |op| unsafe {
                    (*op).flags |= ON_DEVICE;
                    SyncClosure::store(op, run)
                })
            }
        }
    }

    /// Pushes an op that is complete when its [`OnComplete`] is used, from any thread, during its
    /// run or later. Kind `NoSkip` and `Selective` ops run whatever they read; a strict one does
    /// not run when an input has failed.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn push_async<F>(&'static self, spec: OpSpec<'_>, run: F)
    where
        F: FnOnce(&RunCtx<'_>, OnComplete) + Send + 'static,
    {
        let class = match spec.kind {
            OpKind::Strict => Class::Async,
            OpKind::Selective => Class::AsyncSelective,
            OpKind::NoSkip => Class::AsyncAlways,
        };
        let caller = origin::caller();
        match Limits::of(&spec) {
            // SAFETY: the closure is of the type that the vtable treats it as.
            None => self.push_as(&spec, class, caller, |op| unsafe { AsyncClosure::<F>::store(op, run) }),
            Some(limits) => {
                let run = limits.before_async(run);
                // SAFETY: as above.
                self.push_as(&spec, class, caller, |op| unsafe { AsyncClosure::store(op, run) })
            }
        }
    }

    #[inline]
    pub(crate) fn push_as(
        &'static self,
        spec: &OpSpec<'_>,
        class: Class,
        caller: Option<Site>,
        store: impl FnOnce(*mut OpBlock),
    ) {
        let slot = slot::current();
        slot.enter();
        let op = slot.take_block();
        let skips = !class.runs_at_once() && spec.kind != OpKind::NoSkip;
        // SAFETY: a block from the pool is raw and ours; the handles in `spec` live during the
        // call.
        unsafe {
            OpBlock::fill(op, spec, class);
            if skips && self.closed.load(Ordering::Relaxed) {
                (*op).flags |= DOOMED;
            }
            store(op);
            origin::stamp(slot, op, caller);
            if profile::is_on() && !class.runs_at_once() {
                profile::stamp_push(op);
            }
            self.submit(slot, op);
        }
        slot.exit();
    }

    /// # Safety
    /// `op` is filled, has its closure and belongs to the caller; handles keep its variables alive
    /// during the call.
    #[inline]
    unsafe fn submit(&'static self, slot: &'static Slot, op: *mut OpBlock) {
        // SAFETY: contract; after `register` has returned false the op is not touched.
        unsafe {
            let notify = (*op).class.runs_at_once();
            let small = (*op).flags & (SMALL | DOOMED) != 0;
            let count = || {
                if !notify {
                    self.count_push(slot, op);
                }
            };
            let (class, flags) = ((*op).class, (*op).flags);
            let collects = self.bulk_limit(slot) > 0 && slot.op_depth.get() == 0 && !self.is_naive();
            let bulked = collects && is_bulkable(class, flags);
            if collects && !bulked && !notify {
                self.end_bulk(slot);
            }
            if !crate::push::protocol::register(op, count) {
                if bulked && slot.bulk_count.get() != 0 {
                    self.count_bulked(slot);
                }
            } else if bulked {
                self.count_push(slot, op);
                self.put_off(slot, op);
            } else {
                self.start_ready(slot, op, notify, small);
            }
        }
    }

    /// # Safety
    /// `op` is ready, not counted, and belongs to the caller.
    #[inline]
    unsafe fn start_ready(&'static self, slot: &'static Slot, op: *mut OpBlock, notify: bool, small: bool) {
        let shallow = slot.op_depth.get() < INLINE_DEPTH;
        // SAFETY: contract. What runs here is complete before push returns, so it needs no
        // counting; an async op does.
        unsafe {
            if shallow && (notify || (small && !self.is_naive())) {
                if notify || OpBlock::has(op, DOOMED) || slot.token(self).is_some() {
                    return self.run_here(slot, op);
                }
                if self.sched.queue_is_empty()
                    && let Some(token) = self.sched.tokens.take()
                {
                    let before = slot.hold_token(self, token);
                    self.run_here(slot, op);
                    slot.restore_token(before);
                    self.sched.give_back(self, token);
                    return;
                }
            }
            if !notify {
                self.count_push(slot, op);
            }
            self.enqueue_one(slot, op);
        }
    }

    /// # Safety
    /// As for `start_ready`.
    #[inline]
    unsafe fn run_here(&'static self, slot: &'static Slot, op: *mut OpBlock) {
        // SAFETY: contract.
        unsafe {
            if matches!((*op).class, Class::Async | Class::AsyncSelective | Class::AsyncAlways) {
                self.count_push(slot, op);
            }
            let mut ready = Chain::new();
            self.execute(slot, op, &mut ready);
            self.publish(slot, ready);
        }
    }

    /// Counts an op for `wait_all`, in the epoch that is current now, or in that of the op that
    /// pushes it.
    ///
    /// # Safety
    /// No other thread can complete the op yet.
    #[inline(always)]
    pub(crate) unsafe fn count_push(&self, slot: &Slot, op: *mut OpBlock) {
        // SAFETY: contract.
        let follows = unsafe { OpBlock::has(op, FOLLOW_UP) };
        // An op that runs is not counted as completed yet, so no `wait_all` has its epoch behind it.
        let of_pusher = if follows { slot.running.epoch() } else { None };
        let epoch = of_pusher.unwrap_or_else(|| self.epochs.current());
        // SAFETY: contract.
        unsafe { (*op).flags |= COUNTED | if epoch == 1 { EPOCH } else { 0 } };
        let pushed = &slot.counts(self).pushed[epoch];
        // Only this thread adds: no locked instruction.
        pushed.store(pushed.load(Ordering::Relaxed) + 1, Ordering::Release);
    }
}
