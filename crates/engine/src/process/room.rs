//! Memory for the first use of the engine in a thread of the program.
//!
//! The standard library takes its handle of a thread from the system alone, as glibc does what it
//! notes of the destructors of thread-local variables. Both end the process where there is no
//! memory. A thread that the engine starts is refused before: see
//! [`start`](crate::process::start). One of the program exists already. So some memory is held for
//! it, which goes back to the system where that has no other. Nobody writes it, so that it takes
//! addresses only.

use crate::process::start::has_memory;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Bytes that are held. More than an allocator asks the system for when it needs a few.
const HELD: usize = 256 << 10;

static ROOM: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Gives the memory back to the system if that has none for this thread.
pub(crate) fn make() {
    if !has_memory() {
        let held = ROOM.swap(null_mut(), Ordering::AcqRel);
        if !held.is_null() {
            give_back(held);
        }
    }
}

/// Holds the memory, for the next thread, if the system has it.
pub(crate) fn hold() {
    if !ROOM.load(Ordering::Relaxed).is_null() {
        return;
    }
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, wherever the system has room for it.
    let held = unsafe { libc::mmap(null_mut(), HELD, protection, flags, -1, 0) };
    if held == libc::MAP_FAILED {
        return;
    }
    if ROOM.compare_exchange(null_mut(), held, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        give_back(held);
    }
}

fn give_back(held: *mut c_void) {
    // SAFETY: mapped by `hold` with this length, and nobody else has it.
    unsafe { libc::munmap(held, HELD) };
}
