//! Ops that name a bound of cores use no more of them together, helpers included.

mod common;
use common::*;
use mxrt_engine::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

/// Counts the chunks that run at a time, and those that begin beside two others or more.
#[derive(Default)]
struct Seen {
    inside: AtomicUsize,
    most: AtomicUsize,
    beyond_two: AtomicUsize,
}

impl Seen {
    fn chunk(&self, time: Duration) {
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(inside, Ordering::SeqCst);
        self.beyond_two.fetch_add(usize::from(inside > 2), Ordering::SeqCst);
        sleep(time);
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

const CHUNK: Duration = Duration::from_millis(2);

/// An op of many chunks that names the bound.
fn run(engine: &'static Engine, limit: Option<&'static CoreLimit>, seen: &Arc<Seen>) {
    let (var, seen) = (engine.new_var(), seen.clone());
    engine.push(OpSpec::new("op", &[(&var, Access::Write)]).cost(Cost::Large), move |ctx| {
        let _limited = limit.map(|limit| ctx.limit_cores(limit));
        ctx.split(32, 0, &|_, _| seen.chunk(CHUNK));
        Ok(())
    });
    engine.wait_to_read(&var).unwrap();
}

fn bound(most: usize) -> &'static CoreLimit {
    Box::leak(Box::new(CoreLimit::new(most)))
}

#[test]
fn a_lone_op_uses_as_many_cores_as_it_may() {
    let engine = start(EngineKind::ThreadedPerDevice, 4);
    for most in 1..=4 {
        let (limit, seen) = (bound(most), Arc::new(Seen::default()));
        for _ in 0..3 {
            run(engine, Some(limit), &seen);
        }
        assert_eq!(seen.most(), most);
        // The last helper gives its place back a moment after the op has ended.
        let begin = Instant::now();
        while limit.used() > 0 {
            assert!(begin.elapsed() < Duration::from_secs(20), "{} places are lost", limit.used());
            sleep(Duration::from_millis(1));
        }
    }
    let seen = Arc::new(Seen::default());
    run(engine, None, &seen);
    assert_eq!(seen.most(), 4, "others are not bounded");
}

#[test]
fn parallelism_is_that_of_the_bound() {
    let engine = start(EngineKind::ThreadedPerDevice, 4);
    let (limit, var) = (bound(2), engine.new_var());
    let seen = Arc::new(AtomicUsize::new(0));
    let to = seen.clone();
    engine.push(OpSpec::new("op", &[(&var, Access::Write)]), move |ctx| {
        let limited = ctx.limit_cores(limit);
        to.fetch_add(ctx.parallelism(), Ordering::SeqCst);
        drop(limited);
        to.fetch_add(100 * ctx.parallelism(), Ordering::SeqCst);
        Ok(())
    });
    engine.wait_to_read(&var).unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), 402);
}

#[test]
fn as_many_ops_as_cores_leave_no_room_for_helpers() {
    let engine = start(EngineKind::ThreadedPerDevice, 4);
    let (limit, seen, others) = (bound(2), Arc::new(Seen::default()), Arc::new(Seen::default()));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let seen = seen.clone();
            spawn(move || (0..8).for_each(|_| run(engine, Some(limit), &seen)))
        })
        .collect();
    let beside = {
        let others = others.clone();
        spawn(move || (0..8).for_each(|_| run(engine, None, &others)))
    };
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    beside.join().unwrap();
    // One more for the chunk that a helper is at when the second op begins; of 512 chunks.
    assert!((2..=3).contains(&seen.most()), "{} at a time", seen.most());
    let beyond = seen.beyond_two.load(Ordering::SeqCst);
    assert!(beyond <= 48, "{beyond} chunks began beside two others");
    assert!(others.most() >= 2, "the cores that are left are for others");
}
