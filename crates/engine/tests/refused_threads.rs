//! Systems that refuse to start a worker. In a process of its own: the refusal holds for all
//! engines.

mod common;
use common::*;
use mxrt_engine::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Whether `count` ops have run, without asking the engine, which would start queued ops.
fn have_run(ran: &AtomicUsize, count: usize) -> bool {
    let begin = Instant::now();
    while ran.load(SeqCst) < count && begin.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(1));
    }
    ran.load(SeqCst) == count
}

#[test]
fn without_workers_the_pushing_thread_computes_and_with_sleeping_ones_these_are_woken() {
    let _guard = watchdog(60);
    testing::refuse_threads(Some(Duration::ZERO));
    for engine in [1, 2, 4].map(|cores| start(EngineKind::ThreadedPerDevice, cores)) {
        let ran = Arc::new(AtomicUsize::new(0));
        for _ in 0..100 {
            engine.push(OpSpec::new("op", &[]), adds(&ran));
        }
        assert!(have_run(&ran, 100));
    }
    testing::refuse_threads(None);
    for _ in 0..5 {
        let engine = start(EngineKind::Threaded, 2);
        let ran = Arc::new(AtomicUsize::new(0));
        let (started, go_on) = (std::sync::mpsc::channel(), std::sync::mpsc::channel::<()>());
        engine.push(OpSpec::new("busy", &[]), move |_| {
            started.0.send(()).unwrap();
            _ = go_on.1.recv();
            Ok(())
        });
        started.1.recv_timeout(Duration::from_secs(60)).unwrap();
        testing::refuse_threads(Some(Duration::from_millis(200)));
        std::thread::scope(|s| {
            // Its worker is refused after a while; meanwhile the first worker runs the op and falls
            // asleep.
            s.spawn(|| engine.push(OpSpec::new("second", &[]), adds(&ran)));
            std::thread::sleep(Duration::from_millis(50));
            drop(go_on.0);
            assert!(have_run(&ran, 1));
            std::thread::sleep(Duration::from_millis(50));
            engine.push(OpSpec::new("third", &[]), adds(&ran));
        });
        assert!(have_run(&ran, 2), "an op is queued and a worker sleeps");
        testing::refuse_threads(None);
    }
}
