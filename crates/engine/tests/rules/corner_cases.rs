//! Corners of the rules, each found by breaking the engine in a way that no other test noticed.

use crate::common::*;
use mxrt_engine::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Waits without the engine's help: a wait of the engine wakes workers, which some tests must not.
fn becomes_true(what: impl Fn() -> bool) -> bool {
    // Looking without giving the core away keeps this thread close behind what it waits for.
    for _ in 0..5_000 {
        if what() {
            return true;
        }
        std::hint::spin_loop();
    }
    let began = Instant::now();
    while !what() {
        if began.elapsed().as_secs() > 60 {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

/// Pushes an asynchronous write that ends when the returned token is used.
fn hold(engine: &'static Engine, var: &Var, access: Access) -> OnComplete {
    let (send, receive) = std::sync::mpsc::channel();
    engine.push_async(OpSpec::new("held", &[(var, access)]), move |_, token| send.send(token).unwrap());
    receive.recv_timeout(Duration::from_secs(60)).unwrap()
}

#[test]
fn a_read_does_not_overtake_a_queued_write() {
    for engine in every_kind() {
        let (var, written) = (engine.new_var(), Arc::new(AtomicBool::new(false)));
        let reader = hold(engine, &var, Access::Read);
        let flag = written.clone();
        engine.push(OpSpec::new("write", &[(&var, Access::Write)]), move |_| {
            flag.store(true, SeqCst);
            Ok(())
        });
        let (flag, seen) = (written.clone(), Arc::new(AtomicUsize::new(0)));
        let saw = seen.clone();
        engine.push(OpSpec::new("read", &[(&var, Access::Read)]), move |_| {
            saw.store(1 + usize::from(flag.load(SeqCst)), SeqCst);
            Ok(())
        });
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(seen.load(SeqCst), 0, "a read ran before the write that was pushed before it");
        reader.complete(Ok(()));
        engine.wait_all().unwrap();
        assert_eq!(seen.load(SeqCst), 2);
    }
}

#[test]
fn crossed_pushes_over_few_variables_do_not_block_each_other() {
    let _guard = watchdog(60);
    for perturb in [false, true] {
        testing::set_perturb(perturb);
        for engine in every_kind() {
            let vars: Vec<Var> = (0..4).map(|_| engine.new_var()).collect();
            std::thread::scope(|s| {
                for t in 0..4 {
                    let vars = &vars;
                    s.spawn(move || {
                        for i in 0..1000 {
                            let (a, b) = (&vars[(t + i) % 4], &vars[(t + i + 1 + i % 3) % 4]);
                            engine.push(OpSpec::new("pair", &[(a, Access::Update), (b, Access::Update)]), |_| Ok(()));
                        }
                    });
                }
            });
            engine.wait_all().unwrap();
            assert_eq!(vars.iter().map(Var::version).sum::<u64>(), 8000);
        }
    }
    testing::set_perturb(false);
}

#[test]
fn a_partial_write_of_a_failed_variable_does_not_run() {
    for engine in every_kind() {
        let (var, ran) = (engine.new_var(), Arc::new(AtomicBool::new(false)));
        engine.push(OpSpec::new("bad", &[(&var, Access::Write)]), |_| Err(error("old")));
        let flag = ran.clone();
        engine.push(OpSpec::new("part", &[(&var, Access::Update)]), move |_| {
            flag.store(true, SeqCst);
            Ok(())
        });
        assert_eq!(raised(engine.wait_to_read(&var)).as_deref(), Some("old"));
        assert!(!ran.load(SeqCst));
    }
}

#[test]
fn a_no_skip_op_runs_on_failed_inputs() {
    for engine in every_kind() {
        let (bad, out, ran) = (engine.new_var(), engine.new_var(), Arc::new(AtomicBool::new(false)));
        engine.push(OpSpec::new("bad", &[(&bad, Access::Write)]), |_| Err(error("input")));
        let flag = ran.clone();
        let vars = [(&bad, Access::Read), (&out, Access::Write)];
        engine.push(OpSpec::new("clean", &vars).kind(OpKind::NoSkip), move |_| {
            flag.store(true, SeqCst);
            Ok(())
        });
        assert_eq!(raised(engine.wait_to_read(&out)), None);
        assert!(ran.load(SeqCst));
    }
}

#[test]
fn waiting_to_write_covers_reads_and_waiting_to_read_does_not() {
    let _guard = watchdog(60);
    for engine in every_kind() {
        let var = engine.new_var();
        let reader = hold(engine, &var, Access::Read);
        engine.wait_to_read(&var).unwrap();
        let ended = AtomicBool::new(false);
        std::thread::scope(|s| {
            let waiter = s.spawn(|| {
                engine.wait_to_write(&var).unwrap();
                assert!(ended.load(SeqCst), "wait_to_write returned while a read was running");
            });
            std::thread::sleep(Duration::from_millis(5));
            ended.store(true, SeqCst);
            reader.complete(Ok(()));
            waiter.join().unwrap();
        });
    }
}

#[test]
fn after_a_wait_all_given_up_the_next_one_waits_for_everything() {
    let _guard = watchdog(60);
    for engine in every_kind() {
        // Given up once and twice: what is left behind may lie in either slot.
        for given_up in [1, 2] {
            let var = engine.new_var();
            let token = hold(engine, &var, Access::Write);
            for _ in 0..given_up {
                assert!(matches!(engine.wait_all_with(&mut || false), Err(WaitError::Interrupted)));
            }
            let ended = AtomicBool::new(false);
            std::thread::scope(|s| {
                let waiter = s.spawn(|| {
                    engine.wait_all().unwrap();
                    assert!(ended.load(SeqCst), "wait_all returned before what was pushed before it");
                });
                std::thread::sleep(Duration::from_millis(5));
                ended.store(true, SeqCst);
                token.complete(Ok(()));
                waiter.join().unwrap();
            });
        }
    }
}

#[test]
fn wait_all_returns_although_there_is_always_something_in_flight() {
    let _guard = watchdog(60);
    for engine in every_kind() {
        let stop = AtomicBool::new(false);
        std::thread::scope(|s| {
            let pusher = s.spawn(|| {
                let (a, b) = (engine.new_var(), engine.new_var());
                let mut before = hold(engine, &a, Access::Write);
                while !stop.load(SeqCst) {
                    // The next one begins before the last one ends.
                    let next = hold(engine, &b, Access::Write);
                    before.complete(Ok(()));
                    before = hold(engine, &a, Access::Write);
                    next.complete(Ok(()));
                }
                before.complete(Ok(()));
            });
            for _ in 0..20 {
                engine.wait_all().unwrap();
            }
            stop.store(true, SeqCst);
            pusher.join().unwrap();
        });
    }
}

#[test]
fn no_wake_is_lost_between_look_and_sleep() {
    testing::set_perturb(true);
    for engine in pooled_kinds() {
        let (var, ran) = (engine.new_var(), Arc::new(AtomicUsize::new(0)));
        let mut r = Random(7);
        // With one worker no other makes up for a lost wake.
        let (most, began) = (if engine.cores() == 1 { 12_000usize } else { 300 }, Instant::now());
        for i in (0..most).take_while(|_| began.elapsed().as_secs() < 3) {
            let seen = ran.clone();
            engine.push(OpSpec::new("wake", &[(&var, Access::Update)]), move |_| {
                seen.fetch_add(1, SeqCst);
                Ok(())
            });
            assert!(becomes_true(|| ran.load(SeqCst) == i + 1), "op {i} was queued and no thread woke");
            // About as long as a worker searches, on quiet and on busy machines: it is about to
            // sleep.
            (0..r.below(1 << (i % 13))).for_each(|_| std::hint::spin_loop());
        }
    }
    testing::set_perturb(false);
}

#[test]
fn a_returned_token_is_offered_to_what_was_queued_meanwhile() {
    for kind in [EngineKind::Threaded, EngineKind::ThreadedPerDevice] {
        let engine = start(kind, 1);
        for _ in 0..20 {
            let (ran, began) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
            std::thread::scope(|s| {
                let inside = began.clone();
                let pusher = s.spawn(move || {
                    engine.push(OpSpec::new("inline", &[]).cost(Cost::Small), move |_| {
                        inside.store(true, SeqCst);
                        // Long enough for a worker to find an op, but no token, and to go to sleep.
                        std::thread::sleep(Duration::from_millis(5));
                        Ok(())
                    });
                });
                assert!(becomes_true(|| began.load(SeqCst)));
                let seen = ran.clone();
                engine.push(OpSpec::new("queued", &[]), move |_| {
                    seen.store(true, SeqCst);
                    Ok(())
                });
                pusher.join().unwrap();
            });
            assert!(becomes_true(|| ran.load(SeqCst)), "an op stays queued although a token is free");
            engine.wait_all().unwrap();
        }
    }
}

#[test]
fn a_split_returns_when_its_last_chunk_has_ended() {
    for engine in every_kind() {
        let var = engine.new_var();
        for _ in 0..20 {
            engine.push(OpSpec::new("split", &[(&var, Access::Write)]), |ctx| {
                let (me, ended) = (std::thread::current().id(), AtomicUsize::new(0));
                ctx.split(8, 0, &|_, _| {
                    let helper = std::thread::current().id() != me;
                    std::thread::sleep(Duration::from_micros(if helper { 1500 } else { 200 }));
                    ended.fetch_add(1, SeqCst);
                });
                if ended.load(SeqCst) == 8 { Ok(()) } else { Err(error("a chunk was still running")) }
            });
            assert_eq!(raised(engine.wait_to_read(&var)), None);
        }
    }
}
