//! Reading an array as it is stored, from outside the engine.

use super::slot::{content_of, stored};
use super::{SparseContent, StoredInput};
use crate::guard::GuardSource;
use crate::{NDArray, ReadGuard};
use mxrt_engine::{OpError, WaitError};

/// The right to read a sparse array as it is stored: writers wait until it is dropped. An array on a
/// device is read as a copy.
pub struct StoredGuard<'a> {
    array: GuardSource<'a>,
    _granted: mxrt_engine::ReadGuard,
}

impl StoredGuard<'_> {
    /// The content, as it is stored.
    pub fn content(&self) -> Result<StoredInput<'_>, OpError> {
        stored(self.array.get())
    }

    /// The parts of a sparse array; `None` for a dense one.
    pub fn parts(&self) -> Result<Option<&SparseContent>, OpError> {
        content_of(self.array.get())
    }
}

impl NDArray {
    /// Waits for the value and keeps writers away until the guard is dropped. Unlike
    /// [`read`](NDArray::read) it makes no dense copy of a sparse array. `poll` as for
    /// [`read_with`](NDArray::read_with).
    pub fn read_stored(&self, poll: Option<&mut dyn FnMut() -> bool>) -> Result<StoredGuard<'_>, WaitError> {
        let array = GuardSource::of(self)?;
        let granted = ReadGuard::grant(array.get(), poll)?;
        Ok(StoredGuard { array, _granted: granted })
    }
}
