//! Waiting for everything that was pushed before.
//!
//! Ops are counted in one of two slots, by the parity of an epoch read at their push. `wait_all`
//! waits until the slot about to be used again is drained, flips the epoch, and waits for the other
//! slot. Counters are per thread and cumulative. A slot is drained when the sums agree, *completed
//! summed first*: then equality proves that everything pushed before that first sum is complete.
//!
//! A completion must not wake the waiter, or add up all counters, each time. The waiter leaves how
//! many completions are missing at least; only from that one on does a completion look whether the
//! slot is drained, and only then it wakes.

use crate::engine::Engine;
use crate::failure::WaitError;
use crate::process::fork;
use crate::process::slot::{self, Counts};
use crate::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{model_fence, perturb};
use crate::wait::{BETWEEN_STEPS, POLL};
use crossbeam_utils::CachePadded;
use std::sync::atomic::AtomicPtr;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[cfg(all(test, loom))]
mod loom_wait_all;

/// No thread waits for the slot.
const NEVER: u64 = u64::MAX;

pub(crate) struct Epochs {
    epoch: CachePadded<AtomicUsize>,
    waiting: CachePadded<AtomicU32>,
    /// Completions since the waiter last looked, and the number from which a completion looks
    /// itself, by slot.
    since_look: [CachePadded<AtomicU64>; 2],
    look_from: [CachePadded<AtomicU64>; 2],
    /// Replaced in a forked child: a thread that does not exist there may have held the mutex.
    meeting: AtomicPtr<Meeting>,
}

/// The place where threads in `wait_all` wait.
#[derive(Default)]
struct Meeting {
    /// Slot number of the thread that is between its two drains; the others wait for it.
    flipping: Mutex<Option<u32>>,
    changed: Condvar,
}

impl Meeting {
    /// Sleeps until a notification, or for so long.
    fn sleep<'a>(&self, guard: MutexGuard<'a, Option<u32>>, patience: Option<Duration>) -> MutexGuard<'a, Option<u32>> {
        match patience {
            Some(patience) => self.changed.wait_timeout(guard, patience).unwrap_or_else(PoisonError::into_inner).0,
            None => self.changed.wait(guard).unwrap_or_else(PoisonError::into_inner),
        }
    }
}

impl Epochs {
    pub fn new() -> Self {
        Epochs {
            epoch: CachePadded::new(AtomicUsize::new(0)),
            waiting: CachePadded::new(AtomicU32::new(0)),
            since_look: Default::default(),
            look_from: [NEVER, NEVER].map(|n| CachePadded::new(AtomicU64::new(n))),
            meeting: AtomicPtr::new(Box::leak(Box::default())),
        }
    }

    /// The slot ops are counted in now.
    #[inline(always)]
    pub fn current(&self) -> usize {
        self.epoch.load(Ordering::Relaxed) & 1
    }

    #[inline(always)]
    pub fn somebody_waits(&self) -> bool {
        model_fence();
        self.waiting.load(Ordering::SeqCst) != 0
    }

    /// Whether the slot is drained; if not, completions know from when on they have to look.
    pub fn look(&self, slot: usize, missing: impl Fn() -> u64) -> bool {
        let (since_look, look_from) = (&self.since_look[slot], &self.look_from[slot]);
        // While the number is not known every completion looks. The completions that the sum below
        // does not see come after the reset, so the last one is counted at least as high as the
        // number left here.
        look_from.store(0, Ordering::SeqCst);
        since_look.store(0, Ordering::SeqCst);
        model_fence();
        let missing = missing();
        look_from.store(if missing == 0 { NEVER } else { missing }, Ordering::SeqCst);
        missing == 0
    }

    /// Counts a completion; true: it was the last one a thread waits for.
    pub fn last_completion(&self, slot: usize, missing: impl Fn() -> u64) -> bool {
        let number = self.since_look[slot].fetch_add(1, Ordering::SeqCst) + 1;
        let from = self.look_from[slot].load(Ordering::SeqCst);
        from != NEVER && number >= from && missing() == 0
    }

    /// Threads in `wait_all`.
    pub fn threads_waiting(&self) -> u32 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Starts counting completions for a waiter.
    pub fn add_waiter(&self) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
    }

    fn meeting(&self) -> &'static Meeting {
        // SAFETY: meetings are leaked.
        unsafe { &*self.meeting.load(Ordering::Acquire) }
    }

    /// Makes the threads in `wait_all` look again.
    #[cold]
    pub fn notify(&self) {
        let meeting = self.meeting();
        drop(lock(&meeting.flipping));
        meeting.changed.notify_all();
    }

    /// Forgets all waiters, in a forked child.
    pub fn forget(&self) {
        self.meeting.store(Box::leak(Box::default()), Ordering::Release);
        self.waiting.store(0, Ordering::Relaxed);
        self.look_from.iter().for_each(|n| n.store(NEVER, Ordering::Relaxed));
    }
}

fn lock(m: &Mutex<Option<u32>>) -> MutexGuard<'_, Option<u32>> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread in `wait_all`, however it leaves. Its poll hook may fork: in the child it is not
/// counted.
struct WaitAll<'a> {
    epochs: &'a Epochs,
    meeting: &'static Meeting,
    generation: u32,
    /// Whether this call must end the flip. A call from the poll hook of a `wait_all` that flips
    /// leaves it to that call.
    flips: bool,
}

impl<'a> WaitAll<'a> {
    fn begin(epochs: &'a Epochs) -> Self {
        epochs.add_waiter();
        WaitAll { epochs, meeting: epochs.meeting(), generation: fork::generation(), flips: false }
    }
}

impl Drop for WaitAll<'_> {
    fn drop(&mut self) {
        if self.generation != fork::generation() {
            return;
        }
        if self.flips {
            self.epochs.look_from.iter().for_each(|n| n.store(NEVER, Ordering::SeqCst));
            *lock(&self.meeting.flipping) = None;
            self.meeting.changed.notify_all();
        }
        self.epochs.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How a sleep of `wait_all` ended.
#[derive(PartialEq)]
enum Woken {
    /// The awaited condition holds.
    Done,
    /// The poll hook has called `wait_all` itself, which covers what was pushed before.
    DoneByHook,
    /// The poll hook has forked, or begun a `wait_all` and given it up: begin again.
    Stale,
}

impl Engine {
    /// Returns when everything pushed before is complete; an error with the failures that no wait
    /// has returned before. They then count as observed: a second call is clean. No variable is
    /// changed by it.
    pub fn wait_all(&'static self) -> Result<(), WaitError> {
        self.wait_for_all(None)
    }

    /// Waits like [`wait_all`](Engine::wait_all); `poll` is called in this thread about every 50
    /// ms, and the wait is abandoned when it returns false.
    pub fn wait_all_with(&'static self, poll: &mut dyn FnMut() -> bool) -> Result<(), WaitError> {
        self.wait_for_all(Some(poll))
    }

    fn wait_for_all(&'static self, mut poll: Option<&mut dyn FnMut() -> bool>) -> Result<(), WaitError> {
        if slot::current().op_depth.get() != 0 {
            return Err(WaitError::InsideOp);
        }
        if slot::current().inside_call.get() {
            return Err(WaitError::InsideCall);
        }
        let _eager = self.eager();
        while self.wait_for_epochs(&mut poll)? == Woken::Stale {}
        let slot = slot::current();
        slot.wait_alls.set(slot.wait_alls.get() + 1);
        if self.devices.in_use() {
            self.devices.synchronize(self, &mut || poll.as_mut().is_none_or(|poll| poll()))?;
        }
        match self.without_fork(|| self.take_unobserved()) {
            (list, 0) if list.is_empty() => Ok(()),
            (list, more) => Err(WaitError::Failures(list, more)),
        }
    }

    /// Waits until everything pushed before is complete, with one flip.
    fn wait_for_epochs(&'static self, poll: &mut Option<&mut dyn FnMut() -> bool>) -> Result<Woken, WaitError> {
        self.without_fork(|| self.sched.kick(self));
        let epochs = &self.epochs;
        let mut wait = WaitAll::begin(epochs);
        let meeting = wait.meeting;
        let own = slot::current().number;
        let woken = self.wait_until(meeting, poll, |flipping| match *flipping {
            // This is a call from the poll hook of one that flips: that waits until this one has
            // ended.
            Some(thread) => thread == own,
            None => {
                *flipping = Some(own);
                wait.flips = true;
                true
            }
        })?;
        if woken != Woken::Done {
            return Ok(woken);
        }
        let epoch = epochs.epoch.load(Ordering::Relaxed);
        let woken = self.wait_until(meeting, poll, |_| self.look((epoch + 1) & 1))?;
        if woken != Woken::Done {
            return Ok(woken);
        }
        epochs.epoch.store(epoch + 1, Ordering::SeqCst);
        self.wait_until(meeting, poll, |_| self.look(epoch & 1))
    }

    /// Sleeps until `done` says so; it is asked under the meeting's mutex after every notification.
    fn wait_until(
        &self,
        meeting: &Meeting,
        poll: &mut Option<&mut dyn FnMut() -> bool>,
        mut done: impl FnMut(&mut Option<u32>) -> bool,
    ) -> Result<Woken, WaitError> {
        let mut guard = lock(&meeting.flipping);
        let mut asked = Instant::now();
        while !done(&mut guard) {
            if self.closed.load(Ordering::SeqCst) {
                return Err(WaitError::Closed);
            }
            if self.devices.need_steps() {
                // No other thread does the devices' work, and ops of the host may wait for it.
                drop(guard);
                let worked = self.devices.step();
                guard = lock(&meeting.flipping);
                if worked {
                    continue;
                }
            }
            let Some(poll) = poll else {
                guard = meeting.sleep(guard, self.devices.need_steps().then_some(BETWEEN_STEPS));
                continue;
            };
            guard = meeting.sleep(guard, Some(self.patience()));
            if asked.elapsed() >= POLL {
                // The hook is user code: never under a lock.
                drop(guard);
                if let Some(woken) = self.call_hook(poll)? {
                    return Ok(woken);
                }
                asked = Instant::now();
                guard = lock(&meeting.flipping);
            }
        }
        Ok(Woken::Done)
    }

    /// Calls the poll hook. Returns how the wait ends, if what the hook did ends it.
    fn call_hook(&self, poll: &mut dyn FnMut() -> bool) -> Result<Option<Woken>, WaitError> {
        let slot = slot::current();
        let before = (fork::generation(), self.epochs.epoch.load(Ordering::Relaxed));
        let wait_alls = slot.wait_alls.get();
        if !poll() {
            return Err(WaitError::Interrupted);
        }
        if before.0 == fork::generation() && wait_alls != slot.wait_alls.get() {
            return Ok(Some(Woken::DoneByHook));
        }
        let stale = before != (fork::generation(), self.epochs.epoch.load(Ordering::Relaxed));
        Ok(stale.then_some(Woken::Stale))
    }

    /// How long to sleep between two calls of the poll hook.
    fn patience(&self) -> Duration {
        if self.devices.need_steps() { BETWEEN_STEPS } else { POLL }
    }

    /// The waiter's look, see `Epochs::look`.
    fn look(&self, slot: usize) -> bool {
        self.epochs.look(slot, || missing(&self.all_counts.lock(), slot))
    }

    /// Called after a completion was counted, if a thread waits.
    #[cold]
    pub(crate) fn completed_while_waiting(&self, slot: usize) {
        if self.epochs.last_completion(slot, || missing(&self.all_counts.lock(), slot)) {
            self.epochs.notify();
        }
    }
}

/// How many ops of this slot that were pushed before the call are not complete.
///
/// The lock of the counts is not taken inside the fork gate by a waiter: a completing op may be
/// waiting for the mutex that the waiter holds, and a fork for that op. Instead the forking thread
/// holds that lock over the fork.
pub(crate) fn missing(all: &[&Counts], slot: usize) -> u64 {
    let completed: u64 = all.iter().map(|c| c.completed[slot].load(Ordering::SeqCst)).sum();
    perturb();
    let pushed: u64 = all.iter().map(|c| c.pushed[slot].load(Ordering::Acquire)).sum();
    pushed - completed
}
