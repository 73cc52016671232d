//! Ops that name a bound of cores use no more of them together, helpers included.

mod common;
use common::*;
use mxrt_engine::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

/// Counts concurrent chunks, and those that begin while two others or more run.
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

/// An op of many chunks that names the bound. A small one runs in this thread, others on workers.
fn run(engine: &'static Engine, cost: Cost, chunks: usize, limit: Option<&'static CoreLimit>, seen: &Arc<Seen>) {
    let (var, seen) = (engine.new_var(), seen.clone());
    engine.push(OpSpec::new("op", &[(&var, Access::Write)]).cost(cost), move |ctx| {
        let _limited = limit.map(|limit| ctx.limit_cores(limit));
        ctx.split(chunks, 0, &|_, _| seen.chunk(CHUNK));
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
            run(engine, Cost::Large, 32, Some(limit), &seen);
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
    run(engine, Cost::Large, 32, None, &seen);
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
fn helpers_make_room_for_an_op() {
    let engine = start(EngineKind::ThreadedPerDevice, 4);
    let (limit, seen, others) = (bound(2), Arc::new(Seen::default()), Arc::new(Seen::default()));
    let helped = {
        let seen = seen.clone();
        spawn(move || run(engine, Cost::Large, 200, Some(limit), &seen))
    };
    let begin = Instant::now();
    while seen.inside.load(Ordering::SeqCst) < 2 {
        assert!(begin.elapsed() < Duration::from_secs(20), "no helper came");
        sleep(CHUNK / 4);
    }
    // It runs in this thread, so nothing is queued that helpers would leave for.
    run(engine, Cost::Small, 32, Some(limit), &seen);
    run(engine, Cost::Large, 32, None, &others);
    helped.join().unwrap();
    // The chunk that the helper was at.
    assert!((2..=3).contains(&seen.most()), "{} at a time", seen.most());
    let beyond = seen.beyond_two.load(Ordering::SeqCst);
    assert!(beyond <= 8, "{beyond} chunks began beside two others");
    assert!(others.most() >= 2, "the cores that are left are for others");
}
