//! Running a ready op and completing it. Panics of user code are caught here, and for the later
//! turns of ops in `resumable.rs`.

use crate::device::inherited_with_devices;
use crate::engine::Engine;
use crate::failure::{Failure, FailureKind, OpError, discard, panic_error};
use crate::op::block::{AsyncResult, COUNTED, Chain, Class, DOOMED, EPOCH, Mode, OpBlock, PROFILED};
use crate::op::cancel::cancelled;
use crate::op::ctx::{RUN_RETURNED, RunCtx, TOKEN_USED, async_result, second_to_leave};
use crate::op::origin::failure_from;
use crate::process::denormals::Flushing;
use crate::process::slot::{self, Slot};
use crate::profile;
use crate::push::protocol::{Verdict, release};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

impl Engine {
    /// Runs a ready op, or skips it, and completes it; ops that become ready are appended to
    /// `ready`.
    ///
    /// # Safety
    /// `op` is ready and belongs to the caller, which is inside the fork gate.
    #[inline]
    pub(crate) unsafe fn execute(&'static self, slot: &'static Slot, op: *mut OpBlock, ready: &mut Chain) {
        // SAFETY: contract; the context does not outlive the grants, because an async op is
        // completed by the second of its run and its token to leave, and the run leaves after the
        // last use of the context.
        unsafe {
            let devices = self.devices.in_use();
            if devices && !OpBlock::has(op, DOOMED) && self.park(slot, op) {
                return;
            }
            let skip = self.failure_before_run(op, devices);
            if OpBlock::has(op, PROFILED) {
                profile::stamp_start(slot, op);
            }
            if let Some(failure) = skip {
                let (data, vtable) = (OpBlock::closure(op), (*op).vtable);
                if let Err(payload) = catch_unwind(AssertUnwindSafe(|| ((*vtable).drop)(data))) {
                    discard(payload);
                }
                return self.complete(slot, op, &Verdict { all: Some(failure), single: &[] }, ready);
            }
            let is_async = (*op).class.has_token();
            if is_async {
                (*op).wait.store(0, Ordering::Relaxed);
            }
            let ctx = RunCtx::new(self, op);
            let all = self.run_closure(slot, op, &ctx);
            let fails = std::mem::take(&mut *ctx.fails.lock());
            if is_async {
                return self.leave_async_run(slot, op, all, fails, ready);
            }
            self.complete(slot, op, &Verdict { all, single: &fails }, ready);
        }
    }

    /// The failure that a ready op takes instead of running, if there is one.
    ///
    /// # Safety
    /// The contract of `execute`.
    #[inline(always)]
    unsafe fn failure_before_run(&'static self, op: *mut OpBlock, devices: bool) -> Option<Failure> {
        // SAFETY: contract.
        unsafe {
            let class = (*op).class;
            let skip = if OpBlock::has(op, DOOMED) {
                Some(self.shutdown_failure(op))
            } else if class.always_runs() {
                None
            } else if devices {
                inherited_with_devices(op)
            } else {
                inherited(op)
            };
            match skip {
                None if class.can_be_cancelled() && self.is_unwanted(op) => Some(self.cancelled_failure(op)),
                skip => skip,
            }
        }
    }

    /// Runs the closure of an op, and returns the failure of all its writes.
    ///
    /// # Safety
    /// The contract of `execute`; the closure is still there, and gone afterwards.
    #[inline(always)]
    unsafe fn run_closure(&'static self, slot: &'static Slot, op: *mut OpBlock, ctx: &RunCtx<'_>) -> Option<Failure> {
        // SAFETY: contract.
        unsafe {
            let (data, vtable) = (OpBlock::closure(op), (*op).vtable);
            let outer = slot.running.begin(op);
            slot.op_depth.set(slot.op_depth.get() + 1);
            let flushing = Flushing::begin();
            let result = catch_unwind(AssertUnwindSafe(|| ((*vtable).run)(data, ctx)));
            drop(flushing);
            slot.op_depth.set(slot.op_depth.get() - 1);
            slot.running.end(outer);
            if ctx.run_open.load(Ordering::Relaxed) {
                self.close_run(slot);
            }
            match result {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(self.fail(op, error)),
                Err(payload) => Some(self.fail_by_panic(op, payload)),
            }
        }
    }

    /// # Safety
    /// `op` is complete and belongs to the caller; its closure is gone.
    #[inline]
    unsafe fn complete(&'static self, slot: &'static Slot, op: *mut OpBlock, verdict: &Verdict<'_>, ready: &mut Chain) {
        // SAFETY: contract.
        unsafe {
            let flags = (*op).flags;
            if flags & PROFILED != 0 {
                profile::record(slot, op, verdict.all.is_some() || !verdict.single.is_empty());
            }
            release(op, verdict, (*op).class != Class::Notify, ready);
            OpBlock::clear(op);
            slot.give_block(op);
            // Waiters that became ready run here, in whichever thread made them ready: they only
            // notify.
            if ready.notify {
                self.run_notifies(slot, ready);
            }
            if flags & COUNTED != 0 {
                self.count_done(slot, (flags & EPOCH != 0) as usize);
            }
        }
    }

    /// Runs waiters that have become ready, and queues the rest.
    ///
    /// # Safety
    /// The ops of the chain are ready and belong to the caller, which is inside the fork gate.
    #[inline]
    pub(crate) unsafe fn hand_on(&'static self, slot: &'static Slot, mut ready: Chain) {
        // SAFETY: contract.
        unsafe {
            if ready.notify {
                self.run_notifies(slot, &mut ready);
            }
            self.publish(slot, ready);
        }
    }

    /// # Safety
    /// The ops of the chain are ready and belong to the caller.
    #[cold]
    unsafe fn run_notifies(&'static self, slot: &'static Slot, ready: &mut Chain) {
        let mut rest = Chain::new();
        // SAFETY: contract; what a waiter's completion makes ready joins the chain or is run by a
        // nested call.
        unsafe {
            while let Some(op) = ready.take() {
                if (*op).class.runs_at_once() {
                    let mut more = Chain::new();
                    self.execute(slot, op, &mut more);
                    rest.append(&mut more);
                } else {
                    rest.add(op);
                }
            }
        }
        *ready = rest;
    }

    /// Counts a completion, after the op's variables were released.
    #[inline(always)]
    fn count_done(&self, slot: &Slot, epoch: usize) {
        slot.counts(self).completed[epoch].fetch_add(1, Ordering::SeqCst);
        if self.epochs.somebody_waits() {
            self.completed_while_waiting(epoch);
        }
    }

    /// The failure an error becomes, remembered for `wait_all` if it is new.
    ///
    /// # Safety
    /// `op` is filled and belongs to the caller.
    #[cold]
    unsafe fn fail(&self, op: *mut OpBlock, error: OpError) -> Failure {
        // SAFETY: contract.
        let failure = unsafe { failure_from(op, error) };
        self.record_failure(&failure);
        failure
    }

    /// The failure that an unwanted op stores.
    ///
    /// # Safety
    /// As for `fail`.
    #[cold]
    unsafe fn cancelled_failure(&self, op: *mut OpBlock) -> Failure {
        // SAFETY: contract.
        unsafe { failure_from(op, cancelled((*op).name.as_str())) }
    }

    /// A panic whose payload is an [`OpError`] is that error: so a chunk of a split can return one.
    ///
    /// # Safety
    /// As for `fail`.
    #[cold]
    unsafe fn fail_by_panic(&self, op: *mut OpBlock, payload: Box<dyn Any + Send>) -> Failure {
        // SAFETY: contract.
        unsafe { self.fail(op, panic_error((*op).name.as_str(), payload)) }
    }

    /// The failure of an op that was pushed after closing. No thread is notified at exit, so it is
    /// not remembered.
    ///
    /// # Safety
    /// As for `fail`.
    #[cold]
    unsafe fn shutdown_failure(&self, op: *mut OpBlock) -> Failure {
        // SAFETY: contract.
        unsafe {
            let name = &*(*op).name;
            let message = format!("operator {name} did not run: the engine was closed before it was pushed");
            failure_from(op, OpError::new(FailureKind::Shutdown, message))
        }
    }

    /// The run of an async op has ended.
    ///
    /// # Safety
    /// `op` is async, its closure was consumed and the context is not used any more.
    unsafe fn leave_async_run(
        &'static self,
        slot: &'static Slot,
        op: *mut OpBlock,
        panicked: Option<Failure>,
        fails: Vec<(usize, Failure)>,
        ready: &mut Chain,
    ) {
        // SAFETY: contract; of the result's two parts the run writes one and the token the other.
        unsafe {
            let result = async_result(op);
            (&raw mut (*result).fails).write(fails);
            (&raw mut (*result).panicked).write(panicked);
            if second_to_leave(op, RUN_RETURNED) {
                self.complete_async(slot, op, ready);
            }
        }
    }

    /// The token of an async op was used. A result may be that single writes have failed.
    ///
    /// # Safety
    /// Called once for an op, by its token.
    pub(crate) unsafe fn finish_async(&'static self, op: *mut OpBlock, result: Result<Vec<(usize, Failure)>, OpError>) {
        let slot = slot::current();
        slot.enter();
        // SAFETY: contract; the op exists until run and token have both left.
        unsafe {
            let (outcome, late) = match result {
                // Numbers that the op does not have are ignored, as by `fail_write`.
                Ok(late) => (None, late.into_iter().filter(|(i, _)| *i < OpBlock::len(op)).collect()),
                Err(error) => (Some(failure_from(op, error)), Vec::new()),
            };
            let late: Vec<(usize, Failure)> = late;
            late.iter().for_each(|(_, failure)| self.record_failure(failure));
            (&raw mut (*async_result(op)).outcome).write(outcome);
            (&raw mut (*async_result(op)).late).write(late);
            if second_to_leave(op, TOKEN_USED) {
                let mut ready = Chain::new();
                self.complete_async(slot, op, &mut ready);
                self.publish(slot, ready);
            }
        }
        slot.exit();
    }

    /// # Safety
    /// Run and token of the op have left, the caller was the second.
    unsafe fn complete_async(&'static self, slot: &'static Slot, op: *mut OpBlock, ready: &mut Chain) {
        // SAFETY: contract; both parts of the result were written before their writers left.
        unsafe {
            let AsyncResult { outcome, panicked, mut fails, mut late } = async_result(op).read();
            // A run that panics drops its token as well: that is one event, not two.
            let all = panicked.or(outcome);
            if let Some(failure) = &all {
                self.record_failure(failure);
            }
            fails.append(&mut late);
            self.complete(slot, op, &Verdict { all, single: &fails }, ready);
        }
    }
}

/// The failure a strict op takes over: that of the first access, in declared order, that depends on
/// an old value.
///
/// # Safety
/// All accesses of `op` are granted.
#[inline(always)]
pub(crate) unsafe fn inherited(op: *mut OpBlock) -> Option<Failure> {
    // SAFETY: contract: a grant keeps the variable alive and its failure stable. A duplicate is
    // judged by its first entry.
    unsafe {
        for i in 0..OpBlock::len(op) {
            let e = OpBlock::entry(op, i);
            if matches!((*e).mode(), Mode::Read | Mode::Update)
                && let Some(failure) = &*(*(*e).var).failure.get()
            {
                return Some(failure.clone());
            }
        }
    }
    None
}
