//! Models of splits: claiming, stealing, helpers that come and leave, panics.

use super::*;
use crate::models::*;
use crate::sync::atomic::AtomicUsize;
use loom::sync::Arc;
use loom::thread;

fn hits(n: usize) -> Arc<Vec<AtomicUsize>> {
    Arc::new((0..n).map(|_| AtomicUsize::new(0)).collect())
}

fn once(hits: &[AtomicUsize]) -> bool {
    hits.iter().all(|h| h.load(Ordering::Relaxed) == 1)
}

/// Drives one round as `Team::drive` does.
fn drive(run: &Run, chunks: usize, job: SplitJob, mut chunk: impl FnMut(Claim)) {
    // SAFETY: no round is under way: the models call this once, or after the last one has ended.
    unsafe { run.publish(0, chunks, job) };
    let mut mine = 0;
    while let Some(claim) = run.claim(0) {
        chunk(claim);
        mine += 1;
    }
    while !run.ends_with(chunks - mine) {
        thread::yield_now();
    }
}

/// Kills `chunk-count-relaxed`: the driver sees what helpers wrote.
#[test]
fn what_a_helper_computed_is_there_when_the_split_returns() {
    model(|| {
        let (run, cells) = (Arc::new(Run::new(2)), Arc::new([Watched::new(), Watched::new()]));
        run.join(1);
        let helper = {
            let (run, cells) = (run.clone(), cells.clone());
            thread::spawn(move || {
                if let Some(claim) = run.claim(1) {
                    cells[claim.chunk].add(1);
                    run.count_done(1);
                }
            })
        };
        let body = |_: usize, _: &mut [u8]| {};
        drive(&run, 2, SplitJob::new(&body, 0), |claim| cells[claim.chunk].add(1));
        // Looked at before the helper is joined.
        assert!(cells.iter().all(|c| c.get() == 1));
        helper.join().unwrap();
    });
}

/// Kills `chunk-taken-twice`: an owner takes from the front while two others steal from the back.
#[test]
fn the_last_chunk_is_taken_by_one_of_three() {
    model(|| {
        let (run, hits) = (Arc::new(Run::new(3)), hits(2));
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
        let body = |_: usize, _: &mut [u8]| {};
        drive(&run, 2, SplitJob::new(&body, 0), |claim| _ = hits[claim.chunk].fetch_add(1, Ordering::Relaxed));
        helpers.into_iter().for_each(|t| t.join().unwrap());
        assert!(once(&hits));
    });
}

/// A helper joins while the driver shares the chunks out, and leaves again: nothing is lost with
/// it. What is done with a chunk shows of which round it is.
#[test]
fn a_helper_that_comes_and_leaves_takes_nothing_along() {
    model(|| {
        let (run, hits) = (Arc::new(Run::new(2)), hits(4));
        let helper = {
            let (run, hits) = (run.clone(), hits.clone());
            thread::spawn(move || {
                run.join(1);
                if let Some(Claim { chunk, job }) = run.claim(1) {
                    hits[job.scratch_bytes + chunk].fetch_add(1, Ordering::Relaxed);
                    run.count_done(1);
                }
                run.leave(1);
            })
        };
        let body = |_: usize, _: &mut [u8]| {};
        for first in [0, 2] {
            drive(&run, 2, SplitJob::new(&body, first), |claim| {
                _ = hits[first + claim.chunk].fetch_add(1, Ordering::Relaxed)
            });
        }
        helper.join().unwrap();
        assert!(once(&hits));
    });
}

/// Kills `highest-panic-wins`: whichever thread runs which chunk, the panic of the lowest is kept,
/// and all chunks have ended.
#[test]
fn of_panics_in_two_threads_that_of_the_lowest_chunk_is_kept() {
    model(|| {
        let team = Arc::new(Team::new(2));
        let helper = {
            let team = team.clone();
            thread::spawn(move || {
                let run = &team.runs[0];
                if let Some(claim) = run.claim(1) {
                    // SAFETY: claimed, counted below, and token 1 belongs to this thread.
                    unsafe { team.run_chunk(slot::current(), run, claim, 1) };
                    run.count_done(1);
                }
            })
        };
        let body = |chunk: usize, _: &mut [u8]| resume_unwind(Box::new(chunk));
        let run = &team.runs[0];
        drive(run, 2, SplitJob::new(&body, 0), |claim| {
            // SAFETY: claimed, the round is not over, and token 0 belongs to this thread.
            unsafe { team.run_chunk(slot::current(), run, claim, 0) };
        });
        let (number, payload) = run.take_panic().expect("the panics are lost");
        assert_eq!((number, payload.downcast_ref()), (0, Some(&0usize)));
        helper.join().unwrap();
    });
}
