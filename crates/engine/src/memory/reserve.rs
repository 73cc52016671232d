//! A reserve for small allocations, from which work that has begun is finished when the system
//! refuses memory.
//!
//! Large allocations are made by functions that return an error. Small ones (a node, an op, a
//! message) are made by Rust's containers, which end the process where the system refuses them.
//! With [`ReservingAllocator`] they come from a reserve then, and what begins new work (an array, a
//! block of memory) asks [`check`] first, which is an error as long as the system refuses memory.
//! What is freed meanwhile ends that state.

use crate::memory::OutOfMemory;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of the reserve. No memory is used before the first refusal.
pub const RESERVE: usize = 16 << 20;
/// Largest allocation that comes from the reserve: what may be larger has to be fallible.
pub const LARGEST: usize = 1 << 20;
/// Memory that the system must have to spare before new work begins again.
const SPARE: usize = 256 << 10;

/// The system has refused a small allocation, and not been asked since.
static REFUSED: AtomicBool = AtomicBool::new(false);

#[repr(align(4096))]
struct Region(UnsafeCell<[u8; RESERVE]>);

// SAFETY: each byte is handed out to one owner at a time.
unsafe impl Sync for Region {}

static REGION: Region = Region(UnsafeCell::new([0; RESERVE]));
static PIECES: Pieces = Pieces {
    locked: AtomicBool::new(false),
    lists: UnsafeCell::new(FreePieces { begun: 0, free: [null_mut(); CLASSES] }),
};

/// Pieces are powers of two, from 64 bytes on.
const CLASSES: usize = (LARGEST.ilog2() - SMALLEST.ilog2() + 1) as usize;
const SMALLEST: usize = 64;
/// Largest alignment of a piece: that of two lines of a cache, which is what keeps counters apart.
const ALIGNED: usize = 128;

/// The free pieces of the region. The lock is held for a few instructions, and only if the system
/// refuses memory.
struct Pieces {
    locked: AtomicBool,
    lists: UnsafeCell<FreePieces>,
}

struct FreePieces {
    /// bytes of the region that have been in use
    begun: usize,
    /// First freed piece of each class; each piece holds the address of the next
    free: [*mut u8; CLASSES],
}

// SAFETY: the lists are touched under the lock.
unsafe impl Sync for Pieces {}

impl Pieces {
    fn with<R>(&self, change: impl FnOnce(&mut FreePieces) -> R) -> R {
        while self.locked.swap(true, Ordering::Acquire) {
            std::hint::spin_loop();
        }
        // SAFETY: no other thread holds the lock.
        let result = change(unsafe { &mut *self.lists.get() });
        self.locked.store(false, Ordering::Release);
        result
    }
}

/// The memory of another allocator, and a reserve where that has none.
pub struct ReservingAllocator<A = System>(pub A);

fn region() -> *mut u8 {
    REGION.0.get().cast()
}

fn is_reserved(ptr: *mut u8) -> bool {
    ptr.addr().wrapping_sub(region().addr()) < RESERVE
}

/// Bytes of the piece for a layout, and its class; none for what the reserve does not serve.
fn piece_for(layout: Layout) -> Option<(usize, usize)> {
    let bytes = layout.size().max(layout.align()).max(SMALLEST).next_power_of_two();
    (bytes <= LARGEST && layout.align() <= ALIGNED).then(|| (bytes, (bytes.ilog2() - SMALLEST.ilog2()) as usize))
}

#[cold]
fn take(layout: Layout) -> *mut u8 {
    let Some((bytes, class)) = piece_for(layout) else { return null_mut() };
    REFUSED.store(true, Ordering::Relaxed);
    PIECES.with(|pieces| {
        let piece = pieces.free[class];
        if !piece.is_null() {
            // SAFETY: a free piece holds the address of the next; see `give`.
            pieces.free[class] = unsafe { piece.cast::<*mut u8>().read() };
            return piece;
        }
        let begin = pieces.begun.next_multiple_of(bytes.min(ALIGNED));
        if begin + bytes > RESERVE {
            return null_mut();
        }
        // SAFETY: the piece lies inside the region.
        let piece = unsafe { region().add(begin) };
        pieces.begun = begin + bytes;
        piece
    })
}

#[cold]
fn give(ptr: *mut u8, layout: Layout) {
    let Some((_, class)) = piece_for(layout) else { return };
    PIECES.with(|pieces| {
        // SAFETY: a piece is at least 64 bytes, at a multiple of 64, and its owner has given it back.
        unsafe { ptr.cast::<*mut u8>().write(pieces.free[class]) };
        pieces.free[class] = ptr;
    });
}

// SAFETY: memory comes from `A` or from the region, whose pieces have one owner at a time; each goes
// back to where it came from.
unsafe impl<A: GlobalAlloc> GlobalAlloc for ReservingAllocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let ptr = unsafe { self.0.alloc(layout) };
        if ptr.is_null() { take(layout) } else { ptr }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let ptr = unsafe { self.0.alloc_zeroed(layout) };
        if !ptr.is_null() {
            return ptr;
        }
        let ptr = take(layout);
        if !ptr.is_null() {
            // SAFETY: the range is ours.
            unsafe { ptr.write_bytes(0, layout.size()) };
        }
        ptr
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        if is_reserved(ptr) {
            give(ptr, layout);
        } else {
            // SAFETY: the caller's promise, and it came from there.
            unsafe { self.0.dealloc(ptr, layout) };
        }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if !is_reserved(ptr) {
            // SAFETY: the caller's promise, and it came from there.
            let moved = unsafe { self.0.realloc(ptr, layout, new_size) };
            if !moved.is_null() {
                return moved;
            }
        }
        let Ok(wanted) = Layout::from_size_align(new_size, layout.align()) else { return null_mut() };
        // SAFETY: the caller's promise: the size is not zero.
        let moved = unsafe { self.alloc(wanted) };
        if !moved.is_null() {
            // SAFETY: both ranges are ours, apart, and at least so long.
            unsafe {
                moved.copy_from_nonoverlapping(ptr, layout.size().min(new_size));
                self.dealloc(ptr, layout);
            }
        }
        moved
    }
}

/// An error while the system refuses memory: new work shall not begin.
#[inline]
pub fn check() -> Result<(), OutOfMemory> {
    if REFUSED.load(Ordering::Relaxed) { check_again() } else { Ok(()) }
}

#[cold]
fn check_again() -> Result<(), OutOfMemory> {
    check_room(SPARE)?;
    REFUSED.store(false, Ordering::Relaxed);
    Ok(())
}

/// An error if the system has no such amount to spare now. For what is about to be allocated in
/// many pieces, or by a container that ends the process otherwise.
pub fn check_room(bytes: usize) -> Result<(), OutOfMemory> {
    let refused = OutOfMemory { asked: bytes, limit: None, in_use: 0 };
    let Ok(layout) = Layout::from_size_align(bytes.max(1), 16) else { return Err(refused) };
    // SAFETY: the size is not zero.
    let ptr = unsafe { System.alloc(layout) };
    if ptr.is_null() {
        return Err(refused);
    }
    // SAFETY: allocated above with this layout.
    unsafe { System.dealloc(std::hint::black_box(ptr), layout) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has no memory.
    struct Nothing;

    // SAFETY: null is allowed, so nothing comes back.
    unsafe impl GlobalAlloc for Nothing {
        unsafe fn alloc(&self, _: Layout) -> *mut u8 {
            null_mut()
        }

        unsafe fn dealloc(&self, _: *mut u8, _: Layout) {
            unreachable!("it never had memory")
        }
    }

    #[test]
    fn the_reserve_serves_small_allocations_again_and_again_and_refuses_large_ones() {
        let allocator = ReservingAllocator(Nothing);
        let layout = |bytes: usize| Layout::from_size_align(bytes, 16).expect("it is a layout");
        // SAFETY: sizes are not zero, and everything goes back with its layout.
        unsafe {
            assert!(allocator.alloc(layout(LARGEST + 1)).is_null());
            let kept = allocator.alloc_zeroed(layout(100));
            assert!(!kept.is_null() && check().is_ok(), "the system has memory, so work begins again");
            kept.write_bytes(7, 100);
            // Ten times the reserve, with one piece held all the time.
            for i in 0..10 * RESERVE / LARGEST {
                let bytes = LARGEST - i;
                let ptr = allocator.alloc(layout(bytes));
                assert!(!ptr.is_null(), "allocation {i}");
                ptr.write_bytes(1, bytes);
                allocator.dealloc(ptr, layout(bytes));
            }
            let grown = allocator.realloc(kept, layout(100), 5000);
            assert!((0..100).all(|i| grown.add(i).read() == 7), "the content moves along");
            let zeroed = allocator.alloc_zeroed(layout(100));
            assert!((0..100).all(|i| zeroed.add(i).read() == 0), "also in a piece that was used");
            allocator.dealloc(grown, layout(5000));
            allocator.dealloc(zeroed, layout(100));
            let small = allocator.alloc(layout(16));
            let apart = Layout::new::<crossbeam_utils::CachePadded<[u64; 40]>>();
            let padded = allocator.alloc(apart);
            assert!(!padded.is_null() && padded.addr().is_multiple_of(apart.align()), "{apart:?}");
            allocator.dealloc(padded, apart);
            allocator.dealloc(small, layout(16));
        }
    }

    #[test]
    fn room_is_there_or_an_error() {
        assert!(check_room(1 << 20).is_ok() && check_room(0).is_ok());
        for bytes in [isize::MAX as usize, usize::MAX] {
            assert!(check_room(bytes).is_err_and(|e| e.asked == bytes));
        }
    }
}
