//! Guards held outside of ops, and ops that are cancelled or late.

use crate::common::*;
use mxrt_engine::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// An op that keeps the variable busy until the returned token is used.
fn hold(engine: &'static Engine, var: &Var) -> OnComplete {
    let (send, receive) = std::sync::mpsc::channel();
    engine.push_async(OpSpec::new("hold", &[(var, Access::Write)]), move |_, token| send.send(token).unwrap());
    receive.recv_timeout(Duration::from_secs(60)).unwrap()
}

#[test]
fn a_read_guard_sees_what_was_written_and_keeps_writers_away() {
    let _guard = watchdog(60);
    for engine in every_kind() {
        let (var, ran) = (engine.new_var(), Arc::new(AtomicUsize::new(0)));
        engine.push(OpSpec::new("before", &[(&var, Access::Write)]), adds(&ran));
        let first = engine.read_guard(&var).unwrap();
        assert_eq!(ran.load(SeqCst), 1);
        let second = engine.read_guard(&var).unwrap();
        engine.push(OpSpec::new("after", &[(&var, Access::Write)]), adds(&ran));
        engine.push(OpSpec::new("reader behind it", &[(&var, Access::Read)]), adds(&ran));
        first.release();
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!((ran.load(SeqCst), var.version()), (1, 1), "a writer ran beside a guard");
        drop(second);
        engine.wait_to_read(&var).unwrap();
        engine.wait_all().unwrap();
        assert_eq!((ran.load(SeqCst), var.version()), (3, 2));
    }
}

#[test]
fn a_failed_value_cannot_be_held() {
    let _guard = watchdog(60);
    for engine in every_kind() {
        let var = engine.new_var();
        engine.push(OpSpec::new("bad", &[(&var, Access::Write)]), |_| Err(error("no value")));
        assert!(matches!(engine.read_guard(&var), Err(WaitError::Failed(f)) if f.message() == "no value"));
        // Nothing is held: the next writer runs.
        engine.push(OpSpec::new("good", &[(&var, Access::Write)]), |_| Ok(()));
        engine.wait_to_write(&var).unwrap();
        drop(engine.read_guard(&var).unwrap());
        engine.wait_all().unwrap();
        assert_eq!(var.version(), 2);
    }
}

/// Tries again: the thread that notified a waiter gives its access back a little later.
fn soon<T>(mut access: impl FnMut() -> Option<T>) -> T {
    loop {
        match access() {
            Some(done) => return done,
            None => std::thread::yield_now(),
        }
    }
}

#[test]
fn a_brief_access_is_one_that_nothing_stands_in_the_way_of() {
    let _guard = watchdog(60);
    for engine in every_kind() {
        let (var, ran) = (engine.new_var(), Arc::new(AtomicUsize::new(0)));
        let (read, write) = (|| engine.read_briefly(&var, || 2), || engine.write_briefly(&var, || 1));
        assert_eq!((write(), read(), var.version()), (Some(1), Some(2), 1));
        let token = hold(engine, &var);
        assert_eq!((write(), read()), (None, None));
        token.complete(Ok(()));
        engine.wait_to_write(&var).unwrap();
        let reader = engine.read_guard(&var).unwrap();
        assert_eq!((write(), soon(read)), (None, 2));
        drop(reader);
        // What is pushed meanwhile runs after it.
        let ran_before = soon(|| {
            engine.write_briefly(&var, || {
                engine.push(OpSpec::new("behind", &[(&var, Access::Read)]), adds(&ran));
                ran.load(SeqCst)
            })
        });
        engine.wait_to_write(&var).unwrap();
        assert_eq!((ran_before, ran.load(SeqCst), var.version()), (0, 1, 3));
        // A failed value is not read, a whole write heals it, and one that panics fails it again.
        engine.push(OpSpec::new("bad", &[(&var, Access::Write)]), |_| Err(error("no value")));
        assert_eq!(raised(engine.wait_to_read(&var)).as_deref(), Some("no value"));
        assert_eq!((read(), soon(write), soon(read)), (None, 1, 2));
        let panics = std::panic::AssertUnwindSafe(|| soon(|| engine.write_briefly(&var, || panic!("in the middle"))));
        assert!(std::panic::catch_unwind::<_, ()>(panics).is_err());
        assert_eq!(kind_of(engine.wait_to_read(&var)), Some(FailureKind::Panic));
        // Operators do not wait for values, so they do not look either.
        let (inside, free) = (Arc::new(AtomicUsize::new(0)), engine.new_var());
        let seen = inside.clone();
        engine.push(OpSpec::new("op", &[(&var, Access::Write)]), move |_| {
            seen.fetch_add(engine.read_briefly(&free, || ()).is_none() as usize, SeqCst);
            Ok(())
        });
        engine.wait_all().unwrap();
        assert_eq!(inside.load(SeqCst), 1);
    }
}

#[test]
fn brief_accesses_of_many_threads_lose_no_write_and_no_op() {
    let _guard = watchdog(60);
    for engine in every_kind() {
        let (var, ran, sum) = (engine.new_var(), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU64::new(0)));
        let written = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for i in 0..500 {
                        // Not one step: two at a time would lose one.
                        let add = || sum.store(sum.load(SeqCst) + 1, SeqCst);
                        written.fetch_add(engine.write_briefly(&var, add).is_some() as u64, SeqCst);
                        engine.read_briefly(&var, || sum.load(SeqCst));
                        if i % 5 == 0 {
                            engine.push(OpSpec::new("op", &[(&var, Access::Update)]), adds(&ran));
                        }
                    }
                });
            }
        });
        engine.wait_all().unwrap();
        assert_eq!(ran.load(SeqCst), 400);
        assert_eq!(sum.load(SeqCst), written.load(SeqCst));
        assert_eq!(var.version(), 400 + written.load(SeqCst));
    }
}

#[test]
fn who_holds_a_guard_may_wait_for_everything() {
    let _guard = watchdog(60);
    for engine in every_kind() {
        let (var, other) = (engine.new_var(), engine.new_var());
        let guard = engine.read_guard(&var).unwrap();
        engine.push(OpSpec::new("other", &[(&other, Access::Write)]), |_| Ok(()));
        engine.wait_all().unwrap();
        assert_eq!(other.version(), 1);
        drop(guard);
    }
}

#[test]
fn a_guard_that_comes_too_late_is_given_back() {
    let _guard = watchdog(60);
    for engine in pooled_kinds() {
        let var = engine.new_var();
        let token = hold(engine, &var);
        for _ in 0..2 {
            let given_up = engine.read_guard_with(&var, &mut || false).map(drop);
            assert!(matches!(given_up, Err(WaitError::Interrupted)));
        }
        token.complete(Ok(()));
        engine.wait_to_write(&var).unwrap();
        engine.wait_all().unwrap();
    }
}

#[test]
fn guards_given_up_while_they_are_granted_do_no_harm() {
    let _guard = watchdog(120);
    let engine = start(EngineKind::ThreadedPerDevice, 2);
    let var = engine.new_var();
    let (written, busy) = (Arc::new(AtomicU64::new(0)), AtomicBool::new(true));
    std::thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                while busy.load(SeqCst) {
                    let asked = Instant::now();
                    drop(engine.read_guard_with(&var, &mut || asked.elapsed() < Duration::from_millis(51)));
                }
            });
        }
        for i in 0..40u64 {
            let written = written.clone();
            engine.push(OpSpec::new("slow", &[(&var, Access::Write)]), move |_| {
                std::thread::sleep(Duration::from_millis(if i % 2 == 0 { 1 } else { 52 }));
                written.fetch_add(1, SeqCst);
                Ok(())
            });
        }
        engine.wait_to_write(&var).unwrap();
        busy.store(false, SeqCst);
    });
    // The thread that granted a guard may be the one that completes it, a moment later.
    engine.wait_to_write(&var).unwrap();
    assert_eq!((written.load(SeqCst), var.version()), (40, 40));
    engine.wait_all().unwrap();
}

#[test]
fn guards_exclude_writes_under_load() {
    let _guard = watchdog(120);
    for engine in pooled_kinds() {
        let var = engine.new_var();
        // The writer's two halves; a reader that sees them differ has met a running writer.
        let halves: Arc<[AtomicU64; 2]> = Arc::default();
        let write = |halves: &[AtomicU64; 2]| {
            halves[0].fetch_add(1, SeqCst);
            std::thread::yield_now();
            halves[1].fetch_add(1, SeqCst);
        };
        std::thread::scope(|s| {
            for t in 0..4 {
                let (halves, var) = (&halves, &var);
                s.spawn(move || {
                    for i in 0..150 {
                        if (t + i) % 3 == 0 {
                            let _guard = engine.read_guard(var).unwrap();
                            assert_eq!(halves[0].load(SeqCst), halves[1].load(SeqCst), "a guard met a writer");
                        } else {
                            let halves = halves.clone();
                            engine.push(OpSpec::new("op", &[(var, Access::Update)]), move |_| {
                                write(&halves);
                                Ok(())
                            });
                        }
                    }
                });
            }
        });
        engine.wait_all().unwrap();
        engine.wait_to_write(&var).unwrap();
        assert_eq!((halves[0].load(SeqCst), var.version()), (400, 400));
    }
}

#[test]
fn closing_ends_the_wait_for_a_guard_and_ready_values_stay_readable() {
    let _guard = watchdog(60);
    for engine in pooled_kinds() {
        let (var, ready) = (engine.new_var(), engine.new_var());
        let token = hold(engine, &var);
        std::thread::scope(|s| {
            let waiting = s.spawn(|| engine.read_guard(&var).map(drop));
            std::thread::sleep(Duration::from_millis(10));
            engine.close();
            assert!(matches!(waiting.join().unwrap(), Err(WaitError::Closed)));
        });
        assert!(engine.read_guard(&ready).is_ok());
        token.complete(Ok(()));
    }
}

#[test]
fn a_guard_inside_an_op_is_refused() {
    for engine in every_kind() {
        let (var, other) = (engine.new_var(), engine.new_var());
        engine.push(OpSpec::new("asks", &[(&var, Access::Write)]), move |ctx| {
            assert!(matches!(ctx.engine().read_guard(&other), Err(WaitError::InsideOp)));
            Ok(())
        });
        engine.wait_to_read(&var).unwrap();
    }
}

#[test]
fn a_cancelled_op_does_not_run_and_its_dependants_report_it() {
    let _guard = watchdog(60);
    for engine in pooled_kinds() {
        let (input, output, after, ran) = (engine.new_var(), engine.new_var(), engine.new_var(), Arc::default());
        let token = hold(engine, &input);
        let handle = CancelHandle::new();
        let accesses = [(&input, Access::Read), (&output, Access::Write)];
        engine.push(OpSpec::new("request", &accesses).cancel(&handle), adds(&ran));
        engine.push(OpSpec::new("next", &[(&output, Access::Read), (&after, Access::Write)]), adds(&ran));
        engine.push_async(OpSpec::new("async", &[(&input, Access::Update)]).cancel(&handle), |_, _| {
            panic!("ran although it was cancelled")
        });
        let cleaned = ran.clone();
        engine.push(OpSpec::new("clean", &[(&input, Access::Read)]).kind(OpKind::NoSkip).cancel(&handle), move |_| {
            cleaned.fetch_add(100, SeqCst);
            Ok(())
        });
        handle.cancel();
        token.complete(Ok(()));
        for var in [&output, &after, &input] {
            assert_eq!(kind_of(engine.wait_to_read(var)), Some(FailureKind::Cancelled));
        }
        engine.wait_all().expect("a cancellation that was asked for is no news");
        assert_eq!(ran.load(SeqCst), 100);
    }
}

#[test]
fn a_running_op_finishes_although_it_is_cancelled() {
    let _guard = watchdog(60);
    for engine in pooled_kinds() {
        let (var, handle) = (engine.new_var(), CancelHandle::new());
        let (started, go_on) = (std::sync::mpsc::channel(), std::sync::mpsc::channel::<()>());
        engine.push(OpSpec::new("long", &[(&var, Access::Write)]).cancel(&handle), move |_| {
            started.0.send(()).unwrap();
            go_on.1.recv().unwrap();
            Ok(())
        });
        started.1.recv_timeout(Duration::from_secs(60)).unwrap();
        handle.cancel();
        engine.cancel(&var);
        go_on.0.send(()).unwrap();
        engine.wait_to_read(&var).unwrap();
    }
}

#[test]
fn an_op_whose_turn_comes_after_its_deadline_fails() {
    let _guard = watchdog(60);
    for engine in every_kind() {
        let (late, early, ran) = (engine.new_var(), engine.new_var(), Arc::default());
        let now = Instant::now();
        engine.push(OpSpec::new("late", &[(&late, Access::Write)]).deadline(now), adds(&ran));
        let far = now + Duration::from_secs(1000);
        engine.push(OpSpec::new("early", &[(&early, Access::Write)]).deadline(far), adds(&ran));
        assert_eq!(kind_of(engine.wait_to_read(&late)), Some(FailureKind::Deadline));
        engine.wait_to_read(&early).unwrap();
        assert_eq!(ran.load(SeqCst), 1);
    }
}

#[test]
fn cancelling_a_variable_stops_what_was_pushed_before_and_nothing_else() {
    let _guard = watchdog(60);
    for engine in pooled_kinds() {
        let (input, output, ran) = (engine.new_var(), engine.new_var(), Arc::default());
        let token = hold(engine, &input);
        let accesses = [(&input, Access::Read), (&output, Access::Write)];
        engine.push(OpSpec::new("granted on the output", &accesses), adds(&ran));
        engine.push(OpSpec::new("queued", &[(&output, Access::Update)]), adds(&ran));
        let waiting = std::thread::scope(|s| {
            let waiting = s.spawn(|| engine.wait_to_write(&output));
            // The waiter is queued like a write, and is none.
            std::thread::sleep(Duration::from_millis(10));
            engine.cancel(&output);
            token.complete(Ok(()));
            waiting.join().unwrap()
        });
        assert_eq!(kind_of(waiting), Some(FailureKind::Cancelled));
        assert_eq!((ran.load(SeqCst), output.version()), (0, 2));
        engine.push(OpSpec::new("later", &[(&output, Access::Write)]), adds(&ran));
        engine.wait_to_read(&output).unwrap();
        assert_eq!(ran.load(SeqCst), 1);
        engine.cancel(&output);
        engine.wait_to_read(&output).expect("nothing was pending");
        engine.wait_all().unwrap();
    }
}

#[test]
fn an_op_runs_while_a_thread_wants_one_of_its_results() {
    let _guard = watchdog(60);
    for engine in pooled_kinds() {
        let (input, unwanted, wanted) = (engine.new_var(), engine.new_var(), engine.new_var());
        let (ran, skipped) = (Arc::default(), Arc::default());
        let token = hold(engine, &input);
        let both = [(&input, Access::Read), (&unwanted, Access::Write), (&wanted, Access::Write)];
        engine.push(OpSpec::new("both", &both), adds(&ran));
        let one = [(&input, Access::Read), (&unwanted, Access::Update)];
        engine.push(OpSpec::new("one", &one).kind(OpKind::Selective), adds(&skipped));
        engine.cancel(&unwanted);
        token.complete(Ok(()));
        engine.wait_to_read(&wanted).unwrap();
        assert_eq!(kind_of(engine.wait_to_read(&unwanted)), Some(FailureKind::Cancelled));
        assert_eq!((ran.load(SeqCst), skipped.load(SeqCst)), (1, 0));
    }
}
