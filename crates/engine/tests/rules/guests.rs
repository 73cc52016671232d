//! Threads from outside the engine compute with its cores, alternating with its ops.

use crate::common::*;
use mxrt_engine::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn};
use std::time::Duration;

/// Ops, and turns of guests, that a crowd has at least.
const ENOUGH: usize = 100;

/// A guest computes without a core before this has passed only if a core was lost.
const LONG: Duration = Duration::from_secs(60);

/// Counts the threads that compute concurrently.
#[derive(Default)]
struct Crowd {
    inside: AtomicUsize,
    most: AtomicUsize,
    ops: AtomicUsize,
    turns: AtomicUsize,
    ended: AtomicBool,
}

impl Crowd {
    fn work(&self, time: Duration) {
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(inside, Ordering::SeqCst);
        sleep(time);
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Guests and threads that push ops, until there were enough of both. The sleep of an op stands for what it computes.
fn crowd(engine: &'static Engine, guests: usize, pushers: usize, cost: Cost) -> Arc<Crowd> {
    engine.set_guest_patience(LONG);
    let crowd = Arc::new(Crowd::default());
    let (turn, op) = (Duration::from_micros(300), Duration::from_micros(1000));
    let mut threads = Vec::new();
    for _ in 0..guests {
        let crowd = crowd.clone();
        threads.push(spawn(move || {
            while !crowd.ended.load(Ordering::SeqCst) {
                engine.compute(|| crowd.work(turn));
                crowd.turns.fetch_add(1, Ordering::SeqCst);
            }
        }));
    }
    for _ in 0..pushers {
        let crowd = crowd.clone();
        threads.push(spawn(move || {
            let var = engine.new_var();
            while !crowd.ended.load(Ordering::SeqCst) {
                let inside = crowd.clone();
                engine.push(OpSpec::new("op", &[(&var, Access::Write)]).cost(cost), move |_| {
                    inside.work(op);
                    Ok(())
                });
                engine.wait_to_read(&var).unwrap();
                crowd.ops.fetch_add(1, Ordering::SeqCst);
            }
        }));
    }
    let count = |n: &AtomicUsize| n.load(Ordering::SeqCst);
    while count(&crowd.ops) < ENOUGH || count(&crowd.turns) < ENOUGH {
        sleep(Duration::from_millis(5));
    }
    crowd.ended.store(true, Ordering::SeqCst);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    crowd
}

#[test]
fn guests_and_ops_together_never_exceed_the_cores_and_both_go_on() {
    let _guard = watchdog(60);
    for engine in [1, 2, 4].map(|cores| start(EngineKind::ThreadedPerDevice, cores)) {
        for cost in [Cost::Small, Cost::Medium, Cost::Large] {
            let seen = crowd(engine, 3, 5, cost);
            let count = |n: &AtomicUsize| n.load(Ordering::SeqCst);
            let said =
                format!("{} cores, {cost:?}: {} ops, {} turns", engine.cores(), count(&seen.ops), count(&seen.turns));
            assert!(count(&seen.most) <= engine.cores(), "{said}: {} at a time", count(&seen.most));
        }
    }
}

#[test]
fn queued_ops_wait_for_one_turn_and_guests_for_one_op() {
    let _guard = watchdog(60);
    const EACH: usize = 12;
    let engine = start(EngineKind::ThreadedPerDevice, 1);
    engine.set_guest_patience(LONG);
    let (begun, end) = (std::sync::mpsc::channel(), std::sync::mpsc::channel::<()>());
    engine.push(OpSpec::new("first", &[]), move |_| {
        begun.0.send(()).unwrap();
        end.1.recv().unwrap();
        Ok(())
    });
    begun.1.recv().unwrap();
    let order = Arc::new(Mutex::new(String::new()));
    for _ in 0..EACH {
        let order = order.clone();
        engine.push(OpSpec::new("op", &[]), move |_| {
            order.lock().unwrap().push('o');
            Ok(())
        });
    }
    let guest = |_| {
        let order = order.clone();
        spawn(move || engine.compute(|| order.lock().unwrap().push('g')))
    };
    let guests: Vec<_> = (0..EACH).map(guest).collect();
    while engine.waiting_guests() < EACH {
        sleep(Duration::from_millis(1));
    }
    end.0.send(()).unwrap();
    guests.into_iter().for_each(|guest| guest.join().unwrap());
    engine.wait_all().unwrap();
    assert_eq!(*order.lock().unwrap(), "go".repeat(EACH), "the turns of guests and ops");
}

#[test]
fn a_guest_that_an_op_waits_for_computes_in_the_end() {
    let engine = start(EngineKind::ThreadedPerDevice, 1);
    let _guard = watchdog(60);
    let var = engine.new_var();
    engine.push(OpSpec::new("joins", &[(&var, Access::Write)]), move |_| {
        assert!(holds_core());
        spawn(move || engine.compute(|| assert!(!holds_core(), "there is one core, and the op has it")))
            .join()
            .unwrap();
        // With a core of its own it goes on at once.
        engine.compute(|| ());
        Ok(())
    });
    engine.wait_to_read(&var).unwrap();
    assert!(!holds_core());
}

#[test]
fn a_core_that_an_op_had_in_its_pusher_goes_to_a_guest() {
    let engine = start(EngineKind::ThreadedPerDevice, 1);
    engine.set_guest_patience(LONG);
    let var = engine.new_var();
    let (here, (send, guest)) = (std::thread::current().id(), std::sync::mpsc::channel());
    engine.push(OpSpec::new("small", &[(&var, Access::Write)]).cost(Cost::Small), move |_| {
        assert_eq!(std::thread::current().id(), here);
        send.send(spawn(move || engine.compute(holds_core))).unwrap();
        while engine.waiting_guests() == 0 {
            sleep(Duration::from_millis(1));
        }
        Ok(())
    });
    // Nothing else happens that would look for guests.
    assert!(guest.recv().unwrap().join().unwrap(), "the guest gave up waiting for the core");
    engine.wait_to_read(&var).unwrap();
}

#[test]
fn a_panic_of_a_guest_gives_its_core_back() {
    let engine = start(EngineKind::ThreadedPerDevice, 1);
    for _ in 0..3 {
        assert!(spawn(move || engine.compute(|| panic!("no"))).join().is_err());
    }
    assert!(engine.compute(holds_core), "the core is free again");
    let var = engine.new_var();
    succeed(engine, &[(&var, Access::Write)]);
    engine.wait_to_read(&var).unwrap();
}

#[test]
fn the_naive_engine_bounds_no_thread() {
    let engine = start(EngineKind::Naive, 1);
    assert!(!engine.compute(holds_core));
}
