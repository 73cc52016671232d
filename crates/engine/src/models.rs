//! Models of the protocol, run under loom over the production types:
//! `RUSTFLAGS="--cfg loom" cargo test -p mxrt-engine --lib --release`.

use crate::block::{Chain, Class, OpBlock};
use crate::bulk::{Bulks, Collection};
use crate::cancel::every_write_cancelled;
use crate::complete::inherited;
use crate::ctx::{RUN_RETURNED, TOKEN_USED, second_to_leave};
use crate::failure::{Failure, FailureKind, OpError};
use crate::protocol::{Verdict, register, release};
use crate::slot::Counts;
use crate::spec::{Access, OpSpec};
use crate::sync::Lock;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::team::{Job, Run};
use crate::tokens::Tokens;
use crate::var::{Var, live_vars};
use crate::wait_all::{Epochs, missing};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use std::mem::MaybeUninit;

/// Bounded so that all models together take minutes; `LOOM_MAX_PREEMPTIONS` makes them deeper. One at a time: some count
/// what exists in the process.
pub(crate) fn model(f: impl Fn() + Send + Sync + 'static) {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(f);
}

/// What an op of a model does with its variables.
pub(crate) type Body = Box<dyn Fn() -> Option<Failure>>;

/// Pushes an op the way the engine does, with the protocol's own functions; ready ops run here.
pub(crate) fn push(vars: &[(&Var, Access)], body: Body) {
    let op = Box::into_raw(Box::new(MaybeUninit::<OpBlock>::uninit())).cast::<OpBlock>();
    // SAFETY: a fresh block that is ours; the variables' handles live during the call.
    unsafe {
        OpBlock::fill(op, &OpSpec::new("model", vars), Class::Strict);
        OpBlock::closure(op).cast::<Body>().write(body);
        if register(op, || {}) {
            run(op);
        }
    }
}

pub(crate) unsafe fn run(first: *mut OpBlock) {
    let mut ready = Chain::new();
    // SAFETY: a ready op of the caller.
    unsafe { ready.add(first) };
    while let Some(op) = ready.take() {
        // SAFETY: ready ops are ours; what lies at the closure's place is the model's body.
        unsafe {
            let body = OpBlock::closure(op).cast::<Body>().read();
            let all = inherited(op).or_else(|| body());
            release(op, &Verdict { all, single: &[] }, true, &mut ready);
            OpBlock::clear(op);
            drop(Box::from_raw(op.cast::<MaybeUninit<OpBlock>>()));
        }
    }
}

pub(crate) fn failure() -> Failure {
    Failure::new((*OpError::new(FailureKind::Operator, "model")).clone())
}

/// A cell that loom watches: unordered accesses are reported.
pub(crate) struct Watched(UnsafeCell<u64>);

// SAFETY: loom reports what the engine does not order.
unsafe impl Sync for Watched {}
// SAFETY: as above.
unsafe impl Send for Watched {}

impl Watched {
    pub fn new() -> Arc<Self> {
        Arc::new(Watched(UnsafeCell::new(0)))
    }
    pub fn add(&self, n: u64) {
        // SAFETY: loom checks that nobody else accesses the cell.
        self.0.with_mut(|p| unsafe { *p += n });
    }
    pub fn get(&self) -> u64 {
        // SAFETY: loom checks that nobody writes the cell.
        self.0.with(|p| unsafe { *p })
    }
}

pub(crate) fn adds(cell: &Arc<Watched>) -> Body {
    let cell = cell.clone();
    Box::new(move || {
        cell.add(1);
        None
    })
}

/// Kills `weak-unlock`.
#[test]
fn the_lock_excludes_and_publishes() {
    model(|| {
        let (lock, cell) = (Arc::new(Lock::new()), Watched::new());
        let other = {
            let (lock, cell) = (lock.clone(), cell.clone());
            thread::spawn(move || {
                lock.lock();
                cell.add(1);
                lock.unlock();
            })
        };
        lock.lock();
        cell.add(1);
        lock.unlock();
        other.join().unwrap();
        assert_eq!(cell.get(), 2);
    });
}

/// Kills `second-writer-shares`.
#[test]
fn writes_from_two_threads_run_alone_and_all_run() {
    model(|| {
        let (var, cell) = (Var::new(), Watched::new());
        let other = {
            let (var, cell) = (var.clone(), cell.clone());
            thread::spawn(move || push(&[(&var, Access::Update)], adds(&cell)))
        };
        push(&[(&var, Access::Write)], adds(&cell));
        other.join().unwrap();
        assert_eq!((cell.get(), var.version()), (2, 2));
    });
}

/// Kills `write-over-running-reads`.
#[test]
fn a_reader_between_two_writers_sees_whole_writes() {
    model(|| {
        let (var, cell) = (Var::new(), Watched::new());
        let other = {
            let (var, cell) = (var.clone(), cell.clone());
            thread::spawn(move || {
                let seen = cell.clone();
                push(
                    &[(&var, Access::Read)],
                    Box::new(move || {
                        assert!(seen.get() <= 2);
                        None
                    }),
                );
            })
        };
        push(&[(&var, Access::Write)], adds(&cell));
        push(&[(&var, Access::Write)], adds(&cell));
        other.join().unwrap();
        assert_eq!((cell.get(), var.version()), (2, 2));
    });
}

/// Kills `enqueue-not-atomic`.
#[test]
fn crossed_pushes_over_two_variables_both_complete() {
    model(|| {
        let (a, b, cell) = (Var::new(), Var::new(), Watched::new());
        let other = {
            let (a, b, cell) = (a.clone(), b.clone(), cell.clone());
            thread::spawn(move || push(&[(&b, Access::Update), (&a, Access::Update)], adds(&cell)))
        };
        push(&[(&a, Access::Update), (&b, Access::Update)], adds(&cell));
        other.join().unwrap();
        assert_eq!((cell.get(), a.version(), b.version()), (2, 2, 2));
    });
}

/// Kills `last-grant-not-atomic`.
#[test]
fn two_last_grants_start_an_op_once() {
    model(|| {
        let (a, b, cell) = (Var::new(), Var::new(), Watched::new());
        // Both variables are busy; two threads give them back while the third op waits for both.
        let busy = |var: &Var| -> usize {
            let op = Box::into_raw(Box::new(MaybeUninit::<OpBlock>::uninit())).cast::<OpBlock>();
            // SAFETY: a fresh block that is ours.
            unsafe {
                OpBlock::fill(op, &OpSpec::new("busy", &[(var, Access::Write)]), Class::Strict);
                OpBlock::closure(op).cast::<Body>().write(Box::new(|| None));
                assert!(register(op, || {}));
            }
            op.expose_provenance()
        };
        let (first, second) = (busy(&a), busy(&b));
        push(&[(&a, Access::Read), (&b, Access::Update)], adds(&cell));
        // SAFETY: ready ops, each given to one thread.
        let other = thread::spawn(move || unsafe { run(std::ptr::with_exposed_provenance_mut(first)) });
        // SAFETY: as above.
        unsafe { run(std::ptr::with_exposed_provenance_mut(second)) };
        other.join().unwrap();
        assert_eq!(cell.get(), 1);
    });
}

/// Kills `whole-write-does-not-heal`.
#[test]
fn a_failure_reaches_whoever_comes_after_it() {
    model(|| {
        let (var, out, ran) = (Var::new(), Var::new(), Watched::new());
        push(&[(&var, Access::Write)], Box::new(|| Some(failure())));
        let other = {
            let (var, out, ran) = (var.clone(), out.clone(), ran.clone());
            thread::spawn(move || push(&[(&var, Access::Read), (&out, Access::Write)], adds(&ran)))
        };
        push(&[(&var, Access::Write)], Box::new(|| None));
        other.join().unwrap();
        // The reader came before the healing write and inherited, or after it and ran.
        assert_eq!(out.failure().is_none(), ran.get() == 1);
        assert!(var.failure().is_none());
    });
}

#[test]
fn a_variable_dropped_while_its_last_access_completes_is_freed_once() {
    model(|| {
        let before = live_vars();
        let (var, cell) = (Var::new(), Watched::new());
        let other = {
            let (var, cell) = (var.clone(), cell.clone());
            thread::spawn(move || push(&[(&var, Access::Write)], adds(&cell)))
        };
        push(&[(&var, Access::Read)], Box::new(|| None));
        drop(var);
        other.join().unwrap();
        assert_eq!((live_vars(), cell.get()), (before, 1));
    });
}

/// Kills `async-completes-twice`.
#[test]
fn of_run_and_token_exactly_one_completes_the_op() {
    model(|| {
        let block = Arc::new(Block::new());
        let completed = Arc::new(AtomicUsize::new(0));
        let leave = |state| {
            let (block, completed) = (block.clone(), completed.clone());
            move || {
                // SAFETY: the block outlives both.
                if unsafe { second_to_leave(block.0, state) } {
                    completed.fetch_add(1, Ordering::Relaxed);
                }
            }
        };
        let token = thread::spawn(leave(TOKEN_USED));
        leave(RUN_RETURNED)();
        token.join().unwrap();
        assert_eq!(completed.load(Ordering::Relaxed), 1);
    });
}

struct Block(*mut OpBlock);

// SAFETY: only its counter is used, which is atomic.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    fn new() -> Self {
        let op = Box::into_raw(Box::new(MaybeUninit::<OpBlock>::uninit())).cast::<OpBlock>();
        // SAFETY: a fresh block that is ours.
        unsafe { OpBlock::fill(op, &OpSpec::new("async", &[]), Class::Async) };
        Block(op)
    }
}

/// Kills `token-taken-by-two`.
#[test]
fn a_token_has_one_holder() {
    model(|| {
        let (tokens, cell) = (Arc::new(Tokens::new(1)), Watched::new());
        let work = {
            let (tokens, cell) = (tokens.clone(), cell.clone());
            move || {
                if let Some(token) = tokens.take_near(0) {
                    cell.add(1);
                    tokens.put(token);
                }
            }
        };
        let other = thread::spawn(work.clone());
        work();
        other.join().unwrap();
        assert_eq!(tokens.take_near(0), Some(0));
        assert!(cell.get() >= 1);
    });
}

/// Kills `stale-claim-succeeds` and `chunk-taken-twice`.
#[test]
fn chunks_are_taken_once_and_the_body_is_used_only_while_the_split_lasts() {
    model(|| {
        let run = Arc::new(Run::new(2));
        let hits: Arc<Vec<AtomicUsize>> = Arc::new((0..4).map(|_| AtomicUsize::new(0)).collect());
        let body = |_: usize, _: &mut [u8]| {};
        let job = |first_chunk| Job::new(&body, first_chunk);
        let helper = {
            let (run, hits) = (run.clone(), hits.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    let tag = run.tag();
                    if tag == 0 {
                        continue;
                    }
                    if let Some(chunk) = run.claim(1, tag) {
                        // SAFETY: claimed and not counted yet.
                        let first = unsafe { run.first_chunk() };
                        hits[first + chunk].fetch_add(1, Ordering::Relaxed);
                        run.count_done();
                    }
                }
            })
        };
        for first in [0, 2] {
            // SAFETY: the round before was awaited.
            let tag = unsafe { run.publish(0, 2, job(first)) };
            let mut mine = 0;
            while let Some(chunk) = run.claim(0, tag) {
                hits[first + chunk].fetch_add(1, Ordering::Relaxed);
                mine += 1;
            }
            while !run.round_is_done(2 - mine) {
                thread::yield_now();
            }
        }
        helper.join().unwrap();
        assert!(hits.iter().all(|h| h.load(Ordering::Relaxed) == 1));
    });
}

/// Kills `look-misses-completions`.
#[test]
fn wait_all_is_told_by_the_last_completion() {
    model(|| {
        let epochs = Arc::new(Epochs::new());
        let counts: &'static [Counts; 2] = Box::leak(Box::default());
        let all: &'static [&'static Counts] = Box::leak(counts.iter().collect());
        let told = Arc::new(AtomicUsize::new(0));
        counts.iter().for_each(|c| c.pushed[0].store(1, Ordering::Release));
        let complete = |i: usize| {
            let (epochs, told) = (epochs.clone(), told.clone());
            move || {
                counts[i].completed[0].fetch_add(1, Ordering::SeqCst);
                if epochs.somebody_waits() && epochs.last_completion(0, || missing(all, 0)) {
                    told.fetch_add(1, Ordering::SeqCst);
                }
            }
        };
        let threads = [thread::spawn(complete(0)), thread::spawn(complete(1))];
        epochs.add_waiter();
        let drained = epochs.look(0, || missing(all, 0));
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert!(drained || told.load(Ordering::SeqCst) > 0, "the waiter would sleep for ever");
    });
}

/// Kills `pushed-summed-first`.
#[test]
fn wait_all_does_not_return_before_what_was_pushed_before_it() {
    model(|| {
        let epochs = Arc::new(Epochs::new());
        let counts: &'static Counts = Box::leak(Box::default());
        let all: &'static [&'static Counts] = Box::leak(Box::new([counts]));
        let done = Arc::new(AtomicUsize::new(0));
        // Pushed before: counted, not complete. Meanwhile another op is pushed and completed.
        counts.pushed[0].store(1, Ordering::Release);
        let finisher = {
            let done = done.clone();
            thread::spawn(move || {
                done.store(1, Ordering::Relaxed);
                counts.completed[0].fetch_add(1, Ordering::SeqCst);
            })
        };
        let pusher = thread::spawn(move || {
            counts.pushed[0].store(2, Ordering::Release);
            counts.completed[0].fetch_add(1, Ordering::SeqCst);
        });
        if epochs.look(0, || missing(all, 0)) {
            assert_eq!(done.load(Ordering::Relaxed), 1, "wait_all returned too early");
        }
        finisher.join().unwrap();
        pusher.join().unwrap();
    });
}

/// A ready op that nobody runs: only its way is of interest. Never freed.
fn loose_op() -> usize {
    let op = Box::into_raw(Box::new(MaybeUninit::<OpBlock>::uninit())).cast::<OpBlock>();
    // SAFETY: a fresh block that is ours.
    unsafe { OpBlock::fill(op, &OpSpec::new("loose", &[]), Class::Strict) };
    op.expose_provenance()
}

#[test]
fn nobody_sleeps_over_collected_ops() {
    model(|| {
        let shared = Arc::new((Bulks::new(), Collection::new(), AtomicUsize::new(0)));
        let hand_over = |shared: &(Bulks, Collection, AtomicUsize)| {
            let chain = shared.1.take(&shared.0, std::ptr::null());
            shared.2.fetch_add(chain.len, Ordering::Relaxed);
        };
        let pusher = {
            let shared = shared.clone();
            thread::spawn(move || {
                for _ in 0..2 {
                    let op = std::ptr::with_exposed_provenance_mut(loose_op());
                    // SAFETY: an op of this thread.
                    if unsafe { shared.1.add(&shared.0, std::ptr::null(), op) } {
                        hand_over(&shared);
                    }
                }
            })
        };
        if shared.0.begin_wait() {
            hand_over(&shared);
        }
        pusher.join().unwrap();
        // The waiter sleeps now: both ops must be on their way.
        assert_eq!(shared.2.load(Ordering::Relaxed), 2, "the waiter sleeps over a collected op");
    });
}

#[test]
fn a_collection_is_handed_over_once() {
    model(|| {
        let shared = Arc::new((Bulks::new(), Collection::new()));
        let op = std::ptr::with_exposed_provenance_mut(loose_op());
        // SAFETY: an op of this thread.
        unsafe { shared.1.add(&shared.0, std::ptr::null(), op) };
        let other = {
            let shared = shared.clone();
            thread::spawn(move || shared.1.take(&shared.0, std::ptr::null()).len)
        };
        let mine = shared.1.take(&shared.0, std::ptr::null()).len;
        assert_eq!(mine + other.join().unwrap(), 1);
        assert!(!shared.0.any_open());
    });
}

/// Registers a write as the engine does and returns it without running it.
fn granted_write(var: &Var) -> usize {
    let op = Box::into_raw(Box::new(MaybeUninit::<OpBlock>::uninit())).cast::<OpBlock>();
    // SAFETY: a fresh block that is ours.
    unsafe {
        OpBlock::fill(op, &OpSpec::new("write", &[(var, Access::Write)]), Class::Strict);
        OpBlock::closure(op).cast::<Body>().write(Box::new(|| None));
        assert!(register(op, || {}));
    }
    op.expose_provenance()
}

/// Kills `cancelling-reaches-later-writes`.
#[test]
fn a_cancellation_spares_what_is_pushed_after_it() {
    model(|| {
        let var = Var::new();
        let first = granted_write(&var);
        let finisher = {
            // SAFETY: a ready op, given to this thread.
            thread::spawn(move || unsafe { run(std::ptr::with_exposed_provenance_mut(first)) })
        };
        // Meanwhile the write ends, or does not.
        var.cancel_pushed_writes();
        finisher.join().unwrap();
        let later = granted_write(&var);
        // SAFETY: a granted op of this thread.
        unsafe {
            let later = std::ptr::with_exposed_provenance_mut(later);
            assert!(!every_write_cancelled(later), "a later write was cancelled");
            run(later);
        }
        assert_eq!(var.version(), 2);
    });
}

/// Kills `waiter-is-a-write-to-cancel`.
#[test]
fn a_waiter_for_writing_is_no_write_to_cancel() {
    model(|| {
        let var = Var::new();
        let op = std::ptr::with_exposed_provenance_mut::<OpBlock>(granted_write(&var)).expose_provenance();
        let waiter = {
            thread::spawn(move || {
                let mut ready = Chain::new();
                let op: *mut OpBlock = std::ptr::with_exposed_provenance_mut(op);
                // SAFETY: a granted op of this thread; completed as a waiter is, without a version.
                unsafe {
                    drop(OpBlock::closure(op).cast::<Body>().read());
                    release(op, &Verdict { all: None, single: &[] }, false, &mut ready);
                    OpBlock::clear(op);
                    drop(Box::from_raw(op.cast::<MaybeUninit<OpBlock>>()));
                }
            })
        };
        var.cancel_pushed_writes();
        waiter.join().unwrap();
        let later = granted_write(&var);
        // SAFETY: a granted op of this thread.
        unsafe {
            let later = std::ptr::with_exposed_provenance_mut(later);
            assert!(!every_write_cancelled(later), "the waiter was taken for a write");
            run(later);
        }
    });
}

#[test]
fn behind_a_gate_requests_see_whole_sets() {
    model(|| {
        let (gate, first, second) = (Var::new(), Watched::new(), Watched::new());
        let (a, b) = (Var::new(), Var::new());
        let reader = {
            let (gate, first, second) = (gate.clone(), first.clone(), second.clone());
            thread::spawn(move || {
                push(
                    &[(&gate, Access::Read)],
                    Box::new(move || {
                        assert_eq!(first.get(), second.get());
                        None
                    }),
                );
            })
        };
        let (x, y) = (first.clone(), second.clone());
        push(
            &[(&a, Access::Write), (&b, Access::Write), (&gate, Access::Write)],
            Box::new(move || {
                x.add(1);
                y.add(1);
                None
            }),
        );
        reader.join().unwrap();
        assert_eq!((first.get(), gate.version()), (1, 1));
    });
}

#[test]
fn two_requests_behind_a_gate_do_not_exclude_each_other() {
    model(|| {
        let (gate, value) = (Var::new(), Watched::new());
        let request = |gate: Var, value: Arc<Watched>| {
            move || {
                let out = Var::new();
                push(
                    &[(&gate, Access::Read), (&out, Access::Write)],
                    Box::new(move || {
                        value.get();
                        None
                    }),
                );
                // Granted and run within the push: another reader never makes it wait.
                assert_eq!(out.version(), 1);
            }
        };
        let other = thread::spawn(request(gate.clone(), value.clone()));
        request(gate.clone(), value.clone())();
        other.join().unwrap();
        push(&[(&gate, Access::Write)], adds(&value));
        assert_eq!(value.get(), 1);
    });
}

#[test]
fn reads_and_writes_of_two_threads_over_two_variables_all_run() {
    model(|| {
        let (a, b, cell) = (Var::new(), Var::new(), Watched::new());
        let other = {
            let (a, b, cell) = (a.clone(), b.clone(), cell.clone());
            thread::spawn(move || push(&[(&b, Access::Read), (&a, Access::Write)], adds(&cell)))
        };
        push(&[(&a, Access::Update), (&b, Access::Read)], adds(&cell));
        push(&[(&a, Access::Update)], adds(&cell));
        other.join().unwrap();
        assert_eq!((cell.get(), a.version(), b.version()), (3, 3, 0));
    });
}

#[test]
fn an_op_that_names_a_variable_twice_waits_for_it_once() {
    model(|| {
        let (var, cell) = (Var::new(), Watched::new());
        let other = {
            let (var, cell) = (var.clone(), cell.clone());
            thread::spawn(move || push(&[(&var, Access::Read), (&var, Access::Write)], adds(&cell)))
        };
        push(&[(&var, Access::Write), (&var, Access::Write)], adds(&cell));
        other.join().unwrap();
        assert_eq!((cell.get(), var.version()), (2, 2));
    });
}

#[test]
fn ops_with_more_variables_than_a_block_holds_cross_each_other() {
    model(|| {
        let vars: Arc<Vec<Var>> = Arc::new((0..10).map(|_| Var::new()).collect());
        let cell = Watched::new();
        let other = {
            let (vars, cell) = (vars.clone(), cell.clone());
            thread::spawn(move || {
                let accesses: Vec<_> = vars.iter().rev().map(|v| (v, Access::Update)).collect();
                push(&accesses, adds(&cell));
            })
        };
        push(&[(&vars[9], Access::Update), (&vars[0], Access::Update)], adds(&cell));
        other.join().unwrap();
        assert_eq!((cell.get(), vars[9].version(), vars[5].version()), (2, 2, 1));
    });
}

#[test]
fn a_partial_write_beside_a_whole_one_heals_only_in_its_place() {
    model(|| {
        let var = Var::new();
        push(&[(&var, Access::Write)], Box::new(|| Some(failure())));
        let ran = Watched::new();
        let other = {
            let (var, ran) = (var.clone(), ran.clone());
            thread::spawn(move || push(&[(&var, Access::Update)], adds(&ran)))
        };
        push(&[(&var, Access::Write)], Box::new(|| None));
        other.join().unwrap();
        // Before the whole write it is skipped and the write heals; after it it runs. Healthy either way.
        assert!(var.failure().is_none());
        assert!(ran.get() <= 1);
        assert_eq!(var.version(), 3);
    });
}

#[test]
fn a_failure_passes_through_a_chain_that_grows_meanwhile() {
    model(|| {
        let (a, b, c) = (Var::new(), Var::new(), Var::new());
        let other = {
            let (b, c) = (b.clone(), c.clone());
            thread::spawn(move || push(&[(&b, Access::Read), (&c, Access::Write)], Box::new(|| None)))
        };
        push(&[(&a, Access::Write)], Box::new(|| Some(failure())));
        push(&[(&a, Access::Read), (&b, Access::Write)], Box::new(|| panic!("ran on a failed input")));
        other.join().unwrap();
        let (from, to) = (b.failure().unwrap(), c.failure());
        assert!(a.failure().is_some_and(|f| f.same_event(&from)));
        assert!(to.is_none_or(|f| f.same_event(&from)));
    });
}

#[test]
fn single_outputs_fail_alone_while_their_readers_arrive() {
    model(|| {
        let (good, bad, out) = (Var::new(), Var::new(), Var::new());
        let op = granted(&[(&good, Access::Write), (&bad, Access::Write)]);
        let reader = {
            let (good, bad, out) = (good.clone(), bad.clone(), out.clone());
            thread::spawn(move || {
                push(&[(&good, Access::Update)], Box::new(|| None));
                push(&[(&bad, Access::Read), (&out, Access::Write)], Box::new(|| panic!("ran on a failed input")));
            })
        };
        complete(op, &[(1, failure())]);
        reader.join().unwrap();
        assert!(good.failure().is_none() && bad.failure().is_some() && out.failure().is_some());
    });
}

/// Registers an op that is granted at once, and returns it without running it.
fn granted(accesses: &[(&Var, Access)]) -> usize {
    let op = Box::into_raw(Box::new(MaybeUninit::<OpBlock>::uninit())).cast::<OpBlock>();
    // SAFETY: a fresh block that is ours.
    unsafe {
        OpBlock::fill(op, &OpSpec::new("granted", accesses), Class::Selective);
        assert!(register(op, || {}));
    }
    op.expose_provenance()
}

/// Completes such an op, and runs what becomes ready.
fn complete(op: usize, single: &[(usize, Failure)]) {
    let mut ready = Chain::new();
    // SAFETY: a granted op that is given to the caller.
    unsafe {
        let op: *mut OpBlock = std::ptr::with_exposed_provenance_mut(op);
        release(op, &Verdict { all: None, single }, true, &mut ready);
        OpBlock::clear(op);
        drop(Box::from_raw(op.cast::<MaybeUninit<OpBlock>>()));
        while let Some(op) = ready.take() {
            run(op);
        }
    }
}

#[test]
fn an_op_is_cancelled_only_when_all_its_results_are() {
    model(|| {
        let (a, b) = (Var::new(), Var::new());
        let op = granted(&[(&a, Access::Write), (&b, Access::Write)]);
        let other = {
            let a = a.clone();
            thread::spawn(move || a.cancel_pushed_writes())
        };
        // SAFETY: a granted op of this thread.
        let looks = || unsafe { every_write_cancelled(std::ptr::with_exposed_provenance_mut(op)) };
        assert!(!looks(), "one result is still wanted");
        other.join().unwrap();
        assert!(!looks());
        b.cancel_pushed_writes();
        assert!(looks());
        complete(op, &[]);
    });
}

#[test]
fn the_last_of_two_readers_lets_the_writer_in() {
    model(|| {
        let (var, cell) = (Var::new(), Watched::new());
        let readers = [granted(&[(&var, Access::Read)]), granted(&[(&var, Access::Read)])];
        push(&[(&var, Access::Write)], adds(&cell));
        assert_eq!(cell.get(), 0);
        let other = thread::spawn(move || complete(readers[0], &[]));
        complete(readers[1], &[]);
        other.join().unwrap();
        assert_eq!((cell.get(), var.version()), (1, 1));
    });
}

#[test]
fn the_last_handle_may_go_while_two_accesses_complete() {
    model(|| {
        let before = live_vars();
        let var = Var::new();
        let readers = [granted(&[(&var, Access::Read)]), granted(&[(&var, Access::Read)])];
        let other = thread::spawn(move || complete(readers[0], &[]));
        drop(var);
        complete(readers[1], &[]);
        other.join().unwrap();
        assert_eq!(live_vars(), before);
    });
}

#[test]
fn two_tokens_have_two_holders_and_no_third() {
    model(|| {
        let (tokens, inside) = (Arc::new(Tokens::new(2)), Arc::new(AtomicUsize::new(0)));
        let work = {
            let (tokens, inside) = (tokens.clone(), inside.clone());
            move |near| {
                if let Some(token) = tokens.take_near(near) {
                    assert!(inside.fetch_add(1, Ordering::Relaxed) < 2, "a third holder");
                    inside.fetch_sub(1, Ordering::Relaxed);
                    tokens.put(token);
                }
            }
        };
        let threads: Vec<_> = (0..2)
            .map(|i| {
                let work = work.clone();
                thread::spawn(move || work(i))
            })
            .collect();
        work(0);
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(tokens.free(), 2);
    });
}

#[test]
fn two_pushers_hand_over_everything_to_a_waiter() {
    model(|| {
        let shared = Arc::new((Bulks::new(), [Collection::new(), Collection::new()], AtomicUsize::new(0)));
        let hand_over = |shared: &(Bulks, [Collection; 2], AtomicUsize), i: usize| {
            let chain = shared.1[i].take(&shared.0, std::ptr::null());
            shared.2.fetch_add(chain.len, Ordering::Relaxed);
        };
        let pushers: Vec<_> = (0..2)
            .map(|i| {
                let shared = shared.clone();
                thread::spawn(move || {
                    let op = std::ptr::with_exposed_provenance_mut(loose_op());
                    // SAFETY: an op of this thread.
                    if unsafe { shared.1[i].add(&shared.0, std::ptr::null(), op) } {
                        hand_over(&shared, i);
                    }
                })
            })
            .collect();
        if shared.0.begin_wait() {
            hand_over(&shared, 0);
            hand_over(&shared, 1);
        }
        pushers.into_iter().for_each(|p| p.join().unwrap());
        assert_eq!(shared.2.load(Ordering::Relaxed), 2);
        shared.0.end_wait();
    });
}

#[test]
fn two_helpers_take_every_chunk_once() {
    model(|| {
        let run = Arc::new(Run::new(3));
        let hits: Arc<Vec<AtomicUsize>> = Arc::new((0..3).map(|_| AtomicUsize::new(0)).collect());
        let body = |_: usize, _: &mut [u8]| {};
        // SAFETY: no round is under way; this one is awaited below.
        let tag = unsafe { run.publish(0, 3, Job::new(&body, 0)) };
        let helpers: Vec<_> = (1..3)
            .map(|me| {
                let (run, hits) = (run.clone(), hits.clone());
                thread::spawn(move || {
                    if let Some(chunk) = run.claim(me, tag) {
                        hits[chunk].fetch_add(1, Ordering::Relaxed);
                        run.count_done();
                    }
                })
            })
            .collect();
        let mut mine = 0;
        while let Some(chunk) = run.claim(0, tag) {
            hits[chunk].fetch_add(1, Ordering::Relaxed);
            mine += 1;
        }
        while !run.round_is_done(3 - mine) {
            thread::yield_now();
        }
        helpers.into_iter().for_each(|h| h.join().unwrap());
        assert!(hits.iter().all(|h| h.load(Ordering::Relaxed) == 1));
    });
}
