//! Forking while other threads push and wait, and leaving the process in the middle of everything.

mod common;
use common::*;
use mxrt_engine::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// Forks; the child runs `f` and ends with its result. Returns the child's wait status.
fn in_child(f: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child only uses the engine, whose fork handlers make that possible, and leaves by
    // `_exit`.
    unsafe {
        let child = libc::fork();
        assert!(child >= 0);
        if child == 0 {
            libc::alarm(200);
            let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).unwrap_or(99);
            libc::_exit(code);
        }
        let mut status = 0;
        libc::waitpid(child, &mut status, 0);
        status
    }
}

/// The thread that makes the value has no part in the child: a fork that did not wait for it would
/// leave a value there that is never made.
#[test]
fn a_fork_waits_for_a_value_that_another_thread_makes_at_its_first_use() {
    static MAKING: AtomicBool = AtomicBool::new(false);
    static VALUE: ForkSafeLazy<u32> = ForkSafeLazy::new(|| {
        MAKING.store(true, SeqCst);
        std::thread::sleep(Duration::from_millis(100));
        7
    });
    let _guard = watchdog(60);
    let maker = std::thread::spawn(|| *VALUE);
    while !MAKING.load(SeqCst) {
        std::thread::yield_now();
    }
    assert_eq!(in_child(|| i32::from(*VALUE != 7)), 0);
    assert_eq!(maker.join().unwrap(), 7);
}

#[test]
fn a_child_reads_old_values_runs_queued_work_and_new_work() {
    let _guard = watchdog(120);
    for engine in every_kind() {
        let (old, queued, bad) = (engine.new_var(), engine.new_var(), engine.new_var());
        let value = Arc::new(AtomicU64::new(0));
        engine.push(OpSpec::new("bad", &[(&bad, Access::Write)]), |_| Err(error("before the fork")));
        engine.push(OpSpec::new("old", &[(&old, Access::Write)]), |_| Ok(()));
        engine.wait_to_read(&old).unwrap();
        let (gate, held) = std::sync::mpsc::channel::<OnComplete>();
        engine.push_async(OpSpec::new("held", &[(&queued, Access::Write)]), move |_, token| gate.send(token).unwrap());
        let seen = value.clone();
        engine.push(OpSpec::new("queued", &[(&queued, Access::Update)]), move |_| {
            seen.fetch_add(1, SeqCst);
            Ok(())
        });
        let token = held.recv_timeout(Duration::from_secs(60)).unwrap();
        let mut token = Some(token);
        let status = in_child(|| {
            token.take().unwrap().complete(Ok(()));
            let new = engine.new_var();
            engine.push(OpSpec::new("new", &[(&new, Access::Write)]), |ctx| {
                ctx.split(16, 100, &|_, _| {});
                Ok(())
            });
            let checks = [
                engine.wait_to_read(&old).is_ok(),
                engine.wait_to_read(&queued).is_ok() && value.load(SeqCst) == 1,
                engine.wait_to_read(&new).is_ok(),
                raised(engine.wait_to_read(&bad)).as_deref() == Some("before the fork"),
                engine.wait_all().is_ok(),
            ];
            checks.iter().position(|ok| !ok).map_or(0, |i| i as i32 + 1)
        });
        assert_eq!(status, 0, "14: hung; otherwise the failed check times 256");
        assert_eq!(value.load(SeqCst), 0, "queued work of the parent stays queued");
        token.take().unwrap().complete(Ok(()));
        engine.wait_to_read(&queued).unwrap();
        assert_eq!(value.load(SeqCst), 1);
        assert_eq!(raised(engine.wait_to_read(&bad)).as_deref(), Some("before the fork"));
    }
}

#[test]
fn forks_while_other_threads_push_wait_split_and_allocate_are_safe() {
    let _guard = watchdog(300);
    for engine in [start(EngineKind::ThreadedPerDevice, 2), start(EngineKind::Naive, 2), start(EngineKind::Threaded, 3)]
    {
        let stop = AtomicBool::new(false);
        let shared = engine.new_var();
        let busy: Arc<[AtomicU64; 2]> = Arc::default();
        std::thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| {
                    let own = engine.new_var();
                    while !stop.load(SeqCst) {
                        for _ in 0..50 {
                            let busy = busy.clone();
                            engine.push(
                                OpSpec::new("x", &[(&own, Access::Update), (&shared, Access::Update)]),
                                move |ctx| {
                                    // A torn pair in the child would mean: forked in the middle of
                                    // a running op.
                                    busy[0].fetch_add(1, SeqCst);
                                    ctx.split(3, 64, &|_, _| std::hint::spin_loop());
                                    busy[1].fetch_add(1, SeqCst);
                                    Ok(())
                                },
                            );
                        }
                        drop(engine.memory().alloc(1000));
                        engine.wait_to_read(&own).unwrap();
                    }
                });
            }
            s.spawn(|| {
                while !stop.load(SeqCst) {
                    engine.wait_all().unwrap();
                    std::thread::sleep(Duration::from_micros(50));
                }
            });
            for i in 0..40 {
                let status = in_child(|| {
                    let torn = busy[0].load(SeqCst) != busy[1].load(SeqCst);
                    let var = engine.new_var();
                    engine.push(OpSpec::new("child", &[(&var, Access::Write), (&shared, Access::Update)]), |_| Ok(()));
                    let ok = engine.memory().alloc(1000).is_ok()
                        && engine.wait_to_read(&var).is_ok()
                        && engine.wait_to_read(&shared).is_ok()
                        && engine.wait_all().is_ok();
                    let grandchild = if i % 10 == 0 { in_child(|| engine.wait_all().is_err() as i32) } else { 0 };
                    if torn {
                        9
                    } else if !ok {
                        8
                    } else {
                        grandchild
                    }
                });
                assert_eq!(status, 0, "fork {i} of {:?}: 14 = hung, 0x900 = forked inside an op", engine.kind());
            }
            stop.store(true, SeqCst);
        });
    }
}

#[test]
fn an_op_may_fork() {
    let _guard = watchdog(60);
    for engine in every_kind() {
        let var = engine.new_var();
        engine.push(OpSpec::new("fork", &[(&var, Access::Write)]), move |ctx| {
            let engine = ctx.engine();
            let status = in_child(|| {
                let inner = engine.new_var();
                engine.push(OpSpec::new("inner", &[(&inner, Access::Write)]).cost(Cost::Small), |_| Ok(()));
                (inner.version() == 0 && engine.kind() != EngineKind::Naive) as i32
            });
            if status == 0 { Ok(()) } else { Err(error("the child failed")) }
        });
        engine.wait_to_read(&var).unwrap();
    }
}

#[test]
fn guards_of_threads_that_a_child_lacks_block_no_thread_there() {
    let _guard = watchdog(120);
    for engine in every_kind() {
        let (read, wanted, own) = (engine.new_var(), engine.new_var(), engine.new_var());
        let (gate, held) = std::sync::mpsc::channel::<OnComplete>();
        engine.push_async(OpSpec::new("held", &[(&wanted, Access::Write)]), move |_, token| gate.send(token).unwrap());
        let mut token = Some(held.recv_timeout(Duration::from_secs(60)).unwrap());
        let (stop, ready) = (AtomicBool::new(false), AtomicU64::new(0));
        let keep = || {
            ready.fetch_add(1, SeqCst);
            while !stop.load(SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        std::thread::scope(|s| {
            s.spawn(|| {
                let _guard = engine.read_guard(&read).unwrap();
                keep();
            });
            s.spawn(|| {
                ready.fetch_add(1, SeqCst);
                let _guard = engine.read_guard(&wanted).unwrap();
            });
            while ready.load(SeqCst) < 2 || !engine.dump().contains("then guard (reads)") {
                std::thread::yield_now();
            }
            let mine = engine.read_guard(&own).unwrap();
            let mut mine = Some(mine);
            let write = |var: &Var| engine.push(OpSpec::new("write", &[(var, Access::Write)]), |_| Ok(()));
            let status = in_child(|| {
                write(&read);
                write(&wanted);
                token.take().unwrap().complete(Ok(()));
                write(&own);
                let kept = !engine.is_ready(&own);
                drop(mine.take());
                let checks = [
                    engine.wait_to_read(&read).is_ok(),
                    engine.wait_to_read(&wanted).is_ok(),
                    kept,
                    engine.wait_to_read(&own).is_ok(),
                    engine.wait_all().is_ok(),
                ];
                checks.iter().position(|ok| !ok).map_or(0, |i| i as i32 + 1)
            });
            assert_eq!(status, 0, "{:?}: 14: hung; otherwise the failed check times 256", engine.kind());
            // Here everything is held as before.
            [&read, &own].into_iter().for_each(write);
            assert!(!engine.is_ready(&read) && !engine.is_ready(&own));
            drop(mine.take());
            token.take().unwrap().complete(Ok(()));
            stop.store(true, SeqCst);
        });
        engine.wait_all().unwrap();
    }
}

#[test]
fn queued_work_runs_in_a_child_that_only_asks_whether_it_is_done() {
    let _guard = watchdog(120);
    for (engine, by_callback) in pooled_kinds().flat_map(|engine| [(engine, false), (engine, true)]) {
        let (var, busy) = (engine.new_var(), engine.new_var());
        // Every core computes when the fork begins, so the last op is queued when it takes place.
        for _ in 0..engine.cores() {
            engine.push(OpSpec::new("busy", &[(&busy, Access::Read)]), |_| {
                std::thread::sleep(Duration::from_millis(20));
                Ok(())
            });
        }
        engine.push(OpSpec::new("queued", &[(&var, Access::Write)]), |_| Ok(()));
        let status = in_child(|| {
            if by_callback {
                let (send, receive) = std::sync::mpsc::channel();
                engine.on_ready(&var, move |_| send.send(()).unwrap());
                return receive.recv_timeout(Duration::from_secs(60)).is_err() as i32;
            }
            while !engine.is_ready(&var) {
                std::thread::sleep(Duration::from_millis(1));
            }
            0
        });
        assert_eq!(status, 0, "{:?}: 14: hung", engine.kind());
        engine.wait_all().unwrap();
    }
}

#[test]
fn a_fork_waits_for_guests_that_compute_and_forgets_those_that_wait() {
    let engine = start(EngineKind::ThreadedPerDevice, 1);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !ended.load(SeqCst) {
                    engine.compute(|| std::thread::sleep(Duration::from_millis(1)));
                }
            });
        }
        for _ in 0..10 {
            std::thread::sleep(Duration::from_millis(3));
            let status = in_child(|| {
                let var = engine.new_var();
                let has_core = engine.compute(holds_core);
                succeed(engine, &[(&var, Access::Write)]);
                i32::from(!has_core || engine.wait_to_read(&var).is_err())
            });
            if status != 0 {
                ended.store(true, SeqCst);
            }
            assert_eq!(status, 0, "14: hung");
        }
        ended.store(true, SeqCst);
    });
}

/// A signal handler may fork. The child is in the middle of the wait, without workers, and with
/// what was queued.
#[test]
fn a_poll_hook_may_fork() {
    let _guard = watchdog(120);
    for all in [false, true] {
        for engine in pooled_kinds() {
            let (held, queued) = (engine.new_var(), engine.new_var());
            let (send, receive) = std::sync::mpsc::channel();
            engine.push_async(OpSpec::new("held", &[(&held, Access::Write)]), move |_, token| {
                send.send(token).unwrap();
            });
            engine.push(OpSpec::new("queued", &[(&held, Access::Read), (&queued, Access::Write)]), |_| Ok(()));
            let mut token = Some(receive.recv_timeout(Duration::from_secs(60)).unwrap());
            let (mut child, mut status) = (None, None);
            let wait = |poll: &mut dyn FnMut() -> bool| {
                if all { engine.wait_all_with(poll) } else { engine.wait_to_read_with(&queued, poll) }
            };
            let result = wait(&mut || {
                if child.is_none() {
                    // SAFETY: as in `in_child`.
                    let pid = unsafe { libc::fork() };
                    child = Some(pid);
                    if pid == 0 {
                        // SAFETY: no requirements.
                        unsafe { libc::alarm(200) };
                    } else {
                        let mut code = 0;
                        // SAFETY: the child of this thread, and a place for its status.
                        unsafe { libc::waitpid(pid, &mut code, 0) };
                        status = Some(code);
                    }
                }
                if let Some(token) = token.take() {
                    token.complete(Ok(()));
                }
                true
            });
            if child == Some(0) {
                let new = engine.new_var();
                succeed(engine, &[(&new, Access::Write)]);
                let checks = [result.is_ok(), engine.wait_to_read(&new).is_ok(), engine.wait_all().is_ok()];
                let code = checks.iter().position(|ok| !ok).map_or(0, |i| i as i32 + 1);
                // SAFETY: no requirements.
                unsafe { libc::_exit(code) };
            }
            assert!(result.is_ok(), "{result:?}");
            assert_eq!(status, Some(0), "14: hung; otherwise the failed check times 256");
            assert!(engine.wait_all().is_ok());
        }
    }
}

/// Leaves with ops queued and running, threads waiting and an unobserved failure. Only acts in a
/// process started for it.
#[test]
fn leaving_process() {
    let Ok(how) = std::env::var("MXRT_TEST_LEAVE") else { return };
    let engine = start(EngineKind::ThreadedPerDevice, 2);
    let var = engine.new_var();
    for _ in 0..1000 {
        engine.push(OpSpec::new("x", &[(&var, Access::Update)]), |ctx| {
            ctx.split(4, 0, &|_, _| std::thread::sleep(Duration::from_micros(100)));
            Ok(())
        });
    }
    let waited = var.clone();
    std::thread::spawn(move || engine.wait_to_read(&waited));
    std::thread::spawn(move || engine.wait_all());
    engine.push(OpSpec::new("bad", &[(&engine.new_var(), Access::Write)]), |_| Err(error("unseen at exit")));
    std::thread::sleep(Duration::from_millis(2));
    if how == "close" {
        engine.close();
        engine.push(OpSpec::new("late", &[(&var, Access::Update)]), |_| Ok(()));
    }
    std::process::exit(0);
}

#[test]
fn leaving_in_the_middle_of_everything_is_silent() {
    let _guard = watchdog(120);
    for i in 0..20 {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "leaving_process", "--nocapture"])
            .env("MXRT_TEST_LEAVE", if i % 2 == 0 { "exit" } else { "close" })
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}

/// Forks during an op that does not end. Only acts in a process started for it, because that sets
/// the time a fork waits.
#[test]
fn forking_process() {
    if std::env::var("MXRT_TEST_FORK").is_err() {
        return;
    }
    set_fork_patience(Duration::from_millis(400));
    let engine = start(EngineKind::ThreadedPerDevice, 2);
    let (stuck, ready) = (engine.new_var(), engine.new_var());
    let (started, go_on) = (std::sync::mpsc::channel(), std::sync::mpsc::channel::<()>());
    engine.push(OpSpec::new("endless", &[(&stuck, Access::Write)]), move |_| {
        started.0.send(()).unwrap();
        go_on.1.recv().unwrap();
        Ok(())
    });
    started.1.recv().unwrap();
    let status = in_child(|| {
        engine.push(OpSpec::new("late", &[(&ready, Access::Write)]), |_| Ok(()));
        let closed =
            matches!(engine.wait_to_read(&ready), Err(WaitError::Failed(f)) if f.kind() == FailureKind::Shutdown);
        let waits = matches!(engine.wait_to_read(&stuck), Err(WaitError::Closed));
        !(closed && waits) as i32
    });
    assert_eq!(status, 0, "14: hung");
    go_on.0.send(()).unwrap();
    engine.wait_to_read(&stuck).unwrap();
    std::process::exit(0);
}

#[test]
fn a_fork_beside_an_endless_op_names_it_and_takes_place() {
    let _guard = watchdog(120);
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "forking_process", "--nocapture"])
        .env("MXRT_TEST_FORK", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("fork is waiting for operator endless in mxrt-0 to end"), "{said}");
    assert!(said.contains("forking although operator endless in mxrt-0 has not ended"), "{said}");
}
