//! Ops that name a bound of cores use no more of them together, helpers included.

use crate::common::*;
use mxrt_engine::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Counts concurrent chunks.
struct Seen {
    begin: Instant,
    inside: AtomicUsize,
    most: AtomicUsize,
}

impl Seen {
    fn new() -> Arc<Seen> {
        Arc::new(Seen { begin: Instant::now(), inside: AtomicUsize::new(0), most: AtomicUsize::new(0) })
    }

    /// A chunk. The first ones last until `want` have met, so that helpers have the time to come.
    fn chunk(&self, want: usize) {
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(inside, Ordering::SeqCst);
        while self.most() < want && self.begin.elapsed() < LONG {
            sleep(CHUNK / 4);
        }
        sleep(CHUNK);
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

const LONG: Duration = Duration::from_secs(60);
const CHUNK: Duration = Duration::from_millis(2);

/// A large op of many chunks that names the bound, of which `want` run at the same time.
fn run(engine: &'static Engine, limit: Option<&'static CoreLimit>, want: usize, seen: &Arc<Seen>) {
    let (var, seen) = (engine.new_var(), seen.clone());
    engine.push(OpSpec::new("op", &[(&var, Access::Write)]).cost(Cost::Large), move |ctx| {
        let _limited = limit.map(|limit| ctx.limit_cores(limit));
        ctx.split(32, 0, &|_, _| seen.chunk(want));
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
        let (limit, seen) = (bound(most), Seen::new());
        for _ in 0..3 {
            run(engine, Some(limit), most, &seen);
        }
        assert_eq!(seen.most(), most);
        // The last helper gives its place back a moment after the op has ended.
        let begin = Instant::now();
        while limit.used() > 0 {
            assert!(begin.elapsed() < LONG, "{} places are lost", limit.used());
            sleep(Duration::from_millis(1));
        }
    }
    let seen = Seen::new();
    run(engine, None, 4, &seen);
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
    let (limit, seen, var) = (bound(2), Seen::new(), engine.new_var());
    // Whether the small op computes, and how many chunks a helper of the large one began then.
    let (small, late) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let ended = Arc::new(AtomicBool::new(false));
    let (chunks, there, begun, end) = (seen.clone(), small.clone(), late.clone(), ended.clone());
    engine.push(OpSpec::new("large", &[(&var, Access::Write)]).cost(Cost::Large), move |ctx| {
        let (driver, _limited) = (std::thread::current().id(), ctx.limit_cores(limit));
        ctx.split(1 << 20, 0, &|_, _| {
            if end.load(Ordering::SeqCst) || chunks.begin.elapsed() > 3 * LONG {
                return;
            }
            if std::thread::current().id() != driver && there.load(Ordering::SeqCst) {
                begun.fetch_add(1, Ordering::SeqCst);
            }
            chunks.chunk(1);
        });
        Ok(())
    });
    let begin = Instant::now();
    while seen.inside.load(Ordering::SeqCst) < 2 {
        assert!(begin.elapsed() < LONG, "no helper came");
        sleep(CHUNK / 4);
    }
    // It runs in this thread, so nothing is queued that helpers would leave for.
    let (other, chunks) = (engine.new_var(), seen.clone());
    engine.push(OpSpec::new("small", &[(&other, Access::Write)]).cost(Cost::Small), move |ctx| {
        let _limited = ctx.limit_cores(limit);
        small.store(true, Ordering::SeqCst);
        ctx.split(32, 0, &|_, _| chunks.chunk(1));
        small.store(false, Ordering::SeqCst);
        Ok(())
    });
    engine.wait_to_read(&other).unwrap();
    let others = Seen::new();
    run(engine, None, 2, &others);
    ended.store(true, Ordering::SeqCst);
    engine.wait_to_read(&var).unwrap();
    // The chunk that the helper was at.
    assert!((2..=3).contains(&seen.most()), "{} at a time", seen.most());
    let late = late.load(Ordering::SeqCst);
    assert!(late <= 1, "a helper began {late} chunks although the small op had its place");
    assert!(others.most() >= 2, "the cores that are left are for others");
}
