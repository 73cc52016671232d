//! The fork gate: a thread says that it is inside the engine and then looks whether a fork is under
//! way; a fork closes the gate and then looks whether a thread is inside. One of the two always
//! sees the other.

use crate::sync::yield_now;
use std::sync::atomic::Ordering;

/// A word of the gate. They are statics, and so the standard library's in every build; models pass
/// loom's.
pub(crate) trait Word {
    fn swap(&self, value: u32, order: Ordering) -> u32;
    fn load(&self, order: Ordering) -> u32;
    fn store(&self, value: u32, order: Ordering);
}

impl Word for std::sync::atomic::AtomicU32 {
    #[inline(always)]
    fn swap(&self, value: u32, order: Ordering) -> u32 {
        self.swap(value, order)
    }
    #[inline(always)]
    fn load(&self, order: Ordering) -> u32 {
        self.load(order)
    }
    #[inline(always)]
    fn store(&self, value: u32, order: Ordering) {
        self.store(value, order);
    }
}

#[cfg(loom)]
impl Word for loom::sync::atomic::AtomicU32 {
    fn swap(&self, value: u32, order: Ordering) -> u32 {
        let before = self.swap(value, order);
        // loom does not order a sequentially consistent swap before a later load.
        crate::sync::model_fence();
        before
    }
    fn load(&self, order: Ordering) -> u32 {
        self.load(order)
    }
    fn store(&self, value: u32, order: Ordering) {
        self.store(value, order);
    }
}

/// Enters the engine: returns with `inside` set and no fork under way. `forks` is the number of
/// forks under way.
#[inline(always)]
pub(crate) fn pass<W: Word>(inside: &W, forks: &W) {
    loop {
        inside.swap(1, Ordering::SeqCst);
        if forks.load(Ordering::SeqCst) == 0 {
            return;
        }
        stand_back(inside, forks);
    }
}

#[cold]
fn stand_back<W: Word>(inside: &W, forks: &W) {
    inside.store(0, Ordering::Release);
    while forks.load(Ordering::Acquire) != 0 {
        yield_now();
    }
}
