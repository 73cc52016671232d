//! Filling arrays and copying them out, by threads outside of the engine.

use crate::index::{Region, copy_region};
use crate::place::readable;
use crate::{Context, Launch, NDArray, TensorRef, copied, launch};
use mxrt_engine::{Cost, FailureKind, OpError, WaitError};

/// Arrays up to this size may be filled by the calling thread.
const SMALL: usize = 64 << 10;

impl NDArray {
    /// Overwrites the array with these bytes (row-major elements), in the order of pushes. They are
    /// copied before this returns.
    ///
    /// Fails with kind `Value` when their number is wrong, `Memory` when there is none for the copy,
    /// `Device` when the array's device is lost.
    pub fn fill_with(&self, content: &[u8]) -> Result<(), OpError> {
        if content.len() != self.nbytes() {
            let message = format!("{} bytes for an array of {}", content.len(), self.tensor_type());
            return Err(OpError::new(FailureKind::Value, message));
        }
        self.chunk.refuse_dense_write()?;
        if self.context().device().is_some() {
            let source = NDArray::from_bytes(self.engine(), Context::cpu(0), self.tensor_type(), content)?;
            return copy_region(self, Region::whole(self.shape()), &source, Region::whole(self.shape()));
        }
        let small = content.len() <= SMALL;
        if small && self.fill_briefly(content) {
            return Ok(());
        }
        let content = copied(content)?;
        let cost = if small { Cost::Small } else { Cost::Large };
        let filling = Launch { name: "SyncCopyFromCPU".into(), inputs: &[], outputs: &[self], cost };
        launch(self.engine(), filling, move |_, _, outputs| {
            outputs.iter_mut().for_each(|output| output.bytes_mut().copy_from_slice(&content));
            Ok(())
        });
        Ok(())
    }

    /// Fills an array that no operator uses. False: nothing was written.
    fn fill_briefly(&self, content: &[u8]) -> bool {
        if !self.covers_storage() {
            return false;
        }
        let fill = || {
            let block = self.chunk.block_to_overwrite().ok()?;
            // SAFETY: the write access is held, and the array is the whole of the block's content.
            unsafe { std::slice::from_raw_parts_mut(block.as_ptr(), content.len()) }.copy_from_slice(content);
            Some(())
        };
        self.chunk
            .gates
            .unless_any(self.engine(), || self.engine().write_briefly(self.var(), fill))
            .flatten()
            .flatten()
            .is_some()
    }

    /// Calls `read` with the content if the array is small and neither waiting nor a failure stands
    /// in the way; `read` waits for nothing.
    pub fn read_briefly<R>(&self, read: impl FnOnce(TensorRef<'_>) -> R) -> Option<R> {
        if self.nbytes() > SMALL || self.context().device().is_some() {
            return None;
        }
        self.engine().read_briefly(self.var(), || Some(read(readable(self).ok()?))).flatten()
    }

    /// Waits for the array and copies its elements out, row-major.
    ///
    /// # Panics
    /// If `to` has another number of bytes than the array.
    pub fn copy_out(&self, to: &mut [u8]) -> Result<(), WaitError> {
        if self.read_briefly(|tensor| to.copy_from_slice(tensor.bytes())).is_none() {
            to.copy_from_slice(self.read()?.tensor().bytes());
        }
        Ok(())
    }
}
