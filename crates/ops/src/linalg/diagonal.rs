//! Places of a diagonal in a matrix.

use crate::prelude::*;
use mxrt_tensor::TensorType;

pub(super) const OFFSET: &[AttrDef] =
    &[AttrDef::new("offset", AttrKind::Int, "0", "Which diagonal: above the main one if positive, below if negative.")];

/// Elements of a diagonal of a square matrix.
pub(super) fn diagonal_len(order: usize, offset: i64) -> Result<usize, OpError> {
    usize::try_from(offset.unsigned_abs())
        .ok()
        .and_then(|far| order.checked_sub(far))
        .filter(|n| *n > 0)
        .ok_or_else(|| value_error(format!("offset={offset} is outside of matrices with {order} rows and columns")))
}

/// Row and column where a diagonal begins.
pub(super) fn start(offset: i64) -> [usize; 2] {
    let far = offset.unsigned_abs() as usize;
    if offset < 0 { [far, 0] } else { [0, far] }
}

/// The extent of the last axis.
pub(super) fn last(tensor: &TensorType) -> usize {
    tensor.shape.last().copied().unwrap_or(0)
}

/// The first element of a diagonal of matrices with `order` rows, and the steps between diagonals
/// and between their elements.
pub(super) fn diagonal_steps(offset: i64, order: usize) -> (usize, Vec<isize>) {
    let [row, column] = start(offset);
    (row * order + column, vec![(order * order) as isize, order as isize + 1])
}
