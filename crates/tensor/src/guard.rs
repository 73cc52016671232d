//! Reading an array from outside the engine.

use crate::{NDArray, TensorRef};
use mxrt_engine::{Failure, WaitError};

/// The right to read an array: writers wait until it is dropped.
pub struct ReadGuard<'a> {
    array: &'a NDArray,
    _granted: mxrt_engine::ReadGuard,
}

impl<'a> ReadGuard<'a> {
    pub(crate) fn acquire(array: &'a NDArray, poll: &mut dyn FnMut() -> bool) -> Result<ReadGuard<'a>, WaitError> {
        let granted = array.engine().read_guard_with(array.var(), poll)?;
        // Memory of an array that nobody ever wrote is made here.
        match array.chunk.block() {
            Ok(_) => Ok(ReadGuard { array, _granted: granted }),
            Err(error) => Err(WaitError::Failed(Failure::new((*error).clone()))),
        }
    }

    /// The content.
    pub fn tensor(&self) -> TensorRef<'_> {
        let bytes = match self.array.chunk.block() {
            // SAFETY: this guard holds a read grant of the array's variable, so no writer runs; the view lies inside the
            // block by construction of `NDArray`.
            Ok(block) => unsafe {
                std::slice::from_raw_parts(block.as_ptr().add(self.array.offset), self.array.nbytes())
            },
            Err(_) => unreachable!("acquire made sure that the block exists"),
        };
        TensorRef::new(self.array.dtype(), self.array.shape(), bytes)
    }
}
