//! Deliberate mistakes that a sanitizer must find before its silence about the engine means
//! anything. Run by `scripts/sanitize.sh`, each in a process of its own; never in an ordinary test
//! run.

use std::cell::UnsafeCell;

struct Racy(UnsafeCell<u64>);

// SAFETY: it is not: that is the point.
unsafe impl Sync for Racy {}

#[test]
#[ignore = "a data race on purpose: scripts/sanitize.sh thread must report it"]
fn a_data_race() {
    let cell = Racy(UnsafeCell::new(0));
    let cell = &cell;
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(move || {
                for _ in 0..1000 {
                    // SAFETY: none; two threads write.
                    unsafe { *cell.0.get() = std::hint::black_box(*cell.0.get() + 1) };
                }
            });
        }
    });
}

#[test]
#[ignore = "a use after free on purpose: scripts/sanitize.sh address and memcheck must report it"]
fn a_use_after_free() {
    let pointer = Box::into_raw(Box::new([7u64; 8]));
    // SAFETY: none for the read; the memory is gone by then.
    unsafe {
        drop(Box::from_raw(std::hint::black_box(pointer)));
        std::hint::black_box((*std::hint::black_box(pointer))[3]);
    }
}
