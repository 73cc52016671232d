//! Guests: threads that are none of the engine's and compute between its ops, such as those that
//! read and decode data. A guest needs a core token like everything that computes.
//!
//! Guests and queued ops take turns: a core that has ended an op goes to the guest that waits
//! longest, one that has been a guest's goes to an op. So neither keeps the other from computing,
//! and an op waits for one turn of a guest at most, which should be a millisecond.

use super::{Sched, SchedState};
use crate::engine::Engine;
use crate::process::slot::{self, Slot};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// How long a guest waits for a core, in milliseconds. Then it computes without one: an op may wait
/// for what the guest makes in a way that the engine does not see.
pub(super) const PATIENCE_MS: u64 = 1000;
/// The place in a [`Seat`] where no token was put.
const NONE: usize = usize::MAX;

/// The place where a guest waits for its token.
struct Seat {
    token: AtomicUsize,
    thread: Thread,
}

impl Seat {
    fn token(&self) -> Option<usize> {
        Some(self.token.load(Ordering::Acquire)).filter(|token| *token != NONE)
    }

    /// Sleeps until there is a token, or for too long.
    fn wait(&self, patience: Duration) {
        let until = Instant::now() + patience;
        while self.token().is_none() {
            match until.checked_duration_since(Instant::now()) {
                Some(left) if !left.is_zero() => std::thread::park_timeout(left),
                _ => return,
            }
        }
    }
}

/// The guests that wait, first come first served.
#[derive(Default)]
pub(super) struct Guests {
    waiting: VecDeque<Arc<Seat>>,
    /// A guest has had the last turn.
    had_turn: bool,
}

impl Guests {
    /// An op is taken off the queue: the next turn is a guest's.
    pub fn give_turn(&mut self) {
        self.had_turn = false;
    }
}

impl Sched {
    /// Whether guests wait, as far as can be seen without the lock.
    pub(super) fn has_guests(&self) -> bool {
        self.guests.load(Ordering::SeqCst) > 0
    }

    /// Whether the next free core is a guest's, if one waits.
    fn is_turn_of_guests(state: &SchedState) -> bool {
        state.queues.len() == 0 || !state.guests.had_turn
    }

    /// Hands the token, or else free ones, to guests whose turn it is.
    pub(super) fn seat_guests(&self, state: &mut SchedState, token: &mut Option<usize>) {
        while !state.guests.waiting.is_empty() && Self::is_turn_of_guests(state) {
            let Some(free) = token.take().or_else(|| self.tokens.take()) else { return };
            if let Some(seat) = state.guests.waiting.pop_front() {
                self.guests.fetch_sub(1, Ordering::SeqCst);
                seat.token.store(free, Ordering::Release);
                seat.thread.unpark();
            }
            state.guests.had_turn = true;
        }
    }

    /// Forgets waiting guests, in a forked child, where they do not exist.
    pub(super) fn forget_guests(&self, state: &mut SchedState) {
        state.guests = Guests::default();
        self.guests.store(0, Ordering::SeqCst);
    }

    /// A token for a guest, whose thread is inside the fork gate, but not while it waits.
    fn token_for_guest(&self, slot: &Slot) -> Option<usize> {
        if self.queue_is_empty()
            && !self.has_guests()
            && let Some(token) = self.tokens.take()
        {
            return Some(token);
        }
        let seat = Arc::new(Seat { token: AtomicUsize::new(NONE), thread: std::thread::current() });
        let mut state = self.lock();
        state.guests.waiting.push_back(seat.clone());
        // Before the look for a free token: a thread that gives one back later sees the guest.
        self.guests.fetch_add(1, Ordering::SeqCst);
        self.seat_guests(&mut state, &mut None);
        drop(state);
        slot.exit();
        seat.wait(Duration::from_millis(self.guest_patience.load(Ordering::Relaxed)));
        slot.enter();
        let mut state = self.lock();
        if let Some(place) = state.guests.waiting.iter().position(|other| Arc::ptr_eq(other, &seat)) {
            state.guests.waiting.remove(place);
            self.guests.fetch_sub(1, Ordering::SeqCst);
        }
        seat.token()
    }
}

/// The stay of a guest inside the fork gate, with its token.
struct Stay {
    engine: &'static Engine,
    slot: &'static Slot,
    token: Option<usize>,
    before: (*const Engine, usize),
}

impl Drop for Stay {
    fn drop(&mut self) {
        self.slot.restore_token(self.before);
        if let Some(token) = self.token {
            let sched = &self.engine.sched;
            sched.tokens.put(token);
            // Other guests, queued ops, or a loop that another core may help with.
            sched.kick(self.engine);
        }
        self.slot.exit();
    }
}

impl Engine {
    /// Computes in this thread, which need not be the engine's, as soon as a core is free, so that
    /// ops and the threads that prepare their data together compute on `cores` cores. It alternates
    /// with queued ops; `work` should take about a millisecond and wait for nothing. A fork waits
    /// for it. A thread that got no core for a second computes all the same. The naive engine
    /// computes in the calling threads and bounds none of them.
    pub fn compute<R>(&'static self, work: impl FnOnce() -> R) -> R {
        let slot = slot::current();
        if self.is_naive() || slot.token(self).is_some() {
            return work();
        }
        slot.enter();
        let token = self.sched.token_for_guest(slot);
        let before = match token {
            Some(token) => slot.hold_token(self, token),
            None => slot.held(),
        };
        let _stay = Stay { engine: self, slot, token, before };
        work()
    }

    /// Number of threads in [`Engine::compute`] that wait for a core, for tests.
    pub fn waiting_guests(&self) -> usize {
        self.sched.guests.load(Ordering::SeqCst)
    }

    /// Sets how long a thread in [`Engine::compute`] waits for a core, for tests, which a busy
    /// machine may hold up for longer than a second.
    pub fn set_guest_patience(&self, time: Duration) {
        let millis = time.as_millis().try_into().unwrap_or(u64::MAX);
        self.sched.guest_patience.store(millis, Ordering::Relaxed);
    }
}

/// Whether this thread computes with a core of an engine: then it must not wait for threads that
/// need one.
pub fn holds_core() -> bool {
    !slot::current().held().0.is_null()
}
