//! The chunks of one split: which thread may take which, and when all are done.
//!
//! Every participant has a seat: one cache line with its chunks, the job for them, and the number
//! of chunks it has finished. A helper watches its own seat. So it learns of a round, takes a chunk
//! and reports it through one line, which moves to its cache and back. Between caches that share
//! nothing, each such move takes a fifth of a microsecond.

use super::limit::RunLimit;
use crate::failure::discard;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crossbeam_utils::CachePadded;
use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::time::Instant;

/// Bits of a chunk number in a claim word.
const BITS: u32 = 32;

pub(crate) type ChunkBody<'a> = dyn Fn(usize, &mut [u8]) + Sync + 'a;

/// The work on every chunk of a round.
#[derive(Clone, Copy)]
pub(crate) struct SplitJob {
    pub body: *const ChunkBody<'static>,
    pub scratch_bytes: usize,
}

impl SplitJob {
    pub fn new(body: &ChunkBody<'_>, scratch_bytes: usize) -> Self {
        // SAFETY: only the lifetime changes; the pointer is used while the round lasts, which ends
        // before the borrow.
        let body = unsafe { std::mem::transmute::<&ChunkBody<'_>, &'static ChunkBody<'static>>(body) };
        SplitJob { body, scratch_bytes }
    }
}

struct Seat {
    /// The free chunks: the first, and where they end. Chunks are free only while their round
    /// lasts.
    word: AtomicU64,
    /// Chunks that helpers have finished here, ever.
    done: AtomicUsize,
    /// The job of the round that the free chunks belong to.
    job: UnsafeCell<Option<SplitJob>>,
}

/// A chunk that a thread has taken: its own until the thread has counted it as done.
pub(crate) struct Claim {
    pub chunk: usize,
    pub job: SplitJob,
}

/// State that only the driver uses.
struct Driver {
    /// Chunks that helpers had finished before the present round.
    done_before: Cell<usize>,
    /// The time since when the driver has been doing all chunks although it has helpers.
    alone_since: Cell<Option<Instant>>,
    /// The panic of the lowest chunk that panicked.
    panic: Mutex<Option<Panic>>,
}

/// Number of the chunk and what it panicked with.
pub(crate) type Panic = (usize, Box<dyn Any + Send>);

/// The splits of one token, one round after the other.
pub(crate) struct Run {
    seats: Box<[CachePadded<Seat>]>,
    /// Helpers, by seat.
    members: AtomicU64,
    /// Whether helpers may expect more rounds.
    open: AtomicBool,
    /// The bound of the op whose run it is.
    pub(super) limit: RunLimit,
    driver: CachePadded<Driver>,
}

// SAFETY: a job is written by the driver while no chunk is free, and read by threads that have
// claimed a chunk of its seat, which synchronises with the word that the driver stored after it;
// `done_before` and `alone_since` are the driver's alone.
unsafe impl Sync for Run {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for Run {}

fn word(low: usize, high: usize) -> u64 {
    (low as u64) << BITS | high as u64
}

/// The first free chunk, and where they end.
fn free(word: u64) -> (usize, usize) {
    ((word >> BITS) as usize, word as u32 as usize)
}

impl Seat {
    fn new() -> Self {
        Seat { word: AtomicU64::new(0), done: AtomicUsize::new(0), job: UnsafeCell::new(None) }
    }

    /// Takes a chunk from the front, or from the back. That the word is as it was read says all:
    /// whichever round it is.
    fn claim(&self, front: bool) -> Option<Claim> {
        let mut seen = self.word.load(Ordering::Acquire);
        loop {
            let (low, high) = free(seen);
            if low == high {
                return None;
            }
            let left = if front { word(low + 1, high) } else { word(low, high - 1) };
            match self.word.compare_exchange_weak(seen, left, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    // SAFETY: a chunk of this seat is claimed and not counted, so the round lasts
                    // and the job stays as it is.
                    let job = unsafe { *self.job.get() }?;
                    return Some(Claim { chunk: if front { low } else { high - 1 }, job });
                }
                Err(now) => seen = now,
            }
        }
    }

    fn has_chunks(&self) -> bool {
        let (low, high) = free(self.word.load(Ordering::Relaxed));
        low != high
    }
}

impl Run {
    pub fn new(members: usize) -> Self {
        Run {
            seats: (0..members).map(|_| CachePadded::new(Seat::new())).collect(),
            members: AtomicU64::new(0),
            open: AtomicBool::new(false),
            limit: RunLimit::default(),
            driver: CachePadded::new(Driver {
                done_before: Cell::new(0),
                alone_since: Cell::new(None),
                panic: Mutex::new(None),
            }),
        }
    }

    /// One chunk: of the own seat from the front, of the others' from the back.
    pub fn claim(&self, me: usize) -> Option<Claim> {
        self.claim_own(me).or_else(|| {
            let others = self.seats.iter().enumerate().filter(|(seat, _)| *seat != me);
            others.map(|(_, seat)| seat).find_map(|seat| seat.claim(false))
        })
    }

    /// One chunk of the own seat.
    pub fn claim_own(&self, me: usize) -> Option<Claim> {
        self.seats.get(me).and_then(|seat| seat.claim(true))
    }

    /// A helper has finished a chunk: from now on it may not use the job any more.
    pub fn count_done(&self, me: usize) {
        self.seats[me].done.fetch_add(1, Ordering::Release);
    }

    /// Whether the helpers have finished `by_helpers` chunks of the present round: all that the
    /// driver has not done. The next round may begin then.
    pub fn ends_with(&self, by_helpers: usize) -> bool {
        let done = self.seats.iter().fold(0, |sum: usize, seat| sum.wrapping_add(seat.done.load(Ordering::Acquire)));
        let all = done.wrapping_sub(self.driver.done_before.get()) == by_helpers;
        if all {
            self.driver.done_before.set(done);
        }
        all
    }

    /// Whether a helper would find something to do.
    pub fn has_chunks(&self) -> bool {
        self.seats.iter().any(|seat| seat.has_chunks())
    }

    /// Whether a helper would find something to do, and may come.
    pub fn wants_help(&self) -> bool {
        self.has_chunks() && self.limit.has_room()
    }

    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    /// Whether helpers may expect rounds. Said by the driver, when no round is under way.
    pub fn set_open(&self, open: bool) {
        self.open.store(open, Ordering::Release);
    }

    pub fn join(&self, seat: usize) {
        self.members.fetch_or(1 << seat, Ordering::Relaxed);
    }

    pub fn leave(&self, seat: usize) {
        self.members.fetch_and(!(1 << seat), Ordering::Relaxed);
    }

    /// Forgets helpers, in a forked child.
    pub fn forget_helpers(&self) {
        self.members.store(0, Ordering::Relaxed);
        self.limit.forget();
    }

    pub fn is_member(&self, seat: usize) -> bool {
        (self.members.load(Ordering::Relaxed) >> seat) & 1 == 1
    }

    pub fn helpers(&self) -> u32 {
        self.members.load(Ordering::Relaxed).count_ones()
    }

    /// The seats of the helpers and of the driver, `me`.
    pub fn taking_part(&self, me: usize) -> u64 {
        self.members.load(Ordering::Relaxed) | 1 << me
    }

    /// Publishes a round of `chunks` chunks, shared out to the participants in the order of their
    /// seats.
    ///
    /// # Safety
    /// Called by the driver, `me`, when no round is under way; the job is usable until the round is
    /// done.
    pub unsafe fn publish(&self, me: usize, chunks: usize, job: SplitJob) {
        assert!(u32::try_from(chunks).is_ok(), "a loop of {chunks} chunks cannot be shared out");
        let members = self.taking_part(me);
        let parallelism = members.count_ones() as usize;
        let taking_part = self.seats.iter().enumerate().filter(|(seat, _)| (members >> seat) & 1 == 1);
        for (rank, (_, seat)) in taking_part.enumerate() {
            // SAFETY: contract: no chunk is claimed, and none can be here before the word is
            // stored.
            unsafe { *seat.job.get() = Some(job) };
            seat.word.store(word(chunks * rank / parallelism, chunks * (rank + 1) / parallelism), Ordering::Release);
        }
    }

    /// Keeps what a chunk panicked with, if no lower one has.
    pub fn keep_panic(&self, number: usize, payload: Box<dyn Any + Send>) {
        let mut kept = self.driver.panic.lock();
        let lower = kept.as_ref().is_none_or(|(other, _)| number < *other);
        let gone = if lower { kept.replace((number, payload)).map(|(_, p)| p) } else { Some(payload) };
        drop(kept);
        if let Some(payload) = gone {
            discard(payload);
        }
    }

    /// The panic of the lowest chunk of the round that is done.
    pub fn take_panic(&self) -> Option<Panic> {
        self.driver.panic.lock().take()
    }

    /// The driver has done a round, perhaps all of it although it has helpers. Returns since when
    /// that has been so.
    pub fn alone_since(&self, alone: bool) -> Option<Instant> {
        let since = self.driver.alone_since.take();
        let since = (alone && self.helpers() > 0).then(|| since.unwrap_or_else(Instant::now));
        self.driver.alone_since.set(since);
        since
    }

    /// Restarts the count of the time for which the driver has been alone.
    pub fn forget_alone(&self) {
        self.driver.alone_since.set(None);
    }
}
