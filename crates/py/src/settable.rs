//! Values of objects that unpickling makes empty, and then fills.

use std::ops::Deref;
use std::sync::OnceLock;

/// A value that another one can take the place of, once. The first stays in memory, so that who has
/// borrowed it is not disturbed.
pub(crate) struct Settable<T> {
    first: T,
    later: OnceLock<Box<T>>,
}

impl<T> Settable<T> {
    pub(crate) fn new(first: T) -> Settable<T> {
        Settable { first, later: OnceLock::new() }
    }

    /// Puts another value into the place of the first; whether this was the first time.
    pub(crate) fn set(&self, value: T) -> bool {
        self.later.set(Box::new(value)).is_ok()
    }
}

impl<T> Deref for Settable<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.later.get().map_or(&self.first, |later| later)
    }
}
