//! Profiling and `dump`: what the engine tells about itself.

mod common;
use common::*;
use mxrt_engine::*;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The profiler belongs to the process and records every engine: tests that use it, or whose ops
/// others must not record, run one at a time.
static PROFILER: Mutex<()> = Mutex::new(());

fn names(snapshot: &profile::Snapshot) -> Vec<&str> {
    snapshot.records.iter().map(|r| r.name.as_str()).collect()
}

fn op(engine: &'static Engine, name: impl Into<OpName>, accesses: &[(&Var, Access)], sleep: u64) {
    engine.push(OpSpec::new(name, accesses), move |_| {
        std::thread::sleep(Duration::from_micros(sleep));
        Ok(())
    });
}

#[test]
fn ops_are_recorded_only_while_the_profiler_is_on() {
    let _guard = watchdog(60);
    let _alone = PROFILER.lock();
    for engine in every_kind() {
        let (a, b) = (engine.new_var(), engine.new_var());
        op(engine, "before", &[(&a, Access::Write)], 0);
        engine.wait_all().unwrap();
        profile::set_on(true);
        let begin = Instant::now();
        op(engine, "first", &[(&a, Access::Write)], 2000);
        op(engine, "second".to_owned(), &[(&a, Access::Read), (&b, Access::Write)], 1000);
        engine.push(OpSpec::new("bad", &[(&b, Access::Write)]).cost(Cost::Small), |_| Err(error("x")));
        engine.push_async(OpSpec::new("async", &[(&a, Access::Read)]), |_, token| {
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(3));
                token.complete(Ok(()));
            });
        });
        engine.wait_to_write(&a).unwrap();
        let _ = engine.wait_all();
        let all = begin.elapsed().as_secs_f64() * 1e6;
        profile::set_on(false);
        op(engine, "after", &[(&a, Access::Write)], 0);
        engine.wait_all().unwrap();
        let snapshot = profile::snapshot(true);
        let mut found = names(&snapshot);
        found.sort_unstable();
        assert_eq!(found, ["async", "bad", "first", "second"]);
        let of = |name: &str| snapshot.records.iter().find(|r| r.name.as_str() == name).unwrap();
        let (first, second) = (of("first"), of("second"));
        assert!(first.queued <= first.started && first.started <= first.ended && first.ended <= second.started);
        let time = first.ended - first.started;
        // What clocks of two kinds count may differ by a little.
        assert!((2000.0..1.1 * all + 1000.0).contains(&time), "an op of 2 ms took {time} µs of {all} µs");
        assert!(of("async").ended - of("async").started >= 3000.0, "an async op ends with its token");
        assert_eq!((&*second.reads, &*second.writes), (&[a.id()][..], &[b.id()][..]));
        assert_eq!((of("bad").failed, first.failed), (true, false));
        assert!(snapshot.threads.contains_key(&first.thread));
        assert!(profile::snapshot(false).records.is_empty());
    }
}

#[test]
fn totals_and_trace_say_the_same_as_the_records() {
    let _guard = watchdog(60);
    let _alone = PROFILER.lock();
    let engine = start(EngineKind::ThreadedPerDevice, 2);
    let var = engine.new_var();
    profile::set_on(true);
    for _ in 0..5 {
        op(engine, "say \"x\"\n", &[(&var, Access::Update)], 100);
    }
    op(engine, "read", &[(&var, Access::Read)], 100);
    engine.wait_all().unwrap();
    profile::set_on(false);
    let snapshot = profile::snapshot(true);
    let totals = snapshot.totals();
    let counts: Vec<(&str, u64)> = totals.iter().map(|t| (t.name.as_str(), t.count)).collect();
    assert_eq!(counts, [("read", 1), ("say \"x\"\n", 5)]);
    assert!(
        totals.iter().all(|t| t.min <= t.total / t.count as f64 && t.total / t.count as f64 <= t.max && t.min >= 100.0)
    );
    let events = snapshot.trace_events();
    assert_eq!(events.iter().filter(|e| e.contains(r#""ph":"X""#)).count(), 6);
    assert!(events.iter().any(|e| e.contains(r#""name":"say \"x\"\n""#)), "{events:?}");
    let arrows: Vec<_> = events.iter().filter(|e| e.contains(r#""cat":"data""#)).collect();
    assert_eq!(arrows.len(), 2, "one arrow, from the last writer to the reader: {arrows:?}");
}

#[test]
fn the_profiler_keeps_the_newest_records() {
    let _guard = watchdog(120);
    let _alone = PROFILER.lock();
    let engine = start(EngineKind::ThreadedPerDevice, 1);
    let var = engine.new_var();
    let many = profile::RECORDS_PER_THREAD + 1000;
    profile::set_on(true);
    for i in 0..many {
        let name = if i < 1000 { "old" } else { "new" };
        // Inline: all in this thread.
        engine.push(OpSpec::new(name, &[(&var, Access::Update)]).cost(Cost::Small), |_| Ok(()));
        if i % 1000 == 0 {
            engine.wait_all().unwrap();
        }
    }
    engine.wait_all().unwrap();
    profile::set_on(false);
    let snapshot = profile::snapshot(true);
    assert_eq!(snapshot.records.len() as u64 + snapshot.lost, many as u64);
    assert!(snapshot.records.len() >= profile::RECORDS_PER_THREAD);
    assert!(snapshot.records.windows(2).all(|w| w[0].started <= w[1].started));
}

#[test]
fn a_full_profile_that_was_cleared_keeps_the_newest_records_again() {
    let _guard = watchdog(120);
    let _alone = PROFILER.lock();
    let engine = start(EngineKind::ThreadedPerDevice, 1);
    let var = engine.new_var();
    let push = |name: &'static str, count: usize| {
        for _ in 0..count {
            // Inline: all in this thread.
            engine.push(OpSpec::new(name, &[(&var, Access::Update)]).cost(Cost::Small), |_| Ok(()));
        }
        engine.wait_all().unwrap();
    };
    profile::snapshot(true);
    profile::set_on(true);
    push("before", profile::RECORDS_PER_THREAD + 1000);
    profile::snapshot(true);
    push("old", 100);
    push("new", profile::RECORDS_PER_THREAD);
    profile::set_on(false);
    let snapshot = profile::snapshot(true);
    let count = |name: &str| snapshot.records.iter().filter(|r| r.name.as_str() == name).count();
    // Some may have run in the worker, which has a place of its own for records.
    assert_eq!(snapshot.lost as usize + count("old") + count("new"), profile::RECORDS_PER_THREAD + 100);
    assert!(count("old") == 0 || snapshot.lost < 100, "{} old ones stay, {} are lost", count("old"), snapshot.lost);
}

#[test]
fn a_record_names_the_request_and_what_is_written_although_much_is_read() {
    let _guard = watchdog(60);
    let _alone = PROFILER.lock();
    for engine in every_kind() {
        let vars: Vec<Var> = (0..20).map(|_| engine.new_var()).collect();
        let mut accesses: Vec<_> = vars.iter().map(|v| (v, Access::Read)).collect();
        accesses[19].1 = Access::Write;
        profile::snapshot(true);
        profile::set_on(true);
        let request = RequestScope::begin();
        engine.push(OpSpec::new("plan", &accesses), |_| Ok(()));
        let id = request.id();
        drop(request);
        engine.push(OpSpec::new("alone", &[(&vars[0], Access::Read)]), |_| Ok(()));
        engine.wait_all().unwrap();
        profile::set_on(false);
        let snapshot = profile::snapshot(true);
        let of = |name: &str| snapshot.records.iter().find(|r| r.name.as_str() == name).unwrap();
        assert_eq!((of("plan").request, of("alone").request), (Some(id), None));
        assert_eq!((of("plan").reads.len(), of("plan").writes.as_slice()), (7, &[vars[19].id()][..]));
        let trace = snapshot.trace_events().join("\n");
        assert!(trace.contains(&format!("\"request\":{id}")) && !trace.contains("null"), "{trace}");
    }
}

#[test]
fn steps_lie_within_the_bar_of_their_op_and_name_its_request() {
    let _guard = watchdog(60);
    let _alone = PROFILER.lock();
    for engine in every_kind() {
        let var = engine.new_var();
        profile::snapshot(true);
        let run = |ctx: &mxrt_engine::RunCtx<'_>| match ctx.profiled() {
            None => Ok(()),
            Some(op) => {
                op.step(&"first \"layer\"".into(), "Convolution", || Ok::<(), mxrt_engine::OpError>(()))?;
                op.step(&"outer".into(), "_foreach", || op.step(&"inner".into(), "relu", || Err(error("x"))))
            }
        };
        engine.push(OpSpec::new("unseen", &[(&var, Access::Update)]), run);
        engine.wait_all().unwrap();
        profile::set_on(true);
        let request = RequestScope::begin();
        engine.push(OpSpec::new("plan", &[(&var, Access::Update)]), run);
        let id = request.id();
        drop(request);
        assert!(engine.wait_to_read(&var).is_err());
        let _ = engine.wait_all();
        profile::set_on(false);
        let snapshot = profile::snapshot(true);
        let plan = snapshot.records.iter().find(|r| r.name.as_str() == "plan").unwrap();
        let seen: Vec<_> = snapshot.steps.iter().map(|s| (&*s.name, s.operator, s.failed)).collect();
        assert_eq!(
            seen,
            [("first \"layer\"", "Convolution", false), ("outer", "_foreach", true), ("inner", "relu", true)]
        );
        for step in &snapshot.steps {
            assert_eq!((step.request, step.thread), (Some(id), plan.thread));
            assert!(plan.started <= step.started && step.started <= step.ended && step.ended <= plan.ended);
        }
        let (outer, inner) = (&snapshot.steps[1], &snapshot.steps[2]);
        assert!(outer.started <= inner.started && inner.ended <= outer.ended);
        let trace = snapshot.trace_events();
        assert_eq!(trace.iter().filter(|e| e.contains(r#""cat":"layer""#)).count(), 3, "{trace:?}");
        assert!(profile::snapshot(false).steps.is_empty(), "what was cleared is gone");
    }
}

#[test]
fn the_profiler_keeps_the_newest_steps() {
    let _guard = watchdog(60);
    let _alone = PROFILER.lock();
    let engine = start(EngineKind::ThreadedPerDevice, 1);
    let var = engine.new_var();
    profile::snapshot(true);
    profile::set_on(true);
    let run = |ctx: &mxrt_engine::RunCtx<'_>| {
        let op = ctx.profiled().expect("it is recorded");
        for i in 0..profile::RECORDS_PER_THREAD + 10 {
            op.step(&if i < 10 { "old" } else { "new" }.into(), "relu", || Ok::<(), mxrt_engine::OpError>(()))?;
        }
        Ok(())
    };
    engine.push(OpSpec::new("plan", &[(&var, Access::Update)]), run);
    engine.wait_all().unwrap();
    profile::set_on(false);
    let snapshot = profile::snapshot(true);
    assert_eq!((snapshot.steps.len(), snapshot.lost), (profile::RECORDS_PER_THREAD, 10));
    assert!(snapshot.steps.iter().all(|s| &*s.name == "new"));
}

#[test]
fn a_dump_names_what_runs_what_is_queued_and_who_waits() {
    let _guard = watchdog(60);
    let _alone = PROFILER.lock();
    for engine in pooled_kinds().filter(|e| e.cores() == 1) {
        let (busy, blocked, free) = (engine.new_var(), engine.new_var(), engine.new_var());
        let (started, go_on) = (std::sync::mpsc::channel(), std::sync::mpsc::channel::<()>());
        engine.push(OpSpec::new("the slow one", &[(&free, Access::Read), (&busy, Access::Write)]), move |_| {
            started.0.send(()).unwrap();
            go_on.1.recv().unwrap();
            Ok(())
        });
        started.1.recv_timeout(Duration::from_secs(60)).unwrap();
        op(engine, "the queued one", &[(&free, Access::Read)], 0);
        op(engine, "the blocked one", &[(&busy, Access::Read), (&blocked, Access::Write)], 0);
        std::thread::scope(|s| {
            let waiter = std::thread::Builder::new().name("patient".into());
            waiter.spawn_scoped(s, || engine.wait_to_read(&blocked)).unwrap();
            s.spawn(|| engine.wait_all());
            let (uses, waits) = (
                format!("reads {}, writes {}", free.id(), busy.id()),
                format!("for variable {}: being written", blocked.id()),
            );
            let expected = [
                "1 of 1 cores in use",
                &uses,
                "queued, ready to run:\n  the queued one",
                &waits,
                "1 threads for everything",
            ];
            let seconds = |text: &str, before: &str| {
                let number = text.split_once(before)?.1.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
                number.parse::<f64>().ok()
            };
            let lasted = |text: &str, before: &str| seconds(text, before).is_some_and(|seconds| seconds >= 0.1);
            let begin = Instant::now();
            loop {
                let text = engine.dump();
                let slow = lasted(&text, ": the slow one on cpu(0) since ") && lasted(&text, "patient since ");
                if slow && expected.iter().all(|words| text.contains(words)) {
                    break;
                }
                assert!(begin.elapsed() < Duration::from_secs(60), "{expected:?} are not all in:\n{text}");
                std::thread::sleep(Duration::from_millis(10));
            }
            go_on.0.send(()).unwrap();
        });
        let text = engine.dump();
        assert!(text.contains("waiting: none"), "{text}");
    }
}

#[test]
fn a_dump_shows_the_queue_of_an_awaited_variable() {
    let _guard = watchdog(60);
    let _alone = PROFILER.lock();
    let engine = start(EngineKind::ThreadedPerDevice, 2);
    let var = engine.new_var();
    let held = engine.read_guard(&var).unwrap();
    op(engine, "writer", &[(&var, Access::Update)], 0);
    std::thread::scope(|s| {
        s.spawn(|| engine.wait_to_read(&var));
        let text = loop {
            let text = engine.dump();
            if text.contains("wait (reads)") {
                break text;
            }
            std::thread::yield_now();
        };
        assert!(text.contains("being read by 1; then writer (writes), wait (reads)"), "{text}");
        assert!(text.contains(&format!("holds a guard of variable {}", var.id())), "{text}");
        drop(held);
    });
}

#[test]
fn dumps_and_snapshots_while_everything_runs_do_no_harm() {
    let _guard = watchdog(120);
    let _alone = PROFILER.lock();
    for engine in pooled_kinds() {
        let vars: Vec<Var> = (0..8).map(|_| engine.new_var()).collect();
        let done = std::sync::atomic::AtomicBool::new(false);
        profile::set_on(true);
        std::thread::scope(|s| {
            s.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::SeqCst) {
                    assert!(engine.dump().contains("cores in use"));
                    profile::snapshot(true);
                }
            });
            let pushers: Vec<_> = (0..2)
                .map(|t| {
                    let vars = &vars;
                    s.spawn(move || {
                        for i in 0..3000 {
                            let name = OpName::from(format!("op {i}"));
                            let accesses =
                                [(&vars[(t + i) % 8], Access::Update), (&vars[(t + 3 * i) % 8], Access::Read)];
                            let cost = if i % 2 == 0 { Cost::Small } else { Cost::Large };
                            engine.push(OpSpec::new(name, &accesses).cost(cost), move |ctx| {
                                assert_eq!(ctx.name().len(), format!("op {i}").len());
                                Ok(())
                            });
                        }
                        engine.wait_all().unwrap();
                    })
                })
                .collect();
            pushers.into_iter().for_each(|p| p.join().unwrap());
            done.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        profile::set_on(false);
        profile::snapshot(true);
    }
}
