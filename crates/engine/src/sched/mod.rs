//! The pool: `cores` workers over the ready queues. A thread computes only with a core token.
//!
//! One lock guards queues, sleeping workers and open runs. Wake rule, applied after every change
//! and inside the lock: if no thread is searching and there is something to run or to help, wake
//! one worker; the one that finds work applies the rule again, so wakes spread one by one. A worker
//! goes to sleep inside the section in which it found nothing, so no wake is lost.

mod kept_cores;
pub(crate) mod parker;
pub(crate) mod processors;
pub(crate) mod queue;
pub(crate) mod tokens;
mod worker;

use crate::engine::Engine;
use crate::op::block::{Chain, OpBlock};
use crate::op::cancel::every_write_cancelled;
use crate::process::slot::{self, Slot};
use crate::process::start::start;
use crate::sched::kept_cores::KeptCores;
use crate::sched::parker::Parker;
use crate::sched::queue::Queues;
use crate::sched::tokens::Tokens;
use crate::sync::{Mutex, MutexGuard, pause, yield_now};
use crate::team::{CoreLimit, Team};
use crossbeam_utils::CachePadded;
use guests::Guests;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

mod guests;
mod inline_wait;

pub use guests::holds_core;

/// How long a worker looks for work before it sleeps: about a microsecond of pauses, then a few
/// yields. Together with "at most one searches" an idle engine burns nothing.
const SEARCH_PAUSES: u32 = 40;
const SEARCH_YIELDS: u32 = 20;
/// How long one looks whose last work came as soon: longer than a caller takes from one answer to
/// its next request (about 0.1 ms through Python).
const SOON: Duration = Duration::from_micros(300);
/// How long it leaves an op to a thread that may be about to wait for it and run it, and then waits
/// for that thread to split it.
const GRACE: Duration = Duration::from_micros(20);

/// How long an engine rests before it gives back what it keeps for the next request, in
/// milliseconds.
static GIVE_BACK_AFTER: AtomicU64 = AtomicU64::new(10_000);

/// Sets for how long nothing may run before memory that is kept for the next request (arenas,
/// scratch) goes back to the system; 10 seconds if this is not called. Afterwards an engine sleeps
/// without waking up.
pub fn set_give_back_after(rest: Duration) {
    GIVE_BACK_AFTER.store(rest.as_millis().try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
}

pub(crate) struct Sched {
    pub tokens: Tokens,
    state: CachePadded<Mutex<SchedState>>,
    /// Number of queued ops, kept outside the queues so that it can be read without the lock. It is
    /// stored under the lock. The load in `give_back` comes after the token is free, so a worker
    /// that saw no token has seen the op queued before (all of these are SeqCst except the store,
    /// which happens before the worker's look by the lock).
    queued: CachePadded<AtomicUsize>,
    /// Number of guests that wait for a core; changed under the lock. Used as `queued` is.
    guests: AtomicUsize,
    /// Milliseconds that a guest waits for a core.
    guest_patience: AtomicU64,
    pub team: Team,
    wakes: AtomicUsize,
    /// Jobs that workers have taken; changed under the lock.
    jobs: AtomicUsize,
}

pub(crate) struct SchedState {
    queues: Queues,
    workers: Vec<&'static Parker>,
    /// Numbers of workers whose threads the system has refused.
    not_started: Vec<usize>,
    parked: Vec<usize>,
    /// Workers that look for work, and those that were woken and have not looked yet.
    searching: usize,
    /// The worker that was woken last.
    woken: Option<&'static Parker>,
    /// Workers that exist.
    alive: usize,
    /// Tokens whose holder has opened its run to helpers.
    pub open_runs: Vec<usize>,
    pub kept: KeptCores,
    guests: Guests,
}

/// The decision of the wake rule; carried out after the lock is released.
#[must_use]
enum Wake {
    None,
    Worker(&'static Parker),
    Start(usize),
}

/// The state of the pool that `dump` prints.
pub(crate) struct Summary {
    pub workers: usize,
    pub asleep: usize,
    pub queued: usize,
}

enum WorkerJob {
    Run(*mut OpBlock),
    /// Ops whose deadline has passed.
    Late(Chain),
    /// a run, and the bound of cores in which the helper has a place
    Help(usize, Option<&'static CoreLimit>),
}

/// Whether a test wants the system to refuse a thread.
fn refused() -> bool {
    #[cfg(all(debug_assertions, not(loom)))]
    return crate::testing::refuses_threads();
    #[cfg(not(all(debug_assertions, not(loom))))]
    false
}

/// Looks until it is there, for so long at most; others may have the core in between.
fn look_for(time: Duration, found: impl Fn() -> bool) {
    let begin = Instant::now();
    while !found() && begin.elapsed() < time {
        (0..SEARCH_PAUSES).for_each(|_| pause());
        yield_now();
    }
}

impl Sched {
    pub fn new(cores: usize, per_device: bool) -> Self {
        Sched {
            tokens: Tokens::new(cores),
            state: CachePadded::new(Mutex::new(SchedState {
                queues: Queues::new(per_device),
                workers: Vec::new(),
                not_started: Vec::new(),
                parked: Vec::with_capacity(cores + 1),
                searching: 0,
                woken: None,
                alive: 0,
                open_runs: Vec::with_capacity(cores),
                kept: KeptCores::default(),
                guests: Guests::default(),
            })),
            queued: CachePadded::new(AtomicUsize::new(0)),
            guests: AtomicUsize::new(0),
            guest_patience: AtomicU64::new(guests::PATIENCE_MS),
            team: Team::new(cores),
            wakes: AtomicUsize::new(0),
            jobs: AtomicUsize::new(0),
        }
    }

    /// Whether nothing is queued, as far as can be seen without the lock.
    pub fn queue_is_empty(&self) -> bool {
        self.queued.load(Ordering::SeqCst) == 0
    }

    /// Numbers for `dump`.
    pub fn summary(&self) -> Summary {
        let state = self.lock();
        Summary { workers: state.alive, asleep: state.parked.len(), queued: state.queues.len() }
    }

    /// Names of the first queued ops, and how many more there are.
    pub fn queued_names(&self, most: usize) -> (Vec<String>, usize) {
        let state = self.lock();
        let names = state.queues.names(most);
        let more = state.queues.len() - names.len();
        (names, more)
    }

    /// How many wake-ups of sleeping workers there were.
    pub fn wakes(&self) -> usize {
        self.wakes.load(Ordering::Relaxed)
    }

    pub fn lock(&self) -> MutexGuard<'_, SchedState> {
        debug_assert!(slot::current().is_inside(), "a fork must not find the lock held");
        self.state.lock()
    }

    /// Queues ready ops and wakes at most one worker.
    ///
    /// # Safety
    /// The ops belong to the caller, which is inside the fork gate.
    #[inline]
    pub unsafe fn enqueue(&self, engine: &'static Engine, chain: Chain) {
        let mut state = self.lock();
        // SAFETY: contract.
        unsafe { state.queues.push(chain) };
        self.queued.store(state.queues.len(), Ordering::Release);
        let wake = self.wake_rule(&mut state);
        drop(state);
        self.carry_out(engine, wake);
    }

    /// Applies the wake rule: after a change outside, and before waiting in a process that may be a
    /// forked child.
    pub fn kick(&self, engine: &'static Engine) {
        let mut state = self.lock();
        self.seat_guests(&mut state, &mut None);
        let wake = self.wake_rule(&mut state);
        drop(state);
        self.carry_out(engine, wake);
    }

    /// Gives the token of an op that ran in its pusher back.
    pub fn give_back(&self, engine: &'static Engine, token: usize) {
        self.tokens.put(token);
        // A worker that found no token went to sleep although something was queued.
        if !self.queue_is_empty() || self.has_guests() {
            self.kick(engine);
        }
    }

    #[inline]
    fn wake_rule(&self, state: &mut SchedState) -> Wake {
        if state.searching > 0 || (state.queues.len() == 0 && self.run_to_help(state, None).is_none()) {
            return Wake::None;
        }
        if let Some(worker) = state.parked.pop() {
            state.searching += 1;
            state.woken = Some(state.workers[worker]);
            return Wake::Worker(state.workers[worker]);
        }
        if state.alive < self.tokens.len() {
            state.searching += 1;
            state.alive += 1;
            return Wake::Start(self.new_worker(state));
        }
        Wake::None
    }

    fn new_worker(&self, state: &mut SchedState) -> usize {
        state.not_started.pop().unwrap_or_else(|| {
            state.workers.push(Box::leak(Box::new(Parker::new())));
            state.workers.len() - 1
        })
    }

    /// A run with something to do for the holder of this token, or for one that takes a free token.
    fn run_to_help(&self, state: &mut SchedState, token: Option<usize>) -> Option<usize> {
        let free = self.tokens.free() + usize::from(token.is_some());
        if state.open_runs.is_empty() || free <= state.kept.count() {
            return None;
        }
        self.team.neediest(&state.open_runs)
    }

    #[inline]
    fn carry_out(&self, engine: &'static Engine, wake: Wake) {
        match wake {
            Wake::None => {}
            Wake::Worker(parker) => self.wake(engine, parker),
            Wake::Start(number) => self.start_worker(engine, number),
        }
    }

    #[cold]
    fn wake(&self, engine: &'static Engine, parker: &Parker) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
        // A thread that holds a token goes on computing.
        parker.wake(slot::current().token(engine).is_some());
    }

    #[cold]
    fn start_worker(&self, engine: &'static Engine, number: usize) {
        if !refused() && start(worker::name(number), move || engine.worker(number)).is_some() {
            return;
        }
        // The system gives no more threads, or no memory for one. The others do the work; without any, this one does.
        let mut state = self.lock();
        state.alive -= 1;
        state.searching -= 1;
        state.not_started.push(number);
        let alone = state.alive == 0;
        // While the start was under way no other worker was woken.
        let wake = if state.parked.is_empty() { Wake::None } else { self.wake_rule(&mut state) };
        drop(state);
        self.carry_out(engine, wake);
        if alone {
            engine.work_here();
        }
    }

    /// Takes an op off the queue, or finds a run to help; both need a token, which is taken here if
    /// there is none yet.
    fn next_job(&self, state: &mut SchedState, token: &mut Option<usize>) -> Option<WorkerJob> {
        self.seat_guests(state, token);
        if state.queues.len() > 0 {
            *token = token.or_else(|| self.tokens.take());
            (*token)?;
            // Callbacks have no waiting thread that looks at the clock.
            let late = self.take_late(state);
            if late.len > 0 {
                return Some(WorkerJob::Late(late));
            }
            let op = state.queues.pop();
            state.kept.release_one();
            state.guests.give_turn();
            self.seat_guests(state, &mut None);
            self.queued.store(state.queues.len(), Ordering::Release);
            self.jobs.store(self.jobs.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
            return op.map(WorkerJob::Run);
        }
        let run = self.run_to_help(state, *token)?;
        *token = token.or_else(|| self.tokens.take());
        let limit = self.team.join(run, (*token)?);
        self.jobs.store(self.jobs.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        Some(WorkerJob::Help(run, limit))
    }

    fn take_late(&self, state: &mut SchedState) -> Chain {
        let late = state.queues.take_late(Instant::now);
        if late.len > 0 {
            self.queued.store(state.queues.len(), Ordering::Release);
        }
        late
    }

    /// Takes the ops whose deadline has passed off the queue; they belong to the caller, which is
    /// inside the fork gate.
    pub fn take_late_ops(&self) -> Chain {
        self.take_late(&mut self.lock())
    }

    /// Takes the ops off the queue that are not wanted any more; they belong to the caller, which
    /// is inside the fork gate.
    pub fn take_cancelled_ops(&self) -> Chain {
        let mut state = self.lock();
        // SAFETY: all accesses of a queued op are granted, and no thread completes it while the
        // lock is held.
        let gone = state.queues.take_out(|op| unsafe { (*op).class.can_be_cancelled() && every_write_cancelled(op) });
        self.queued.store(state.queues.len(), Ordering::Release);
        gone
    }

    /// Runs `f`, which may queue ops, without waking or starting a thread: a forked child starts
    /// threads when it first uses the engine, not within `fork`.
    pub fn quietly(&self, f: impl FnOnce()) {
        // A worker that searches is one that need not be woken.
        self.lock().searching += 1;
        f();
        self.lock().searching -= 1;
    }

    /// Takes a worker that no thread has woken off the sleeping ones.
    fn leave_parked(&self, slot: &Slot, worker: usize) -> bool {
        slot.enter();
        let parked = &mut self.lock().parked;
        let place = parked.iter().position(|&w| w == worker);
        let found = place.map(|p| parked.remove(p)).is_some();
        slot.exit();
        found
    }

    /// Sleeps; true if nothing ran meanwhile for so long that what is kept for the next request may
    /// go.
    fn slept_without_jobs(&self, parker: &Parker) -> bool {
        let rest = Duration::from_millis(GIVE_BACK_AFTER.load(Ordering::Relaxed));
        let jobs = self.jobs.load(Ordering::Relaxed);
        !parker.is_woken_within(rest) && self.jobs.load(Ordering::Relaxed) == jobs
    }

    /// Forgets the workers, in a forked child, where they do not exist. `own`: the token of the
    /// forking thread.
    pub fn forget_workers(&self, own: Option<usize>) {
        let mut state = self.lock();
        state.parked.clear();
        state.searching = 0;
        state.woken = None;
        state.alive = 0;
        self.forget_guests(&mut state);
        state.open_runs.retain(|&run| Some(run) == own);
        self.team.forget_helpers();
        self.tokens.reset(own);
    }
}

impl Engine {
    /// Workers woken so far, for tests of the wake rule.
    pub fn wakes(&self) -> usize {
        self.sched.wakes()
    }

    /// Gives the system what is kept for the next request: cached blocks and the scratch memory of
    /// cores at rest.
    fn give_back_memory(&'static self) {
        let slot = slot::current();
        slot.enter();
        let tokens: Vec<usize> = std::iter::from_fn(|| self.sched.tokens.take()).collect();
        for token in tokens {
            // SAFETY: the token is held by this thread, which is not inside a chunk.
            unsafe { self.sched.team.drop_scratch(token) };
            self.sched.give_back(self, token);
        }
        slot.exit();
        self.memory().trim();
    }

    fn do_job(&'static self, slot: &'static Slot, job: WorkerJob, token: usize, wake: Wake) {
        let before = slot.hold_token(self, token);
        self.sched.carry_out(self, wake);
        match job {
            WorkerJob::Run(op) => {
                let mut ready = Chain::new();
                // SAFETY: the op came off the queue, so it is ready and ours; we are inside the
                // gate.
                unsafe {
                    self.execute(slot, op, &mut ready);
                    self.publish(slot, ready);
                }
            }
            // SAFETY: as above.
            WorkerJob::Late(ops) => unsafe { self.complete_unrun(slot, ops) },
            WorkerJob::Help(run, limit) => {
                let wanted = || {
                    !self.sched.queue_is_empty() || self.sched.has_guests() || limit.is_some_and(CoreLimit::is_exceeded)
                };
                self.sched.team.help(slot, run, token, wanted);
                self.sched.team.leave(run, token);
                limit.inspect(|limit| limit.give_back());
            }
        }
        slot.restore_token(before);
    }

    /// Looks for queued ops and for runs to help, without the lock: for a moment, or if more is to
    /// come soon for longer, unless a thread computes.
    fn search(&self, slot: &Slot, soon: bool) {
        let found = || !self.sched.queue_is_empty() || self.sched.team.any_chunks();
        for i in 0..SEARCH_PAUSES + SEARCH_YIELDS {
            if found() {
                break;
            }
            if i < SEARCH_PAUSES { pause() } else { yield_now() }
        }
        let (free, cores) = (self.sched.tokens.free(), self.sched.tokens.len());
        // On the only core it would be in the way.
        if soon && cores > 1 && free == cores {
            look_for(SOON, found);
            // No fork while the lock is held.
            slot.enter();
            let next_is_for_waiter = self.sched.next_is_for_waiter();
            slot.exit();
            if next_is_for_waiter {
                look_for(GRACE, || self.sched.queue_is_empty());
                // It may be one that can be helped.
                look_for(GRACE, found);
            }
        }
    }

    /// Runs everything that is queued in this thread: the system gave us no worker.
    fn work_here(&'static self) {
        let slot = slot::current();
        slot.enter();
        let mut token = None;
        loop {
            let job = self.sched.next_job(&mut self.sched.lock(), &mut token);
            let (Some(job), Some(token)) = (job, token) else { break };
            self.do_job(slot, job, token, Wake::None);
        }
        if let Some(token) = token {
            self.sched.tokens.put(token);
            self.sched.seat_guests(&mut self.sched.lock(), &mut None);
        }
        slot.exit();
    }
}
