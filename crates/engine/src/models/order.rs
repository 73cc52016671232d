//! Models of the order of accesses.

use super::*;
use crate::op::block::Mode;
use crate::sync::Lock;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::var::brief;

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

/// Kills `brief-access-beside-a-writer` and `brief-access-grants-nothing`.
#[test]
fn brief_accesses_and_ops_exclude_each_other() {
    model(|| {
        let (var, cell) = (Var::new(), Watched::new());
        let brief = |var: &Var, mode: Mode, body: &dyn Fn()| {
            if !brief::begin(var.inner(), mode) {
                return 0;
            }
            body();
            let mut ready = Chain::new();
            brief::end(var.inner(), mode, None, &mut ready);
            while let Some(op) = ready.take() {
                // SAFETY: a ready op, which this access has granted.
                unsafe { run(op) };
            }
            1
        };
        let other = {
            let (var, cell) = (var.clone(), cell.clone());
            thread::spawn(move || push(&[(&var, Access::Update)], adds(&cell)))
        };
        let written = brief(&var, Mode::Write, &|| cell.add(1));
        let seen = brief(&var, Mode::Read, &|| assert!(cell.get() <= 2));
        other.join().unwrap();
        assert!(seen <= 1);
        assert_eq!((cell.get(), var.version()), (1 + written, 1 + written));
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
                OpBlock::closure(op).cast::<ModelBody>().write(Box::new(|| None));
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
        let look = |cell: &Arc<Watched>| -> ModelBody {
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
        let digit = |n: usize| -> ModelBody {
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
struct Fixed(ModelBody);

// SAFETY: bodies of models hold loom's shared types only.
unsafe impl Send for Fixed {}

impl Fixed {
    fn body(self) -> ModelBody {
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

/// Kills `enqueue-not-atomic`: with places taken one after the other two pushes wait for each
/// other, or meet the variables in different orders.
#[test]
fn two_ops_meet_both_variables_in_one_order() {
    model(|| {
        let (a, b, ran) = (Var::new(), Var::new(), Arc::new(AtomicUsize::new(0)));
        let body = || -> ModelBody {
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
