//! How much memory a target allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Memory that reading a file may allocate in addition to the file's size.
const ROOM: usize = 64 << 20;

/// Bytes that are allocated, and the most that were since [`bounded`] began.
static LIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: all is done by the system's allocator; counting touches no memory of its own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: what the caller promises.
        let made = unsafe { System.alloc(layout) };
        if !made.is_null() {
            let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
            MOST.fetch_max(live, Ordering::Relaxed);
        }
        made
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: what the caller promises.
        unsafe { System.dealloc(pointer, layout) };
    }
}

/// Reads a file of this many bytes: that may allocate as much and [`ROOM`].
pub(crate) fn bounded(bytes: usize, read: impl FnOnce()) {
    let before = LIVE.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    read();
    let most = MOST.load(Ordering::Relaxed).saturating_sub(before);
    assert!(most <= bytes + ROOM, "a file of {bytes} bytes made {most} be allocated");
}
