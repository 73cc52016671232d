//! First things an engine must do, on every kind.

use crate::common::*;
use mxrt_engine::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};

#[test]
fn ops_on_one_variable_run_in_push_order() {
    for engine in every_kind() {
        let var = engine.new_var();
        let log = Arc::new(std::sync::Mutex::new(Vec::new()));
        for i in 0..1000 {
            let log = log.clone();
            engine.push(OpSpec::new("log", &[(&var, Access::Update)]), move |_| {
                log.lock().unwrap().push(i);
                Ok(())
            });
        }
        engine.wait_to_read(&var).unwrap();
        assert_eq!(*log.lock().unwrap(), (0..1000).collect::<Vec<_>>());
        assert_eq!(var.version(), 1000);
    }
}

#[test]
fn a_split_runs_every_chunk_once_with_aligned_scratch() {
    for engine in every_kind() {
        let var = engine.new_var();
        for chunks in [0usize, 1, 2, 7, 1000, 70_000] {
            let hits: Arc<Vec<AtomicU32>> = Arc::new((0..chunks).map(|_| AtomicU32::new(0)).collect());
            let seen = hits.clone();
            engine.push(OpSpec::new("split", &[(&var, Access::Write)]), move |ctx| {
                ctx.split(chunks, 100, &|i, scratch| {
                    assert!(scratch.len() >= 100 && scratch.as_ptr().addr().is_multiple_of(64));
                    scratch.fill(i as u8);
                    seen[i].fetch_add(1, SeqCst);
                });
                Ok(())
            });
            engine.wait_to_read(&var).unwrap();
            assert!(hits.iter().all(|h| h.load(SeqCst) == 1), "{chunks} chunks");
        }
    }
}

#[test]
fn a_shared_loop_runs_every_unit_once_in_ranges_none_of_which_is_twice_as_long_as_even_ones() {
    // More cores than a loop has participants.
    for engine in every_kind().chain([start(EngineKind::Threaded, 100)]) {
        let var = engine.new_var();
        for units in [0usize, 1, 2, 7, 1000] {
            let hits: Arc<Vec<AtomicU32>> = Arc::new((0..units).map(|_| AtomicU32::new(0)).collect());
            let seen = hits.clone();
            engine.push(OpSpec::new("share", &[(&var, Access::Write)]), move |ctx| {
                let even = units.div_ceil(ctx.parallelism());
                for round in 1..=20 {
                    ctx.split_static(units, 100, &|range, scratch| {
                        assert!(scratch.len() >= 100 && scratch.as_ptr().addr().is_multiple_of(64));
                        assert!((1..=2 * even).contains(&range.len()), "{range:?} of {units}");
                        // One is slower than the other.
                        let pauses = if range.start == 0 { 50 } else { 10 };
                        (0..pauses * range.len()).for_each(|_| std::hint::spin_loop());
                        scratch.fill(1);
                        seen[range].iter().for_each(|hits| _ = hits.fetch_add(1, SeqCst));
                    });
                    assert!(seen.iter().all(|h| h.load(SeqCst) == round));
                }
                Ok(())
            });
            engine.wait_to_read(&var).unwrap();
            assert!(hits.iter().all(|h| h.load(SeqCst) == 20), "{units} units");
        }
    }
}

#[test]
fn an_async_op_is_complete_when_its_token_is_used() {
    for engine in every_kind() {
        let var = engine.new_var();
        let order = Arc::new(AtomicUsize::new(0));
        let first = order.clone();
        engine.push_async(OpSpec::new("async", &[(&var, Access::Write)]), move |_, token| {
            std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(20));
                first.store(1, SeqCst);
                token.complete(Ok(()));
            });
        });
        let second = order.clone();
        engine.push(OpSpec::new("next", &[(&var, Access::Update)]), move |_| {
            assert_eq!(second.load(SeqCst), 1);
            Ok(())
        });
        engine.wait_to_read(&var).unwrap();
        engine.wait_all().unwrap();
    }
}
