//! Ops of medium cost run in the thread that waits for them, when no thread computes; that thread
//! runs nothing else. In a process of its own: tests look at how much time other programs take.

mod common;
use common::*;
use mxrt_engine::*;
use std::sync::mpsc::channel;
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// Pushes an op that writes `var`; where it ran comes back.
fn push(engine: &'static Engine, var: &Var, cost: Cost) -> std::sync::mpsc::Receiver<ThreadId> {
    let (send, receive) = channel();
    engine.push(OpSpec::new("where", &[(var, Access::Write)]).cost(cost), move |_| {
        send.send(std::thread::current().id()).map_err(|_| error("the test has ended"))
    });
    receive
}

/// Whether a worker and the waiting thread have both been the faster one within a minute.
fn both_have_run(engine: &'static Engine, cost: Cost) -> bool {
    let (var, me, begin) = (engine.new_var(), std::thread::current().id(), Instant::now());
    let (mut here, mut there) = (false, false);
    while !(here && there) && begin.elapsed() < Duration::from_secs(60) {
        let ran = push(engine, &var, cost);
        if there {
            engine.wait_to_read(&var).unwrap();
        } else {
            // The worker's chance.
            while !engine.is_ready(&var) {}
        }
        *(if ran.recv().unwrap() == me { &mut here } else { &mut there }) = true;
    }
    here && there
}

#[test]
fn a_thread_that_would_sleep_runs_what_it_waits_for() {
    for engine in pooled_kinds() {
        assert!(both_have_run(engine, Cost::Medium), "{} cores", engine.cores());
    }
}

#[test]
fn large_ops_run_on_the_pool() {
    let engine = start(EngineKind::ThreadedPerDevice, 2);
    let (var, me) = (engine.new_var(), std::thread::current().id());
    for _ in 0..300 {
        let ran = push(engine, &var, Cost::Large);
        engine.wait_to_read(&var).unwrap();
        assert_ne!(ran.recv().unwrap(), me);
    }
}

#[test]
fn a_waiting_thread_runs_nothing_that_it_does_not_wait_for() {
    let engine = start(EngineKind::ThreadedPerDevice, 2);
    let (own, other, me) = (engine.new_var(), engine.new_var(), std::thread::current().id());
    for _ in 0..300 {
        // Written by no core, and only when the other op has run.
        let (hold, held) = channel();
        engine.push_async(OpSpec::new("held", &[(&own, Access::Write)]), move |_, token| _ = hold.send(token));
        let token = held.recv().unwrap();
        let (send, ran) = channel();
        engine.push(OpSpec::new("other", &[(&other, Access::Write)]).cost(Cost::Medium), move |_| {
            token.complete(Ok(()));
            send.send(std::thread::current().id()).map_err(|_| error("the test has ended"))
        });
        engine.wait_to_read(&own).unwrap();
        assert_ne!(ran.recv().unwrap(), me);
    }
}

#[test]
fn beside_other_requests_the_pool_runs_everything() {
    let engine = start(EngineKind::ThreadedPerDevice, 2);
    let (busy, var, me) = (engine.new_var(), engine.new_var(), std::thread::current().id());
    let (begin, begun) = channel();
    let (stop, stopped) = channel::<()>();
    engine.push(OpSpec::new("busy", &[(&busy, Access::Write)]), move |_| {
        begin.send(()).map_err(|_| error("the test has ended"))?;
        stopped.recv().map_err(|_| error("the test has ended"))
    });
    begun.recv().unwrap();
    for _ in 0..300 {
        let ran = push(engine, &var, Cost::Medium);
        engine.wait_to_read(&var).unwrap();
        assert_ne!(ran.recv().unwrap(), me);
    }
    stop.send(()).unwrap();
    engine.wait_to_read(&busy).unwrap();
}

#[test]
fn errors_and_panics_of_an_op_in_its_waiter_reach_the_waiter() {
    let engine = start(EngineKind::ThreadedPerDevice, 1);
    let me = std::thread::current().id();
    let (mut here, begin) = (0, Instant::now());
    // Where threads share a processor the worker may be the faster one many times.
    let enough = |round, here| round >= 400 && (here > 0 || begin.elapsed() > Duration::from_secs(60));
    for round in 0.. {
        if enough(round, here) {
            break;
        }
        let (var, (send, ran)) = (engine.new_var(), channel());
        engine.push(OpSpec::new("fails", &[(&var, Access::Write)]).cost(Cost::Medium), move |_| {
            send.send(std::thread::current().id()).map_err(|_| error("the test has ended"))?;
            if round % 2 == 0 { Err(error("for the waiter")) } else { panic!("for the waiter") }
        });
        assert!(message_of(engine, &var).is_some_and(|m| m.contains("for the waiter")));
        here += usize::from(ran.recv().unwrap() == me);
    }
    assert!(here > 0, "all of them ran on the pool");
    // The thread can wait, push and run ops as before.
    let var = engine.new_var();
    succeed(engine, &[(&var, Access::Write)]);
    engine.wait_to_read(&var).unwrap();
}

#[test]
fn idle_cores_help_an_op_in_its_waiter() {
    let engine = start(EngineKind::ThreadedPerDevice, 2);
    let (var, me, begin) = (engine.new_var(), std::thread::current().id(), Instant::now());
    loop {
        let (send, ran) = channel();
        engine.push(OpSpec::new("split", &[(&var, Access::Write)]).cost(Cost::Medium), move |ctx| {
            let slow = |_: usize, _: &mut [u8]| {
                send.send(std::thread::current().id()).unwrap();
                std::thread::sleep(Duration::from_micros(200));
            };
            ctx.split(8, 0, &slow);
            Ok(())
        });
        engine.wait_to_read(&var).unwrap();
        let threads: Vec<ThreadId> = ran.iter().collect();
        assert_eq!(threads.len(), 8);
        if threads.contains(&me) && threads.iter().any(|t| *t != me) {
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "no thread helps");
    }
}

/// How many of some requests after a rest, each a millisecond of work for two, their waiters did
/// alone.
#[cfg(target_os = "linux")]
fn alone_after_a_rest(engine: &'static Engine, var: &Var, requests: usize) -> usize {
    let request = || {
        std::thread::sleep(Duration::from_millis(3));
        let (send, ran) = channel();
        engine.push(OpSpec::new("split", &[(var, Access::Write)]).cost(Cost::Medium), move |ctx| {
            let busy = |_: usize, _: &mut [u8]| {
                send.send(std::thread::current().id()).unwrap();
                let begin = Instant::now();
                while begin.elapsed() < Duration::from_micros(50) {}
            };
            ctx.split(40, 0, &busy);
            Ok(())
        });
        engine.wait_to_read(var).unwrap();
        let threads: Vec<ThreadId> = ran.iter().collect();
        threads.iter().all(|t| *t == threads[0])
    };
    (0..requests).filter(|_| request()).count()
}

/// Ticks of processor time that other programs have taken since the machine started.
#[cfg(target_os = "linux")]
fn ticks_of_others() -> i64 {
    let numbers = |text: &str| -> Vec<i64> { text.split_whitespace().filter_map(|word| word.parse().ok()).collect() };
    let read = |path: &str| std::fs::read_to_string(path).unwrap();
    // user, nice, system, (idle, waiting for devices,) interrupts and what other guests took
    let all = numbers(read("/proc/stat").lines().next().unwrap());
    let busy: i64 = all[..3].iter().chain(&all[5..8]).sum();
    // Behind the name: state, then numbers, of which the 11th and 12th are times of this process.
    let own = numbers(read("/proc/self/stat").rsplit(") ").next().unwrap());
    busy - own[10] - own[11]
}

/// Some requests in a row, each a millisecond of work for two, 0.1 ms apart, and each waited for 5
/// us after it was pushed: how many workers had to be woken.
#[cfg(target_os = "linux")]
fn wakes_in_a_row(engine: &'static Engine, var: &Var, requests: usize) -> usize {
    fn spend(micros: u64) {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_micros(micros) {}
    }
    let before = engine.wakes();
    for _ in 0..requests {
        spend(100);
        engine.push(OpSpec::new("split", &[(var, Access::Write)]).cost(Cost::Medium), move |ctx| {
            ctx.split(40, 0, &|_, _| spend(50));
            Ok(())
        });
        spend(5);
        engine.wait_to_read(var).unwrap();
    }
    engine.wakes() - before
}

/// Fails if `round` gives more than `most` again and again. Where other programs take the cores
/// threads are late for other reasons: such rounds say nothing, unless they are good.
#[cfg(target_os = "linux")]
fn at_most(most: usize, what: &str, round: impl Fn() -> usize) {
    let mut undisturbed = Vec::new();
    for _ in 0..40 {
        let (before, begin) = (ticks_of_others(), Instant::now());
        let seen = round();
        let (others, ticks) = (ticks_of_others() - before, begin.elapsed().as_millis() as i64 / 10);
        if seen <= most {
            return;
        }
        if others * 20 <= ticks {
            undisturbed.push(seen);
        }
        assert!(undisturbed.len() < 5, "{what}: {undisturbed:?}");
    }
    println!("not judged: other programs took the cores all the time");
}

/// The helper of the request before is still awake.
#[cfg(target_os = "linux")]
#[test]
fn requests_that_follow_each_other_soon_wake_no_thread() {
    let engine = start(EngineKind::ThreadedPerDevice, 2);
    let var = engine.new_var();
    at_most(40, "so many wakes for a hundred requests", || wakes_in_a_row(engine, &var, 100));
}

/// Linux queues a worker that is woken at the push after the thread that pushes, because that
/// thread is about to sleep. If no thread moves the worker, every second request runs like this.
#[cfg(target_os = "linux")]
#[test]
fn the_worker_of_a_rested_engine_does_not_wait_behind_the_thread_it_helps() {
    let engine = start(EngineKind::ThreadedPerDevice, 2);
    let var = engine.new_var();
    at_most(15, "so many of a hundred got no help", || alone_after_a_rest(engine, &var, 100));
}
