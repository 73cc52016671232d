//! Reading an array from outside the engine.

use crate::{Context, NDArray, TensorRef};
use mxrt_engine::{OpError, WaitError};

/// The right to read an array: writers wait until it is dropped. An array on a device is read as a
/// copy.
pub struct ReadGuard<'a> {
    array: GuardSource<'a>,
    _granted: mxrt_engine::ReadGuard,
}

/// An array of the host, or the copy of one on a device.
pub(crate) enum GuardSource<'a> {
    Array(&'a NDArray),
    Copy(NDArray),
}

impl<'a> ReadGuard<'a> {
    pub(crate) fn acquire(
        array: &'a NDArray,
        poll: Option<&mut dyn FnMut() -> bool>,
    ) -> Result<ReadGuard<'a>, WaitError> {
        let array = GuardSource::of(array)?;
        let granted = ReadGuard::grant(array.get(), poll)?;
        // Memory of an array that no thread ever wrote is made here.
        match array.get().chunk.block() {
            Ok(_) => Ok(ReadGuard { array, _granted: granted }),
            Err(error) => Err(failed(error)),
        }
    }

    pub(crate) fn grant(
        array: &NDArray,
        poll: Option<&mut dyn FnMut() -> bool>,
    ) -> Result<mxrt_engine::ReadGuard, WaitError> {
        match poll {
            Some(poll) => array.engine().read_guard_with(array.var(), poll),
            None => array.engine().read_guard(array.var()),
        }
    }

    /// The content; that of a sparse array as a dense copy.
    pub fn tensor(&self) -> TensorRef<'_> {
        let array = self.array.get();
        let bytes = match array.chunk.block() {
            // SAFETY: this guard holds a read grant of the array's variable, so no writer runs; the
            // view lies inside the block by construction of `NDArray`.
            Ok(block) => unsafe { std::slice::from_raw_parts(block.as_ptr().add(array.offset), array.nbytes()) },
            Err(_) => unreachable!("acquire made sure that the block exists"),
        };
        TensorRef::new(array.dtype(), array.shape(), bytes)
    }
}

impl<'a> GuardSource<'a> {
    /// The array, or a copy of it on the host.
    pub fn of(array: &'a NDArray) -> Result<GuardSource<'a>, WaitError> {
        match array.context().device() {
            None => Ok(GuardSource::Array(array)),
            Some(_) => array.copy_to_context(Context::cpu(0)).map(GuardSource::Copy).map_err(failed),
        }
    }

    pub fn get(&self) -> &NDArray {
        match self {
            GuardSource::Array(array) => array,
            GuardSource::Copy(array) => array,
        }
    }
}

/// A failure that is found outside of operators.
fn failed(error: OpError) -> WaitError {
    let failure = error.to_failure();
    failure.mark_observed();
    WaitError::Failed(failure)
}
