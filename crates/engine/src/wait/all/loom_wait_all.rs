//! Models of `wait_all`: the two slots, flips, counts of threads that come.

use super::*;
use crate::models::*;
use crate::sync::Mutex as Spin;
use loom::thread;

/// The two drains of `wait_for_all`.
fn wait(epochs: &Epochs, missing: impl Fn(usize) -> u64) {
    epochs.add_waiter();
    let epoch = epochs.epoch.load(Ordering::Relaxed);
    while !epochs.look((epoch + 1) & 1, || missing((epoch + 1) & 1)) {
        thread::yield_now();
    }
    epochs.epoch.store(epoch + 1, Ordering::SeqCst);
    while !epochs.look(epoch & 1, || missing(epoch & 1)) {
        thread::yield_now();
    }
}

/// Kills `own-slot-not-drained` in model form: what was pushed before is waited for, while others
/// push into either slot.
#[test]
fn wait_all_covers_its_past_while_others_push_across_the_flip() {
    model(|| {
        let epochs = std::sync::Arc::new(Epochs::new());
        let counts: &'static [Counts; 2] = Box::leak(Box::default());
        let all: &'static [&'static Counts] = Box::leak(counts.iter().collect());
        let done = Watched::new();
        counts[0].pushed[epochs.current()].store(1, Ordering::Release);
        let finisher = {
            let (epochs, done) = (epochs.clone(), done.clone());
            thread::spawn(move || {
                done.add(1);
                counts[0].completed[0].fetch_add(1, Ordering::SeqCst);
                if epochs.somebody_waits() {
                    epochs.last_completion(0, || missing(all, 0));
                }
            })
        };
        let pusher = {
            let epochs = epochs.clone();
            thread::spawn(move || {
                let slot = epochs.current();
                counts[1].pushed[slot].store(1, Ordering::Release);
                counts[1].completed[slot].fetch_add(1, Ordering::SeqCst);
            })
        };
        wait(&epochs, |slot| missing(all, slot));
        assert_eq!(done.get(), 1, "wait_all returned too early");
        finisher.join().unwrap();
        pusher.join().unwrap();
    });
}

/// A thread that pushes for the first time enters its counts in the list before it counts: the
/// thread that knows of its push finds them.
#[test]
fn the_counts_of_a_new_thread_are_found() {
    model(|| {
        let epochs = Epochs::new();
        let list: std::sync::Arc<Spin<Vec<&'static Counts>>> = std::sync::Arc::new(Spin::new(Vec::new()));
        let (done, pushed) = (Watched::new(), std::sync::Arc::new(AtomicUsize::new(0)));
        let other = {
            let (list, done, pushed) = (list.clone(), done.clone(), pushed.clone());
            thread::spawn(move || {
                let counts: &'static Counts = Box::leak(Box::default());
                list.lock().push(counts);
                counts.pushed[0].store(1, Ordering::Release);
                pushed.store(1, Ordering::Release);
                done.add(1);
                counts.completed[0].fetch_add(1, Ordering::SeqCst);
            })
        };
        let before = pushed.load(Ordering::Acquire) == 1;
        wait(&epochs, |slot| missing(&list.lock(), slot));
        assert!(!before || done.get() == 1, "the push of a new thread was not waited for");
        other.join().unwrap();
    });
}

/// Kills `look-misses-completions`: a waiter that looks a second time, because it was woken for
/// nothing, is notified as well.
#[test]
fn a_waiter_that_looks_again_is_notified() {
    model(|| {
        let epochs = std::sync::Arc::new(Epochs::new());
        let counts: &'static Counts = Box::leak(Box::default());
        let all: &'static [&'static Counts] = Box::leak(Box::new([counts]));
        counts.pushed[0].store(2, Ordering::Release);
        let notified = std::sync::Arc::new(AtomicUsize::new(0));
        let finisher = {
            let (epochs, notified) = (epochs.clone(), notified.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    counts.completed[0].fetch_add(1, Ordering::SeqCst);
                    if epochs.somebody_waits() && epochs.last_completion(0, || missing(all, 0)) {
                        notified.fetch_add(1, Ordering::SeqCst);
                    }
                }
            })
        };
        epochs.add_waiter();
        let drained = epochs.look(0, || missing(all, 0)) || epochs.look(0, || missing(all, 0));
        finisher.join().unwrap();
        assert!(drained || notified.load(Ordering::SeqCst) > 0, "the waiter would sleep for ever");
    });
}
