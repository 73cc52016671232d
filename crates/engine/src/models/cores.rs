//! Models of what threads owe each other: tokens, chunks of a split loop, the fork gate.

use super::*;
use crate::process::fork_gate;
use crate::sched::tokens::Tokens;
use crate::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use crate::sync::{Lock, model_fence};
use crate::team::run::{Claim, Run, SplitJob};

/// Kills `token-taken-by-two`.
#[test]
fn a_token_has_one_holder() {
    model(|| {
        let (tokens, cell) = (Arc::new(Tokens::new(1)), Watched::new());
        let work = {
            let (tokens, cell) = (tokens.clone(), cell.clone());
            move || {
                if let Some(token) = tokens.take_near(0) {
                    cell.add(1);
                    tokens.put(token);
                }
            }
        };
        let other = thread::spawn(work.clone());
        work();
        other.join().unwrap();
        assert_eq!(tokens.take_near(0), Some(0));
        assert!(cell.get() >= 1);
    });
}

/// Kills `job-of-an-old-round` and `chunk-taken-twice`: what is to be done with a chunk says of
/// which round it is.
#[test]
fn chunks_are_taken_once_and_with_the_job_of_their_round() {
    model(|| {
        let run = Arc::new(Run::new(2));
        let hits: Arc<Vec<AtomicUsize>> = Arc::new((0..4).map(|_| AtomicUsize::new(0)).collect());
        let helper = {
            let (run, hits) = (run.clone(), hits.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    if let Some(Claim { chunk, job }) = run.claim(1) {
                        hits[job.scratch_bytes + chunk].fetch_add(1, Ordering::Relaxed);
                        run.count_done(1);
                    }
                }
            })
        };
        let body = |_: usize, _: &mut [u8]| {};
        for first in [0, 2] {
            // SAFETY: the round before was awaited.
            unsafe { run.publish(0, 2, SplitJob::new(&body, first)) };
            let mut mine = 0;
            while let Some(claim) = run.claim(0) {
                hits[first + claim.chunk].fetch_add(1, Ordering::Relaxed);
                mine += 1;
            }
            while !run.ends_with(2 - mine) {
                thread::yield_now();
            }
        }
        helper.join().unwrap();
        assert!(hits.iter().all(|h| h.load(Ordering::Relaxed) == 1));
    });
}

#[test]
fn two_tokens_have_two_holders_and_no_third() {
    model(|| {
        let (tokens, inside) = (Arc::new(Tokens::new(2)), Arc::new(AtomicUsize::new(0)));
        let work = {
            let (tokens, inside) = (tokens.clone(), inside.clone());
            move |near| {
                if let Some(token) = tokens.take_near(near) {
                    assert!(inside.fetch_add(1, Ordering::Relaxed) < 2, "a third holder");
                    inside.fetch_sub(1, Ordering::Relaxed);
                    tokens.put(token);
                }
            }
        };
        let threads: Vec<_> = (0..2)
            .map(|i| {
                let work = work.clone();
                thread::spawn(move || work(i))
            })
            .collect();
        work(0);
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(tokens.free(), 2);
    });
}

#[test]
fn two_helpers_take_every_chunk_once() {
    model(|| {
        let run = Arc::new(Run::new(3));
        let hits: Arc<Vec<AtomicUsize>> = Arc::new((0..3).map(|_| AtomicUsize::new(0)).collect());
        let body = |_: usize, _: &mut [u8]| {};
        // SAFETY: no round is under way; this one is awaited below.
        unsafe { run.publish(0, 3, SplitJob::new(&body, 0)) };
        let helpers: Vec<_> = (1..3)
            .map(|me| {
                let (run, hits) = (run.clone(), hits.clone());
                thread::spawn(move || {
                    if let Some(claim) = run.claim(me) {
                        hits[claim.chunk].fetch_add(1, Ordering::Relaxed);
                        run.count_done(me);
                    }
                })
            })
            .collect();
        let mut mine = 0;
        while let Some(claim) = run.claim(0) {
            hits[claim.chunk].fetch_add(1, Ordering::Relaxed);
            mine += 1;
        }
        while !run.ends_with(3 - mine) {
            thread::yield_now();
        }
        helpers.into_iter().for_each(|h| h.join().unwrap());
        assert!(hits.iter().all(|h| h.load(Ordering::Relaxed) == 1));
    });
}

/// Kills `gate-ignored`: what a thread does inside the engine never overlaps a fork.
#[test]
fn no_thread_is_inside_while_the_process_forks() {
    model(|| {
        let (forks, inside, state) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)), Watched::new());
        let pusher = {
            let (forks, inside, state) = (forks.clone(), inside.clone(), state.clone());
            thread::spawn(move || {
                fork_gate::pass(&*inside, &*forks);
                state.add(1);
                inside.store(0, Ordering::Release);
            })
        };
        forks.fetch_add(1, Ordering::SeqCst);
        model_fence();
        while inside.load(Ordering::SeqCst) != 0 {
            thread::yield_now();
        }
        // The fork copies what it finds; loom reports if the pusher is writing it.
        state.add(0);
        forks.fetch_sub(1, Ordering::SeqCst);
        pusher.join().unwrap();
        assert_eq!(state.get(), 1, "a thread did not get in after the fork");
    });
}

/// Kills `token-taken-by-two`.
#[test]
fn two_threads_get_two_tokens() {
    model(|| {
        let tokens = Arc::new(Tokens::new(2));
        let other = {
            let tokens = tokens.clone();
            thread::spawn(move || tokens.take_near(0))
        };
        let mine = tokens.take_near(0);
        let theirs = other.join().unwrap();
        assert!(mine.is_some() && theirs.is_some() && mine != theirs, "{mine:?} {theirs:?}");
        assert!(!tokens.any_free());
    });
}

/// Kills `token-never-returned`: a token that was given back can be taken again, by the thread that
/// looks then.
#[test]
fn a_returned_token_can_be_taken_again() {
    model(|| {
        let (tokens, scratch) = (Arc::new(Tokens::new(1)), Watched::new());
        let mine = tokens.take_near(0).unwrap();
        let other = {
            let (tokens, scratch) = (tokens.clone(), scratch.clone());
            thread::spawn(move || {
                let token = tokens.take_near(0);
                if let Some(token) = token {
                    scratch.add(1);
                    tokens.put(token);
                }
            })
        };
        scratch.add(1);
        tokens.put(mine);
        other.join().unwrap();
        let again = tokens.take_near(0).expect("the token is lost");
        scratch.add(1);
        tokens.put(again);
    });
}

/// The order of steps of `Sched::give_back` and `Sched::next_job`: the thread that gives a token
/// back frees it and then looks at the queue; a worker sees the queued op and then looks for a
/// token. Kills `returned-token-tells-no-thread` in model form.
#[test]
fn a_worker_without_a_token_is_woken_when_one_comes_back() {
    model(|| {
        let shared = Arc::new((Tokens::new(1), AtomicUsize::new(0), Lock::new()));
        let token = shared.0.take_near(0).unwrap();
        let notified = Arc::new(AtomicUsize::new(0));
        let holder = {
            let (shared, notified) = (shared.clone(), notified.clone());
            thread::spawn(move || {
                shared.0.put(token);
                model_fence();
                if shared.1.load(Ordering::SeqCst) != 0 {
                    notified.fetch_add(1, Ordering::SeqCst);
                }
            })
        };
        let pusher = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.2.lock();
                shared.1.store(1, Ordering::Release);
                shared.2.unlock();
            })
        };
        shared.2.lock();
        let queued = shared.1.load(Ordering::Relaxed) != 0;
        model_fence();
        let asleep = queued && shared.0.take_near(0).is_none();
        shared.2.unlock();
        holder.join().unwrap();
        pusher.join().unwrap();
        assert!(!asleep || notified.load(Ordering::SeqCst) == 1, "an op stays queued although a token is free");
    });
}
