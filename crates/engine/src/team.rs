//! Splitting the loop of one op over idle cores.
//!
//! Each token has a run: one claim word per participant, holding the split's tag and the chunks that are still free. A
//! participant takes from the front of its own word, and from the back of the others' when its own is empty. The tag in
//! the word makes a stale claim fail; a successful one proves that the split is under way, so its body may be used until
//! the chunk is counted as done. The driver needs nobody: what helpers do not take, it does itself.

use crate::complete::discard;
use crate::ctx::RunCtx;
use crate::engine::Engine;
use crate::memory::Raw;
use crate::processors;
use crate::slot::{self, Slot};
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, pause, yield_now};
use crossbeam_utils::CachePadded;
use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicI32;
use std::time::{Duration, Instant};

#[cfg(all(test, loom))]
mod loom_team;

/// Participants of one split: bits of the member mask. Cores beyond that drive but do not help.
const MAX_MEMBERS: usize = 64;
/// Chunks of one round: their numbers have 16 bits in a claim word.
const MAX_ROUND: usize = u16::MAX as usize;
/// A participant spins so long before it gives its core away between looks.
const SPIN: Duration = Duration::from_micros(200);
/// Others that have done nothing for so long may be waiting for the processor of whoever notices.
const PARTING: Duration = Duration::from_micros(200);
/// A helper that found no chunk for so long leaves.
const PATIENCE: Duration = Duration::from_millis(1);
/// Tag of a run without a split.
const END: u64 = 0;

type Body<'a> = dyn Fn(usize, &mut [u8]) + Sync + 'a;

pub(crate) struct Team {
    /// By token of the driver.
    runs: Box<[Run]>,
    /// By token; touched by the token's holder.
    scratch: Box<[CachePadded<UnsafeCell<Raw>>]>,
    /// By token: the thread that took part in a run last.
    threads: Box<[CachePadded<AtomicI32>]>,
}

// SAFETY: scratch, and since when a run's driver is alone, belong to the holder of the token; a run's job is handed over through
// its claim words.
unsafe impl Sync for Team {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for Team {}

pub(crate) struct Run {
    tag: CachePadded<AtomicU64>,
    /// Only the driver counts.
    last_tag: AtomicU64,
    /// Chunks of the present round that helpers have finished.
    done: CachePadded<AtomicUsize>,
    words: Box<[CachePadded<AtomicU64>]>,
    /// Helpers, by token.
    members: AtomicU64,
    job: UnsafeCell<Option<Job>>,
    /// Only the driver's: since when it has been doing all chunks although it has helpers.
    alone_since: Cell<Option<Instant>>,
    /// The panic of the lowest chunk that panicked.
    panic: Mutex<Option<(usize, Box<dyn Any + Send>)>>,
}

#[derive(Clone, Copy)]
pub(crate) struct Job {
    body: *const Body<'static>,
    first_chunk: usize,
    scratch_bytes: usize,
}

impl Job {
    pub fn new(body: &Body<'_>, first_chunk: usize) -> Self {
        // SAFETY: only the lifetime changes; the pointer is used while the split lasts, which ends before the borrow.
        let body = unsafe { std::mem::transmute::<&Body<'_>, &'static Body<'static>>(body) };
        Job { body, first_chunk, scratch_bytes: 0 }
    }
}

fn word(tag: u64, low: usize, high: usize) -> u64 {
    (tag << 32) | ((low as u64) << 16) | high as u64
}

impl Run {
    pub fn new(members: usize) -> Self {
        Run {
            tag: CachePadded::new(AtomicU64::new(END)),
            last_tag: AtomicU64::new(0),
            done: CachePadded::new(AtomicUsize::new(0)),
            words: (0..members).map(|_| CachePadded::new(AtomicU64::new(0))).collect(),
            members: AtomicU64::new(0),
            job: UnsafeCell::new(None),
            alone_since: Cell::new(None),
            panic: Mutex::new(None),
        }
    }

    /// One chunk of the split `tag`: the own range from the front, the others' from the back.
    pub fn claim(&self, me: usize, tag: u64) -> Option<usize> {
        let others = (0..self.words.len()).filter(|&p| p != me);
        let own = (me < self.words.len()).then_some(me);
        own.into_iter().chain(others).find_map(|p| self.claim_from(p, p == me, tag))
    }

    fn claim_from(&self, p: usize, front: bool, tag: u64) -> Option<usize> {
        let cell = &self.words[p];
        let mut seen = cell.load(Ordering::Acquire);
        loop {
            let (low, high) = ((seen >> 16) & 0xffff, seen & 0xffff);
            if seen >> 32 != tag || low == high {
                return None;
            }
            let next = if front { seen + (1 << 16) } else { seen - 1 };
            match cell.compare_exchange_weak(seen, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(if front { low } else { high - 1 } as usize),
                Err(now) => seen = now,
            }
        }
    }

    /// The split under way, `END` if there is none.
    pub fn tag(&self) -> u64 {
        self.tag.load(Ordering::Acquire)
    }

    /// A helper has finished a chunk: from now on it may not use the job any more.
    pub fn count_done(&self) {
        self.done.fetch_add(1, Ordering::Release);
    }

    /// Whether the helpers have finished the rest of the round.
    pub fn round_is_done(&self, by_helpers: usize) -> bool {
        self.done.load(Ordering::Acquire) == by_helpers
    }

    /// Number of the round's first chunk.
    ///
    /// # Safety
    /// The caller has claimed a chunk and not counted it yet.
    #[cfg(all(test, loom))]
    pub unsafe fn first_chunk(&self) -> usize {
        // SAFETY: contract.
        unsafe { (*self.job.get()).map_or(0, |j| j.first_chunk) }
    }

    /// Whether a helper would find something to do.
    fn has_chunks(&self) -> bool {
        let tag = self.tag.load(Ordering::Acquire);
        tag != END
            && self.words.iter().any(|w| {
                let w = w.load(Ordering::Relaxed);
                w >> 32 == tag && (w >> 16) & 0xffff != w & 0xffff
            })
    }

    fn helpers(&self) -> u32 {
        self.members.load(Ordering::Relaxed).count_ones()
    }

    /// Publishes a round of `chunks` chunks, shared out to the participants in the order of their tokens.
    ///
    /// # Safety
    /// Called by the driver, `me`, when no round is under way; the job is usable until the round is finished.
    pub unsafe fn publish(&self, me: usize, chunks: usize, job: Job) -> u64 {
        let tag = match (self.last_tag.load(Ordering::Relaxed) + 1) & 0xffff_ffff {
            END => 1,
            tag => tag,
        };
        self.last_tag.store(tag, Ordering::Relaxed);
        // SAFETY: contract: nobody uses the old job any more, nobody can claim before the words are stored.
        unsafe { *self.job.get() = Some(job) };
        self.done.store(0, Ordering::Relaxed);
        let members = self.members.load(Ordering::Relaxed) | 1 << me;
        let people = members.count_ones() as usize;
        let mut rank = 0;
        for (p, cell) in self.words.iter().enumerate() {
            if (members >> p) & 1 == 1 {
                cell.store(word(tag, chunks * rank / people, chunks * (rank + 1) / people), Ordering::Release);
                rank += 1;
            }
        }
        self.tag.store(tag, Ordering::Release);
        tag
    }
}

impl Team {
    pub fn new(cores: usize) -> Self {
        let members = cores.min(MAX_MEMBERS);
        Team {
            runs: (0..cores).map(|_| Run::new(members)).collect(),
            scratch: (0..cores).map(|_| CachePadded::new(UnsafeCell::new(Raw::empty()))).collect(),
            threads: (0..cores).map(|_| CachePadded::new(AtomicI32::new(processors::NOBODY))).collect(),
        }
    }

    /// Place of a token among the participants. Two tokens may share one: a place is only where somebody looks first.
    fn place(&self, token: usize) -> usize {
        token % self.runs.len().min(MAX_MEMBERS)
    }

    /// Of these runs the one with the fewest helpers that has something to do.
    pub fn neediest(&self, open: &[usize]) -> Option<usize> {
        open.iter().copied().filter(|&r| self.runs[r].has_chunks()).min_by_key(|&r| self.runs[r].helpers())
    }

    /// Whether a helper would find something to do, as far as can be seen without the lock.
    pub fn any_chunks(&self) -> bool {
        self.runs.iter().any(Run::has_chunks)
    }

    pub fn join(&self, run: usize, token: usize) {
        self.runs[run].members.fetch_or(1 << self.place(token), Ordering::Relaxed);
    }

    /// This thread, which holds the token, drives a run or helps.
    fn take_part(&self, token: usize) {
        self.threads[token].store(processors::this_thread(), Ordering::Relaxed);
    }

    pub fn leave(&self, run: usize, token: usize) {
        self.runs[run].members.fetch_and(!(1 << self.place(token)), Ordering::Relaxed);
    }

    /// In a forked child.
    pub fn forget_helpers(&self) {
        self.runs.iter().for_each(|r| r.members.store(0, Ordering::Relaxed));
    }

    /// Takes chunks of a run until it ends, somebody wants the core, or there has been nothing to do for a while.
    pub fn help(&self, slot: &Slot, run: usize, token: usize, wanted: impl Fn() -> bool) {
        let (driver, run, place) = (run, &self.runs[run], self.place(token));
        self.take_part(token);
        slot.op_depth.set(slot.op_depth.get() + 1);
        let mut idle = Idle::new();
        loop {
            let tag = run.tag();
            if tag == END || wanted() {
                break;
            }
            if let Some(chunk) = run.claim(place, tag) {
                // SAFETY: the claim succeeded, the token is ours, and the chunk is counted below.
                unsafe { self.run_chunk(slot, run, chunk, token) };
                run.count_done();
                idle = Idle::new();
            } else if idle.wait(|| self.part(driver, token)) > PATIENCE {
                break;
            }
        }
        slot.op_depth.set(slot.op_depth.get() - 1);
    }

    /// Moves the other participants of a run, of which nothing has been heard for a while, if they wait for the processor of
    /// this thread, which holds a token: the system would leave the two together for milliseconds.
    #[cold]
    fn part(&self, driver: usize, token: usize) {
        let members = self.runs[driver].members.load(Ordering::Relaxed);
        for other in (0..self.threads.len()).filter(|o| *o != token) {
            let thread = self.threads[other].load(Ordering::Relaxed);
            if thread != processors::NOBODY && (other == driver || (members >> self.place(other)) & 1 == 1) {
                processors::keep_away(thread);
            }
        }
    }

    /// The driver has done a round, perhaps alone although it has helpers.
    fn notice(&self, run: &Run, token: usize, alone: bool) {
        let since = run.alone_since.take();
        if alone && run.helpers() > 0 {
            let since = since.unwrap_or_else(Instant::now);
            let long = since.elapsed() > PARTING;
            run.alone_since.set((!long).then_some(since));
            if long {
                self.part(token, token);
            }
        }
    }

    /// # Safety
    /// The chunk was claimed and is not counted as done yet; the thread holds the token and is not inside a chunk.
    unsafe fn run_chunk(&self, slot: &Slot, run: &Run, chunk: usize, token: usize) {
        // SAFETY: contract: until the chunk is counted the driver waits for it, so job and body stay as they are; the
        // claim synchronises with their publication. The scratch belongs to the token's holder.
        let result = unsafe {
            let Some(job) = *run.job.get() else { return };
            let number = job.first_chunk + chunk;
            catch_unwind(AssertUnwindSafe(|| {
                self.with_scratch(slot, token, job.scratch_bytes, |s| (*job.body)(number, s))
            }))
            .map_err(|payload| (number, payload))
        };
        if let Err((number, payload)) = result {
            let mut kept = run.panic.lock();
            let lower = kept.as_ref().is_none_or(|(other, _)| number < *other);
            let gone = if lower { kept.replace((number, payload)).map(|(_, p)| p) } else { Some(payload) };
            drop(kept);
            if let Some(payload) = gone {
                discard(payload);
            }
        }
    }

    /// Calls `f` with the scratch memory of a token, as inside a chunk.
    ///
    /// # Safety
    /// The thread holds the token and is not inside a chunk.
    unsafe fn with_scratch(&self, slot: &Slot, token: usize, bytes: usize, f: impl FnOnce(&mut [u8])) {
        let _inside = InChunk::enter(slot);
        // SAFETY: contract: the holder of the token is the only one to touch its scratch, and does so only here.
        let raw = unsafe { &mut *self.scratch[token].get() };
        f(raw.at_least(bytes));
    }

    /// Gives the scratch memory of a token back, and that of this thread.
    ///
    /// # Safety
    /// The thread holds the token and is not inside a chunk.
    pub unsafe fn drop_scratch(&self, token: usize) {
        // SAFETY: contract: the holder of the token is the only one to touch its scratch.
        unsafe { *self.scratch[token].get() = Raw::empty() };
        drop(OWN_SCRATCH.take());
    }

    /// Runs all chunks of a split, with helpers.
    ///
    /// # Safety
    /// The thread holds `token`, is not inside a chunk, and the token's run is open.
    unsafe fn drive(&self, slot: &Slot, token: usize, chunks: usize, scratch: usize, body: &Body<'_>, call: impl Fn()) {
        let (run, place) = (&self.runs[token], self.place(token));
        for first_chunk in (0..chunks).step_by(MAX_ROUND) {
            let round = (chunks - first_chunk).min(MAX_ROUND);
            // SAFETY: the last round was awaited; this one is, before the body's borrow ends.
            let tag =
                unsafe { run.publish(place, round, Job { scratch_bytes: scratch, ..Job::new(body, first_chunk) }) };
            call();
            let mut mine = 0;
            while let Some(chunk) = run.claim(place, tag) {
                // SAFETY: claimed, and counted in `mine`.
                unsafe { self.run_chunk(slot, run, chunk, token) };
                mine += 1;
            }
            let mut idle = Idle::new();
            while !run.round_is_done(round - mine) {
                idle.wait(|| self.part(token, token));
            }
            self.notice(run, token, mine == round);
        }
        let panic = run.panic.lock().take();
        if let Some((_, payload)) = panic {
            resume_unwind(payload);
        }
    }
}

/// Marks that a thread is inside a chunk, also when the chunk panics.
struct InChunk<'a>(&'a Slot);

impl<'a> InChunk<'a> {
    fn enter(slot: &'a Slot) -> Self {
        slot.split_depth.set(slot.split_depth.get() + 1);
        InChunk(slot)
    }
}

impl Drop for InChunk<'_> {
    fn drop(&mut self) {
        self.0.split_depth.set(self.0.split_depth.get() - 1);
    }
}

/// Spins for a while, then gives the core away between looks.
struct Idle {
    looks: u32,
    since: Option<Instant>,
    waited: Duration,
    /// when to look for others on this processor
    parting: Duration,
}

impl Idle {
    fn new() -> Self {
        Idle { looks: 0, since: None, waited: Duration::ZERO, parting: SPIN }
    }

    /// Waits a moment; returns how long it has been. Calls `part` now and then if it is long.
    fn wait(&mut self, part: impl Fn()) -> Duration {
        let since = *self.since.get_or_insert_with(Instant::now);
        self.looks += 1;
        if self.looks.is_multiple_of(64) {
            self.waited = since.elapsed();
        }
        if self.waited < SPIN {
            pause();
        } else {
            if self.waited >= self.parting {
                self.parting = self.waited + PARTING;
                part();
            }
            yield_now();
            self.waited = since.elapsed();
        }
        self.waited
    }
}

thread_local! {
    /// Scratch of splits that run without a token, or inside a chunk.
    static OWN_SCRATCH: Cell<Raw> = const { Cell::new(Raw::empty()) };
}

impl RunCtx<'_> {
    /// Runs `body(0..chunks)`, possibly on several cores, and returns when all are done. The second argument of `body`
    /// is scratch memory of `scratch_bytes` bytes, aligned to 64, with arbitrary content. Where the chunks begin and end
    /// is the caller's business, so results never depend on how many cores helped. If chunks panic, the panic of the
    /// lowest one is raised again here after all have ended; a payload of type [`OpError`](crate::OpError) (by
    /// `std::panic::resume_unwind`) becomes the op's error as it is. Inside a chunk, splits run serially.
    pub fn split(&self, chunks: usize, scratch_bytes: usize, body: &(dyn Fn(usize, &mut [u8]) + Sync)) {
        let slot = slot::current();
        let engine = self.engine();
        let token = slot.token(engine).filter(|_| slot.split_depth.get() == 0);
        let team = &engine.sched.team;
        match token {
            Some(token) if chunks > 1 && engine.cores() > 1 => {
                self.open_run(token);
                // SAFETY: the token is held by this thread, which is not inside a chunk; the run is open.
                unsafe { team.drive(slot, token, chunks, scratch_bytes, body, || engine.call_helpers()) };
            }
            Some(token) => {
                // SAFETY: as above.
                (0..chunks).for_each(|i| unsafe { team.with_scratch(slot, token, scratch_bytes, |s| body(i, s)) });
            }
            None => {
                let _inside = InChunk::enter(slot);
                let mut raw = OWN_SCRATCH.take();
                let scratch = raw.at_least(scratch_bytes);
                (0..chunks).for_each(|i| body(i, scratch));
                OWN_SCRATCH.set(raw);
            }
        }
    }

    /// Whether a split made now could be helped by another core. If not, splitting only costs.
    pub fn helpers_possible(&self) -> bool {
        let slot = slot::current();
        self.engine().cores() > 1 && slot.split_depth.get() == 0 && slot.token(self.engine()).is_some()
    }

    /// Lets helpers find the run of this op; the engine closes it when the op's closure has ended.
    fn open_run(&self, token: usize) {
        if self.run_open.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.engine().sched.lock();
        // An op that was pushed inside another one and ran there uses the outer one's run.
        if !state.open_runs.contains(&token) {
            state.open_runs.push(token);
            self.engine().sched.team.take_part(token);
            self.run_open.store(true, Ordering::Relaxed);
        }
    }
}

impl Engine {
    /// Wakes a worker for a split if a core is idle; it wakes the next.
    fn call_helpers(&'static self) {
        if self.sched.tokens.any_free() {
            self.sched.kick(self);
        }
    }

    /// Ends the run of an op that has split something.
    #[cold]
    pub(crate) fn close_run(&self, slot: &Slot) {
        if let Some(token) = slot.token(self) {
            self.sched.team.runs[token].tag.store(END, Ordering::Release);
            self.sched.lock().open_runs.retain(|&t| t != token);
        }
    }
}
