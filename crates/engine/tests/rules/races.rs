//! Tests that provoke races: concurrent pushes, isolation, threads that come and go, splits.

use crate::common::*;
use mxrt_engine::*;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

#[test]
fn threads_that_push_over_the_same_64_variables_cannot_block_each_other() {
    let _guard = watchdog(120);
    for engine in every_kind() {
        let vars: Vec<Var> = (0..64).map(|_| engine.new_var()).collect();
        std::thread::scope(|s| {
            for t in 0..8 {
                let vars = &vars;
                s.spawn(move || {
                    for i in 0..500 {
                        let mut accesses: Vec<_> = vars.iter().map(|v| (v, Access::Update)).collect();
                        accesses.rotate_left((t * 7 + i) % 64);
                        if t % 2 == 1 {
                            accesses.reverse();
                        }
                        engine.push(OpSpec::new("all", &accesses), |_| Ok(()));
                    }
                });
            }
        });
        engine.wait_all().unwrap();
        assert!(vars.iter().all(|v| v.version() == 4000));
    }
}

#[test]
fn one_bad_request_among_fifty_fails_alone() {
    let _guard = watchdog(120);
    for engine in pooled_kinds() {
        let parameters: Vec<Var> = (0..4).map(|_| engine.new_var()).collect();
        for round in 0..200u64 {
            let bad = round as usize % 50;
            let inputs: Vec<Var> = (0..50).map(|_| engine.new_var()).collect();
            let outputs: Vec<Var> = (0..50).map(|_| engine.new_var()).collect();
            for i in 0..50 {
                let mut accesses: Vec<_> = parameters.iter().map(|p| (p, Access::Read)).collect();
                accesses.extend([(&inputs[i], Access::Read), (&outputs[i], Access::Write)]);
                engine.push(
                    OpSpec::new("request", &accesses),
                    move |_| {
                        if i == bad { Err(error("this one")) } else { Ok(()) }
                    },
                );
            }
            for (i, output) in outputs.iter().enumerate() {
                assert_eq!(raised(engine.wait_to_read(output)).is_some(), i == bad);
            }
            assert!(parameters.iter().all(|p| p.failure().is_none()), "a reader poisoned a parameter");
        }
        engine.wait_all().unwrap();
    }
}

#[test]
fn threads_that_come_and_go_leave_no_memory_behind() {
    let _guard = watchdog(120);
    let engine = start(EngineKind::ThreadedPerDevice, 2);
    let var = engine.new_var();
    for _ in 0..30 {
        std::thread::scope(|s| {
            for _ in 0..32 {
                s.spawn(|| {
                    let own = engine.new_var();
                    for _ in 0..100 {
                        engine.push(OpSpec::new("w", &[(&var, Access::Read), (&own, Access::Update)]), |_| Ok(()));
                    }
                    engine.wait_to_read(&own).unwrap();
                });
            }
        });
        engine.wait_all().unwrap();
    }
    // In flight at most 32 x 101 and the waiters, kept at most 64 by each live thread; other tests
    // run beside this one.
    assert!(op_blocks() < 40_000, "op blocks grow with threads: {}", op_blocks());
}

#[test]
fn a_split_gives_the_same_bits_whoever_helps() {
    let _guard = watchdog(120);
    let input: Arc<Vec<f32>> = Arc::new((0..1 << 16).map(|i| (i as f32 * 0.37).sin() * 1e3).collect());
    // Chunks are of fixed size, so partial sums do not depend on the number of cores.
    let expected: Vec<f32> = input.chunks(64).map(|c| c.iter().sum()).collect();
    for engine in every_kind() {
        std::thread::scope(|s| {
            for t in 0..4 {
                let (input, expected) = (&input, &expected);
                s.spawn(move || {
                    for round in 0..50 {
                        let output = engine.new_var();
                        let sums: Arc<Vec<AtomicU64>> =
                            Arc::new((0..expected.len()).map(|_| AtomicU64::new(0)).collect());
                        let (input, out) = (input.clone(), sums.clone());
                        let cost = if (t + round) % 3 == 0 { Cost::Small } else { Cost::Large };
                        engine.push(OpSpec::new("sums", &[(&output, Access::Write)]).cost(cost), move |ctx| {
                            let add = |i: usize, scratch: &mut [u8]| {
                                assert_eq!(scratch.as_ptr().addr() % 64, 0);
                                let sum: f32 = input[i * 64..][..64].iter().sum();
                                scratch[..4].copy_from_slice(&sum.to_ne_bytes());
                                std::hint::black_box(&mut *scratch);
                                let back = f32::from_ne_bytes(scratch[..4].try_into().unwrap());
                                out[i].fetch_add(u64::from(back.to_bits()), SeqCst);
                            };
                            ctx.split(out.len(), 64 * 4, &add);
                            ctx.split_static(out.len(), 64 * 4, &|range, scratch| range.for_each(|i| add(i, scratch)));
                            ctx.split(out.len(), 64 * 4, &add);
                            Ok(())
                        });
                        engine.wait_to_read(&output).unwrap();
                        for (sum, expected) in sums.iter().zip(expected) {
                            assert_eq!(sum.load(SeqCst), 3 * u64::from(expected.to_bits()));
                        }
                    }
                });
            }
        });
    }
}

#[test]
fn idle_cores_help_a_long_split() {
    let _guard = watchdog(120);
    for engine in pooled_kinds().filter(|e| e.cores() >= 2) {
        let var = engine.new_var();
        // How many threads meet this variable's split for the first time.
        thread_local!(static MET: std::cell::Cell<u64> = const { std::cell::Cell::new(0) });
        let (threads, split) = (Arc::new(AtomicUsize::new(0)), var.id());
        let (seen, since) = (threads.clone(), Instant::now());
        engine.push(OpSpec::new("long", &[(&var, Access::Write)]), move |ctx| {
            assert!(ctx.parallelism() > 1);
            ctx.split(100, 0, &|_, _| {
                if MET.replace(split) != split {
                    seen.fetch_add(1, SeqCst);
                }
                // The split lasts until all have come.
                while seen.load(SeqCst) < ctx.engine().cores() && since.elapsed() < Duration::from_secs(60) {
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            Ok(())
        });
        engine.wait_to_read(&var).unwrap();
        assert_eq!(threads.load(SeqCst), engine.cores());
    }
}

#[test]
fn helpers_leave_when_a_thread_waits() {
    let _guard = watchdog(120);
    let engine = start(EngineKind::Threaded, 2);
    let (long, short) = (engine.new_var(), engine.new_var());
    let (chunks, late) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let (done, ended, too_late) = (chunks.clone(), Arc::new(AtomicBool::new(false)), late.clone());
    let end = ended.clone();
    engine.push(OpSpec::new("long", &[(&long, Access::Write)]), move |ctx| {
        let since = Instant::now();
        ctx.split(1 << 20, 0, &|_, _| {
            if end.load(SeqCst) || too_late.load(SeqCst) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
            done.fetch_add(1, SeqCst);
            too_late.store(since.elapsed() > Duration::from_secs(60), SeqCst);
        });
        Ok(())
    });
    while chunks.load(SeqCst) < 20 {
        std::thread::yield_now();
    }
    // The long one goes on until this one has run, for a minute at most.
    engine.push(OpSpec::new("short", &[(&short, Access::Write)]), |_| Ok(()));
    engine.wait_to_read(&short).unwrap();
    assert!(!late.load(SeqCst), "the short op waited for the end of the long one");
    ended.store(true, SeqCst);
    engine.wait_to_read(&long).unwrap();
}

#[test]
fn a_core_that_has_answered_is_kept_free_for_the_next_request_and_then_helps() {
    let _guard = watchdog(120);
    let engine = start(EngineKind::Threaded, 2);
    let (long, short) = (engine.new_var(), engine.new_var());
    // When the short op ended, and when the long one was helped first after that.
    let (ended, helped) = (Arc::new(OnceLock::new()), Arc::new(OnceLock::new()));
    let (began, begin) = channel();
    let (end, help) = (ended.clone(), helped.clone());
    // One loop: it calls for helpers when it begins and not again.
    engine.push(OpSpec::new("long", &[(&long, Access::Write)]), move |ctx| {
        let (driver, since) = (std::thread::current().id(), Instant::now());
        ctx.split(1 << 20, 0, &|chunk, _| {
            // Before the loop has begun no thread can help it, and no core is kept from doing so.
            if chunk == 0 {
                began.send(()).unwrap();
            }
            if help.get().is_some() || since.elapsed() > Duration::from_secs(20) {
                return;
            }
            let now = Instant::now();
            if end.get().is_some() && std::thread::current().id() != driver {
                let _ = help.set(now);
            }
            std::thread::sleep(Duration::from_micros(10));
        });
        Ok(())
    });
    begin.recv().unwrap();
    let end = ended.clone();
    engine.push(OpSpec::new("short", &[(&short, Access::Write)]), move |ctx| {
        ctx.split(2, 0, &|_, _| {});
        end.set(Instant::now()).unwrap();
        Ok(())
    });
    engine.wait_to_read(&long).unwrap();
    let (ended, helped) = (ended.get().unwrap(), helped.get().expect("no thread helped within 20 s"));
    let kept = helped.duration_since(*ended);
    assert!(kept >= Duration::from_micros(300), "the core helped after {kept:?}");
}

#[test]
fn a_panic_in_a_chunk_fails_the_op_after_the_other_chunks_ended() {
    let _guard = watchdog(120);
    for engine in every_kind() {
        for _ in 0..20 {
            let var = engine.new_var();
            let (running, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            let (inside, outside) = (running.clone(), ended.clone());
            engine.push(OpSpec::new("split", &[(&var, Access::Write)]), move |ctx| {
                let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    ctx.split(50, 16, &|i, _| {
                        inside.fetch_add(1, SeqCst);
                        // Each costs a turn of every program that wants this processor.
                        if i % 8 == 0 {
                            std::thread::yield_now();
                        }
                        inside.fetch_sub(1, SeqCst);
                        assert!(i % 20 != 10, "chunk {i}");
                    });
                }));
                outside.store(inside.load(SeqCst) + 1, SeqCst);
                // The next split of the same op works.
                ctx.split(10, 0, &|_, _| {});
                std::panic::resume_unwind(caught.unwrap_err())
            });
            let message = raised(engine.wait_to_read(&var)).unwrap();
            assert_eq!(message, "operator split panicked: chunk 10", "that of the lowest chunk");
            assert_eq!(ended.load(SeqCst), 1, "chunks were running when the split returned");
        }
    }
}

#[test]
fn a_chunk_can_fail_the_op_with_an_error_of_its_own_and_missing_scratch_is_one() {
    let _guard = watchdog(120);
    for engine in every_kind() {
        let (typed, huge) = (engine.new_var(), engine.new_var());
        let shared = engine.new_var();
        engine.push(OpSpec::new("shared", &[(&shared, Access::Write)]), |ctx| {
            ctx.split_static(8, 0, &|range, _| {
                if range.contains(&7) {
                    std::panic::resume_unwind(Box::new(OpError::new(FailureKind::Index, "the last unit")));
                }
            });
            Ok(())
        });
        let Err(WaitError::Failed(f)) = engine.wait_to_read(&shared) else { panic!() };
        assert_eq!((f.kind(), f.message(), f.op()), (FailureKind::Index, "the last unit", "shared"));
        engine.push(OpSpec::new("typed", &[(&typed, Access::Write)]), |ctx| {
            ctx.split(8, 0, &|i, _| {
                if i >= 3 {
                    std::panic::resume_unwind(Box::new(OpError::new(FailureKind::Index, format!("chunk {i}"))));
                }
            });
            Ok(())
        });
        let Err(WaitError::Failed(f)) = engine.wait_to_read(&typed) else { panic!() };
        assert_eq!((f.kind(), f.message(), f.op()), (FailureKind::Index, "chunk 3", "typed"));
        for chunks in [1, 8] {
            engine.push(OpSpec::new("huge", &[(&huge, Access::Write)]), move |ctx| {
                ctx.split(chunks, usize::MAX / 2, &|_, _| {});
                Ok(())
            });
            let Err(WaitError::Failed(f)) = engine.wait_to_read(&huge) else { panic!() };
            assert_eq!((f.kind(), f.op()), (FailureKind::Memory, "huge"));
        }
    }
}

#[test]
fn a_split_inside_a_split_runs_in_the_same_thread() {
    for engine in every_kind() {
        let var = engine.new_var();
        engine.push(OpSpec::new("nest", &[(&var, Access::Write)]), |ctx| {
            ctx.split(8, 64, &|_, outer| {
                let me = std::thread::current().id();
                assert_eq!(ctx.parallelism(), 1);
                outer.fill(1);
                ctx.split(8, 64, &|_, inner| {
                    assert_eq!(std::thread::current().id(), me);
                    inner.fill(2);
                });
                assert!(outer.iter().all(|b| *b == 1), "the inner split used the outer one's scratch");
            });
            Ok(())
        });
        engine.wait_to_read(&var).unwrap();
    }
}

#[test]
fn never_more_threads_compute_than_there_are_tokens() {
    let _guard = watchdog(120);
    for engine in pooled_kinds() {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        std::thread::scope(|s| {
            for t in 0..6 {
                let (now, most) = (&now, &most);
                s.spawn(move || {
                    for i in 0..60 {
                        let (now, most) = (now.clone(), most.clone());
                        let var = engine.new_var();
                        let cost = if (t + i) % 2 == 0 { Cost::Small } else { Cost::Large };
                        engine.push(OpSpec::new("count", &[(&var, Access::Write)]).cost(cost), move |ctx| {
                            ctx.split(4, 0, &|_, _| {
                                most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                                std::thread::sleep(Duration::from_micros(50));
                                now.fetch_sub(1, SeqCst);
                            });
                            Ok(())
                        });
                        engine.wait_to_read(&var).unwrap();
                    }
                });
            }
        });
        assert!(most.load(SeqCst) <= engine.cores(), "{} threads on {} cores", most.load(SeqCst), engine.cores());
    }
}

#[test]
fn waits_given_up_while_the_value_arrives_do_no_harm() {
    let _guard = watchdog(120);
    for engine in pooled_kinds() {
        for _ in 0..10 {
            let var = engine.new_var();
            engine.push(OpSpec::new("slow", &[(&var, Access::Write)]), |_| {
                std::thread::sleep(Duration::from_millis(52));
                Ok(())
            });
            std::thread::scope(|s| {
                for _ in 0..8 {
                    s.spawn(|| match engine.wait_to_read_with(&var, &mut || false) {
                        Ok(()) | Err(WaitError::Interrupted) => {}
                        other => panic!("{other:?}"),
                    });
                }
            });
            engine.wait_to_write(&var).unwrap();
        }
    }
}
