//! Waiting for variables. A wait that has to block is an op whose body is "notify": so several
//! waits, callbacks and abandoned waits need no second mechanism. Its cell is shared, so no thread
//! ever points into the stack of a waiter.

pub(crate) mod access_guard;
pub(crate) mod all;

use crate::device::{EventRef, HostWait};
use crate::engine::Engine;
use crate::failure::{Failure, FailureKind, OpError, WaitError, discard, panic_text};
use crate::op::block::{AsyncClosure, Class, Mode, OpBlock, SyncClosure};
use crate::op::ctx::{OnComplete, RunCtx};
use crate::op::spec::{Access, OpSpec};
use crate::process::fork;
use crate::process::slot;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use crate::sync::clock;
use crate::var::{Var, VarInner};
use crate::wait::access_guard::Grant;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::Arc;
use std::thread::Thread;
use std::time::{Duration, Instant};

#[cfg(all(test, loom))]
mod loom_wait;

/// Checks that a waiter makes before it sleeps. It does not yield instead: it would get the
/// processor back in the middle of the request, and the system then tends to move the worker that
/// had it, queued after another one.
const PAUSES: u32 = 40;
/// How often the poll hook of a wait is called.
pub(crate) const POLL: Duration = Duration::from_millis(50);

/// A waiter that does the work of devices without threads looks this often whether there is any.
pub(crate) const BETWEEN_STEPS: Duration = Duration::from_micros(200);

const WAITING: u32 = 0;
const DONE: u32 = 1;
const CLOSED: u32 = 2;

/// The outcome that a waiter receives.
#[derive(Default)]
struct WaitOutcome {
    failure: Option<Failure>,
    /// Device events of the variable that are still to be waited for.
    device: Option<HostWait>,
}

/// Shared by a waiting thread and the op that notifies it.
pub(crate) struct WaitCell {
    state: AtomicU32,
    outcome: UnsafeCell<WaitOutcome>,
    /// The op of a guard, from its grant until it is given back; the thread that takes it away
    /// completes it. Only touched by threads inside the fork gate, so a fork never sees it half
    /// done.
    held: AtomicPtr<OpBlock>,
    /// The engine, for a waiter that keeps the variable.
    keeps: Option<&'static Engine>,
    /// Number of the waiting thread's slot: in a forked child only one thread exists.
    slot: u32,
    thread: Thread,
    /// The variable that the thread waits for, and since when (ticks).
    var: Var,
    since: u64,
    /// Place in the list of waiters, changed under the list's lock.
    place: AtomicUsize,
}

// SAFETY: the outcome is written by the one notifying op before it publishes `DONE`, and read by
// the waiter after it.
unsafe impl Sync for WaitCell {}
// SAFETY: as above.
unsafe impl Send for WaitCell {}

impl WaitCell {
    fn new(var: &Var, keeps: Option<&'static Engine>) -> Arc<Self> {
        Arc::new(WaitCell {
            state: AtomicU32::new(WAITING),
            outcome: UnsafeCell::default(),
            held: AtomicPtr::new(null_mut()),
            keeps,
            slot: slot::current().number,
            thread: std::thread::current(),
            var: var.clone(),
            since: clock::now(),
            place: AtomicUsize::new(0),
        })
    }

    /// Tells the waiter. False: the wait was closed.
    fn notify(&self, outcome: WaitOutcome) -> bool {
        if self.state.load(Ordering::Relaxed) == CLOSED {
            return false;
        }
        // SAFETY: this op is the only writer, the waiter reads only after `DONE`.
        unsafe { *self.outcome.get() = outcome };
        let delivered = self.state.compare_exchange(WAITING, DONE, Ordering::Release, Ordering::Relaxed).is_ok();
        self.thread.unpark();
        delivered
    }

    /// Keeps the access that the token stands for until it is given back, and tells the waiter.
    fn grant(&self, outcome: WaitOutcome, token: OnComplete) {
        self.held.store(token.into_op(), Ordering::Release);
        if !self.notify(outcome) {
            self.give_back();
        }
    }

    /// Gives a kept access back, if it was not given back before.
    pub fn give_back(&self) {
        let Some(engine) = self.keeps else { return };
        engine.without_fork(|| {
            let op = self.held.swap(null_mut(), Ordering::AcqRel);
            if !op.is_null() {
                engine.waiters.remove(self);
                // SAFETY: the op of the token that was kept; the thread that takes the pointer away
                // is the only one.
                unsafe { engine.finish_async(op, Ok(Vec::new())) };
            }
        });
    }

    /// Handles a vanished thread, in a forked child. The grants that it holds or would get are
    /// returned.
    fn lose_thread(&self) {
        self.state.store(CLOSED, Ordering::Release);
        self.give_back();
    }

    fn close(&self) {
        let _ = self.state.compare_exchange(WAITING, CLOSED, Ordering::Release, Ordering::Relaxed);
        self.thread.unpark();
    }
}

impl Drop for WaitCell {
    /// A waiter that has left does not take what it was granted.
    fn drop(&mut self) {
        if !self.held.load(Ordering::Acquire).is_null() {
            self.give_back();
        }
    }
}

impl WaitCell {
    fn sleep(
        &self,
        engine: &'static Engine,
        poll: &mut Option<&mut dyn FnMut() -> bool>,
    ) -> Result<WaitOutcome, WaitError> {
        let mut tries = 0;
        let mut asked = Instant::now();
        let mut deadline = self.var.deadline();
        loop {
            match self.state.load(Ordering::Acquire) {
                DONE => break,
                CLOSED => return Err(WaitError::Closed),
                _ => {}
            }
            if engine.devices.step() {
                continue;
            }
            tries += 1;
            if tries <= PAUSES {
                std::hint::spin_loop();
                continue;
            }
            // What is late and waits for a core is notified now; what waits for its inputs when
            // those are there.
            if deadline.take_if(|deadline| Instant::now() > *deadline).is_some() {
                engine.fail_late_ops();
                continue;
            }
            park(engine, poll.is_some(), deadline);
            if let Some(poll) = poll.as_mut().filter(|_| asked.elapsed() >= POLL) {
                call_hook(engine, poll)?;
                asked = Instant::now();
            }
        }
        // SAFETY: the notifying op has written the outcome and published it; it does not touch it
        // again.
        Ok(std::mem::take(unsafe { &mut *self.outcome.get() }))
    }
}

/// Parks the thread until it is notified, the deadline has passed, or a device or the poll hook is
/// due.
fn park(engine: &'static Engine, polls: bool, deadline: Option<Instant>) {
    let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    let steps = engine.devices.need_steps().then_some(BETWEEN_STEPS);
    let patience = steps.or(polls.then_some(POLL));
    match patience.into_iter().chain(left).min() {
        Some(patience) => std::thread::park_timeout(patience),
        None => std::thread::park(),
    }
}

/// Calls the poll hook of a wait, which may abandon it.
fn call_hook(engine: &'static Engine, poll: &mut dyn FnMut() -> bool) -> Result<(), WaitError> {
    let generation = fork::generation();
    if !poll() {
        return Err(WaitError::Interrupted);
    }
    if generation != fork::generation() {
        // The hook has forked: this is the child, which has no workers yet.
        engine.start_what_was_queued();
    }
    Ok(())
}

/// A thread that waits for a variable, or holds it by a guard, as `dump` sees it.
pub(crate) struct Waiting {
    pub thread: String,
    pub var: Var,
    pub since: u64,
    pub holds: bool,
}

/// Threads that wait for variables or hold guards: closing the engine wakes them, a forked child
/// gives back what they had.
pub(crate) struct Waiters(Mutex<Vec<Arc<WaitCell>>>);

impl Waiters {
    pub fn new() -> Self {
        Waiters(Mutex::new(Vec::new()))
    }

    fn add(&self, cell: &Arc<WaitCell>) {
        let mut list = self.0.lock();
        cell.place.store(list.len(), Ordering::Relaxed);
        list.push(cell.clone());
    }

    fn remove(&self, cell: &WaitCell) {
        let mut list = self.0.lock();
        let place = cell.place.load(Ordering::Relaxed);
        // In a forked child the list was emptied.
        if list.get(place).is_some_and(|c| std::ptr::eq(&**c, cell)) {
            let gone = list.swap_remove(place);
            if let Some(moved) = list.get(place) {
                moved.place.store(place, Ordering::Relaxed);
            }
            drop(list);
            drop(gone);
        }
    }

    pub fn wake_all(&self) {
        let slot = slot::current();
        slot.enter();
        let list = self.0.lock().clone();
        slot.exit();
        list.iter().for_each(|cell| cell.close());
    }

    /// Waiting threads, for `dump`.
    pub fn list(&self) -> Vec<Waiting> {
        let list = self.0.lock().clone();
        let describe = |cell: &Arc<WaitCell>| Waiting {
            thread: slot::name(cell.slot).unwrap_or_else(|| format!("{:?}", cell.thread.id())),
            var: cell.var.clone(),
            since: cell.since,
            holds: !cell.held.load(Ordering::Relaxed).is_null(),
        };
        list.iter().map(describe).collect()
    }

    /// Forgets all waiters but the thread of slot `own`, in a forked child, where only that thread
    /// exists.
    pub fn forget_others(&self, own: u32) {
        let (kept, lost): (Vec<_>, Vec<_>) =
            std::mem::take(&mut *self.0.lock()).into_iter().partition(|c| c.slot == own);
        kept.iter().for_each(|cell| self.add(cell));
        lost.iter().for_each(|cell| cell.lose_thread());
    }
}

impl Engine {
    /// Returns when every write pushed before is complete; an error if the variable holds a failure
    /// then. Every wait of every thread gets it, until the variable is overwritten. Inside an op
    /// this is refused.
    pub fn wait_to_read(&'static self, var: &Var) -> Result<(), WaitError> {
        self.wait_for(var, Mode::Read, None)
    }

    /// Returns when every read and write pushed before is complete; an error if the variable holds
    /// a failure then.
    pub fn wait_to_write(&'static self, var: &Var) -> Result<(), WaitError> {
        self.wait_for(var, Mode::Update, None)
    }

    /// Waits like [`wait_to_read`](Engine::wait_to_read); `poll` is called in this thread about
    /// every 50 ms, and the wait is abandoned when it returns false.
    pub fn wait_to_read_with(&'static self, var: &Var, poll: &mut dyn FnMut() -> bool) -> Result<(), WaitError> {
        self.wait_for(var, Mode::Read, Some(poll))
    }

    /// Waits like [`wait_to_write`](Engine::wait_to_write), with a poll hook.
    pub fn wait_to_write_with(&'static self, var: &Var, poll: &mut dyn FnMut() -> bool) -> Result<(), WaitError> {
        self.wait_for(var, Mode::Update, Some(poll))
    }

    /// Runs `f` when a read of the variable would be granted: now if it is ready, otherwise in the
    /// thread that completes the last write. `f` must be short; it may push, but not wait. The
    /// failure it gets does not count as observed until [`Failure::mark_observed`] is called. A
    /// panic in `f` is reported by `wait_all`.
    pub fn on_ready<F>(&'static self, var: &Var, f: F)
    where
        F: FnOnce(Result<(), Failure>) + Send + 'static,
    {
        let eager = self.eager();
        self.push_notify("on_ready", var, Access::Read, move |failure, device| {
            drop(eager);
            match device.filter(|_| failure.is_none()) {
                None => f(failure.map_or(Ok(()), Err)),
                Some(wait) => self.call_when_over(wait, f),
            }
        });
        self.start_what_was_queued();
    }

    /// Whether a read of the variable would be granted now.
    pub fn is_ready(&'static self, var: &Var) -> bool {
        // SAFETY: under the lock.
        let look = |inner: &VarInner| unsafe { HostWait::of(inner, Mode::Read) };
        let ready = var.locked(|state, inner| state.open_to(Mode::Read).then(|| look(inner)));
        let (ready, device) = (ready.is_some(), ready.flatten());
        if let Some(wait) = device {
            let over = wait.over(&self.devices);
            // A thread that asks again and again does the work of devices that have no thread.
            if !over {
                self.devices.step();
            }
            return over;
        }
        // A thread that asks again and again must not do so for ever.
        if !ready {
            if self.bulks.any_open() {
                self.flush_all_bulks();
            }
            self.start_what_was_queued();
        }
        ready
    }

    /// Starts ops that were queued before the fork, in a forked child, where no thread may be
    /// running them.
    fn start_what_was_queued(&'static self) {
        self.without_fork(|| self.sched.kick(self));
    }

    fn push_notify(
        &'static self,
        name: &'static str,
        var: &Var,
        access: Access,
        f: impl FnOnce(Option<Failure>, Option<HostWait>) + Send + 'static,
    ) {
        let mode = Mode::from(access);
        let run = move |ctx: &RunCtx<'_>| -> Result<(), OpError> {
            f(ctx.failure_of(0), HostWait::of_access(ctx, 0, mode));
            Ok(())
        };
        // SAFETY: the closure is of the type that the vtable treats it as.
        let store = |op| unsafe { SyncClosure::store(op, run) };
        self.push_as(&OpSpec::new(name, &[(var, access)]), Class::Notify, None, store);
    }

    fn wait_for(
        &'static self,
        var: &Var,
        mode: Mode,
        mut poll: Option<&mut dyn FnMut() -> bool>,
    ) -> Result<(), WaitError> {
        if slot::current().op_depth.get() != 0 {
            return Err(WaitError::InsideOp);
        }
        let ready = var.locked(|state, inner| {
            // SAFETY: under the lock, where failures change.
            state.open_to(mode).then(|| unsafe { ((*inner.failure.get()).clone(), HostWait::of(inner, mode)) })
        });
        match ready {
            Some((failure, None)) => return observe(failure),
            Some((failure, Some(device))) => return self.observe_on_device(failure, device, &mut poll),
            None => {}
        }
        let _eager = self.eager();
        let cell = WaitCell::new(var, None);
        self.without_fork(|| self.waiters.add(&cell));
        let (notifier, access) = (cell.clone(), if mode == Mode::Read { Access::Read } else { Access::Update });
        self.push_notify("wait", var, access, move |failure, device| {
            _ = notifier.notify(WaitOutcome { failure, device });
        });
        let outcome = self.block_on(&cell, &mut poll);
        self.without_fork(|| self.waiters.remove(&cell));
        let outcome = outcome?;
        match outcome.device {
            None => observe(outcome.failure),
            Some(device) => self.observe_on_device(outcome.failure, device, &mut poll),
        }
    }

    /// Waits until everything pushed before is submitted, and returns what devices still have to do
    /// with the variable. A failure that is known is returned instead.
    pub(crate) fn submitted_events(
        &'static self,
        var: &Var,
        access: Access,
        poll: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<EventRef>, WaitError> {
        if slot::current().op_depth.get() != 0 {
            return Err(WaitError::InsideOp);
        }
        let _eager = self.eager();
        let cell = WaitCell::new(var, None);
        self.without_fork(|| self.waiters.add(&cell));
        let notifier = cell.clone();
        self.push_notify("export", var, access, move |failure, device| {
            _ = notifier.notify(WaitOutcome { failure, device });
        });
        let outcome = self.block_on(&cell, &mut Some(poll));
        self.without_fork(|| self.waiters.remove(&cell));
        let outcome = outcome?;
        observe(outcome.failure)?;
        Ok(outcome.device.map_or_else(Vec::new, |device| device.events(&self.devices)))
    }

    /// The engine is done with the variable; waits until the device is, too.
    #[cold]
    fn observe_on_device(
        &'static self,
        failure: Option<Failure>,
        device: HostWait,
        poll: &mut Option<&mut dyn FnMut() -> bool>,
    ) -> Result<(), WaitError> {
        let late = device.finish(self, &mut || poll.as_mut().is_none_or(|poll| poll()))?;
        observe(failure.or(late))
    }

    /// Calls `f` when the device is done.
    fn call_when_over<F>(&'static self, wait: HostWait, f: F)
    where
        F: FnOnce(Result<(), Failure>) + Send + 'static,
    {
        wait.call_when_over(&self.devices, move |failure| {
            // As inside an op: waiting is refused, and a panic is notified by `wait_all`.
            let slot = slot::current();
            slot.op_depth.set(slot.op_depth.get() + 1);
            let result = catch_unwind(AssertUnwindSafe(|| f(failure.map_or(Ok(()), Err))));
            slot.op_depth.set(slot.op_depth.get() - 1);
            if let Err(payload) = result {
                let message = format!("operator on_ready panicked: {}", panic_text(&*payload));
                discard(payload);
                let error = OpError::new(FailureKind::Panic, message).op("on_ready");
                self.without_fork(|| self.record_failure(&error.to_failure()));
            }
        });
    }

    /// Waits for the right to read and keeps it; also what the variable held then.
    pub(crate) fn await_grant(
        &'static self,
        var: &Var,
        mut poll: Option<&mut dyn FnMut() -> bool>,
    ) -> Result<(Option<Failure>, Grant), WaitError> {
        if slot::current().op_depth.get() != 0 {
            return Err(WaitError::InsideOp);
        }
        let _eager = self.eager();
        let cell = WaitCell::new(var, Some(self));
        self.without_fork(|| self.waiters.add(&cell));
        let notifier = cell.clone();
        let run = move |ctx: &RunCtx<'_>, token| {
            let device = HostWait::of_access(ctx, 0, Mode::Read);
            notifier.grant(WaitOutcome { failure: ctx.failure_of(0), device }, token);
        };
        // SAFETY: the closure is of the type that the vtable treats it as.
        let store = |op| unsafe { AsyncClosure::store(op, run) };
        self.push_as(&OpSpec::new("guard", &[(var, Access::Read)]), Class::Grant, None, store);
        let mut outcome = match self.block_on(&cell, &mut poll) {
            Ok(outcome) => outcome,
            Err(error) => {
                self.without_fork(|| self.waiters.remove(&cell));
                return Err(error);
            }
        };
        let grant = Grant::new(cell);
        if let Some(device) = outcome.device.take() {
            let late = device.finish(self, &mut || poll.as_mut().is_none_or(|poll| poll()))?;
            outcome.failure = outcome.failure.or(late);
        }
        Ok((outcome.failure, grant))
    }

    /// Sleeps until the cell's op has run. The cell is in the list of waiters.
    fn block_on(
        &'static self,
        cell: &WaitCell,
        poll: &mut Option<&mut dyn FnMut() -> bool>,
    ) -> Result<WaitOutcome, WaitError> {
        if cell.state.load(Ordering::Acquire) != DONE {
            self.run_inline_wait(&cell.var);
            // Otherwise this thread has just run it.
            if cell.state.load(Ordering::Acquire) != DONE {
                self.start_what_was_queued();
            }
            if self.closed.load(Ordering::SeqCst) {
                cell.close();
            }
        }
        cell.sleep(self, poll)
    }
}

fn observe(outcome: Option<Failure>) -> Result<(), WaitError> {
    match outcome {
        None => Ok(()),
        Some(failure) => {
            failure.mark_observed();
            Err(WaitError::Failed(failure))
        }
    }
}
