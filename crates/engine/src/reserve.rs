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
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Bytes of the reserve. No memory is used before the first refusal.
pub const RESERVE: usize = 16 << 20;
/// Largest allocation that comes from the reserve: what may be larger has to be fallible.
pub const LARGEST: usize = 1 << 20;
/// What the system must have to spare before new work begins again.
const SPARE: usize = 256 << 10;

/// The system has refused a small allocation, and not been asked since.
static REFUSED: AtomicBool = AtomicBool::new(false);

#[repr(align(4096))]
struct Region(UnsafeCell<[u8; RESERVE]>);

// SAFETY: each byte is handed out to one owner at a time.
unsafe impl Sync for Region {}

static REGION: Region = Region(UnsafeCell::new([0; RESERVE]));
/// Allocations in the reserve, in the upper half, and in the lower one the end of the last of them:
/// when none is left, the next begins at 0.
static STATE: AtomicUsize = AtomicUsize::new(0);
const ONE: usize = 1 << 32;

/// The memory of another allocator, and a reserve where that has none.
pub struct ReservingAllocator<A = System>(pub A);

fn region() -> *mut u8 {
    REGION.0.get().cast()
}

fn is_reserved(ptr: *mut u8) -> bool {
    (ptr.addr()).wrapping_sub(region().addr()) < RESERVE
}

#[cold]
fn take(layout: Layout) -> *mut u8 {
    if layout.size() > LARGEST || layout.align() > 4096 {
        return null_mut();
    }
    REFUSED.store(true, Ordering::Relaxed);
    let mut state = STATE.load(Ordering::Relaxed);
    loop {
        let start = (state % ONE).next_multiple_of(layout.align());
        let end = start + layout.size();
        if end > RESERVE {
            return null_mut();
        }
        let next = (state / ONE + 1) * ONE + end;
        match STATE.compare_exchange_weak(state, next, Ordering::Acquire, Ordering::Relaxed) {
            // SAFETY: the range lies inside the region.
            Ok(_) => return unsafe { region().add(start) },
            Err(now) => state = now,
        }
    }
}

#[cold]
fn give() {
    let mut state = STATE.load(Ordering::Relaxed);
    loop {
        let next = if state / ONE == 1 { 0 } else { state - ONE };
        match STATE.compare_exchange_weak(state, next, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => state = now,
        }
    }
}

// SAFETY: memory comes from `A` or from the region, whose ranges are handed out once until all of
// them have been given back; each goes back to where it came from.
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
            give();
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
