//! Ops that run in parts.

use crate::common::*;
use mxrt_engine::*;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

/// Keeps the only core of an engine busy until it is released.
fn occupy(engine: &'static Engine) -> mpsc::Sender<()> {
    let (release, held) = mpsc::channel::<()>();
    let (started, running) = mpsc::channel();
    let held = Mutex::new(held);
    engine.push(OpSpec::new("occupy", &[]), move |_| {
        let _ = started.send(());
        let _ = held.lock().unwrap().recv();
        Ok(())
    });
    running.recv().unwrap();
    release
}

#[test]
fn others_come_first_between_the_parts_of_a_long_op() {
    let _guard = watchdog(60);
    let engine = start(EngineKind::ThreadedPerDevice, 1);
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let (long, short) = (engine.new_var(), engine.new_var());
    let release = occupy(engine);
    let (mut part, to) = (0, log.clone());
    engine.push_in_parts(OpSpec::new("long", &[(&long, Access::Write)]), move |_| {
        to.lock().unwrap().push(format!("part {part}"));
        part += 1;
        Ok(if part == 3 { PartStatus::Done(Vec::new()) } else { PartStatus::Again })
    });
    let to = log.clone();
    engine.push(OpSpec::new("short", &[(&short, Access::Write)]), move |_| {
        to.lock().unwrap().push("short".to_owned());
        Ok(())
    });
    release.send(()).unwrap();
    engine.wait_all().unwrap();
    assert_eq!(*log.lock().unwrap(), ["part 0", "short", "part 1", "part 2"]);
    assert_eq!((long.version(), short.version()), (1, 1));
}

#[test]
fn dependants_wait_for_the_last_part_on_every_kind_of_engine() {
    let _guard = watchdog(60);
    for engine in every_kind() {
        let var = engine.new_var();
        let value = Arc::new(Mutex::new(0));
        let to = value.clone();
        engine.push_in_parts(OpSpec::new("long", &[(&var, Access::Write)]), move |_| {
            let mut value = to.lock().unwrap();
            *value += 1;
            Ok(if *value == 100 { PartStatus::Done(Vec::new()) } else { PartStatus::Again })
        });
        let seen = Arc::new(Mutex::new(0));
        let (from, to) = (value.clone(), seen.clone());
        engine.push(OpSpec::new("reader", &[(&var, Access::Read)]), move |_| {
            *to.lock().unwrap() = *from.lock().unwrap();
            Ok(())
        });
        engine.wait_all().unwrap();
        assert_eq!(*seen.lock().unwrap(), 100, "{:?}", engine.kind());
    }
}

#[test]
fn errors_and_panics_of_later_parts_are_those_of_the_op() {
    let _guard = watchdog(60);
    for engine in every_kind() {
        for panics in [false, true] {
            let var = engine.new_var();
            let mut part = 0;
            engine.push_in_parts(OpSpec::new("long", &[(&var, Access::Write)]), move |_| {
                // Something waits, so that the next part has a turn of its own.
                engine.push(OpSpec::new("other", &[]), |_| Ok(()));
                part += 1;
                match part {
                    1 => Ok(PartStatus::Again),
                    _ if panics => panic!("fell over"),
                    _ => Err(error("went wrong")),
                }
            });
            let message = raised(engine.wait_to_read(&var)).unwrap();
            let expected = if panics { "operator long panicked: fell over" } else { "went wrong" };
            assert_eq!(message, expected);
            engine.wait_all().unwrap();
        }
    }
}

#[test]
fn the_last_part_may_fail_single_writes() {
    let _guard = watchdog(60);
    for engine in every_kind() {
        let (good, bad) = (engine.new_var(), engine.new_var());
        let accesses = [(&good, Access::Write), (&bad, Access::Write)];
        engine.push_in_parts(OpSpec::new("two", &accesses), |_| {
            let failure = Failure::new((*error("half of it")).clone());
            // A number that the op does not have does no harm.
            Ok(PartStatus::Done(vec![(1, failure.clone()), (7, failure)]))
        });
        engine.wait_to_read(&good).unwrap();
        assert_eq!(raised(engine.wait_to_read(&bad)).as_deref(), Some("half of it"));
        engine.wait_all().unwrap();
    }
}

#[test]
fn what_is_cancelled_or_late_has_no_part() {
    let _guard = watchdog(60);
    let engine = start(EngineKind::ThreadedPerDevice, 1);
    let (unwanted, late) = (engine.new_var(), engine.new_var());
    let release = occupy(engine);
    let never = |_: &RunCtx<'_>| -> Result<PartStatus, OpError> { panic!("it ran") };
    let spec = [(&unwanted, Access::Write)];
    engine.push_in_parts(OpSpec::new("unwanted", &spec).kind(OpKind::Selective), never);
    engine.cancel(&unwanted);
    let spec = [(&late, Access::Write)];
    engine.push_in_parts(OpSpec::new("late", &spec).deadline(std::time::Instant::now()), never);
    release.send(()).unwrap();
    assert!(raised(engine.wait_to_read(&unwanted)).unwrap().contains("cancelled"));
    assert!(raised(engine.wait_to_read(&late)).unwrap().contains("deadline"));
    engine.wait_all().unwrap();
}

#[test]
fn a_suspended_op_holds_no_thread_and_fails_when_it_is_given_up() {
    let _guard = watchdog(60);
    for engine in every_kind() {
        let (sender, suspended) = mpsc::channel::<Resume>();
        let (var, other) = (engine.new_var(), engine.new_var());
        for round in 0..2 {
            let (mut part, to) = (0, sender.clone());
            engine.push_in_parts(OpSpec::new("waits", &[(&var, Access::Write)]), move |_| {
                part += 1;
                let to = to.clone();
                Ok(match part {
                    1 => PartStatus::Suspended(Box::new(move |resume| to.send(resume).unwrap())),
                    _ => PartStatus::Done(Vec::new()),
                })
            });
            let resume = suspended.recv().unwrap();
            // Neither the only core nor the gate is taken.
            engine.push(OpSpec::new("passes", &[(&other, Access::Write)]), |_| Ok(()));
            engine.wait_to_read(&other).unwrap();
            assert!(!engine.is_ready(&var));
            if round == 0 {
                std::thread::spawn(move || resume.resume()).join().unwrap();
                engine.wait_to_read(&var).unwrap();
            } else {
                drop(resume);
                assert!(raised(engine.wait_to_read(&var)).is_some());
            }
        }
    }
}
