//! Values of objects that unpickling makes empty, and then fills.

use std::mem::MaybeUninit;
use std::ops::Deref;
use std::sync::OnceLock;

/// A value that another one can take the place of, once. The first stays in memory, so that who has
/// borrowed it is not disturbed.
///
/// Python allocates an object of zeros, and PyO3 moves the value in. For an object of a subclass
/// with attributes Python allocates a place for these in between. If there is no memory for it,
/// Python drops the object of zeros. So zeros are dropped as nothing. An `Option` does not promise
/// this.
pub(crate) struct Settable<T> {
    /// whether there is a value: false only in zeros
    made: bool,
    value: MaybeUninit<Two<T>>,
}

struct Two<T> {
    first: T,
    later: OnceLock<Box<T>>,
}

impl<T> Settable<T> {
    pub(crate) fn new(first: T) -> Settable<T> {
        Settable { made: true, value: MaybeUninit::new(Two { first, later: OnceLock::new() }) }
    }

    /// Puts another value into the place of the first; whether this was the first time.
    pub(crate) fn set(&self, value: T) -> bool {
        self.two().later.set(Box::new(value)).is_ok()
    }

    fn two(&self) -> &Two<T> {
        // SAFETY: `new` has made it. Zeros are seen by `drop` alone: nobody else has an object that
        // Python could not make.
        unsafe { self.value.assume_init_ref() }
    }
}

impl<T> Deref for Settable<T> {
    type Target = T;

    fn deref(&self) -> &T {
        let two = self.two();
        two.later.get().map_or(&two.first, |later| later)
    }
}

impl<T> Drop for Settable<T> {
    fn drop(&mut self) {
        if self.made {
            // SAFETY: `new` has made it, and it is dropped once.
            unsafe { self.value.assume_init_drop() };
        }
    }
}
