//! The part of the engine that a running op sees, and the token by which an asynchronous op
//! completes.

use crate::engine::Engine;
use crate::failure::{Failure, FailureKind, OpError};
use crate::op::block::{AsyncResult, Mode, OpBlock};
use crate::op::origin::failure_from;
use crate::op::spec::OpName;
use crate::profile::ProfiledOp;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::var::VarInner;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::num::NonZeroU64;

/// Handed to the closure of an op while it runs. Numbers of accesses are those of
/// [`OpSpec::vars`](crate::OpSpec::vars).
pub struct RunCtx<'a> {
    engine: &'static Engine,
    op: *mut OpBlock,
    pub(crate) fails: Mutex<Vec<(usize, Failure)>>,
    /// The op has opened its run for helpers (see `team`).
    pub(crate) run_open: AtomicBool,
    _op: PhantomData<&'a ()>,
}

// SAFETY: while the context exists its op is granted, so versions and failures of its variables are
// stable; what changes is atomic or behind a lock.
unsafe impl Sync for RunCtx<'_> {}
// SAFETY: as above; nothing in it belongs to a thread.
unsafe impl Send for RunCtx<'_> {}

impl RunCtx<'_> {
    /// # Safety
    /// All accesses of `op` are granted and stay so while the context exists.
    #[inline(always)]
    pub(crate) unsafe fn new(engine: &'static Engine, op: *mut OpBlock) -> Self {
        RunCtx { engine, op, fails: Mutex::new(Vec::new()), run_open: AtomicBool::new(false), _op: PhantomData }
    }

    /// The engine that runs this op. Pushing from inside an op is allowed, waiting is not.
    pub fn engine(&self) -> &'static Engine {
        self.engine
    }

    /// Name of this op.
    pub fn name(&self) -> &str {
        // SAFETY: the op exists while the context does.
        unsafe { (*self.op).name.as_str() }
    }

    /// Some if the profiler records this op.
    pub fn profiled(&self) -> Option<ProfiledOp> {
        // SAFETY: the op exists while the context does.
        unsafe { ProfiledOp::of(self.op) }
    }

    fn len(&self) -> usize {
        // SAFETY: the op exists while the context does.
        unsafe { OpBlock::len(self.op) }
    }

    /// The failure that access `i` held when the op started; `None` also for numbers the op does
    /// not have.
    pub fn failure_of(&self, i: usize) -> Option<Failure> {
        if i >= self.len() {
            return None;
        }
        // SAFETY: `i` is an access; its grant keeps the variable alive and its failure stable.
        unsafe { failure_of(&*(*OpBlock::entry(self.op, i)).var) }
    }

    /// Numbers of the accesses that depend on a failed value: reads and updates, in declared order.
    pub fn failed_reads(&self) -> impl Iterator<Item = usize> {
        (0..self.len()).filter(|&i| {
            // SAFETY: as in `failure_of`.
            unsafe {
                let e = OpBlock::entry(self.op, i);
                (*e).mode() != Mode::Write && failure_of(&*(*e).var).is_some()
            }
        })
    }

    /// Fails exactly the write with number `i`; the first failure given to an access stays. A read,
    /// or a number the op does not have, is ignored in release builds and a bug in debug builds.
    pub fn fail_write(&self, i: usize, failure: Failure) {
        debug_assert!(i < self.len(), "fail_write({i}) on an op with {} accesses", self.len());
        if i >= self.len() {
            return;
        }
        self.engine.record_failure(&failure);
        let mut fails = self.fails.lock();
        if fails.iter().all(|(j, _)| *j != i) {
            fails.push((i, failure));
        }
    }

    /// The failure that `fail_write` has given to access `i`.
    pub(crate) fn failure_given(&self, i: usize) -> Option<Failure> {
        self.fails.lock().iter().find(|(j, _)| *j == i).map(|(_, failure)| failure.clone())
    }

    /// The failure that this error becomes here: with name, device and origin of this op, where the
    /// error does not say. For [`fail_write`](RunCtx::fail_write); an error that is returned is
    /// treated so anyway.
    pub fn failure(&self, error: OpError) -> Failure {
        // SAFETY: the op exists while the context does.
        unsafe { failure_from(self.op, error) }
    }

    /// Number of writes that had completed on the variable of access `i` when the op started.
    ///
    /// # Panics
    /// If the op has no such access.
    pub fn version_of(&self, i: usize) -> u64 {
        assert!(i < self.len(), "version_of({i}) on an op with {} accesses", self.len());
        // SAFETY: as in `failure_of`.
        unsafe { *(*(*OpBlock::entry(self.op, i)).var).version.get() }
    }

    /// How access `i` uses its variable; `None` for numbers the op does not have.
    pub(crate) fn mode_of(&self, i: usize) -> Option<Mode> {
        // SAFETY: `i` is an access of the running op.
        (i < self.len()).then(|| unsafe { (*OpBlock::entry(self.op, i)).mode() }).map(|mode| match mode {
            // A duplicate is what the first of its kind became.
            Mode::Alias => {
                self.primary_accesses().find(|(j, _)| self.var_of(*j).id == self.var_of(i).id).map_or(mode, |x| x.1)
            }
            mode => mode,
        })
    }

    /// Every variable once, under the number it was declared with first.
    pub(crate) fn primary_accesses(&self) -> impl Iterator<Item = (usize, Mode)> {
        // SAFETY: accesses of the running op.
        let mode = |i| unsafe { (*OpBlock::entry(self.op, i)).mode() };
        (0..self.len()).map(move |i| (i, mode(i))).filter(|(_, mode)| *mode != Mode::Alias)
    }

    /// The variable of access `i`.
    pub(crate) fn var_of(&self, i: usize) -> &VarInner {
        assert!(i < self.len(), "access {i} of an op with {} accesses", self.len());
        // SAFETY: `i` is an access; its grant keeps the variable alive.
        unsafe { &*(*OpBlock::entry(self.op, i)).var }
    }

    /// Numbers of the variables, by declared access.
    pub(crate) fn var_ids(&self) -> Vec<u64> {
        (0..self.len()).map(|i| self.var_of(i).id).collect()
    }

    pub(crate) fn op_name(&self) -> OpName {
        // SAFETY: the op exists while the context does.
        unsafe { (*(*self.op).name).clone() }
    }

    /// The place that pushed the op, and the number of its request, where these are known.
    pub(crate) fn origin(&self) -> (Option<String>, Option<u64>) {
        // SAFETY: the op exists while the context does.
        unsafe { (OpBlock::site(self.op), OpBlock::request(self.op).map(NonZeroU64::get)) }
    }

    /// # Safety
    /// Called once for an op, of class `Async`, by its run.
    pub(crate) unsafe fn token(&self) -> OnComplete {
        OnComplete { engine: self.engine, op: self.op }
    }
}

/// The failure of a granted value, whether the host or a device found it.
///
/// # Safety
/// A grant of the variable is held.
pub(crate) unsafe fn failure_of(var: &VarInner) -> Option<Failure> {
    // SAFETY: contract: the failure is stable.
    match unsafe { &*var.failure.get() } {
        Some(failure) => Some(failure.clone()),
        None => var.with_sync(|sync| sync.failure()).flatten(),
    }
}

/// Completes an asynchronous op. Dropping it fails the op, so nothing that depends on it can hang.
pub struct OnComplete {
    engine: &'static Engine,
    op: *mut OpBlock,
}

// SAFETY: the token is the only owner of the op besides its run, and both hand over through an
// atomic.
unsafe impl Send for OnComplete {}

impl OnComplete {
    /// The op is complete with this result; its dependants may start.
    pub fn complete(self, result: Result<(), OpError>) {
        let token = ManuallyDrop::new(self);
        // SAFETY: the token is consumed, so this happens once.
        unsafe { token.engine.finish_async(token.op, result.map(|()| Vec::new())) }
    }

    /// Completes the op like `complete`, but with failures of single writes, by number.
    pub(crate) fn complete_selectively(self, result: Result<Vec<(usize, Failure)>, OpError>) {
        let token = ManuallyDrop::new(self);
        // SAFETY: as above.
        unsafe { token.engine.finish_async(token.op, result) }
    }

    /// Name of the op.
    pub(crate) fn name(&self) -> OpName {
        // SAFETY: the op exists while its token does.
        unsafe { OpName::clone(&(*self.op).name) }
    }
}

impl OnComplete {
    /// The op, which the thread that gets it has to complete.
    pub(crate) fn into_op(self) -> *mut OpBlock {
        ManuallyDrop::new(self).op
    }
}

impl Drop for OnComplete {
    fn drop(&mut self) {
        // SAFETY: a token that was not consumed still shares the op.
        let name = unsafe { (*self.op).name.to_string() };
        let error = OpError::new(FailureKind::NotCompleted, format!("operator {name} never completed"));
        // SAFETY: dropped once, and not consumed before.
        unsafe { self.engine.finish_async(self.op, Err(error)) }
    }
}

impl std::fmt::Debug for OnComplete {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OnComplete")
    }
}

/// States of an async op in its `wait` counter: 0 while both its run and its token are open.
pub(crate) const RUN_RETURNED: u32 = 1 << 30;
pub(crate) const TOKEN_USED: u32 = 1 << 31;

/// The first of run and token leaves; the second completes the op. True: the caller is the second.
///
/// # Safety
/// `op` is an async op whose closure was consumed; each of run and token calls this once, with its
/// own state.
pub(crate) unsafe fn second_to_leave(op: *mut OpBlock, state: u32) -> bool {
    // SAFETY: contract; until both have left, the block exists.
    unsafe { (*op).wait.fetch_or(state, Ordering::AcqRel) != 0 }
}

/// # Safety
/// `op` is an async op whose closure was consumed; the place was initialised by the run.
pub(crate) unsafe fn async_result(op: *mut OpBlock) -> *mut AsyncResult {
    // SAFETY: contract.
    unsafe { OpBlock::closure(op).cast() }
}
