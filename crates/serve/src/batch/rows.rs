//! Joining and dividing of arrays by rows.

use mxrt_engine::memory::Block;
use mxrt_engine::{Engine, FailureKind, OpError};
use mxrt_tensor::{Context, NDArray, Shape, TensorType};

/// Returns the number of rows of a request; `None` if its inputs disagree or have no rows.
pub(super) fn count(inputs: &[NDArray]) -> Option<usize> {
    let rows = *inputs.first()?.shape().first()?;
    let agree = inputs.iter().all(|array| array.shape().first() == Some(&rows));
    (agree && rows > 0).then_some(rows)
}

/// Returns the type of one row. It is equal for all members of a batch.
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

/// Joins the rows of `parts` in their order, and repeats the last row until there are `rows` rows.
/// A copy of a real row can always be computed, while zeros might raise an error.
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

/// Copies the rows `first..first + rows` of an array into a new array.
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
