//! How a worker sleeps and is woken.

use crate::sched::processors::SleepingPlace;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

pub(crate) struct Parker {
    woken: AtomicBool,
    sleeper: OnceLock<(Thread, SleepingPlace)>,
}

impl Parker {
    pub const fn new() -> Self {
        Parker { woken: AtomicBool::new(false), sleeper: OnceLock::new() }
    }

    /// Makes this thread the one that sleeps here.
    pub fn settle_in(&self) {
        let _ = self.sleeper.set((std::thread::current(), SleepingPlace::of_this_thread()));
    }

    /// Wakes the thread. If this thread continues computing, the other wakes up on another
    /// processor: when all processors are busy for a moment, the system tends to queue it after the
    /// thread that wakes it, typically the one that pushed the op and is about to wait for it.
    pub fn wake(&self, computing: bool) {
        let sleeper = self.sleeper.get();
        if let Some((_, place)) = sleeper.filter(|_| computing) {
            place.leave_out_here();
        }
        self.woken.store(true, Ordering::Release);
        if let Some((thread, _)) = sleeper {
            thread.unpark();
        }
    }

    /// The thread does not wait for the processor that this one runs on, if it may run elsewhere.
    pub fn keep_away(&self) {
        if let Some((_, place)) = self.sleeper.get() {
            place.keep_away();
        }
    }

    /// Sleeps for so long at most; whether the thread has been woken.
    pub fn is_woken_within(&self, rest: Duration) -> bool {
        let since = Instant::now();
        while !self.is_woken() {
            match rest.checked_sub(since.elapsed()) {
                Some(left) if !left.is_zero() => std::thread::park_timeout(left),
                _ => return false,
            }
        }
        true
    }

    /// Whether the thread has been woken and does not run yet.
    pub fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Acquire)
    }

    /// Whether the thread was woken since it asked last.
    pub fn take_woken(&self) -> bool {
        self.woken.swap(false, Ordering::Acquire)
    }

    /// Lets this thread, which slept here and was woken, run everywhere again.
    pub fn run_anywhere(&self) {
        if let Some((_, place)) = self.sleeper.get() {
            place.allow_all();
        }
    }
}
