//! Sparse arrays: values and their positions, under the one variable of the array.
//!
//! A sparse [`NDArray`] has the shape and the element type of the dense array that it stands for.
//! Its storage holds, instead of one block of a known size, a [`SparseContent`] whose size is known
//! when it was computed. Everything else is that of any array: order, failures, cancelling and
//! deletion follow the variable. An operation that knows dense arrays alone sees a dense copy,
//! which stays until the array is written or dropped. It can't write a sparse array.
//!
//! The content of an array on a device is in one block of the device's memory
//! (`device/sparse.rs`). It is computed on the host and copied there.

mod check;
mod content;
mod launch;
mod read;
mod slot;

pub use content::{CsrRef, RowSparseRef, SparseContent};
pub(crate) use content::{StoredCounts, part_bytes};
pub use launch::{StoredInput, StoredOutput, launch_stored};
pub use read::StoredGuard;
pub(crate) use slot::{SparseSlot, content_of, replace};

use crate::{Context, Launch, NDArray, TensorType};
use mxrt_engine::{Cost, Engine, FailureKind, OpError, OpName};

/// The way in which an array stores its elements. The discriminants are MXNet's codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(i32)]
pub enum StorageType {
    /// every element, in order
    Default = 0,
    /// some rows, by number; all others are zero
    RowSparse = 1,
    /// some elements of each row of a matrix, by column; all others are zero
    Csr = 2,
}

/// All storage types, by code.
const ALL: [(StorageType, &str); 3] =
    [(StorageType::Default, "default"), (StorageType::RowSparse, "row_sparse"), (StorageType::Csr, "csr")];

impl StorageType {
    /// MXNet's code.
    pub fn code(self) -> i32 {
        self as i32
    }

    /// The type with this code, if there is one.
    pub fn from_code(code: i32) -> Option<StorageType> {
        ALL.iter().map(|row| row.0).find(|storage| storage.code() == code)
    }

    /// MXNet's name.
    pub fn name(self) -> &'static str {
        ALL[self as usize].1
    }

    /// The type with this name, if there is one.
    pub fn from_name(name: &str) -> Option<StorageType> {
        ALL.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// Whether some elements are not stored.
    pub fn is_sparse(self) -> bool {
        self != StorageType::Default
    }

    /// Number of arrays of positions: row numbers, or row pointers and columns.
    pub fn positions(self) -> usize {
        self as usize
    }
}

impl std::fmt::Display for StorageType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl NDArray {
    /// An array of a storage type, without a stored element if that is sparse.
    ///
    /// Fails with kind `Shape` for a csr array that is no matrix and a row_sparse one without axes.
    pub fn new_stored(
        engine: &'static Engine,
        context: Context,
        tensor: TensorType,
        storage: StorageType,
    ) -> Result<NDArray, OpError> {
        if storage == StorageType::Default {
            return NDArray::new(engine, context, tensor);
        }
        let axes = tensor.shape.len();
        if axes == 0 || (storage == StorageType::Csr && axes != 2) {
            let wanted = if storage == StorageType::Csr { "two axes" } else { "one axis or more" };
            let message = format!("a {storage} array has {wanted}, but the shape is {}", tensor.shape);
            return Err(OpError::new(FailureKind::Shape, message));
        }
        NDArray::of_slot(engine, context, tensor.clone(), SparseSlot::new(storage, tensor))
    }

    /// A sparse array in the host's memory, made of copies of its values and positions.
    ///
    /// Fails with kind `Value` when the positions are not those of an array of this type, and with
    /// kinds `Shape` and `Memory`.
    pub fn from_parts(
        engine: &'static Engine,
        storage: StorageType,
        tensor: TensorType,
        values: &[u8],
        indices: &[i64],
        pointers: &[i64],
    ) -> Result<NDArray, OpError> {
        let array = NDArray::new_stored(engine, Context::cpu(0), tensor.clone(), storage)?;
        let content = SparseContent::new(engine, storage, &tensor, values, indices, pointers)?;
        // Nothing else has the array yet.
        slot::replace(&array, content)?;
        Ok(array)
    }

    /// Pushes filling a sparse array with the content that `make` returns. On a device it is made on
    /// the host and copied. An error: nothing was pushed.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn fill_stored<F>(&self, name: impl Into<OpName>, make: F) -> Result<(), OpError>
    where
        F: FnOnce(&'static Engine, StorageType, &TensorType) -> Result<SparseContent, OpError> + Send + 'static,
    {
        if self.context().device().is_some() {
            let home = NDArray::new_stored(self.engine(), Context::cpu(0), self.tensor_type(), self.storage_type())?;
            home.fill_stored(name, make)?;
            return self.overwrite_on_device(&home);
        }
        let launch = Launch { name: name.into(), inputs: &[], outputs: &[self], cost: Cost::Small };
        launch_stored(self.engine(), launch, move |ctx, _, outputs| match outputs.first_mut() {
            Some(StoredOutput::Sparse { storage, tensor, made }) => {
                *made = Some(make(ctx.engine(), *storage, tensor)?);
                Ok(())
            }
            _ => Err(OpError::new(FailureKind::Operator, "a dense array was filled as a sparse one")),
        });
        Ok(())
    }

    /// The way in which the elements are stored.
    pub fn storage_type(&self) -> StorageType {
        self.chunk.sparse.as_ref().map_or(StorageType::Default, SparseSlot::storage)
    }

    /// Bytes of the elements as they are stored, for estimates: those of the latest content of a
    /// sparse array, whose writers may be under way. `None` for a sparse array that had no content.
    pub fn estimated_bytes(&self) -> Option<usize> {
        self.chunk.sparse.as_ref().map_or(Some(self.nbytes()), SparseSlot::bytes)
    }

    /// Whether some elements are not stored.
    pub fn is_sparse(&self) -> bool {
        self.chunk.sparse.is_some()
    }
}
