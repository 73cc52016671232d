//! The content of sparse arrays, and the views that kernels read.

use super::StorageType;
use super::check::{check_pointers, check_rising};
use crate::array::allocate;
use crate::{DType, Element, Shape, TensorMut, TensorRef, TensorType};
use mxrt_engine::memory::Block;
use mxrt_engine::{Engine, FailureKind, OpError};

/// Stored values of a sparse array, and their positions.
pub struct SparseContent {
    /// stored values, or rows of them
    stored: usize,
    /// elements of each value: 1, or the size of a row
    width: usize,
    dtype: DType,
    values: Block,
    /// columns or row numbers
    indices: Block,
    /// the beginning of each row of a csr matrix, and the end of the last one
    pointers: Option<(Block, usize)>,
}

/// Numbers of what a content holds. With the array's type they give its size.
#[derive(Clone, Copy)]
pub(crate) struct StoredCounts {
    /// stored values, or rows of them, and their positions
    pub stored: usize,
    /// row pointers
    pub pointers: usize,
}

/// A readable csr matrix.
#[derive(Clone, Copy)]
pub struct CsrRef<'a> {
    /// extents of the matrix
    pub shape: &'a Shape,
    /// one value for each stored element
    pub values: TensorRef<'a>,
    /// the column of each value; rising within a row
    pub columns: &'a [i64],
    /// the position of the first value of each row, and the number of values
    pub pointers: &'a [i64],
}

/// A readable row_sparse array.
#[derive(Clone, Copy)]
pub struct RowSparseRef<'a> {
    /// extents of the array
    pub shape: &'a Shape,
    /// the stored rows, of shape (rows, rest of the shape)
    pub values: TensorRef<'a>,
    /// the number of each stored row; rising
    pub rows: &'a [i64],
}

impl CsrRef<'_> {
    /// Positions of the values of a row.
    pub fn row(&self, row: usize) -> std::ops::Range<usize> {
        self.pointers[row] as usize..self.pointers[row + 1] as usize
    }
}

impl RowSparseRef<'_> {
    /// Elements of a row.
    pub fn width(&self) -> usize {
        row_width(self.shape)
    }
}

/// Elements of a row.
fn row_width(shape: &[usize]) -> usize {
    shape.iter().skip(1).product()
}

fn too_large(what: &str) -> OpError {
    OpError::new(FailureKind::Memory, format!("a sparse array of {what} is larger than the address space"))
}

fn filled<T: Element>(engine: &'static Engine, values: &[T]) -> Result<Block, OpError> {
    let mut block = allocate(engine, size_of_val(values))?;
    block.as_mut_slice()[..size_of_val(values)].copy_from_slice(bytemuck::cast_slice(values));
    Ok(block)
}

impl SparseContent {
    /// Content of an array of this type in which nothing is stored.
    pub fn empty(engine: &'static Engine, storage: StorageType, tensor: &TensorType) -> Result<SparseContent, OpError> {
        let rows = tensor.shape.first().copied().unwrap_or(0);
        let pointers = if storage == StorageType::Csr { vec![0; rows + 1] } else { Vec::new() };
        SparseContent::with_values(engine, storage, tensor, &[], &pointers, |_| Ok(()))
    }

    /// Content whose values are written by `fill`. `indices` are columns or row numbers, one for
    /// each value; `pointers` are those of a csr matrix.
    ///
    /// Fails with kind `Value` when the positions are not those of an array of this type, and with
    /// kind `Memory`.
    pub fn with_values(
        engine: &'static Engine,
        storage: StorageType,
        tensor: &TensorType,
        indices: &[i64],
        pointers: &[i64],
        fill: impl FnOnce(&mut TensorMut<'_>) -> Result<(), OpError>,
    ) -> Result<SparseContent, OpError> {
        check_positions(storage, tensor, indices, pointers)?;
        let shape = stored_shape(storage, tensor, indices.len());
        let values = TensorType::new(tensor.dtype, shape);
        let bytes = values.checked_bytes().ok_or_else(|| too_large(&values.to_string()))?;
        let mut block = allocate(engine, bytes)?;
        fill(&mut TensorMut::new(values.dtype, &values.shape, &mut block.as_mut_slice()[..bytes]))?;
        let pointers = match storage {
            StorageType::Csr => Some((filled(engine, pointers)?, pointers.len())),
            _ => None,
        };
        let indices_block = filled(engine, indices)?;
        let (stored, width) = (indices.len(), row_width(&values.shape));
        Ok(SparseContent { stored, width, dtype: tensor.dtype, values: block, indices: indices_block, pointers })
    }

    /// Content with these values, row-major.
    pub fn new(
        engine: &'static Engine,
        storage: StorageType,
        tensor: &TensorType,
        values: &[u8],
        indices: &[i64],
        pointers: &[i64],
    ) -> Result<SparseContent, OpError> {
        let count = stored_shape(storage, tensor, indices.len());
        if TensorType::new(tensor.dtype, count.clone()).checked_bytes() != Some(values.len()) {
            let message = format!(
                "{} values of {} for {} positions of a {storage} array of shape {}: give values of shape {count}",
                values.len() / tensor.dtype.size(),
                tensor.dtype,
                indices.len(),
                tensor.shape
            );
            return Err(OpError::new(FailureKind::Value, message));
        }
        SparseContent::with_values(engine, storage, tensor, indices, pointers, |to| {
            to.bytes_mut().copy_from_slice(values);
            Ok(())
        })
    }

    /// Content in new memory, of which `counts` says the size. What is in it is written later: no
    /// kernel may see it before.
    pub(crate) fn unfilled(
        engine: &'static Engine,
        storage: StorageType,
        tensor: &TensorType,
        counts: StoredCounts,
    ) -> Result<SparseContent, OpError> {
        let [values, indices, pointers] = part_bytes(storage, tensor, counts)?;
        Ok(SparseContent {
            stored: counts.stored,
            width: row_width(&stored_shape(storage, tensor, counts.stored)),
            dtype: tensor.dtype,
            values: allocate(engine, values)?,
            indices: allocate(engine, indices)?,
            pointers: match storage {
                StorageType::Csr => Some((allocate(engine, pointers)?, counts.pointers)),
                _ => None,
            },
        })
    }

    /// Numbers of what is stored.
    pub(crate) fn counts(&self) -> StoredCounts {
        StoredCounts { stored: self.stored, pointers: self.pointers().len() }
    }

    /// Addresses of values, columns or row numbers, and row pointers.
    pub(crate) fn addresses(&self) -> [*mut u8; 3] {
        let pointers = self.pointers.as_ref().map_or(std::ptr::null_mut(), |(block, _)| block.as_ptr());
        [self.values.as_ptr(), self.indices.as_ptr(), pointers]
    }

    /// Number of stored values, or rows of them.
    pub fn stored(&self) -> usize {
        self.stored
    }

    /// The stored values as bytes.
    pub fn value_bytes(&self) -> &[u8] {
        &self.values.as_slice()[..self.stored * self.width * self.dtype.size()]
    }

    /// Columns, or row numbers.
    pub fn indices(&self) -> &[i64] {
        bytemuck::cast_slice(&self.indices.as_slice()[..self.stored * size_of::<i64>()])
    }

    /// Bytes of values and positions.
    pub fn bytes(&self) -> usize {
        self.value_bytes().len() + (self.stored + self.pointers().len()) * size_of::<i64>()
    }

    /// Row pointers; empty for an array that is not csr.
    pub fn pointers(&self) -> &[i64] {
        let Some((block, count)) = &self.pointers else { return &[] };
        bytemuck::cast_slice(&block.as_slice()[..count * size_of::<i64>()])
    }

    /// Writes the dense array that this stands for.
    pub(crate) fn write_dense(&self, dense: &mut [u8], shape: &Shape) {
        dense.fill(0);
        let bytes = self.width * self.dtype.size();
        if bytes == 0 {
            return;
        }
        let values = self.value_bytes().chunks_exact(bytes);
        if self.pointers.is_none() {
            for (row, value) in self.indices().iter().zip(values) {
                let first = *row as usize * bytes;
                dense[first..first + bytes].copy_from_slice(value);
            }
            return;
        }
        let columns = shape.get(1).copied().unwrap_or(0);
        let mut values = values.zip(self.indices());
        for (row, ends) in self.pointers().windows(2).enumerate() {
            for (value, column) in values.by_ref().take((ends[1] - ends[0]) as usize) {
                let first = (row * columns + *column as usize) * bytes;
                dense[first..first + bytes].copy_from_slice(value);
            }
        }
    }
}

/// Shape of the values of an array of this type with this number of positions.
pub(super) fn stored_shape(storage: StorageType, tensor: &TensorType, stored: usize) -> Shape {
    match storage {
        StorageType::RowSparse => [stored].into_iter().chain(tensor.shape.iter().skip(1).copied()).collect(),
        _ => Shape::new(&[stored]),
    }
}

/// Bytes of values, columns or row numbers, and row pointers.
pub(crate) fn part_bytes(
    storage: StorageType,
    tensor: &TensorType,
    counts: StoredCounts,
) -> Result<[usize; 3], OpError> {
    let values = TensorType::new(tensor.dtype, stored_shape(storage, tensor, counts.stored));
    let bytes = |tensor: &TensorType| tensor.checked_bytes().ok_or_else(|| too_large(&tensor.to_string()));
    let numbers = |count: usize| bytes(&TensorType::new(DType::I64, [count]));
    Ok([bytes(&values)?, numbers(counts.stored)?, numbers(counts.pointers)?])
}

fn check_positions(
    storage: StorageType,
    tensor: &TensorType,
    indices: &[i64],
    pointers: &[i64],
) -> Result<(), OpError> {
    let (rows, columns) = (tensor.shape.first().copied().unwrap_or(0), tensor.shape.get(1).copied().unwrap_or(0));
    match storage {
        StorageType::RowSparse => check_rising(indices, rows, "row_sparse: row"),
        StorageType::Csr => {
            check_pointers(pointers, rows, indices.len())?;
            pointers
                .windows(2)
                .try_for_each(|ends| check_rising(&indices[ends[0] as usize..ends[1] as usize], columns, "csr: column"))
        }
        StorageType::Default => {
            Err(OpError::new(FailureKind::Operator, "a dense array was made of values and positions"))
        }
    }
}
