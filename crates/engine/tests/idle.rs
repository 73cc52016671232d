//! An engine that has nothing to do. One test in this file: it looks at the threads of its process.

mod common;
use common::*;
use mxrt_engine::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// How often each worker has gone to sleep so far.
fn sleeps() -> BTreeMap<String, u64> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let status = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("status")).ok();
    let field = |text: &str, name: &str| {
        text.lines().find_map(|l| l.strip_prefix(name).map(|v| v.trim_start_matches(':').trim().to_owned()))
    };
    tasks
        .filter_map(|task| {
            let text = status(task.ok()?)?;
            let worker = field(&text, "Name").filter(|name| name.starts_with("mxrt-"))?;
            Some((worker, field(&text, "voluntary_ctxt_switches")?.parse().ok()?))
        })
        .collect()
}

#[test]
#[cfg(target_os = "linux")]
fn an_engine_at_rest_gives_memory_back_and_then_sleeps_without_waking() {
    let _guard = watchdog(120);
    set_give_back_after(Duration::from_secs(3600));
    let engine = start(EngineKind::ThreadedPerDevice, 2);
    for _ in 0..100 {
        let var = engine.new_var();
        engine.push(OpSpec::new("work", &[(&var, Access::Write)]), |ctx| {
            let mut arena = ctx.engine().memory().alloc(3 << 20).map_err(OpError::from)?;
            arena.as_mut_slice().fill(1);
            ctx.split(8, 1 << 20, &|_, scratch| scratch.fill(2));
            Ok(())
        });
        engine.wait_to_read(&var).unwrap();
    }
    let kept = engine.memory().stats().cached;
    assert!(kept >= 3 << 20, "an arena is kept for the next request: {kept}");
    // Only now, or a slow machine would give the memory back before the look. Workers take the new
    // time when they fall asleep again: both help with one more op.
    set_give_back_after(Duration::from_millis(200));
    let (var, met) = (engine.new_var(), Arc::new(AtomicUsize::new(0)));
    engine.push(OpSpec::new("both", &[(&var, Access::Write)]), move |ctx| {
        let begin = Instant::now();
        ctx.split(2, 0, &|_, _| {
            met.fetch_add(1, SeqCst);
            while met.load(SeqCst) < 2 && begin.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Ok(())
    });
    engine.wait_to_read(&var).unwrap();
    let begin = Instant::now();
    while engine.memory().stats().cached > 0 {
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", engine.memory().stats());
        std::thread::sleep(Duration::from_millis(20));
    }
    // The other worker may be about to find that nothing is left to give back.
    let quiet = (0..10).any(|_| {
        let before = sleeps();
        assert!(!before.is_empty(), "there are workers");
        std::thread::sleep(Duration::from_secs(2));
        sleeps() == before
    });
    assert!(quiet, "a worker wakes up for nothing");
    let var = engine.new_var();
    engine.push(OpSpec::new("again", &[(&var, Access::Write)]), |_| Ok(()));
    engine.wait_to_read(&var).unwrap();
}
