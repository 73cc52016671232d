//! Rows of several requests in one array, and apart again.

use mxrt_engine::memory::Block;
use mxrt_engine::{Engine, FailureKind, OpError};
use mxrt_tensor::{Context, NDArray, Shape, TensorType};

/// Rows that a request has; none if its inputs do not agree, or have no rows.
pub(super) fn count(inputs: &[NDArray]) -> Option<usize> {
    let rows = *inputs.first()?.shape().first()?;
    let agree = inputs.iter().all(|array| array.shape().first() == Some(&rows));
    (agree && rows > 0).then_some(rows)
}

/// The type without the number of rows: what is the same for all members of a batch.
pub(super) fn of_row(array: &NDArray) -> TensorType {
    with_rows(&array.tensor_type(), 1)
}

fn with_rows(tensor: &TensorType, rows: usize) -> TensorType {
    let mut extents = tensor.shape.to_vec();
    if let Some(first) = extents.first_mut() {
        *first = rows;
    }
    TensorType { dtype: tensor.dtype, shape: Shape::from(extents) }
}

/// The rows of `parts`, one behind the other, and the last row again until there are `rows`. A row
/// of a member can be computed; zeros might raise.
pub(super) fn join(engine: &'static Engine, parts: &[&NDArray], rows: usize) -> Result<NDArray, OpError> {
    let tensor = parts.first().map(|part| with_rows(&part.tensor_type(), rows)).ok_or_else(no_rows)?;
    let mut block = memory(engine, tensor.bytes())?;
    let to = &mut block.as_mut_slice()[..tensor.bytes()];
    let mut filled = 0;
    for part in parts {
        let guard = part.read().map_err(|error| OpError::new(FailureKind::Operator, error.to_string()))?;
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

/// Rows `first..first + rows` of an array, in memory of their own.
pub(super) fn cut(engine: &'static Engine, from: &NDArray, first: usize, rows: usize) -> Result<NDArray, OpError> {
    let guard = from.read().map_err(|error| OpError::new(FailureKind::Operator, error.to_string()))?;
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
