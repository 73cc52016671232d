//! The place of a sparse content in the storage of an array.

use super::content::{StoredCounts, stored_shape};
use super::{CsrRef, RowSparseRef, SparseContent, StorageType, StoredInput};
use crate::array::{Chunk, allocate};
use crate::memory::Memory;
use crate::{NDArray, TensorRef, TensorType};
use mxrt_engine::{Engine, FailureKind, OpError};
use std::cell::UnsafeCell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A storage type, the type of the array, and the present content.
pub(crate) struct SparseSlot {
    storage: StorageType,
    tensor: TensorType,
    /// The thread that touches it holds a grant of the storage's variable.
    present: UnsafeCell<Present>,
    /// bytes of the latest content, for estimates; `UNKNOWN` before there was one
    bytes: AtomicUsize,
}

const UNKNOWN: usize = usize::MAX;

// SAFETY: `present` is read under a grant to read and replaced under a grant to write.
unsafe impl Sync for SparseSlot {}

/// A version of the content. Nothing stored and no dense copy to begin with.
#[derive(Default)]
struct Present {
    content: OnceLock<Versioned>,
    dense: OnceLock<Memory>,
    /// the size of a content that is in the memory of a device
    on_device: Option<StoredCounts>,
}

struct Versioned {
    content: SparseContent,
    /// shape of the values
    values: TensorType,
}

impl SparseSlot {
    pub fn new(storage: StorageType, tensor: TensorType) -> SparseSlot {
        SparseSlot { storage, tensor, present: UnsafeCell::default(), bytes: AtomicUsize::new(UNKNOWN) }
    }

    pub fn storage(&self) -> StorageType {
        self.storage
    }

    /// Called only under a grant of the storage's variable.
    fn present(&self) -> &Present {
        // SAFETY: the grant that the caller holds keeps writers, which alone replace it, away.
        unsafe { &*self.present.get() }
    }

    /// The content. Called only under a grant of the storage's variable.
    fn content(&self, engine: &'static Engine) -> Result<&Versioned, OpError> {
        let present = self.present();
        if let Some(content) = present.content.get() {
            return Ok(content);
        }
        let made = self.versioned(SparseContent::empty(engine, self.storage, &self.tensor)?);
        Ok(present.content.get_or_init(|| made))
    }

    /// Bytes of the latest content, for estimates. A writer may replace it at any time.
    pub fn bytes(&self) -> Option<usize> {
        Some(self.bytes.load(Ordering::Relaxed)).filter(|bytes| *bytes != UNKNOWN)
    }

    fn versioned(&self, content: SparseContent) -> Versioned {
        let shape = stored_shape(self.storage, &self.tensor, content.stored());
        Versioned { content, values: TensorType::new(self.tensor.dtype, shape) }
    }

    /// Replaces the content. Called only under a grant to write of the storage's variable.
    fn replace(&self, content: SparseContent) {
        let next = Present::default();
        self.bytes.store(content.bytes(), Ordering::Relaxed);
        let _ = next.content.set(self.versioned(content));
        self.put(next);
    }

    /// Called only under a grant to write of the storage's variable.
    fn put(&self, next: Present) {
        // SAFETY: the caller holds the grant to write, so that no other thread has a reference.
        let old = unsafe { std::mem::replace(&mut *self.present.get(), next) };
        drop(old);
    }

    /// The size of a content in the memory of a device; `None`: nothing was stored yet. Called only
    /// under a grant of the storage's variable.
    pub fn on_device(&self) -> Option<StoredCounts> {
        self.present().on_device
    }

    /// Remembers the size of the content that the running operation puts into the memory of a
    /// device. Called only under a grant to write of the storage's variable.
    pub fn set_on_device(&self, counts: Option<StoredCounts>, bytes: usize) {
        self.bytes.store(bytes, Ordering::Relaxed);
        self.put(Present { on_device: counts, ..Present::default() });
    }
}

impl Chunk {
    /// A dense copy of a sparse content, made by the first reader that needs it. Called only under a
    /// grant of the variable.
    pub(crate) fn dense_copy(&self, slot: &SparseSlot) -> Result<&Memory, OpError> {
        self.check_host()?;
        // SAFETY: as in `SparseSlot::present`; the slot is this storage's.
        let present = unsafe { &*self.slot(slot)?.present.get() };
        if let Some(dense) = present.dense.get() {
            return Ok(dense);
        }
        let content = &self.slot(slot)?.content(self.engine)?.content;
        let mut block = allocate(self.engine, self.bytes)?;
        content.write_dense(&mut block.as_mut_slice()[..self.bytes], &slot.tensor.shape);
        Ok(present.dense.get_or_init(|| block.into()))
    }

    /// The error of an operation of the host that was given a sparse array of a device.
    fn check_host(&self) -> Result<(), OpError> {
        if self.context().device().is_some() { Err(self.no_host_memory()) } else { Ok(()) }
    }

    fn slot(&self, slot: &SparseSlot) -> Result<&SparseSlot, OpError> {
        let own = self.sparse.as_ref().filter(|own| std::ptr::eq(*own, slot));
        own.ok_or_else(|| OpError::new(FailureKind::Operator, "the content of another array was read"))
    }

    /// The error of an operation that would write a sparse array as a dense one.
    pub(crate) fn refuse_dense_write(&self) -> Result<(), OpError> {
        match &self.sparse {
            None => Ok(()),
            Some(slot) => Err(not_dense(slot.storage)),
        }
    }
}

fn not_dense(storage: StorageType) -> OpError {
    let message = format!(
        "the array is stored as {storage}, and this operation writes dense arrays: write to a dense array, and convert \
         it by tostype('{storage}')"
    );
    OpError::new(FailureKind::NotImplemented, message)
}

/// The content of an array as it is stored. Called only while the running operation holds a grant of
/// the array's variable.
pub(super) fn stored(array: &NDArray) -> Result<StoredInput<'_>, OpError> {
    let Some(slot) = &array.chunk.sparse else { return crate::place::readable(array).map(StoredInput::Dense) };
    array.chunk.check_host()?;
    let Versioned { content, values } = slot.content(array.engine())?;
    let values = TensorRef::new(values.dtype, &values.shape, content.value_bytes());
    let shape = array.shape();
    Ok(match slot.storage {
        StorageType::Csr => {
            StoredInput::Csr(CsrRef { shape, values, columns: content.indices(), pointers: content.pointers() })
        }
        _ => StoredInput::RowSparse(RowSparseRef { shape, values, rows: content.indices() }),
    })
}

/// The content of a sparse array. Called as `stored` is.
pub(crate) fn content_of(array: &NDArray) -> Result<Option<&SparseContent>, OpError> {
    array.chunk.check_host()?;
    let slot = array.chunk.sparse.as_ref();
    slot.map(|slot| slot.content(array.engine()).map(|v| &v.content)).transpose()
}

/// Replaces the content of a sparse array. Called only while the running operation holds the grant
/// to write of the array's variable, and no reference to what it read.
pub(crate) fn replace(array: &NDArray, content: SparseContent) -> Result<(), OpError> {
    array.chunk.check_host()?;
    let Some(slot) = &array.chunk.sparse else {
        return Err(OpError::new(FailureKind::Operator, "a dense array was written as a sparse one"));
    };
    array.chunk.derived.clear();
    slot.replace(content);
    Ok(())
}
