//! Models of splits: claiming, stealing, helpers that come and leave, panics.

use super::*;
use crate::models::*;
use loom::sync::Arc;
use loom::thread;

fn hits(n: usize) -> Arc<Vec<AtomicUsize>> {
    Arc::new((0..n).map(|_| AtomicUsize::new(0)).collect())
}

fn once(hits: &[AtomicUsize]) -> bool {
    hits.iter().all(|h| h.load(Ordering::Relaxed) == 1)
}

/// Drives one round as `Team::drive` does.
fn drive(run: &Run, chunks: usize, job: Job, mut chunk: impl FnMut(usize)) {
    // SAFETY: no round is under way: the models call this once, or after the last one has ended.
    let tag = unsafe { run.publish(0, chunks, job) };
    let mut mine = 0;
    while let Some(n) = run.claim(0, tag) {
        chunk(n);
        mine += 1;
    }
    while !run.round_is_done(chunks - mine) {
        thread::yield_now();
    }
}

/// Kills `chunk-count-relaxed`: the driver sees what helpers wrote.
#[test]
fn what_a_helper_computed_is_there_when_the_split_returns() {
    model(|| {
        let (run, cells) = (Arc::new(Run::new(2)), Arc::new([Watched::new(), Watched::new()]));
        run.members.fetch_or(2, Ordering::Relaxed);
        let helper = {
            let (run, cells) = (run.clone(), cells.clone());
            thread::spawn(move || {
                let tag = run.tag();
                if tag != END
                    && let Some(chunk) = run.claim(1, tag)
                {
                    cells[chunk].add(1);
                    run.count_done();
                }
            })
        };
        let body = |_: usize, _: &mut [u8]| {};
        drive(&run, 2, Job::new(&body, 0), |chunk| cells[chunk].add(1));
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
                    let tag = run.tag();
                    if tag != END
                        && let Some(chunk) = run.claim(me, tag)
                    {
                        hits[chunk].fetch_add(1, Ordering::Relaxed);
                        run.count_done();
                    }
                })
            })
            .collect();
        let body = |_: usize, _: &mut [u8]| {};
        drive(&run, 2, Job::new(&body, 0), |chunk| _ = hits[chunk].fetch_add(1, Ordering::Relaxed));
        helpers.into_iter().for_each(|t| t.join().unwrap());
        assert!(once(&hits));
    });
}

/// A helper joins while the driver shares the chunks out, and leaves again: nothing is lost with it.
#[test]
fn a_helper_that_comes_and_leaves_takes_nothing_along() {
    model(|| {
        let (run, hits) = (Arc::new(Run::new(2)), hits(4));
        let helper = {
            let (run, hits) = (run.clone(), hits.clone());
            thread::spawn(move || {
                run.members.fetch_or(2, Ordering::Relaxed);
                let tag = run.tag();
                if tag != END
                    && let Some(chunk) = run.claim(1, tag)
                {
                    // SAFETY: claimed and not counted yet.
                    let first = unsafe { run.first_chunk() };
                    hits[first + chunk].fetch_add(1, Ordering::Relaxed);
                    run.count_done();
                }
                run.members.fetch_and(!2, Ordering::Relaxed);
            })
        };
        let body = |_: usize, _: &mut [u8]| {};
        for first in [0, 2] {
            drive(&run, 2, Job::new(&body, first), |chunk| _ = hits[first + chunk].fetch_add(1, Ordering::Relaxed));
        }
        helper.join().unwrap();
        assert!(once(&hits));
    });
}

/// Kills `stale-claim-succeeds`: a tag read before the run ended claims nothing of the next op's split.
#[test]
fn a_claim_with_an_old_tag_fails_after_the_end() {
    model(|| {
        let (run, hits) = (Arc::new(Run::new(2)), hits(2));
        let body = |_: usize, _: &mut [u8]| {};
        // SAFETY: the first round; taken whole by the driver.
        let old = unsafe { run.publish(0, 1, Job::new(&body, 0)) };
        let late = {
            let run = run.clone();
            thread::spawn(move || run.claim(1, old).map(|chunk| _ = (chunk, run.count_done())).is_some())
        };
        let mine = run.claim(0, old).is_some();
        while !run.round_is_done(!mine as usize) {
            thread::yield_now();
        }
        run.tag.store(END, Ordering::Release);
        // The next op with this token: if the late helper could claim here, a chunk would be lost.
        drive(&run, 2, Job::new(&body, 0), |chunk| _ = hits[chunk].fetch_add(1, Ordering::Relaxed));
        assert!(mine != late.join().unwrap(), "the only chunk of the first split was taken twice, or never");
        assert!(once(&hits));
    });
}

/// Kills `highest-panic-wins`: whoever runs which chunk, the panic of the lowest is kept, and all chunks have ended.
#[test]
fn of_panics_in_two_threads_that_of_the_lowest_chunk_is_kept() {
    model(|| {
        let team = Arc::new(Team::new(2));
        let helper = {
            let team = team.clone();
            thread::spawn(move || {
                let run = &team.runs[0];
                let tag = run.tag();
                if tag != END
                    && let Some(chunk) = run.claim(1, tag)
                {
                    // SAFETY: claimed, counted below, and token 1 belongs to this thread.
                    unsafe { team.run_chunk(slot::current(), run, chunk, 1) };
                    run.count_done();
                }
            })
        };
        let body = |chunk: usize, _: &mut [u8]| resume_unwind(Box::new(chunk));
        let run = &team.runs[0];
        drive(run, 2, Job::new(&body, 0), |chunk| {
            // SAFETY: claimed, the round is not over, and token 0 belongs to this thread.
            unsafe { team.run_chunk(slot::current(), run, chunk, 0) };
        });
        let (number, payload) = run.panic.lock().take().expect("the panics are lost");
        assert_eq!((number, payload.downcast_ref()), (0, Some(&0usize)));
        helper.join().unwrap();
    });
}
