//! The memory pool.

use crate::common::*;
use mxrt_engine::*;

fn with_limit(limit: Option<usize>) -> &'static MemoryPool {
    let config = Config { kind: EngineKind::Naive, cores: Some(1), memory_limit: limit, ..Config::default() };
    Engine::start(config).unwrap().memory()
}

#[test]
fn blocks_have_the_size_asked_for_are_aligned_and_zeroed() {
    let pool = with_limit(None);
    // All are held, so that none is a recycled one.
    let mut held = Vec::new();
    for bytes in [1usize, 63, 64, 65, 511, 513, 4097, 1 << 20, (1 << 20) + 1, (5 << 20) + 3] {
        let mut block = pool.alloc(bytes).unwrap();
        assert_eq!(block.len(), bytes);
        assert!(block.as_ptr().addr().is_multiple_of(if bytes >= 1 << 20 { 2 << 20 } else { 64 }), "{bytes}");
        assert!(block.as_slice().iter().all(|b| *b == 0));
        block.as_mut_slice().fill(7);
        held.push(block);
    }
    drop(held);
    assert_eq!(pool.stats().in_use, 0);
    let empty = pool.alloc(0).unwrap();
    assert!(empty.is_empty() && empty.as_slice().is_empty() && empty.as_ptr().addr().is_multiple_of(64));
}

#[test]
fn a_freed_block_is_used_again() {
    let pool = with_limit(None);
    for bytes in [100, 3 << 20] {
        let first = pool.alloc(bytes).unwrap();
        let address = first.as_ptr();
        drop(first);
        let second = pool.alloc(bytes - 10).unwrap();
        assert_eq!(second.as_ptr(), address);
    }
    assert_eq!((pool.stats().fresh_blocks, pool.stats().recycled_blocks), (2, 2));
}

#[test]
fn the_limit_is_an_error_that_says_what_was_asked_and_what_is_in_use() {
    let pool = with_limit(Some(1 << 20));
    let held = pool.alloc(600 << 10).unwrap();
    let in_use = pool.stats().in_use;
    assert!((600 << 10..=720 << 10).contains(&in_use), "at most a fifth is rounding: {in_use}");
    let error = pool.alloc(600 << 10).unwrap_err();
    assert_eq!(error, OutOfMemory { asked: 600 << 10, limit: Some(1 << 20), in_use });
    assert!(error.to_string().contains("614400") && error.to_string().contains("1048576"), "{error}");
    let as_op_error = OpError::from(error);
    assert_eq!(as_op_error.kind, FailureKind::Memory);
    drop(held);
    pool.alloc(600 << 10).unwrap();
    assert!(pool.alloc(usize::MAX).is_err());
    pool.set_limit(None);
    pool.alloc(3 << 20).unwrap();
}

#[test]
fn what_is_charged_counts_as_in_use_until_it_is_dropped() {
    let pool = with_limit(Some(8 << 20));
    drop(pool.alloc(4 << 20).unwrap());
    let charge = pool.charge(5 << 20).unwrap();
    assert_eq!((pool.stats().in_use, pool.stats().cached), (5 << 20, 0), "what was cached gives way");
    assert_eq!(pool.charge(4 << 20).unwrap_err().in_use, 5 << 20);
    assert!(pool.charge(usize::MAX).is_err() && pool.alloc(4 << 20).is_err());
    drop(charge);
    assert_eq!((pool.stats().in_use, pool.stats().peak), (0, 5 << 20));
}

#[test]
fn cached_memory_gives_way_to_the_limit_and_to_trim() {
    let pool = with_limit(Some(8 << 20));
    drop(pool.alloc(5 << 20).unwrap());
    assert_eq!(pool.stats().cached, 5 << 20);
    // 5 MiB are cached and 4 are asked for in another class: together more than the limit.
    drop(pool.alloc(4 << 20).unwrap());
    assert_eq!(pool.stats().cached, 4 << 20);
    pool.trim();
    assert_eq!((pool.stats().cached, pool.stats().in_use), (0, 0));
}

#[test]
fn the_cache_is_bounded() {
    let pool = with_limit(None);
    let blocks: Vec<_> = (0..40).map(|_| pool.alloc(16 << 20).unwrap()).collect();
    drop(blocks);
    let stats = pool.stats();
    assert!(stats.cached <= (256 << 20).max(stats.peak / 2) && stats.cached > 0, "{stats:?}");
}

/// Memory that was asked for in vain, or is held elsewhere, says nothing of the next requests.
#[test]
fn the_bound_of_the_cache_follows_from_what_blocks_have_held() {
    let pool = with_limit(None);
    assert!(pool.alloc(1 << 47).is_err(), "more than a process can address");
    assert_eq!((pool.stats().peak, pool.stats().in_use), (0, 0));
    drop(pool.charge(8 << 30).unwrap());
    assert_eq!(pool.stats().peak, 8 << 30);
    let blocks: Vec<_> = (0..40).map(|_| pool.alloc(16 << 20).unwrap()).collect();
    drop(blocks);
    let stats = pool.stats();
    assert!(stats.cached <= (40 << 20) * 8, "{stats:?}: half of 640 MiB");
    // With a charge, blocks have held no more.
    let charge = pool.charge(8 << 30).unwrap();
    let blocks: Vec<_> = (0..40).map(|_| pool.alloc(16 << 20).unwrap()).collect();
    drop((blocks, charge));
    assert!(pool.stats().cached <= (40 << 20) * 8, "{:?}", pool.stats());
}

#[test]
fn a_request_that_is_refused_does_not_fail_a_small_one_beside_it() {
    let pool = with_limit(Some(4 << 20));
    std::thread::scope(|scope| {
        scope.spawn(|| (0..1_000_000).for_each(|_| assert!(pool.alloc(64 << 20).is_err())));
        scope.spawn(|| (0..300_000).for_each(|_| drop(pool.alloc(64 << 10).unwrap())));
    });
}

#[test]
fn threads_share_the_pool() {
    let _guard = watchdog(60);
    let pool = with_limit(None);
    std::thread::scope(|s| {
        for t in 0..8u64 {
            s.spawn(move || {
                let mut r = Random(t + 1);
                let mut held: Vec<(Block, u8)> = Vec::new();
                for i in 0..3000u64 {
                    let mut block = pool.alloc(1 + r.below(5000) as usize).unwrap();
                    let mark = (t * 31 + i) as u8;
                    block.as_mut_slice().fill(mark);
                    held.push((block, mark));
                    if held.len() > 20 {
                        let (block, mark) = held.swap_remove(r.below(20) as usize);
                        assert!(block.as_slice().iter().all(|b| *b == mark), "two owners of one block");
                    }
                }
            });
        }
    });
    assert_eq!(pool.stats().in_use, 0);
}

#[test]
fn a_burst_leaves_no_blocks_in_the_place_of_those_in_daily_use() {
    let pool = with_limit(None);
    let daily = pool.alloc(4 << 20).unwrap();
    let burst: Vec<_> = (0..600).map(|_| pool.alloc(640 << 10).unwrap()).collect();
    drop(burst);
    let before = pool.stats();
    assert!(before.cached < 300 << 20, "{before:?}: what is kept is bounded");
    drop(daily);
    for _ in 0..10 {
        drop(pool.alloc(4 << 20).unwrap());
    }
    let after = pool.stats();
    assert_eq!(after.fresh_blocks, before.fresh_blocks, "the daily block was kept");
    assert!(after.cached < 300 << 20, "{after:?}");
    assert_eq!(after.in_use, 0);
}

#[test]
fn released_pages_count_as_free_until_they_are_restored_within_the_limit() {
    let pool = with_limit(Some(8 << 20));
    let mut block = pool.alloc(3 << 20).unwrap();
    block.as_mut_slice().fill(7);
    let (address, size) = (block.as_ptr(), pool.stats().in_use);
    // SAFETY: no thread looks at the bytes.
    assert!(unsafe { block.release_pages() });
    // SAFETY: as above.
    assert!(!unsafe { block.release_pages() }, "once");
    assert_eq!(pool.stats().in_use, 0);
    let other = pool.alloc(6 << 20).unwrap();
    let error = block.restore_pages().unwrap_err();
    assert_eq!((error.asked, error.limit), (3 << 20, Some(8 << 20)));
    drop(other);
    block.restore_pages().unwrap();
    block.restore_pages().unwrap();
    assert_eq!((block.as_ptr(), pool.stats().in_use), (address, size));
    assert!(block.as_slice().iter().all(|b| *b == 0), "the system's pages");
    let small = pool.alloc(4096).unwrap();
    // SAFETY: as above.
    assert!(!unsafe { small.release_pages() }, "it has no pages of its own");
    drop(small);
    for end in [|block: mxrt_engine::memory::Block| drop(block), |block: mxrt_engine::memory::Block| block.give_back()]
    {
        let block = pool.alloc(3 << 20).unwrap();
        let before = pool.stats().in_use;
        // SAFETY: as above.
        assert!(unsafe { block.release_pages() });
        let cached = pool.stats().cached;
        end(block);
        assert_eq!((pool.stats().in_use, pool.stats().cached), (before - size, cached), "it goes where its pages are");
    }
}

#[test]
fn scratch_of_a_loop_that_cannot_be_had_is_the_failure_of_its_op() {
    let config =
        Config { kind: EngineKind::Threaded, cores: Some(2), memory_limit: Some(64 << 20), ..Config::default() };
    let engine = Engine::start(config).unwrap();
    let run = |scratch: usize| {
        let var = engine.new_var();
        engine.push(OpSpec::new("loop", &[(&var, Access::Write)]), move |ctx| {
            ctx.split(2, scratch, &|_, scratch| scratch[0] = 1);
            Ok(())
        });
        raised(engine.wait_to_read(&var))
    };
    let error = run(40 << 20).unwrap();
    assert!(error.contains("83886080 bytes of scratch memory in 2 threads: the memory limit is 67108864"), "{error}");
    assert_eq!((run(20 << 20), engine.memory().stats().in_use), (None, 0));
    engine.memory().set_limit(None);
    let error = run(1 << 60).unwrap();
    assert!(error.contains("bytes of scratch memory: the system has no more"), "{error}");
}
