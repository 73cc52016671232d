//! Models of waiting, and of ops that were collected and not handed over yet.

use super::*;
use crate::process::slot::Counts;
use crate::push::bulk::{Bulks, Collection};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::wait::all::{Epochs, missing};

/// Kills `look-misses-completions`.
#[test]
fn wait_all_is_notified_by_the_last_completion() {
    model(|| {
        let epochs = Arc::new(Epochs::new());
        let counts: &'static [Counts; 2] = Box::leak(Box::default());
        let all: &'static [&'static Counts] = Box::leak(counts.iter().collect());
        let notified = Arc::new(AtomicUsize::new(0));
        counts.iter().for_each(|c| c.pushed[0].store(1, Ordering::Release));
        let complete = |i: usize| {
            let (epochs, notified) = (epochs.clone(), notified.clone());
            move || {
                counts[i].completed[0].fetch_add(1, Ordering::SeqCst);
                if epochs.somebody_waits() && epochs.last_completion(0, || missing(all, 0)) {
                    notified.fetch_add(1, Ordering::SeqCst);
                }
            }
        };
        let threads = [thread::spawn(complete(0)), thread::spawn(complete(1))];
        epochs.add_waiter();
        let drained = epochs.look(0, || missing(all, 0));
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert!(drained || notified.load(Ordering::SeqCst) > 0, "the waiter would sleep for ever");
    });
}

/// Kills `pushed-summed-first`.
#[test]
fn wait_all_does_not_return_before_what_was_pushed_before_it() {
    model(|| {
        let epochs = Arc::new(Epochs::new());
        let counts: &'static Counts = Box::leak(Box::default());
        let all: &'static [&'static Counts] = Box::leak(Box::new([counts]));
        let done = Arc::new(AtomicUsize::new(0));
        // Pushed before: counted, not complete. Meanwhile another op is pushed and completed.
        counts.pushed[0].store(1, Ordering::Release);
        let finisher = {
            let done = done.clone();
            thread::spawn(move || {
                done.store(1, Ordering::Relaxed);
                counts.completed[0].fetch_add(1, Ordering::SeqCst);
            })
        };
        let pusher = thread::spawn(move || {
            counts.pushed[0].store(2, Ordering::Release);
            counts.completed[0].fetch_add(1, Ordering::SeqCst);
        });
        if epochs.look(0, || missing(all, 0)) {
            assert_eq!(done.load(Ordering::Relaxed), 1, "wait_all returned too early");
        }
        finisher.join().unwrap();
        pusher.join().unwrap();
    });
}

/// A ready op that no thread runs: only its way is of interest. Never freed.
fn loose_op() -> usize {
    let op = Box::into_raw(Box::new(MaybeUninit::<OpBlock>::uninit())).cast::<OpBlock>();
    // SAFETY: a fresh block that is ours.
    unsafe { OpBlock::fill(op, &OpSpec::new("loose", &[]), Class::Strict) };
    op.expose_provenance()
}

#[test]
fn no_thread_sleeps_over_collected_ops() {
    model(|| {
        let shared = Arc::new((Bulks::new(), Collection::new(), AtomicUsize::new(0)));
        let hand_over = |shared: &(Bulks, Collection, AtomicUsize)| {
            let chain = shared.1.take(&shared.0, std::ptr::null());
            shared.2.fetch_add(chain.len, Ordering::Relaxed);
        };
        let pusher = {
            let shared = shared.clone();
            thread::spawn(move || {
                for _ in 0..2 {
                    let op = std::ptr::with_exposed_provenance_mut(loose_op());
                    // SAFETY: an op of this thread.
                    if unsafe { shared.1.add(&shared.0, std::ptr::null(), op) } {
                        hand_over(&shared);
                    }
                }
            })
        };
        if shared.0.begin_wait() {
            hand_over(&shared);
        }
        pusher.join().unwrap();
        // The waiter sleeps now: both ops must be on their way.
        assert_eq!(shared.2.load(Ordering::Relaxed), 2, "the waiter sleeps over a collected op");
    });
}

#[test]
fn a_collection_is_handed_over_once() {
    model(|| {
        let shared = Arc::new((Bulks::new(), Collection::new()));
        let op = std::ptr::with_exposed_provenance_mut(loose_op());
        // SAFETY: an op of this thread.
        unsafe { shared.1.add(&shared.0, std::ptr::null(), op) };
        let other = {
            let shared = shared.clone();
            thread::spawn(move || shared.1.take(&shared.0, std::ptr::null()).len)
        };
        let mine = shared.1.take(&shared.0, std::ptr::null()).len;
        assert_eq!(mine + other.join().unwrap(), 1);
        assert!(!shared.0.any_open());
    });
}

#[test]
fn two_pushers_hand_over_everything_to_a_waiter() {
    model(|| {
        let shared = Arc::new((Bulks::new(), [Collection::new(), Collection::new()], AtomicUsize::new(0)));
        let hand_over = |shared: &(Bulks, [Collection; 2], AtomicUsize), i: usize| {
            let chain = shared.1[i].take(&shared.0, std::ptr::null());
            shared.2.fetch_add(chain.len, Ordering::Relaxed);
        };
        let pushers: Vec<_> = (0..2)
            .map(|i| {
                let shared = shared.clone();
                thread::spawn(move || {
                    let op = std::ptr::with_exposed_provenance_mut(loose_op());
                    // SAFETY: an op of this thread.
                    if unsafe { shared.1[i].add(&shared.0, std::ptr::null(), op) } {
                        hand_over(&shared, i);
                    }
                })
            })
            .collect();
        if shared.0.begin_wait() {
            hand_over(&shared, 0);
            hand_over(&shared, 1);
        }
        pushers.into_iter().for_each(|p| p.join().unwrap());
        assert_eq!(shared.2.load(Ordering::Relaxed), 2);
        shared.0.end_wait();
    });
}

/// A wait looks under the lock, and otherwise queues a notification. Kills `wait-answers-too-early`
/// in its model form: an answer given while the write was running would race with it.
#[test]
fn a_waiter_sees_the_value_or_is_notified() {
    model(|| {
        let (var, cell, notified) = (Var::new(), Watched::new(), Arc::new(AtomicUsize::new(0)));
        let write = held(&var, Access::Write, adds(&cell));
        let finisher = thread::spawn(move || finish(write));
        if var.locked(|state, _| state.open_to(crate::op::block::Mode::Read)) {
            assert_eq!(cell.get(), 1, "the wait answered before the write had ended");
        } else {
            let (seen, tell) = (cell.clone(), notified.clone());
            let notify = Box::new(move || {
                assert_eq!(seen.get(), 1);
                tell.fetch_add(1, Ordering::Relaxed);
                None
            });
            push(&[(&var, Access::Read)], notify);
            finisher.join().unwrap();
            assert_eq!(notified.load(Ordering::Relaxed), 1, "the waiter sleeps for ever");
            return;
        }
        finisher.join().unwrap();
    });
}
