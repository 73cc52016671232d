//! Denormal numbers as zeros in ops, whichever thread runs them.

use mxrt_engine::*;
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};

/// Held by a test that changes the setting of the process.
static SETTING: Mutex<()> = Mutex::new(());

/// Half of the least normal number.
fn denormal() -> f32 {
    black_box(f32::MIN_POSITIVE) * black_box(0.5)
}

/// How many of 64 chunks, and whether the closure itself, see a denormal number.
fn seen(engine: &'static Engine, small: bool) -> (usize, bool) {
    let (var, chunks, closure) = (engine.new_var(), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (by_chunks, by_closure) = (chunks.clone(), closure.clone());
    let accesses = [(&var, Access::Write)];
    let spec = OpSpec::new("look", &accesses);
    let spec = if small { spec.cost(Cost::Small) } else { spec };
    engine.push(spec, move |ctx| {
        by_closure.store(usize::from(denormal() > 0.0), Ordering::Relaxed);
        ctx.split(64, 0, &|_, _| {
            by_chunks.fetch_add(usize::from(denormal() > 0.0), Ordering::Relaxed);
        });
        Ok(())
    });
    engine.wait_to_read(&var).unwrap();
    (chunks.load(Ordering::Relaxed), closure.load(Ordering::Relaxed) == 1)
}

#[test]
fn ops_take_denormal_numbers_for_zeros_and_callers_do_not() {
    let _alone = SETTING.lock().unwrap_or_else(PoisonError::into_inner);
    let engine = Engine::start(Config { cores: Some(4), ..Config::default() }).unwrap();
    for small in [false, true] {
        assert_eq!(seen(engine, small), (64, true));
        assert_eq!(set_flush_denormals(true), Ok(false));
        assert!(flushes_denormals());
        for _ in 0..20 {
            assert_eq!(seen(engine, small), (0, false));
            assert!(denormal() > 0.0, "the thread that calls computes as before");
        }
        assert_eq!(set_flush_denormals(false), Ok(true));
        assert_eq!(seen(engine, small), (64, true));
    }
}

/// How many of two threads that share an op see a denormal number.
fn seen_by_two(engine: &'static Engine) -> usize {
    let (var, seen) = (engine.new_var(), Arc::new(AtomicUsize::new(0)));
    let (by_chunks, meet) = (seen.clone(), Barrier::new(2));
    engine.push(OpSpec::new("look", &[(&var, Access::Write)]), move |ctx| {
        ctx.split(2, 0, &|_, _| {
            meet.wait();
            by_chunks.fetch_add(usize::from(denormal() > 0.0), Ordering::Relaxed);
        });
        Ok(())
    });
    engine.wait_to_read(&var).unwrap();
    seen.load(Ordering::Relaxed)
}

#[test]
fn a_thread_that_an_op_without_denormals_started_computes_with_them_later() {
    let _alone = SETTING.lock().unwrap_or_else(PoisonError::into_inner);
    let engine = Engine::start(Config { cores: Some(2), ..Config::default() }).unwrap();
    // The second thread is started by the first one, which splits the op. It may still look for
    // chunks of this op when the next one begins.
    for _ in 0..200 {
        assert_eq!(set_flush_denormals(true), Ok(false));
        assert_eq!(seen_by_two(engine), 0);
        assert_eq!(set_flush_denormals(false), Ok(true));
        assert_eq!(seen_by_two(engine), 2);
    }
}
