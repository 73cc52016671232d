//! Models of the order of accesses and of what failures do, over the production types.

use crate::block::{Chain, Class, OpBlock};
use crate::ctx::{RUN_RETURNED, TOKEN_USED, second_to_leave};
use crate::models::*;
use crate::protocol::{Verdict, register, release};
use crate::spec::{Access, OpSpec};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::var::{Var, live_vars};
use loom::sync::Arc;
use loom::thread;
use std::mem::MaybeUninit;

/// Registers an op that is granted at once and returns it without running it.
fn held(var: &Var, access: Access, body: Body) -> usize {
    let op = Box::into_raw(Box::new(MaybeUninit::<OpBlock>::uninit())).cast::<OpBlock>();
    // SAFETY: a fresh block that is ours; the handle lives during the call.
    unsafe {
        OpBlock::fill(op, &OpSpec::new("held", &[(var, access)]), Class::Strict);
        OpBlock::closure(op).cast::<Body>().write(body);
        assert!(register(op, || {}));
    }
    op.expose_provenance()
}

/// Runs a held op, in this thread.
fn finish(op: usize) {
    // SAFETY: a granted op, given to one thread.
    unsafe { run(std::ptr::with_exposed_provenance_mut(op)) }
}

fn nothing() -> Body {
    Box::new(|| None)
}

fn fails() -> Body {
    Box::new(|| Some(failure()))
}

/// Kills `read-overtakes-queued-write`.
#[test]
fn a_read_behind_a_queued_write_sees_it() {
    model(|| {
        let (var, cell) = (Var::new(), Watched::new());
        let first = held(&var, Access::Read, nothing());
        let finisher = thread::spawn(move || finish(first));
        push(&[(&var, Access::Write)], adds(&cell));
        let seen = cell.clone();
        let look = Box::new(move || {
            assert_eq!(seen.get(), 1, "the read overtook the write");
            None
        });
        push(&[(&var, Access::Read)], look);
        finisher.join().unwrap();
        assert_eq!((cell.get(), var.version()), (1, 1));
    });
}

/// Kills `write-before-last-read` and `write-over-running-reads`.
#[test]
fn a_write_waits_for_every_read() {
    model(|| {
        let (var, cell) = (Var::new(), Watched::new());
        let look = |cell: &Arc<Watched>| -> Body {
            let seen = cell.clone();
            Box::new(move || {
                assert_eq!(seen.get(), 0);
                None
            })
        };
        let (one, two) = (held(&var, Access::Read, look(&cell)), held(&var, Access::Read, look(&cell)));
        let first = thread::spawn(move || finish(one));
        push(&[(&var, Access::Write)], adds(&cell));
        finish(two);
        first.join().unwrap();
        assert_eq!(cell.get(), 1);
    });
}

/// Kills `counter-after-unlock`.
#[test]
fn all_reads_behind_a_write_are_released() {
    model(|| {
        let (var, cell, met) = (Var::new(), Watched::new(), Arc::new(AtomicUsize::new(0)));
        let write = held(&var, Access::Write, adds(&cell));
        let finisher = thread::spawn(move || finish(write));
        for _ in 0..2 {
            let (seen, met) = (cell.clone(), met.clone());
            let look = Box::new(move || {
                assert_eq!(seen.get(), 1);
                met.fetch_add(1, Ordering::Relaxed);
                None
            });
            push(&[(&var, Access::Read)], look);
        }
        finisher.join().unwrap();
        assert_eq!(met.load(Ordering::Relaxed), 2, "a read was left in the queue");
    });
}

/// Kills `second-writer-shares`.
#[test]
fn writes_of_one_thread_keep_their_order() {
    model(|| {
        let (var, log) = (Var::new(), Arc::new(AtomicUsize::new(0)));
        let digit = |n: usize| -> Body {
            let log = log.clone();
            Box::new(move || {
                // Not atomic as a whole: the engine has to order it.
                let before = log.load(Ordering::Relaxed);
                log.store(before * 10 + n, Ordering::Relaxed);
                None
            })
        };
        let other = {
            let (var, third) = (var.clone(), digit(3));
            let third = Fixed(third);
            thread::spawn(move || push(&[(&var, Access::Write)], third.body()))
        };
        push(&[(&var, Access::Write)], digit(1));
        push(&[(&var, Access::Update)], digit(2));
        other.join().unwrap();
        let seen = log.load(Ordering::Relaxed);
        assert!([123, 132, 312].contains(&seen), "order of writes: {seen}");
    });
}

/// A body that is made in one thread and pushed by another.
struct Fixed(Body);

// SAFETY: bodies of models hold loom's shared types only.
unsafe impl Send for Fixed {}

impl Fixed {
    fn body(self) -> Body {
        self.0
    }
}

/// Kills `unsorted-locks-few-variables`.
#[test]
fn a_cycle_of_pushes_over_three_variables_ends() {
    model(|| {
        let vars = [Var::new(), Var::new(), Var::new()];
        let count = Arc::new(AtomicUsize::new(0));
        let pusher = |i: usize| {
            let (a, b, count) = (vars[i].clone(), vars[(i + 1) % 3].clone(), count.clone());
            move || {
                let body = Box::new(move || {
                    count.fetch_add(1, Ordering::Relaxed);
                    None
                });
                push(&[(&a, Access::Update), (&b, Access::Update)], body);
            }
        };
        let other = thread::spawn(pusher(1));
        pusher(0)();
        pusher(2)();
        other.join().unwrap();
        assert_eq!(count.load(Ordering::Relaxed), 3);
        assert!(vars.iter().all(|v| v.version() == 2));
    });
}

/// Kills `enqueue-not-atomic`: with places taken one after the other two pushes wait for each other, or meet the variables
/// in different orders.
#[test]
fn two_ops_meet_both_variables_in_one_order() {
    model(|| {
        let (a, b, ran) = (Var::new(), Var::new(), Arc::new(AtomicUsize::new(0)));
        let body = || -> Body {
            let (a, b, ran) = (a.clone(), b.clone(), ran.clone());
            Box::new(move || {
                // SAFETY: both variables are granted to the op that runs this.
                let versions = unsafe { (*a.inner().version.get(), *b.inner().version.get()) };
                assert_eq!(versions.0, versions.1, "the ops met the variables in different orders");
                ran.fetch_add(1, Ordering::Relaxed);
                None
            })
        };
        let other = {
            let (a, b, body) = (a.clone(), b.clone(), Fixed(body()));
            thread::spawn(move || push(&[(&b, Access::Update), (&a, Access::Update)], body.body()))
        };
        push(&[(&a, Access::Update), (&b, Access::Update)], body());
        other.join().unwrap();
        assert_eq!(ran.load(Ordering::Relaxed), 2, "two pushes wait for each other");
    });
}

/// Kills `duplicate-keeps-first-access`.
#[test]
fn a_variable_declared_twice_is_written_alone() {
    model(|| {
        let (var, cell) = (Var::new(), Watched::new());
        let other = {
            let (var, cell) = (var.clone(), cell.clone());
            thread::spawn(move || push(&[(&var, Access::Read), (&var, Access::Write)], adds(&cell)))
        };
        push(&[(&var, Access::Update)], adds(&cell));
        other.join().unwrap();
        assert_eq!((cell.get(), var.version()), (2, 2));
    });
}

/// Kills `nothing-inherited` and `failure-not-stored`.
#[test]
fn a_failure_goes_through_a_chain_as_one_event() {
    model(|| {
        let (x, y, z) = (Var::new(), Var::new(), Var::new());
        let bad = held(&x, Access::Write, fails());
        let finisher = thread::spawn(move || finish(bad));
        push(&[(&x, Access::Read), (&y, Access::Write)], nothing());
        push(&[(&y, Access::Read), (&z, Access::Write)], nothing());
        finisher.join().unwrap();
        let [fx, fy, fz] = [&x, &y, &z].map(|v| v.failure().expect("a dependant of a failed op is clean"));
        assert!(fx.same_event(&fy) && fx.same_event(&fz));
    });
}

/// Kills `last-failed-input-inherited`.
#[test]
fn of_two_failures_the_first_declared_is_inherited_whichever_comes_first() {
    model(|| {
        let (x, y, out) = (Var::new(), Var::new(), Var::new());
        let (one, two) = (held(&x, Access::Write, fails()), held(&y, Access::Write, fails()));
        push(&[(&y, Access::Read), (&x, Access::Read), (&out, Access::Write)], nothing());
        let finisher = thread::spawn(move || finish(one));
        finish(two);
        finisher.join().unwrap();
        assert!(out.failure().unwrap().same_event(&y.failure().unwrap()));
    });
}

/// Kills `whole-write-does-not-heal`.
#[test]
fn a_whole_write_heals_whatever_else_is_pushed() {
    model(|| {
        let var = Var::new();
        let bad = held(&var, Access::Write, fails());
        let finisher = thread::spawn(move || finish(bad));
        push(&[(&var, Access::Update)], nothing());
        let kept = var.clone();
        let look = Box::new(move || {
            // SAFETY: the variable is granted to this op.
            assert!(unsafe { (*kept.inner().failure.get()).is_some() }, "a partial write healed");
            None
        });
        push(&[(&var, Access::Write)], look);
        finisher.join().unwrap();
        assert!(var.failure().is_none() && var.version() == 3);
    });
}

/// Kills `reader-poisons-parameters`.
#[test]
fn a_failing_reader_leaves_the_parameter_and_other_readers_alone() {
    model(|| {
        let (parameter, bad, good) = (Var::new(), Var::new(), Var::new());
        let other = {
            let (parameter, bad) = (parameter.clone(), bad.clone());
            thread::spawn(move || push(&[(&parameter, Access::Read), (&bad, Access::Write)], fails()))
        };
        push(&[(&parameter, Access::Read), (&good, Access::Write)], nothing());
        other.join().unwrap();
        assert!(parameter.failure().is_none() && good.failure().is_none() && bad.failure().is_some());
    });
}

/// Kills `handles-not-atomic`.
#[test]
fn of_two_last_handles_one_frees_the_variable() {
    model(|| {
        let before = live_vars();
        let var = Var::new();
        let other = {
            let var = var.clone();
            thread::spawn(move || drop(var))
        };
        drop(var);
        other.join().unwrap();
        assert_eq!(live_vars(), before);
    });
}

/// Kills `orphan-leaks`.
#[test]
fn a_dropped_variable_with_a_queue_is_freed_by_its_last_op() {
    model(|| {
        let before = live_vars();
        let (var, cell) = (Var::new(), Watched::new());
        let first = held(&var, Access::Read, nothing());
        push(&[(&var, Access::Write)], adds(&cell));
        let finisher = thread::spawn(move || finish(first));
        drop(var);
        finisher.join().unwrap();
        assert_eq!((live_vars(), cell.get()), (before, 1));
    });
}

/// A wait looks under the lock, and otherwise queues a notification. Kills `wait-answers-too-early` in its model form: an
/// answer given while the write was running would race with it.
#[test]
fn a_waiter_sees_the_value_or_is_told() {
    model(|| {
        let (var, cell, told) = (Var::new(), Watched::new(), Arc::new(AtomicUsize::new(0)));
        let write = held(&var, Access::Write, adds(&cell));
        let finisher = thread::spawn(move || finish(write));
        if var.locked(|state, _| state.open_to(crate::block::Mode::Read)) {
            assert_eq!(cell.get(), 1, "the wait answered before the write had ended");
        } else {
            let (seen, tell) = (cell.clone(), told.clone());
            let notify = Box::new(move || {
                assert_eq!(seen.get(), 1);
                tell.fetch_add(1, Ordering::Relaxed);
                None
            });
            push(&[(&var, Access::Read)], notify);
            finisher.join().unwrap();
            assert_eq!(told.load(Ordering::Relaxed), 1, "the waiter sleeps for ever");
            return;
        }
        finisher.join().unwrap();
    });
}

/// Kills `async-completes-twice`, `async-completes-with-its-run` and `async-handover-relaxed`.
#[test]
fn an_async_op_gives_its_variable_back_when_run_and_token_have_left() {
    model(|| {
        let (var, by_run, by_token) = (Var::new(), Watched::new(), Watched::new());
        let op = held(&var, Access::Write, nothing());
        let (run_part, token_part) = (by_run.clone(), by_token.clone());
        let next = Box::new(move || {
            assert_eq!((run_part.get(), token_part.get()), (1, 1), "the op was complete too early");
            None
        });
        push(&[(&var, Access::Update)], next);
        // SAFETY: the op is granted; its counter now belongs to run and token.
        unsafe { (*std::ptr::with_exposed_provenance_mut::<OpBlock>(op)).wait.store(0, Ordering::Relaxed) };
        let leave = move |part: Arc<Watched>, state: u32| {
            part.add(1);
            let op = std::ptr::with_exposed_provenance_mut::<OpBlock>(op);
            // SAFETY: run and token leave once each; the second owns the op.
            unsafe {
                if second_to_leave(op, state) {
                    let mut ready = Chain::new();
                    drop(OpBlock::closure(op).cast::<Body>().read());
                    release(op, &Verdict { all: None, single: &[] }, true, &mut ready);
                    OpBlock::clear(op);
                    drop(Box::from_raw(op.cast::<MaybeUninit<OpBlock>>()));
                    while let Some(op) = ready.take() {
                        run(op);
                    }
                }
            }
        };
        let part = by_token.clone();
        let token = thread::spawn(move || leave(part, TOKEN_USED));
        leave(by_run, RUN_RETURNED);
        token.join().unwrap();
        assert_eq!(var.version(), 2, "the op was completed twice, or never");
    });
}
