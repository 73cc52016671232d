//! Joining and dividing of arrays by rows.

use mxrt_engine::memory::Block;
use mxrt_engine::{Engine, FailureKind, OpError, WaitError};
use mxrt_tensor::{Context, NDArray, Shape, StorageType, StoredInput, TensorType};

/// Element type and shape of one row, and how it is stored. Equal for all members of a batch.
pub(super) type RowType = (TensorType, StorageType);

/// Returns the number of rows of a request; `None` if its inputs disagree or have no rows.
pub(super) fn count(inputs: &[NDArray]) -> Option<usize> {
    let rows = *inputs.first()?.shape().first()?;
    let agree = inputs.iter().all(|array| array.shape().first() == Some(&rows));
    (agree && rows > 0).then_some(rows)
}

/// Returns the type of one row.
pub(super) fn of_row(array: &NDArray) -> RowType {
    (with_rows(&array.tensor_type(), 1), array.storage_type())
}

/// Returns the bytes that an array has in memory. It is complete.
pub(super) fn bytes(array: &NDArray) -> usize {
    let parts = |array: &NDArray| {
        let guard = array.read_stored(None).ok()?;
        let content = guard.parts().ok()??;
        Some(content.value_bytes().len() + 8 * (content.indices().len() + content.pointers().len()))
    };
    if array.is_sparse() { parts(array).unwrap_or(0) } else { array.nbytes() }
}

fn with_rows(tensor: &TensorType, rows: usize) -> TensorType {
    let mut extents = tensor.shape.to_vec();
    if let Some(first) = extents.first_mut() {
        *first = rows;
    }
    TensorType { dtype: tensor.dtype, shape: Shape::from(extents) }
}

/// Joins the rows of `parts` in their order, and repeats the last row until there are `rows` rows.
/// A copy of a real row can always be computed, while zeros might raise an error.
pub(crate) fn join(engine: &'static Engine, parts: &[&NDArray], rows: usize) -> Result<NDArray, OpError> {
    let tensor = parts.first().map(|part| with_rows(&part.tensor_type(), rows)).ok_or_else(no_rows)?;
    if parts.iter().all(|part| part.storage_type() == StorageType::Csr) {
        return join_csr(engine, parts, tensor, rows);
    }
    let mut block = memory(engine, tensor.bytes())?;
    let to = &mut block.as_mut_slice()[..tensor.bytes()];
    let mut filled = 0;
    for part in parts {
        let guard = part.read().map_err(unread)?;
        let from = guard.tensor();
        let bytes = from.bytes();
        to.get_mut(filled..filled + bytes.len()).ok_or_else(no_rows)?.copy_from_slice(bytes);
        filled += bytes.len();
    }
    let row = tensor.bytes() / rows.max(1);
    while filled < to.len() {
        let last = filled.checked_sub(row).ok_or_else(no_rows)?;
        to.copy_within(last..filled, filled);
        filled += row;
    }
    NDArray::from_block(engine, Context::cpu(0), tensor, block)
}

/// Joins csr matrices as [`join`] does, and repeats a row that has the fewest values. Takes memory
/// for values alone.
fn join_csr(engine: &'static Engine, parts: &[&NDArray], tensor: TensorType, rows: usize) -> Result<NDArray, OpError> {
    let (mut values, mut columns, mut pointers) = (Vec::new(), Vec::new(), vec![0]);
    for part in parts {
        let guard = part.read_stored(None).map_err(unread)?;
        let StoredInput::Csr(matrix) = guard.content()? else { return Err(no_rows()) };
        let before = columns.len() as i64;
        reserve(&mut values, matrix.values.bytes().len())?;
        reserve(&mut columns, matrix.columns.len())?;
        reserve(&mut pointers, matrix.pointers.len())?;
        values.extend_from_slice(matrix.values.bytes());
        columns.extend_from_slice(matrix.columns);
        pointers.extend(matrix.pointers.iter().skip(1).map(|pointer| before + pointer));
    }
    let least = pointers.windows(2).min_by_key(|ends| ends[1] - ends[0]).ok_or_else(no_rows)?;
    let (least, size) = (least[0] as usize..least[1] as usize, tensor.dtype.size());
    let padding = (rows + 1).saturating_sub(pointers.len());
    reserve(&mut values, padding.saturating_mul(least.len() * size))?;
    reserve(&mut columns, padding.saturating_mul(least.len()))?;
    reserve(&mut pointers, padding)?;
    for _ in 0..padding {
        values.extend_from_within(least.start * size..least.end * size);
        columns.extend_from_within(least.clone());
        pointers.push(columns.len() as i64);
    }
    NDArray::from_parts(engine, StorageType::Csr, tensor, &values, &columns, &pointers)
}

/// Reserves room in a vector for more elements.
fn reserve<T>(to: &mut Vec<T>, more: usize) -> Result<(), OpError> {
    to.try_reserve(more).map_err(|error| OpError::new(FailureKind::Memory, error.to_string()))
}

fn unread(error: WaitError) -> OpError {
    OpError::new(FailureKind::Operator, error.to_string())
}

/// Copies the rows `first..first + rows` of an array into a new array.
pub(super) fn cut(engine: &'static Engine, from: &NDArray, first: usize, rows: usize) -> Result<NDArray, OpError> {
    let guard = from.read().map_err(unread)?;
    let tensor = with_rows(&from.tensor_type(), rows);
    let (bytes, row) = (tensor.bytes(), tensor.bytes() / rows.max(1));
    let mut block = memory(engine, bytes)?;
    let part = guard.tensor().bytes().get(first * row..first * row + bytes).ok_or_else(no_rows)?;
    block.as_mut_slice()[..bytes].copy_from_slice(part);
    NDArray::from_block(engine, Context::cpu(0), tensor, block)
}

fn memory(engine: &'static Engine, bytes: usize) -> Result<Block, OpError> {
    engine.memory().alloc(bytes).map_err(|error| OpError::new(FailureKind::Memory, error.to_string()))
}

fn no_rows() -> OpError {
    OpError::new(FailureKind::Shape, "the results of a batch do not have its rows")
}
