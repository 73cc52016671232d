//! The steady state does not allocate.

use mxrt_engine::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

struct Counting;
static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, SeqCst);
        // SAFETY: contract.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: contract.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn ops_with_eight_variables_and_closures_of_56_bytes_do_not_allocate() {
    for (kind, cost) in [
        (EngineKind::Naive, Cost::Large),
        (EngineKind::ThreadedPerDevice, Cost::Large),
        (EngineKind::Threaded, Cost::Small),
    ] {
        let engine = Engine::start(Config { kind, cores: Some(2), ..Config::default() }).unwrap();
        let vars: Vec<Var> = (0..64).map(|_| engine.new_var()).collect();
        let round = |n: usize| {
            for i in 0..n {
                let v = &vars[i % 8 * 8..][..8];
                let payload = [i as u64; 7];
                let accesses = [
                    (&v[0], Access::Read),
                    (&v[1], Access::Read),
                    (&v[2], Access::Read),
                    (&v[3], Access::Read),
                    (&v[4], Access::Read),
                    (&v[5], Access::Write),
                    (&v[6], Access::Update),
                    (&v[7], Access::Write),
                ];
                engine.push(OpSpec::new("a", &accesses).cost(cost), move |_| {
                    std::hint::black_box(payload);
                    Ok(())
                });
                if i % 512 == 511 {
                    engine.wait_all().unwrap();
                }
            }
            engine.wait_all().unwrap();
        };
        round(50_000);
        let before = ALLOCATIONS.load(SeqCst);
        round(100_000);
        let allocated = ALLOCATIONS.load(SeqCst) - before;
        // More blocks are made when a round happens to have more in flight than any before.
        assert!(allocated <= 32, "{kind}: {allocated} allocations in 100,000 ops");
    }
}
