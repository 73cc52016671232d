//! The rules of waiting, one test each, on every kind and on one, two and four cores.

use crate::common::*;
use mxrt_engine::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

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
        let mut got: Vec<_> = (0..2).map(|_| receive.recv_timeout(Duration::from_secs(60)).unwrap()).collect();
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
            let notified: usize = waiters.into_iter().map(|w| w.join().unwrap()).sum();
            assert!(
                notified == 12 || notified == 13,
                "the 12 waits for the variable raise, wait_all at most once: {notified}"
            );
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
        let token = receive.recv_timeout(Duration::from_secs(60)).unwrap();
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
        while !ran.load(SeqCst) && began.elapsed().as_secs() < 60 {
            std::thread::yield_now();
        }
        assert!(ran.load(SeqCst), "clean-up runs after closing");
        token.complete(Ok(()));
    }
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

/// Pushes an op of this variable that pushes the next one, as its follow-up; the last says so.
fn push_chain(engine: &'static Engine, var: &Var, left: usize, done: Arc<AtomicBool>) {
    let again = var.clone();
    engine.push(OpSpec::new("follow-up", &[(var, Access::Update)]).follow_up(), move |ctx| {
        match left {
            0 => done.store(true, SeqCst),
            _ => push_chain(ctx.engine(), &again, left - 1, done),
        }
        Ok(())
    });
}

#[test]
fn wait_all_waits_for_the_follow_ups_of_what_it_waits_for() {
    let _guard = watchdog(60);
    for engine in pooled_kinds() {
        for _ in 0..3 {
            let (var, done) = (engine.new_var(), Arc::new(AtomicBool::new(false)));
            let (waits, begin) = std::sync::mpsc::channel();
            let (chain, seen) = (var.clone(), done.clone());
            engine.push(OpSpec::new("first", &[(&var, Access::Write)]), move |ctx| {
                begin.recv().unwrap();
                push_chain(ctx.engine(), &chain, 20, seen);
                Ok(())
            });
            // Nothing follows before the wait has begun.
            let mut poll = || {
                let _ = waits.send(());
                true
            };
            engine.wait_all_with(&mut poll).unwrap();
            assert!(done.load(SeqCst), "wait_all returned before a follow-up");
        }
    }
}

#[test]
fn a_follow_up_without_a_pusher_is_an_op_like_others() {
    for engine in every_kind() {
        let (var, done) = (engine.new_var(), Arc::new(AtomicBool::new(false)));
        push_chain(engine, &var, 0, done.clone());
        engine.wait_all().unwrap();
        assert!(done.load(SeqCst));
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

/// A signal handler may do this, or an object that the garbage collector ends in one. Another
/// thread keeps the first op running until the inner call waits, so both wait at the same time.
#[test]
fn wait_all_may_be_called_from_the_poll_hook_of_wait_all() {
    let _guard = watchdog(60);
    for engine in pooled_kinds() {
        let var = engine.new_var();
        let (send, receive) = std::sync::mpsc::channel();
        engine.push_async(OpSpec::new("held", &[(&var, Access::Write)]), move |_, token| send.send(token).unwrap());
        let mut token = Some(receive.recv().unwrap());
        let (mut inner, mut given_up) = (0, false);
        let result = engine.wait_all_with(&mut || {
            inner += 1;
            if inner == 1 {
                // Given up: the outer call goes on.
                given_up = matches!(engine.wait_all_with(&mut || false), Err(WaitError::Interrupted));
                return true;
            }
            let token = token.take();
            std::thread::scope(|s| {
                s.spawn(move || {
                    std::thread::sleep(Duration::from_millis(20));
                    token.unwrap().complete(Err(error("late")));
                });
                assert_eq!(messages(engine.wait_all()), ["late"]);
            });
            true
        });
        assert!(result.is_ok(), "the inner call has raised it: {result:?}");
        assert!(given_up && inner == 2, "{given_up} {inner}");
        succeed(engine, &[(&var, Access::Write)]);
        assert!(engine.wait_all().is_ok());
    }
}
