//! Models of waiters: notified, closed, leaving.

use super::*;
use crate::models::*;
use crate::sync::atomic::AtomicBool;
use loom::thread;

/// A waiter that is notified finds its outcome, whatever closing does meanwhile.
#[test]
fn a_waiter_that_is_notified_finds_its_outcome_although_the_engine_closes() {
    model(|| {
        let cell = WaitCell::new(&Var::new(), None);
        let notifier = {
            let cell = cell.clone();
            thread::spawn(move || cell.notify(WaitOutcome { failure: Some(failure()), device: None }))
        };
        let closer = {
            let cell = cell.clone();
            thread::spawn(move || cell.close())
        };
        let state = loop {
            match cell.state.load(Ordering::Acquire) {
                WAITING => thread::yield_now(),
                state => break state,
            }
        };
        if state == DONE {
            // SAFETY: notified: the notifier does not touch the outcome again.
            assert!(unsafe { (*cell.outcome.get()).failure.is_some() }, "notified before the outcome was there");
        }
        notifier.join().unwrap();
        closer.join().unwrap();
        assert_eq!(cell.state.load(Ordering::Relaxed), state, "notified and closed");
    });
}

/// Kills `wait-after-close-sleeps` and `close-wakes-no-waiter` in model form: a waiter enters the
/// list and then looks whether the engine is closed; closing says so and then looks at the list.
#[test]
fn no_waiter_sleeps_through_closing() {
    model(|| {
        let shared = Arc::new((Waiters::new(), AtomicBool::new(false)));
        let closer = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.1.store(true, Ordering::SeqCst);
                shared.0.wake_all();
            })
        };
        let cell = WaitCell::new(&Var::new(), None);
        shared.0.add(&cell);
        if shared.1.load(Ordering::SeqCst) {
            cell.close();
        }
        closer.join().unwrap();
        assert_eq!(cell.state.load(Ordering::Relaxed), CLOSED, "the waiter sleeps for ever");
        shared.0.remove(&cell);
    });
}

/// Kills `moved-waiter-keeps-its-place`: waiters leave the list in any order and side by side with
/// closing.
#[test]
fn waiters_that_leave_at_the_same_time_leave_an_empty_list() {
    model(|| {
        let waiters = Arc::new(Waiters::new());
        let cells: Vec<_> = (0..3).map(|_| WaitCell::new(&Var::new(), None)).collect();
        cells.iter().for_each(|cell| waiters.add(cell));
        let other = {
            let (waiters, cell) = (waiters.clone(), cells[0].clone());
            thread::spawn(move || waiters.remove(&cell))
        };
        waiters.remove(&cells[2]);
        waiters.remove(&cells[1]);
        other.join().unwrap();
        assert!(waiters.0.lock().is_empty(), "a waiter that has left is still in the list");
    });
}
