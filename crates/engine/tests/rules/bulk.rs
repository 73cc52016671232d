//! Small ops that go to the pool as one job.

use crate::common::*;
use mxrt_engine::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

fn small<'a>(name: &'static str, accesses: &'a [(&'a Var, Access)]) -> OpSpec<'a> {
    OpSpec::new(name, accesses).cost(Cost::Small)
}

/// Runs `f` in a thread of its own, so that its bulk size is its own.
fn in_thread<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|s| s.spawn(f).join().unwrap())
}

#[test]
fn ops_are_put_off_until_there_are_enough_of_them() {
    let _guard = watchdog(60);
    for engine in pooled_kinds() {
        in_thread(|| {
            assert_eq!(engine.set_bulk_size(8), 0);
            let vars: Vec<Var> = (0..8).map(|_| engine.new_var()).collect();
            let ran = Arc::new(AtomicUsize::new(0));
            for var in &vars[..7] {
                engine.push(small("x", &[(var, Access::Write)]), adds(&ran));
            }
            std::thread::sleep(Duration::from_millis(5));
            assert_eq!(ran.load(SeqCst), 0, "nothing waits, and the bulk is not full");
            engine.push(small("x", &[(&vars[7], Access::Write)]), adds(&ran));
            while ran.load(SeqCst) < 8 {
                std::thread::yield_now();
            }
            assert_eq!(engine.set_bulk_size(0), 8);
        });
        engine.wait_all().unwrap();
    }
}

#[test]
fn a_bulk_keeps_order_versions_and_dependences() {
    let _guard = watchdog(60);
    for engine in every_kind() {
        in_thread(|| {
            engine.set_bulk_size(15);
            let (a, b) = (engine.new_var(), engine.new_var());
            let log = Arc::new(std::sync::Mutex::new(Vec::new()));
            for i in 0..100u64 {
                let log = log.clone();
                let accesses = if i % 3 == 0 {
                    vec![(&a, Access::Read), (&b, Access::Update)]
                } else {
                    vec![(&b, Access::Read), (&a, Access::Update)]
                };
                engine.push(small("x", &accesses), move |ctx| {
                    log.lock().unwrap().push((i, ctx.version_of(1)));
                    Ok(())
                });
            }
            engine.wait_to_read(&a).unwrap();
            engine.wait_to_read(&b).unwrap();
            let mut versions = [0, 0];
            let expected = (0..100u64).map(|i| {
                let of = usize::from(i % 3 == 0);
                versions[of] += 1;
                (i, versions[of] - 1)
            });
            assert!(log.lock().unwrap().iter().copied().eq(expected));
            assert_eq!((a.version(), b.version()), (66, 34));
        });
    }
}

#[test]
fn a_failure_in_a_bulk_reaches_its_dependants_and_no_other_thread() {
    let _guard = watchdog(60);
    for engine in every_kind() {
        in_thread(|| {
            engine.set_bulk_size(15);
            let vars: Vec<Var> = (0..10).map(|_| engine.new_var()).collect();
            let ran = Arc::new(AtomicUsize::new(0));
            for (i, var) in vars.iter().enumerate() {
                match i {
                    3 => engine.push(small("bad", &[(var, Access::Write)]), |_| Err(error("third"))),
                    7 => engine.push(small("worse", &[(var, Access::Write)]), |_| panic!("seventh")),
                    _ if i % 4 == 0 && i > 0 => {
                        engine.push(small("after", &[(&vars[i - 1], Access::Read), (var, Access::Write)]), adds(&ran))
                    }
                    _ => engine.push(small("good", &[(var, Access::Write)]), adds(&ran)),
                }
            }
            let outcome: Vec<bool> = vars.iter().map(|v| engine.wait_to_read(v).is_ok()).collect();
            // 4 depends on 3, 8 on 7.
            assert_eq!(outcome, [true, true, true, false, false, true, true, false, false, true]);
            assert_eq!(raised(engine.wait_to_read(&vars[4])).as_deref(), Some("third"));
            assert_eq!(raised(engine.wait_to_read(&vars[8])).as_deref(), Some("operator worse panicked: seventh"));
            assert_eq!(ran.load(SeqCst), 6);
        });
        engine.wait_all().unwrap();
    }
}

#[test]
fn every_way_of_waiting_hands_over_what_other_threads_have_collected() {
    let _guard = watchdog(120);
    for engine in pooled_kinds() {
        for way in 0..6 {
            let var = engine.new_var();
            let ran = Arc::new(AtomicUsize::new(0));
            let (pushed, done) = (std::sync::Barrier::new(2), AtomicBool::new(false));
            std::thread::scope(|s| {
                s.spawn(|| {
                    engine.set_bulk_size(1000);
                    engine.push(small("x", &[(&var, Access::Update)]), adds(&ran));
                    engine.push(small("y", &[(&var, Access::Update)]), adds(&ran));
                    pushed.wait();
                    // This thread does nothing more until the other is served.
                    while !done.load(SeqCst) {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                });
                pushed.wait();
                match way {
                    0 => engine.wait_to_read(&var).unwrap(),
                    1 => engine.wait_to_write(&var).unwrap(),
                    2 => engine.wait_all().unwrap(),
                    3 => engine.read_guard(&var).unwrap().release(),
                    4 => {
                        let (send, receive) = std::sync::mpsc::channel();
                        engine.on_ready(&var, move |result| send.send(result.is_ok()).unwrap());
                        assert_eq!(receive.recv_timeout(Duration::from_secs(60)), Ok(true));
                    }
                    _ => {
                        while !engine.is_ready(&var) {
                            std::thread::yield_now();
                        }
                    }
                }
                assert_eq!(ran.load(SeqCst), 2);
                done.store(true, SeqCst);
            });
        }
    }
}

#[test]
fn a_wait_that_has_begun_is_not_kept_waiting_by_a_bulk() {
    let _guard = watchdog(120);
    for engine in pooled_kinds() {
        let (pushers, rounds) = (3, 150);
        let vars: Vec<Var> = (0..pushers).map(|_| engine.new_var()).collect();
        let ran = Arc::new(AtomicUsize::new(0));
        let left = AtomicUsize::new(pushers);
        std::thread::scope(|s| {
            for var in &vars {
                let (ran, left) = (&ran, &left);
                s.spawn(move || {
                    engine.set_bulk_size(1_000_000);
                    for _ in 0..rounds {
                        engine.push(small("x", &[(var, Access::Update)]), adds(ran));
                        std::thread::yield_now();
                    }
                    left.fetch_sub(1, SeqCst);
                    // Collected ops stay collected until a thread waits: the thread does not end
                    // before that.
                    while ran.load(SeqCst) < pushers * rounds {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                });
            }
            while left.load(SeqCst) > 0 {
                engine.wait_all().unwrap();
                vars.iter().for_each(|v| engine.wait_to_read(v).unwrap());
            }
            engine.wait_all().unwrap();
            assert_eq!(ran.load(SeqCst), pushers * rounds);
        });
    }
}

#[test]
fn other_work_of_the_thread_ends_a_bulk() {
    let _guard = watchdog(60);
    for engine in pooled_kinds() {
        in_thread(|| {
            engine.set_bulk_size(100);
            let (var, other) = (engine.new_var(), engine.new_var());
            let ran = Arc::new(AtomicUsize::new(0));
            for step in 0..3 {
                engine.push(small("x", &[(&var, Access::Update)]), adds(&ran));
                match step {
                    0 => engine.push(OpSpec::new("large", &[(&other, Access::Write)]), |_| Ok(())),
                    1 => drop(engine.set_bulk_size(100)),
                    _ => engine.flush_bulk(),
                }
                while ran.load(SeqCst) <= step {
                    std::thread::yield_now();
                }
            }
        });
    }
}

#[test]
fn a_thread_that_ends_leaves_nothing_behind() {
    let _guard = watchdog(60);
    for engine in pooled_kinds() {
        let second = start(engine.kind(), 2);
        let ran = Arc::new(AtomicUsize::new(0));
        let (var, elsewhere) = (engine.new_var(), second.new_var());
        in_thread(|| {
            engine.set_bulk_size(100);
            engine.push(small("x", &[(&var, Access::Write)]), adds(&ran));
            // Another engine's op does not get into the same bulk.
            second.push(small("x", &[(&elsewhere, Access::Write)]), adds(&ran));
        });
        while ran.load(SeqCst) < 2 {
            std::thread::yield_now();
        }
        in_thread(|| assert_eq!(engine.set_bulk_size(0), 0, "a later thread starts with the engine's number"));
    }
}

#[test]
fn what_a_waiter_has_taken_does_not_count_for_the_next_bulk() {
    let _guard = watchdog(60);
    for engine in pooled_kinds() {
        // The waiter may return before its own read of the variable is over, so the next bulk has
        // another one.
        let (var, other, ran) = (engine.new_var(), engine.new_var(), Arc::new(AtomicUsize::new(0)));
        let push = |var: &Var| engine.push(small("x", &[(var, Access::Update)]), adds(&ran));
        engine.set_bulk_size(3);
        push(&var);
        push(&var);
        in_thread(|| engine.wait_to_read(&var).unwrap());
        assert_eq!(ran.load(SeqCst), 2, "a waiter takes what others have collected");
        push(&other);
        push(&other);
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(ran.load(SeqCst), 2, "the bulk was handed over before it was full");
        push(&other);
        while ran.load(SeqCst) < 5 {
            std::thread::yield_now();
        }
        engine.set_bulk_size(0);
    }
}

#[test]
fn the_configuration_gives_the_size() {
    let _guard = watchdog(60);
    let config = Config { cores: Some(1), bulk_size: 3, ..Config::default() };
    let engine = Engine::start(config).unwrap();
    let (var, ran) = (engine.new_var(), Arc::new(AtomicUsize::new(0)));
    engine.push(small("x", &[(&var, Access::Update)]), adds(&ran));
    engine.push(small("x", &[(&var, Access::Update)]), adds(&ran));
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(ran.load(SeqCst), 0);
    engine.push(small("x", &[(&var, Access::Update)]), adds(&ran));
    while ran.load(SeqCst) < 3 {
        std::thread::yield_now();
    }
    assert_eq!(engine.set_bulk_size(0), 3);
}
