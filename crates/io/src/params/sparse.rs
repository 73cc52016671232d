//! Records of sparse arrays.

use super::ParamsError;
use super::format::RECORD_V2;
use super::index::{ArrayRecord, SparseRecord};
use super::save::put_shape;
use super::source::ListSource;
use crate::FileError;
use bytemuck::{cast_slice, cast_slice_mut};
use mxrt_engine::{Block, Engine, FailureKind, OpError, WaitError};
use mxrt_tensor::{Context, DType, NDArray, SparseContent, StorageType, TensorType};
use std::io::{self, Write};

/// Reader of the parts of one array, whose errors name file and array.
struct SparseReader<'a> {
    engine: &'static Engine,
    source: &'a ListSource<'a>,
    path: &'a str,
    name: &'a dyn Fn() -> String,
}

impl SparseReader<'_> {
    fn memory(&self, source: OpError) -> ParamsError {
        ParamsError::Memory { path: self.path.to_owned(), array: (self.name)(), source }
    }

    fn alloc(&self, bytes: usize) -> Result<Block, ParamsError> {
        self.engine.memory().alloc(bytes).map_err(|refusal| self.memory(refusal.into()))
    }

    fn read(&self, tensor: &TensorType, offset: u64) -> Result<Block, ParamsError> {
        let bytes = tensor.bytes();
        let mut block = self.alloc(bytes)?;
        let read = self.source.read_at(offset, &mut block.as_mut_slice()[..bytes]);
        read.map_err(|error| ParamsError::from(FileError::io("reading", self.path, &error)))?;
        Ok(block)
    }

    /// Reads positions as numbers of 64 bits.
    fn numbers(&self, (tensor, offset): &(TensorType, u64)) -> Result<Block, ParamsError> {
        let block = self.read(tensor, *offset)?;
        let mut numbers = self.alloc(tensor.shape.size() * size_of::<i64>())?;
        widen(tensor.dtype, &block.as_slice()[..tensor.bytes()], cast_slice_mut(numbers.as_mut_slice()));
        Ok(numbers)
    }

    /// Makes the row pointers of a matrix without values.
    fn pointers_of_empty_rows(&self, rows: usize) -> Result<Block, ParamsError> {
        let mut block = self.alloc(rows.saturating_add(1).saturating_mul(size_of::<i64>()))?;
        block.as_mut_slice().fill(0);
        Ok(block)
    }
}

/// Loads a sparse array.
pub(super) fn read_sparse(
    engine: &'static Engine,
    source: &ListSource<'_>,
    (path, name): (&str, &dyn Fn() -> String),
    record: &ArrayRecord,
    parts: &SparseRecord,
) -> Result<NDArray, ParamsError> {
    let reader = SparseReader { engine, source, path, name };
    let memory = |error: OpError| reader.memory(error);
    let mut positions = parts.positions.iter().map(|part| reader.numbers(part)).collect::<Result<Vec<_>, _>>()?;
    let mut indices = positions.pop();
    let pointers = positions.pop();
    let indices: &mut [i64] = indices.as_mut().map(|block| cast_slice_mut(block.as_mut_slice())).unwrap_or_default();
    let mut pointers: &[i64] = pointers.as_ref().map(|block| cast_slice(block.as_slice())).unwrap_or_default();
    // MXNet writes no row pointers of a matrix without storage, as `zeros` makes it.
    let mut empty_rows = None;
    if parts.storage == StorageType::Csr && pointers.is_empty() && indices.is_empty() {
        pointers = cast_slice(empty_rows.insert(reader.pointers_of_empty_rows(record.tensor.shape[0])?).as_slice());
    }
    let mut values = reader.read(&parts.values, record.offset)?;
    // MXNet may store more values than the row pointers count; they mean nothing.
    let stored = indices.len();
    let count = pointers.last().and_then(|end| usize::try_from(*end).ok()).unwrap_or(stored);
    let indices = &mut indices[..count.min(stored)];
    let width = parts.values.bytes() / parts.values.shape.first().copied().unwrap_or(0).max(1);
    sort_rows(pointers, indices, &mut values.as_mut_slice()[..parts.values.bytes()], width).map_err(memory)?;
    let used = values.as_slice()[..parts.values.bytes()].get(..indices.len() * width).unwrap_or_default();
    let content = SparseContent::new(engine, parts.storage, &record.tensor, used, indices, pointers);
    let content = content.map_err(|error| match error.kind {
        FailureKind::Memory => memory(error),
        _ => ParamsError::Positions { path: path.to_owned(), array: name(), problem: error.message.clone() },
    })?;
    let array = NDArray::new_stored(engine, Context::cpu(0), record.tensor.clone(), parts.storage).map_err(memory)?;
    array.fill_stored("load", move |_, _, _| Ok(content)).map_err(memory)?;
    Ok(array)
}

/// Sorts the columns of each row, and the values of `width` bytes with them: MXNet keeps the order
/// that a program gave. Rows that the file does not have are left to the check of positions.
fn sort_rows(pointers: &[i64], indices: &mut [i64], values: &mut [u8], width: usize) -> Result<(), OpError> {
    for ends in pointers.windows(2) {
        let [Ok(from), Ok(to)] = [ends[0], ends[1]].map(usize::try_from) else { continue };
        let Some(columns) = indices.get_mut(from..to) else { continue };
        let Some(bytes) = values.get_mut(from * width..to * width) else { continue };
        if columns.is_sorted() {
            continue;
        }
        let mut order = room(columns.len())?;
        order.extend(0..columns.len());
        order.sort_unstable_by_key(|i| (columns[*i], *i));
        let (mut old, mut old_bytes) = (room(columns.len())?, room(bytes.len())?);
        old.extend_from_slice(columns);
        old_bytes.extend_from_slice(bytes);
        for (to, from) in order.into_iter().enumerate() {
            columns[to] = old[from];
            bytes[to * width..(to + 1) * width].copy_from_slice(&old_bytes[from * width..(from + 1) * width]);
        }
    }
    Ok(())
}

/// Room for a number of elements, which a file gives.
fn room<T>(count: usize) -> Result<Vec<T>, OpError> {
    let mut made = Vec::new();
    made.try_reserve_exact(count).map_err(|_| {
        let bytes = count.saturating_mul(size_of::<T>());
        OpError::new(FailureKind::Memory, format!("there is no memory for the {bytes} bytes of its positions"))
    })?;
    Ok(made)
}

/// Widens positions of any integer type.
fn widen(dtype: DType, bytes: &[u8], to: &mut [i64]) {
    let signed = matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
    let number = |little: &[u8]| {
        let negative = signed && little.last().is_some_and(|last| last & 0x80 != 0);
        let mut all = if negative { [0xff; 8] } else { [0; 8] };
        all[..little.len()].copy_from_slice(little);
        i64::from_le_bytes(all)
    };
    to.iter_mut().zip(bytes.chunks_exact(dtype.size())).for_each(|(to, little)| *to = number(little));
}

/// Writes a sparse array; `head` is its shape, device and element type.
pub(super) fn write_sparse(
    out: &mut impl Write,
    array: &NDArray,
    head: &[u8],
    poll: &mut dyn FnMut() -> bool,
    failed: &dyn Fn(io::Error) -> FileError,
) -> Result<(), ParamsError> {
    let guard = array.read_stored(Some(poll)).map_err(ParamsError::Wait)?;
    let wait = |error: OpError| ParamsError::Wait(WaitError::Failed(error.to_failure()));
    let Some(content) = guard.parts().map_err(wait)? else { return Ok(()) };
    let storage = array.storage_type();
    let numbers: &[&[i64]] = match storage {
        StorageType::Csr => &[content.pointers(), content.indices()],
        _ => &[content.indices()],
    };
    let mut before = Vec::with_capacity(64);
    before.extend(RECORD_V2.to_le_bytes());
    before.extend(storage.code().to_le_bytes());
    let shape = guard.content().map_err(wait)?.values().shape.clone();
    let unsavable =
        |problem| ParamsError::Unsavable { path: String::new(), array: "a sparse array".to_owned(), problem };
    put_shape(&mut before, &shape).map_err(unsavable)?;
    before.extend_from_slice(head);
    for numbers in numbers {
        before.extend(DType::I64.code().to_le_bytes());
        put_shape(&mut before, &[numbers.len()]).map_err(unsavable)?;
    }
    out.write_all(&before).map_err(failed)?;
    out.write_all(content.value_bytes()).map_err(failed)?;
    for numbers in numbers {
        for number in *numbers {
            out.write_all(&number.to_le_bytes()).map_err(failed)?;
        }
    }
    Ok(())
}
