//! The rules of failures, one test each, on every kind and on one, two and four cores.

use crate::common::*;
use mxrt_engine::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

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
fn wait_all_raises_what_no_thread_observed_once_and_changes_no_variable() {
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

/// The cause of a failure may hold the arrays of its request.
#[test]
fn what_failures_hold_is_freed_when_they_have_been_observed() {
    for engine in every_kind() {
        let object = Arc::new(());
        let fail = |var: &Var| {
            let cause = object.clone();
            engine.push(OpSpec::new("bad", &[(var, Access::Write)]), move |_| Err(error("seen").cause(cause)));
        };
        // One by one: nothing is left but the last one.
        for _ in 0..100 {
            let var = engine.new_var();
            fail(&var);
            assert_eq!(message_of(engine, &var).as_deref(), Some("seen"));
        }
        assert!(Arc::strong_count(&object) <= 10, "{} of 100 are held", Arc::strong_count(&object) - 1);
        // Beside one that no thread has observed, and in groups.
        let unseen = engine.new_var();
        fail(&unseen);
        for _ in 0..40 {
            let vars: Vec<Var> = (0..5).map(|_| engine.new_var()).collect();
            vars.iter().for_each(fail);
            assert!(vars.iter().all(|var| message_of(engine, var).is_some()));
        }
        assert!(Arc::strong_count(&object) <= 32, "{} of 301 are held", Arc::strong_count(&object) - 1);
        assert_eq!(messages(engine.wait_all()), ["seen"]);
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
fn a_failure_names_the_place_that_pushed_the_op_and_its_request() {
    for engine in every_kind() {
        let (var, copy, later) = (engine.new_var(), engine.new_var(), engine.new_var());
        let request = RequestScope::begin();
        let line = line!() + 1;
        fail(engine, &var, "here");
        succeed(engine, &[(&var, Access::Read), (&copy, Access::Write)]);
        {
            let inner = RequestScope::begin();
            assert_eq!(inner.id(), request.id(), "a request inside another one is the same");
        }
        let _site = PushSite::new("service.py:7".to_owned());
        let id = request.id();
        drop(request);
        engine.push(OpSpec::new("late", &[(&later, Access::Write)]).kind(OpKind::Selective), |ctx| {
            ctx.fail_write(0, ctx.failure(error("inside")));
            Ok(())
        });
        let of = |v: &Var| match engine.wait_to_read(v) {
            Err(WaitError::Failed(f)) => f,
            other => panic!("{other:?}"),
        };
        let place = format!("{}:{line}", file!());
        for var in [&var, &copy] {
            assert_eq!(of(var).pushed_at(), cfg!(debug_assertions).then_some(place.as_str()));
            assert_eq!(of(var).request(), Some(id));
        }
        let late = of(&later);
        assert_eq!((late.op(), late.pushed_at(), late.request()), ("late", Some("service.py:7"), None));
        assert!(RequestScope::begin().id() > id);
    }
}
