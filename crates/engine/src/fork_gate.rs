//! The fork gate: a thread says that it is inside the engine and then looks whether a fork is under way; a fork closes
//! the gate and then looks whether anybody is inside. One of the two always sees the other.

use crate::sync::yield_now;
use std::sync::atomic::Ordering;

/// The words of the gate are statics and so the standard library's in every build; models pass loom's.
pub(crate) trait Word {
    fn swap(&self, value: u32, order: Ordering) -> u32;
    fn load(&self, order: Ordering) -> u32;
    fn store(&self, value: u32, order: Ordering);
}

macro_rules! word {
    ($type:ty, $after_swap:expr) => {
        impl Word for $type {
            #[inline(always)]
            fn swap(&self, value: u32, order: Ordering) -> u32 {
                let before = <$type>::swap(self, value, order);
                $after_swap;
                before
            }
            #[inline(always)]
            fn load(&self, order: Ordering) -> u32 {
                <$type>::load(self, order)
            }
            #[inline(always)]
            fn store(&self, value: u32, order: Ordering) {
                <$type>::store(self, value, order)
            }
        }
    };
}

word!(std::sync::atomic::AtomicU32, ());
#[cfg(loom)]
word!(loom::sync::atomic::AtomicU32, crate::sync::model_fence());

/// Enters the engine: returns with `inside` set and no fork under way. `forks` is the number of forks under way.
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
