//! Splitting the loop of one op over idle cores.
//!
//! Each token has a run ([`run`]). A participant takes chunks from the front of what was dealt to
//! it, and from the back of what was dealt to others when there is nothing left. The driver needs
//! no helper: what helpers do not take, it does itself.

use crate::engine::Engine;
use crate::memory::RawMemory;
use crate::op::ctx::RunCtx;
use crate::process::denormals::Flushing;
use crate::process::slot::{self, Slot};
use crate::sched::processors;
use crate::sync::atomic::Ordering;
use crate::sync::clock;
use crate::sync::{pause, yield_now};
use crossbeam_utils::CachePadded;
use run::{ChunkBody, Claim, Run, SplitJob};
use shares::Speeds;
use std::cell::{Cell, UnsafeCell};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicI32;
use std::time::{Duration, Instant};

mod limit;
#[cfg(all(test, loom))]
mod loom_team;
pub(crate) mod run;
mod shares;

pub use limit::{CoreLimit, Limited};

/// Participants of one split: bits of the member mask. Cores beyond that drive but do not help.
const MAX_MEMBERS: usize = 64;
/// A participant spins so long before it gives its core away between looks.
const SPIN: Duration = Duration::from_micros(200);
/// Others that have done nothing for so long may be waiting for the processor of the thread that
/// notices.
const PARTING: Duration = Duration::from_micros(200);
/// A helper that found no chunk for so long leaves.
const PATIENCE: Duration = Duration::from_millis(1);
/// Looks at the own seat between two looks at those of others.
const OWN_LOOKS: u32 = 32;

pub(crate) struct Team {
    /// Runs by token of the driver.
    runs: Box<[Run]>,
    /// Scratch memory by token, used by the token's holder.
    scratch: Box<[CachePadded<UnsafeCell<RawMemory>>]>,
    /// The thread that last took part in a run, by token.
    threads: Box<[CachePadded<AtomicI32>]>,
    speeds: Speeds,
}

// SAFETY: scratch belongs to the holder of the token.
unsafe impl Sync for Team {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for Team {}

impl Team {
    pub fn new(cores: usize) -> Self {
        let members = cores.min(MAX_MEMBERS);
        Team {
            runs: (0..cores).map(|_| Run::new(members)).collect(),
            scratch: (0..cores).map(|_| CachePadded::new(UnsafeCell::new(RawMemory::empty()))).collect(),
            threads: (0..cores).map(|_| CachePadded::new(AtomicI32::new(processors::NO_THREAD))).collect(),
            speeds: Speeds::new(members, processors::number().max(members)),
        }
    }

    /// Place of a token among the participants. Two tokens may share one: a place is only where a
    /// thread looks first.
    fn place(&self, token: usize) -> usize {
        token % self.runs.len().min(MAX_MEMBERS)
    }

    /// The run with the fewest helpers among these that has free chunks.
    pub fn neediest(&self, open: &[usize]) -> Option<usize> {
        open.iter().copied().filter(|&r| self.runs[r].wants_help()).min_by_key(|&r| self.runs[r].helpers())
    }

    /// Whether a helper would find something to do, as far as can be seen without the lock.
    pub fn any_chunks(&self) -> bool {
        self.runs.iter().any(Run::wants_help)
    }

    /// The bound of cores in which it takes a place, if the run has one.
    pub fn join(&self, run: usize, token: usize) -> Option<&'static CoreLimit> {
        self.runs[run].join(self.place(token));
        self.runs[run].limit.take()
    }

    /// This thread, which holds the token, drives a run or helps.
    fn take_part(&self, token: usize) {
        self.threads[token].store(processors::this_thread(), Ordering::Relaxed);
        self.is_here(token);
    }

    /// Notes on which processor this thread, which holds the token, is; where that cannot be known,
    /// it has one of its own.
    fn is_here(&self, token: usize) -> usize {
        let place = self.place(token);
        let processor = processors::here().unwrap_or(place);
        self.speeds.seen(place, processor);
        processor
    }

    pub fn leave(&self, run: usize, token: usize) {
        self.runs[run].leave(self.place(token));
    }

    /// Forgets helpers, in a forked child.
    pub fn forget_helpers(&self) {
        self.runs.iter().for_each(Run::forget_helpers);
    }

    /// Takes chunks of a run until it ends, a thread wants the core, or there has been nothing to
    /// do for a while.
    pub fn help(&self, slot: &Slot, run: usize, token: usize, wanted: impl Fn() -> bool) {
        let (driver, run, place) = (run, &self.runs[run], self.place(token));
        self.take_part(token);
        slot.op_depth.set(slot.op_depth.get() + 1);
        let mut idle = Idle::new();
        while run.is_open() && !wanted() {
            // While there is nothing, looks at what others hold would only keep them from it.
            let own = !idle.looks.is_multiple_of(OWN_LOOKS);
            if let Some(claim) = if own { run.claim_own(place) } else { run.claim(place) } {
                // Not for the whole time here: the next op of the driver may come meanwhile.
                let flushing = Flushing::begin();
                // SAFETY: claimed, the token is ours, and the chunk is counted below.
                unsafe { self.run_chunk(slot, run, claim, token) };
                drop(flushing);
                run.count_done(place);
                idle = Idle::new();
            } else if idle.wait(|| self.part(driver, token)) > PATIENCE {
                break;
            }
        }
        slot.op_depth.set(slot.op_depth.get() - 1);
    }

    /// Moves the other participants of a run, of which nothing has been heard for a while, if they
    /// wait for the processor of this thread, which holds a token: the system would leave the two
    /// together for milliseconds.
    #[cold]
    fn part(&self, driver: usize, token: usize) {
        let run = &self.runs[driver];
        for other in (0..self.threads.len()).filter(|o| *o != token) {
            let thread = self.threads[other].load(Ordering::Relaxed);
            if thread != processors::NO_THREAD && (other == driver || run.is_member(self.place(other))) {
                processors::keep_away(thread);
            }
        }
    }

    /// The driver has done a round, perhaps alone although it has helpers.
    fn notice(&self, run: &Run, token: usize, alone: bool) {
        if run.alone_since(alone).is_some_and(|since| since.elapsed() > PARTING) {
            run.forget_alone();
            self.part(token, token);
        }
    }

    /// # Safety
    /// The chunk was claimed and is not counted as done yet; the thread holds the token and is not
    /// inside a chunk.
    unsafe fn run_chunk(&self, slot: &Slot, run: &Run, Claim { chunk, job }: Claim, token: usize) {
        // SAFETY: contract: until the chunk is counted the driver waits for it, so the body stays.
        // The scratch belongs to the token's holder.
        let result = catch_unwind(AssertUnwindSafe(|| unsafe {
            self.with_scratch(slot, token, job.scratch_bytes, |s| (*job.body)(chunk, s));
        }));
        if let Err(payload) = result {
            run.keep_panic(chunk, payload);
        }
    }

    /// Calls `f` with the scratch memory of a token, as inside a chunk.
    ///
    /// # Safety
    /// The thread holds the token and is not inside a chunk.
    unsafe fn with_scratch(&self, slot: &Slot, token: usize, bytes: usize, f: impl FnOnce(&mut [u8])) {
        let _inside = InChunk::enter(slot);
        // SAFETY: contract: the holder of the token is the only one to touch its scratch, and does
        // so only here.
        let raw = unsafe { &mut *self.scratch[token].get() };
        f(raw.at_least(bytes));
    }

    /// Gives the scratch memory of a token back, and that of this thread.
    ///
    /// # Safety
    /// The thread holds the token and is not inside a chunk.
    pub unsafe fn drop_scratch(&self, token: usize) {
        // SAFETY: contract: the holder of the token is the only one to touch its scratch.
        unsafe { *self.scratch[token].get() = RawMemory::empty() };
        drop(OWN_SCRATCH.take());
    }

    /// Runs all chunks of a split, with helpers.
    ///
    /// # Safety
    /// The thread holds `token`, is not inside a chunk, and the token's run is open.
    unsafe fn drive(
        &self,
        slot: &Slot,
        token: usize,
        chunks: usize,
        scratch: usize,
        body: &ChunkBody<'_>,
        call: impl Fn(),
    ) {
        let (run, place) = (&self.runs[token], self.place(token));
        // SAFETY: the round before was awaited; this one is, before the body's borrow ends.
        unsafe { run.publish(place, chunks, SplitJob::new(body, scratch)) };
        call();
        let mut mine = 0;
        while let Some(claim) = run.claim(place) {
            // SAFETY: claimed, and counted in `mine`.
            unsafe { self.run_chunk(slot, run, claim, token) };
            mine += 1;
        }
        let mut idle = Idle::new();
        while !run.ends_with(chunks - mine) {
            idle.wait(|| self.part(token, token));
        }
        self.notice(run, token, mine == chunks);
        if let Some((_, payload)) = run.take_panic() {
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
    /// time at which to look for others on this processor
    parting: Duration,
}

impl Idle {
    fn new() -> Self {
        Idle { looks: 0, since: None, waited: Duration::ZERO, parting: SPIN }
    }

    /// Waits a moment; returns how long it has been. Calls `part` occasionally if it is long.
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
    static OWN_SCRATCH: Cell<RawMemory> = const { Cell::new(RawMemory::empty()) };
}

impl RunCtx<'_> {
    /// Runs `body(0..chunks)`, possibly on several cores, and returns when all are done. The second
    /// argument of `body` is scratch memory of `scratch_bytes` bytes, aligned to 64, with arbitrary
    /// content. The caller decides where the chunks begin and end, so results never depend on the
    /// number of helping cores. If chunks panic, the panic of the lowest one is raised again here
    /// after all have ended; a payload of type [`OpError`](crate::OpError) (by
    /// `std::panic::resume_unwind`) becomes the op's error unchanged. Inside a chunk, splits run
    /// serially. Large scratch memory counts as in use meanwhile.
    ///
    /// # Panics
    /// If there is no memory for the scratch, with an [`OpError`](crate::OpError) that becomes the
    /// op's failure.
    pub fn split(&self, chunks: usize, scratch_bytes: usize, body: &(dyn Fn(usize, &mut [u8]) + Sync)) {
        let slot = slot::current();
        let engine = self.engine();
        let token = slot.token(engine).filter(|_| slot.split_depth.get() == 0);
        let team = &engine.sched.team;
        let threads = token.map_or(1, |token| self.cores_of(token)).min(chunks);
        let _charge = engine.memory().charge_scratch(scratch_bytes, threads);
        match token {
            Some(token) if chunks > 1 && self.cores_of(token) > 1 => {
                self.open_run(token);
                // SAFETY: the token is held by this thread, which is not inside a chunk; the run is
                // open.
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

    /// Runs `body` on ranges that together are `0..units`, one for each core that may take part, as
    /// long as the speed that it had in such loops of late; none is longer than twice an even one
    /// of [`parallelism`](Self::parallelism). Units should take equally long. Everything else is as
    /// with [`split`](Self::split), whose chunks the ranges are.
    pub fn split_static(&self, units: usize, scratch_bytes: usize, body: &(dyn Fn(Range<usize>, &mut [u8]) + Sync)) {
        let (engine, token) = (self.engine(), slot::current().token(self.engine()));
        let parallelism = self.parallelism().min(units);
        let Some(token) = token.filter(|_| parallelism > 1) else {
            return self.split(units.min(1), scratch_bytes, &|_, scratch| body(0..units, scratch));
        };
        let team = &engine.sched.team;
        team.is_here(token);
        let shares = team.speeds.cut(team.runs[token].taking_part(team.place(token)), parallelism, units);
        self.split(parallelism, scratch_bytes, &|part, scratch| {
            let begin = clock::now();
            body(shares.range(part), scratch);
            let ticks = clock::now().saturating_sub(begin);
            let processor = slot::current().token(engine).map_or(usize::MAX, |token| team.is_here(token));
            shares.done(part, processor, ticks);
        });
        team.speeds.learn(&shares);
    }

    /// How many may take part in a split made now, this thread among them.
    pub fn parallelism(&self) -> usize {
        let slot = slot::current();
        let token = slot.token(self.engine()).filter(|_| slot.split_depth.get() == 0);
        token.map_or(1, |token| self.cores_of(token))
    }

    /// How many may take part in a split of the run of this token.
    fn cores_of(&self, token: usize) -> usize {
        let cores = self.engine().cores().min(MAX_MEMBERS);
        self.engine().sched.team.runs[token].limit.get().map_or(cores, |limit| limit.most().min(cores))
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
            self.engine().sched.team.runs[token].set_open(true);
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
            self.sched.team.runs[token].set_open(false);
            let mut state = self.sched.lock();
            state.open_runs.retain(|&t| t != token);
            // Without other runs there is nothing that this core could help.
            if !state.open_runs.is_empty() {
                state.kept.keep(token);
            }
        }
    }
}
