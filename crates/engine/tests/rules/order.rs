//! The rules of order, and what tells the kinds of engine apart, one test each, on every kind and
//! on one, two and four cores.

use crate::common::*;
use mxrt_engine::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

#[test]
fn a_variable_declared_twice_is_one_access() {
    use Access::*;
    for engine in every_kind() {
        let modes = [Read, Write, Update];
        for (first, second) in modes.iter().flat_map(|a| modes.map(|b| (*a, b))) {
            let (var, other) = (engine.new_var(), engine.new_var());
            fail(engine, &var, "old");
            let vars = [(&var, first), (&other, Write), (&var, second)];
            engine.push(OpSpec::new("twice", &vars).kind(OpKind::NoSkip), |ctx| {
                assert_eq!(ctx.version_of(0), ctx.version_of(2));
                Ok(())
            });
            let healed = (first, second) == (Write, Write);
            assert_eq!(message_of(engine, &var).is_none(), healed, "{first:?} {second:?}");
            assert_eq!(var.version(), 1 + u64::from((first, second) != (Read, Read)));
            assert_eq!(message_of(engine, &other), None);
        }
    }
}

#[test]
fn ops_may_have_no_variables_or_very_many() {
    for engine in every_kind() {
        let ran = Arc::new(AtomicUsize::new(0));
        for n in [0usize, 1, 7, 8, 9, 16, 100, 1000] {
            let vars: Vec<Var> = (0..n).map(|_| engine.new_var()).collect();
            let accesses: Vec<_> = vars.iter().rev().map(|v| (v, Access::Update)).collect();
            for _ in 0..3 {
                let ran = ran.clone();
                engine.push(OpSpec::new("many", &accesses), move |_| {
                    ran.fetch_add(1, SeqCst);
                    Ok(())
                });
            }
            engine.wait_all().unwrap();
            assert!(vars.iter().all(|v| v.version() == 3), "{n} variables");
        }
        assert_eq!(ran.load(SeqCst), 24);
    }
}

#[test]
fn readers_of_one_variable_run_at_the_same_time() {
    for engine in pooled_kinds().filter(|e| e.cores() >= 2) {
        let var = engine.new_var();
        // While the write runs the readers queue, so all are released at once.
        engine.push(OpSpec::new("write", &[(&var, Access::Write)]), |_| {
            std::thread::sleep(Duration::from_millis(5));
            Ok(())
        });
        let met = Arc::new(AtomicUsize::new(0));
        // More than the writer's worker and the one that it wakes: those that find work have to
        // wake further ones.
        let readers = engine.cores();
        for _ in 0..readers {
            let met = met.clone();
            engine.push(OpSpec::new("meet", &[(&var, Access::Read)]), move |_| {
                met.fetch_add(1, SeqCst);
                let began = Instant::now();
                while met.load(SeqCst) < readers {
                    if began.elapsed().as_secs() > 60 {
                        return Err(error("alone"));
                    }
                    std::thread::yield_now();
                }
                Ok(())
            });
        }
        engine.wait_all().unwrap();
    }
}

#[test]
fn ops_may_push_ops_also_over_their_own_variables() {
    for engine in every_kind() {
        let var = engine.new_var();
        let again = var.clone();
        fn nest(ctx: &RunCtx<'_>, var: Var, left: u32) {
            if left > 0 {
                let inner = var.clone();
                let vars = [(&var, Access::Update)];
                ctx.engine().push(OpSpec::new("inner", &vars).cost(Cost::Small), move |ctx| {
                    nest(ctx, inner, left - 1);
                    Ok(())
                });
            }
        }
        engine.push(OpSpec::new("outer", &[(&var, Access::Update)]), move |ctx| {
            nest(ctx, again, 50);
            Ok(())
        });
        let began = Instant::now();
        while var.version() < 51 {
            assert!(began.elapsed().as_secs() < 60, "only {} ran", var.version());
            std::thread::yield_now();
        }
        engine.wait_all().unwrap();
    }
}

#[test]
fn a_chain_of_pushes_over_fresh_variables_does_not_exhaust_the_stack() {
    for engine in every_kind() {
        let count = Arc::new(AtomicU64::new(0));
        fn next(engine: &'static Engine, count: Arc<AtomicU64>, left: u32) {
            let var = engine.new_var();
            engine.push(OpSpec::new("next", &[(&var, Access::Write)]).cost(Cost::Small), move |ctx| {
                count.fetch_add(1, SeqCst);
                if left > 0 {
                    next(ctx.engine(), count, left - 1);
                }
                Ok(())
            });
        }
        next(engine, count.clone(), 20_000);
        let began = Instant::now();
        while count.load(SeqCst) < 20_001 {
            assert!(began.elapsed().as_secs() < 60);
            std::thread::yield_now();
        }
    }
}

#[test]
fn variables_may_be_dropped_with_work_outstanding() {
    let _guard = watchdog(60);
    for engine in every_kind() {
        let ran = Arc::new(AtomicUsize::new(0));
        for i in 0..500 {
            let (x, y) = (engine.new_var(), engine.new_var());
            for vars in [&[(&x, Access::Write)][..], &[(&x, Access::Read), (&y, Access::Write)]] {
                let ran = ran.clone();
                engine.push(OpSpec::new("orphan", vars), move |_| {
                    // Each costs a turn of every program that wants this processor.
                    if i % 16 == 0 {
                        std::thread::yield_now();
                    }
                    ran.fetch_add(1, SeqCst);
                    Ok(())
                });
            }
        }
        engine.wait_all().unwrap();
        assert_eq!(ran.load(SeqCst), 1000);
    }
}

#[test]
fn naive_runs_at_the_push_in_the_pushing_thread_and_the_others_do_not() {
    for engine in every_kind() {
        let var = engine.new_var();
        let (me, same) = (std::thread::current().id(), Arc::new(AtomicBool::new(false)));
        let seen = same.clone();
        engine.push(OpSpec::new("where", &[(&var, Access::Write)]), move |_| {
            seen.store(std::thread::current().id() == me, SeqCst);
            Ok(())
        });
        let at_push = same.load(SeqCst);
        engine.wait_all().unwrap();
        assert_eq!(
            (at_push, same.load(SeqCst)),
            (engine.kind() == EngineKind::Naive, engine.kind() == EngineKind::Naive)
        );
    }
}

#[test]
fn a_small_ready_op_runs_at_its_push_when_the_engine_is_idle() {
    for engine in every_kind() {
        let var = engine.new_var();
        let me = std::thread::current().id();
        engine.push(OpSpec::new("small", &[(&var, Access::Write)]).cost(Cost::Small), move |_| {
            if std::thread::current().id() == me { Ok(()) } else { Err(error("elsewhere")) }
        });
        assert!(engine.is_ready(&var));
        engine.wait_to_read(&var).unwrap();
    }
}

/// Order in which queued ops run on one core that is kept busy while they are pushed.
fn order_of(kind: EngineKind, ops: &[(DeviceId, Lane, i32)]) -> Vec<usize> {
    let engine = start(kind, 1);
    let gate = Arc::new(AtomicBool::new(false));
    let (held, running) = (gate.clone(), Arc::new(AtomicBool::new(false)));
    let began = running.clone();
    engine.push(OpSpec::new("busy", &[]), move |_| {
        began.store(true, SeqCst);
        while !held.load(SeqCst) {
            std::thread::yield_now();
        }
        Ok(())
    });
    while !running.load(SeqCst) {
        std::thread::yield_now();
    }
    let log = Arc::new(std::sync::Mutex::new(vec![]));
    for (i, (device, lane, priority)) in ops.iter().enumerate() {
        let log = log.clone();
        engine.push(OpSpec::new("op", &[]).device(*device).lane(*lane).priority(*priority), move |_| {
            log.lock().unwrap().push(i);
            Ok(())
        });
    }
    gate.store(true, SeqCst);
    engine.wait_all().unwrap();
    std::mem::take(&mut log.lock().unwrap())
}

#[test]
fn the_kinds_serve_devices_differently() {
    let (a, b, lane) = (DeviceId::cpu(0), DeviceId::cpu(1), Lane::Normal);
    let ops = [(a, lane, 0), (a, lane, 0), (a, lane, 0), (b, lane, 0), (b, lane, 0)];
    assert_eq!(order_of(EngineKind::Threaded, &ops), [0, 1, 2, 3, 4]);
    let turns = order_of(EngineKind::ThreadedPerDevice, &ops);
    assert!(turns == [0, 3, 1, 4, 2] || turns == [3, 0, 4, 1, 2], "{turns:?}");
}

#[test]
fn lanes_and_priorities_order_what_waits() {
    let d = DeviceId::cpu(0);
    use Lane::*;
    let ops = [
        (d, Normal, 0),
        (d, Normal, 5),
        (d, Normal, -1),
        (d, CopyIn, 0),
        (d, Priority, 0),
        (d, Normal, 5),
        (d, Normal, 0),
    ];
    for kind in [EngineKind::Threaded, EngineKind::ThreadedPerDevice] {
        assert_eq!(order_of(kind, &ops), [4, 3, 1, 5, 0, 6, 2], "{kind}");
    }
}

#[test]
fn unknown_names_of_kinds_list_the_known_ones() {
    let message = "FastEngine".parse::<EngineKind>().unwrap_err().to_string();
    assert_eq!(
        message,
        "Cannot find Engine FastEngine; known: NaiveEngine, ThreadedEngine, ThreadedEnginePerDevice, \
         ThreadedEngineAsync, ThreadedEnginePerDeviceAsync"
    );
    for kind in EngineKind::ALL {
        assert_eq!(kind.name().parse(), Ok(kind));
    }
    assert!(Engine::start(Config { cores: Some(0), ..Config::default() }).is_err());
}
