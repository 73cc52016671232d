//! The rules of the engine, one test each, on every kind and on one, two and four cores.

mod common;
use common::*;
use mxrt_engine::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

fn fail(engine: &'static Engine, var: &Var, message: &'static str) {
    engine.push(OpSpec::new("bad", &[(var, Access::Write)]), move |_| Err(error(message)));
}

fn succeed(engine: &'static Engine, vars: &[(&Var, Access)]) {
    engine.push(OpSpec::new("good", vars), |_| Ok(()));
}

fn message_of(engine: &'static Engine, var: &Var) -> Option<String> {
    raised(engine.wait_to_read(var))
}

fn messages(result: Result<(), WaitError>) -> Vec<String> {
    match result {
        Ok(()) => vec![],
        Err(WaitError::Failures(list, 0)) => {
            let mut list: Vec<String> = list.iter().map(|f| f.message().to_owned()).collect();
            list.sort();
            list
        }
        Err(other) => panic!("unexpected: {other:?}"),
    }
}

#[test]
fn a_failed_variable_raises_for_every_reader_until_it_is_overwritten() {
    for engine in every_kind() {
        let var = engine.new_var();
        fail(engine, &var, "broken");
        for _ in 0..3 {
            assert_eq!(message_of(engine, &var).as_deref(), Some("broken"));
        }
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| assert_eq!(raised(engine.wait_to_write(&var)).as_deref(), Some("broken")));
            }
        });
        succeed(engine, &[(&var, Access::Write)]);
        assert_eq!(message_of(engine, &var), None);
    }
}

#[test]
fn a_failed_read_poisons_what_is_written_from_it() {
    for engine in every_kind() {
        let vars: Vec<Var> = (0..20).map(|_| engine.new_var()).collect();
        fail(engine, &vars[0], "origin");
        for pair in vars.windows(2) {
            engine.push(OpSpec::new("copy", &[(&pair[0], Access::Read), (&pair[1], Access::Write)]), |_| {
                panic!("an op ran although its input had failed")
            });
        }
        let Err(WaitError::Failed(first)) = engine.wait_to_read(&vars[0]) else { panic!("the origin did not fail") };
        for var in &vars {
            match engine.wait_to_read(var) {
                Err(WaitError::Failed(f)) => assert!(f.same_event(&first) && f.op() == "bad"),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn the_first_failed_input_in_declared_order_is_inherited() {
    for engine in every_kind() {
        for _ in 0..20 {
            let (a, b, out) = (engine.new_var(), engine.new_var(), engine.new_var());
            fail(engine, &a, "a");
            fail(engine, &b, "b");
            succeed(engine, &[(&b, Access::Read), (&a, Access::Read), (&out, Access::Write)]);
            assert_eq!(message_of(engine, &out).as_deref(), Some("b"));
        }
    }
}

#[test]
fn a_partial_write_inherits_and_does_not_heal() {
    for engine in every_kind() {
        let var = engine.new_var();
        fail(engine, &var, "old");
        succeed(engine, &[(&var, Access::Update)]);
        assert_eq!(message_of(engine, &var).as_deref(), Some("old"));
        engine.push(OpSpec::new("keep", &[(&var, Access::Update)]).kind(OpKind::NoSkip), |_| Ok(()));
        assert_eq!(message_of(engine, &var).as_deref(), Some("old"));
    }
}

#[test]
fn a_whole_write_runs_and_heals_whatever_the_kind_of_op() {
    for engine in every_kind() {
        for kind in [OpKind::Strict, OpKind::Selective, OpKind::NoSkip] {
            let (var, ran) = (engine.new_var(), Arc::new(AtomicBool::new(false)));
            fail(engine, &var, "old");
            let seen = ran.clone();
            engine.push(OpSpec::new("fill", &[(&var, Access::Write)]).kind(kind), move |_| {
                seen.store(true, SeqCst);
                Ok(())
            });
            assert_eq!(message_of(engine, &var), None);
            assert!(ran.load(SeqCst));
        }
    }
}

#[test]
fn a_selective_op_fails_exactly_the_writes_it_names() {
    for engine in every_kind() {
        let (good, bad) = (engine.new_var(), engine.new_var());
        let (x, y) = (engine.new_var(), engine.new_var());
        fail(engine, &bad, "input");
        let vars = [(&good, Access::Read), (&bad, Access::Read), (&x, Access::Write), (&y, Access::Write)];
        engine.push(OpSpec::new("plan", &vars).kind(OpKind::Selective), |ctx| {
            assert_eq!(ctx.failed_reads().collect::<Vec<_>>(), [1]);
            assert!(ctx.failure_of(0).is_none());
            ctx.fail_write(3, ctx.failure_of(1).unwrap());
            Ok(())
        });
        assert_eq!(message_of(engine, &x), None);
        assert_eq!(message_of(engine, &y).as_deref(), Some("input"));
    }
}

#[test]
fn an_inherited_failure_is_passed_on_as_the_same_event() {
    for engine in every_kind() {
        let (a, b) = (engine.new_var(), engine.new_var());
        fail(engine, &a, "event");
        let vars = [(&a, Access::Read), (&b, Access::Write)];
        engine.push(OpSpec::new("pass", &vars).kind(OpKind::Selective), |ctx| Err(ctx.failure_of(0).unwrap().into()));
        let of = |v: &Var| match engine.wait_to_read(v) {
            Err(WaitError::Failed(f)) => f,
            other => panic!("{other:?}"),
        };
        assert!(of(&a).same_event(&of(&b)));
        assert!(engine.wait_all().is_ok(), "observed by the waits");
    }
}

#[test]
fn a_panic_becomes_a_failure_with_its_message_and_the_operators_name() {
    for engine in every_kind() {
        let var = engine.new_var();
        engine.push(OpSpec::new("Explode", &[(&var, Access::Write)]), |_| panic!("at {}", 7));
        let Err(WaitError::Failed(f)) = engine.wait_to_read(&var) else { panic!() };
        assert_eq!((f.op(), f.kind(), f.device()), ("Explode", FailureKind::Panic, Some("cpu(0)")));
        assert!(f.message().contains("Explode") && f.message().contains("at 7"));
    }
}

#[test]
fn failures_keep_what_the_operator_said_about_them() {
    for engine in every_kind() {
        let var = engine.new_var();
        engine.push(OpSpec::new("dot", &[(&var, Access::Write)]).device(DeviceId::cpu(3)), |_| {
            let attrs = vec![("transpose_a".to_owned(), "True".to_owned())];
            let e = OpError::new(FailureKind::Shape, "no").node("dot0").attrs(attrs).shapes(vec![vec![2, 3]]);
            Err(e.dtypes(vec!["float32"]))
        });
        let Err(WaitError::Failed(f)) = engine.wait_to_read(&var) else { panic!() };
        assert_eq!((f.node(), f.kind(), f.device()), (Some("dot0"), FailureKind::Shape, Some("cpu(3)")));
        assert_eq!(
            (f.attrs()[0].1.as_str(), f.shapes()[0].as_slice(), f.dtypes()),
            ("True", &[2, 3][..], &["float32"][..])
        );
    }
}

#[test]
fn a_dropped_completion_fails_the_op() {
    for engine in every_kind() {
        let (var, other) = (engine.new_var(), engine.new_var());
        engine.push_async(OpSpec::new("forget", &[(&var, Access::Write)]), |_, token| drop(token));
        assert_eq!(message_of(engine, &var).as_deref(), Some("operator forget never completed"));
        engine.push_async(OpSpec::new("burst", &[(&other, Access::Write)]), |_, _token| panic!("inside"));
        assert_eq!(message_of(engine, &other).as_deref(), Some("operator burst panicked: inside"));
        assert!(engine.wait_all().is_ok(), "one event each, both observed");
    }
}

#[test]
fn an_async_op_that_fails_is_a_failure_like_any_other() {
    for engine in every_kind() {
        let (a, b) = (engine.new_var(), engine.new_var());
        engine
            .push_async(OpSpec::new("load", &[(&a, Access::Write)]), |_, token| token.complete(Err(error("no file"))));
        engine.push_async(OpSpec::new("next", &[(&a, Access::Read), (&b, Access::Write)]), |_, _| unreachable!());
        assert_eq!(message_of(engine, &b).as_deref(), Some("no file"));
    }
}

#[test]
fn wait_all_raises_what_nobody_observed_once_and_changes_no_variable() {
    for engine in every_kind() {
        let (a, b, c) = (engine.new_var(), engine.new_var(), engine.new_var());
        fail(engine, &a, "first");
        fail(engine, &b, "second");
        fail(engine, &c, "third");
        succeed(engine, &[(&c, Access::Read), (&engine.new_var(), Access::Write)]);
        assert_eq!(message_of(engine, &b).as_deref(), Some("second"));
        assert_eq!(messages(engine.wait_all()), ["first", "third"]);
        assert_eq!(messages(engine.wait_all()), Vec::<String>::new());
        assert_eq!(message_of(engine, &a).as_deref(), Some("first"));
    }
}

#[test]
fn the_list_of_failures_is_bounded_and_then_counts() {
    let engine = start(EngineKind::Threaded, 2);
    for _ in 0..1500 {
        fail(engine, &engine.new_var(), "one of many");
    }
    match engine.wait_all() {
        Err(WaitError::Failures(list, more)) => assert_eq!((list.len(), more), (1024, 476)),
        other => panic!("{other:?}"),
    }
    assert!(engine.wait_all().is_ok());
    // Observed ones make room.
    for _ in 0..1500 {
        let var = engine.new_var();
        fail(engine, &var, "seen");
        assert!(message_of(engine, &var).is_some());
    }
    assert!(engine.wait_all().is_ok());
}

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
fn failing_a_duplicate_fails_the_variable() {
    for engine in every_kind() {
        let (var, bad) = (engine.new_var(), engine.new_var());
        fail(engine, &bad, "why");
        let vars = [(&var, Access::Write), (&bad, Access::Read), (&var, Access::Write)];
        engine.push(OpSpec::new("late", &vars).kind(OpKind::Selective), |ctx| {
            ctx.fail_write(2, ctx.failure_of(1).unwrap());
            Ok(())
        });
        assert_eq!(message_of(engine, &var).as_deref(), Some("why"));
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
        // More than the writer's worker and the one that it wakes: those that find work have to wake further ones.
        let readers = engine.cores();
        for _ in 0..readers {
            let met = met.clone();
            engine.push(OpSpec::new("meet", &[(&var, Access::Read)]), move |_| {
                met.fetch_add(1, SeqCst);
                let began = Instant::now();
                while met.load(SeqCst) < readers {
                    if began.elapsed().as_secs() > 5 {
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
fn waiting_inside_an_op_is_refused() {
    for engine in every_kind() {
        let (var, other) = (engine.new_var(), engine.new_var());
        let inner = other.clone();
        engine.push(OpSpec::new("wait", &[(&var, Access::Write)]), move |ctx| {
            let all = ctx.engine().wait_all();
            match (ctx.engine().wait_to_read(&inner), all) {
                (Err(WaitError::InsideOp), Err(WaitError::InsideOp)) => Ok(()),
                _ => Err(error("not refused")),
            }
        });
        assert_eq!(message_of(engine, &var), None);
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
            assert!(began.elapsed().as_secs() < 10, "only {} ran", var.version());
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
            assert!(began.elapsed().as_secs() < 20);
            std::thread::yield_now();
        }
    }
}

#[test]
fn variables_may_be_dropped_with_work_outstanding() {
    let _guard = watchdog(60);
    for engine in every_kind() {
        let ran = Arc::new(AtomicUsize::new(0));
        for _ in 0..500 {
            let (x, y) = (engine.new_var(), engine.new_var());
            for vars in [&[(&x, Access::Write)][..], &[(&x, Access::Read), (&y, Access::Write)]] {
                let ran = ran.clone();
                engine.push(OpSpec::new("orphan", vars), move |_| {
                    std::thread::yield_now();
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
fn a_callback_runs_when_the_value_is_there_and_gets_its_failure() {
    for engine in every_kind() {
        let (good, bad) = (engine.new_var(), engine.new_var());
        let (send, receive) = std::sync::mpsc::channel();
        engine.push(OpSpec::new("slow", &[(&good, Access::Write)]), |_| {
            std::thread::sleep(Duration::from_millis(5));
            Ok(())
        });
        fail(engine, &bad, "for you");
        for var in [&good, &bad] {
            let send = send.clone();
            engine.on_ready(var, move |result| send.send(result.map_err(|f| f.message().to_owned())).unwrap());
        }
        let mut got: Vec<_> = (0..2).map(|_| receive.recv_timeout(Duration::from_secs(10)).unwrap()).collect();
        got.sort();
        assert_eq!(got, [Ok(()), Err("for you".to_owned())]);
        assert_eq!(messages(engine.wait_all()), ["for you"], "a callback does not count as observing");
    }
}

#[test]
fn a_panic_in_a_callback_is_reported_by_wait_all() {
    for engine in every_kind() {
        let var = engine.new_var();
        engine.on_ready(&var, |_| panic!("callback"));
        assert_eq!(messages(engine.wait_all()), ["operator on_ready panicked: callback"]);
        assert_eq!(message_of(engine, &var), None);
    }
}

#[test]
fn a_wait_can_be_given_up_and_the_engine_goes_on() {
    for engine in every_kind() {
        let var = engine.new_var();
        let (send, receive) = std::sync::mpsc::channel();
        engine.push_async(OpSpec::new("held", &[(&var, Access::Write)]), move |_, token| send.send(token).unwrap());
        let mut polls = 0;
        let mut twice = || {
            polls += 1;
            polls < 2
        };
        assert!(matches!(engine.wait_to_read_with(&var, &mut twice), Err(WaitError::Interrupted)));
        assert!(matches!(engine.wait_to_write_with(&var, &mut || false), Err(WaitError::Interrupted)));
        assert!(matches!(engine.wait_all_with(&mut || false), Err(WaitError::Interrupted)));
        assert!(!engine.is_ready(&var));
        receive.recv().unwrap().complete(Ok(()));
        engine.wait_all().unwrap();
        assert!(engine.is_ready(&var));
        succeed(engine, &[(&var, Access::Write)]);
        engine.wait_to_read(&var).unwrap();
        assert_eq!(var.version(), 2);
    }
}

#[test]
fn many_threads_wait_for_one_variable() {
    let _guard = watchdog(60);
    for engine in every_kind() {
        let var = engine.new_var();
        let (send, receive) = std::sync::mpsc::channel();
        engine.push_async(OpSpec::new("held", &[(&var, Access::Write)]), move |_, token| send.send(token).unwrap());
        std::thread::scope(|s| {
            let waiters: Vec<_> = (0..16)
                .map(|i| {
                    let var = &var;
                    s.spawn(move || match i % 4 {
                        0 => messages(engine.wait_all()).len(),
                        1 => raised(engine.wait_to_write(var)).is_some() as usize,
                        _ => raised(engine.wait_to_read(var)).is_some() as usize,
                    })
                })
                .collect();
            std::thread::sleep(Duration::from_millis(20));
            receive.recv().unwrap().complete(Err(error("late")));
            let told: usize = waiters.into_iter().map(|w| w.join().unwrap()).sum();
            assert!(told == 12 || told == 13, "the 12 waits for the variable raise, wait_all at most once: {told}");
        });
    }
}

#[test]
fn after_closing_pushes_fail_and_waits_return() {
    let _guard = watchdog(60);
    for engine in every_kind() {
        let (pending, fresh) = (engine.new_var(), engine.new_var());
        let (send, receive) = std::sync::mpsc::channel();
        engine.push_async(OpSpec::new("held", &[(&pending, Access::Write)]), move |_, token| send.send(token).unwrap());
        let token = receive.recv_timeout(Duration::from_secs(10)).unwrap();
        std::thread::scope(|s| {
            let one = s.spawn(|| engine.wait_to_read(&pending));
            let all = s.spawn(|| engine.wait_all());
            std::thread::sleep(Duration::from_millis(20));
            engine.close();
            assert!(matches!(one.join().unwrap(), Err(WaitError::Closed)));
            assert!(matches!(all.join().unwrap(), Err(WaitError::Closed)));
        });
        assert!(matches!(engine.wait_to_read(&pending), Err(WaitError::Closed)));
        engine.push(OpSpec::new("late", &[(&fresh, Access::Write)]), |_| unreachable!());
        let Err(WaitError::Failed(f)) = engine.wait_to_read(&fresh) else { panic!() };
        assert_eq!((f.kind(), f.op()), (FailureKind::Shutdown, "late"));
        let ran = Arc::new(AtomicBool::new(false));
        let seen = ran.clone();
        engine.push(OpSpec::new("clean", &[(&fresh, Access::Write)]).kind(OpKind::NoSkip), move |_| {
            seen.store(true, SeqCst);
            Ok(())
        });
        engine.wait_to_read(&fresh).ok();
        let began = Instant::now();
        while !ran.load(SeqCst) && began.elapsed().as_secs() < 10 {
            std::thread::yield_now();
        }
        assert!(ran.load(SeqCst), "clean-up runs after closing");
        token.complete(Ok(()));
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

#[test]
fn wait_all_returns_while_others_push_without_end() {
    let _guard = watchdog(60);
    for engine in pooled_kinds() {
        let stop = AtomicBool::new(false);
        std::thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| {
                    let var = engine.new_var();
                    let flying = Arc::new(AtomicUsize::new(0));
                    while !stop.load(SeqCst) {
                        while flying.load(SeqCst) > 64 {
                            std::thread::yield_now();
                        }
                        flying.fetch_add(1, SeqCst);
                        let landed = flying.clone();
                        engine.push(OpSpec::new("others", &[(&var, Access::Update)]), move |_| {
                            landed.fetch_sub(1, SeqCst);
                            Ok(())
                        });
                    }
                });
            }
            let var = engine.new_var();
            for i in 0..50 {
                let done = Arc::new(AtomicBool::new(false));
                let seen = done.clone();
                engine.push(OpSpec::new("mine", &[(&var, Access::Write)]), move |_| {
                    if i % 10 == 0 {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    seen.store(true, SeqCst);
                    Ok(())
                });
                engine.wait_all().unwrap();
                assert!(done.load(SeqCst), "wait_all returned before an op pushed before it");
            }
            stop.store(true, SeqCst);
        });
    }
}

#[test]
fn an_idle_engine_is_woken_for_every_push() {
    let _guard = watchdog(60);
    for engine in pooled_kinds() {
        let var = engine.new_var();
        for i in 0..200 {
            if i % 3 == 0 {
                std::thread::sleep(Duration::from_micros(300));
            }
            succeed(engine, &[(&var, Access::Update)]);
            engine.wait_to_read(&var).unwrap();
        }
    }
}
