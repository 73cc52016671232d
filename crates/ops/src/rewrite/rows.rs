//! Operators that treat the rows of a batch one by one.

use crate::definition::{Attrs, resolve_axis};
use crate::execution::Signature;

/// [`Rewrites::row_wise`](super::Rewrites::row_wise) of operators that treat the rows of their data
/// alone and need the other inputs as a whole.
pub(crate) fn rows_of_data(_: &Attrs, _: &Signature<'_>, divided: &[bool]) -> bool {
    divided.first() == Some(&true) && !divided.get(1..).unwrap_or(&[]).contains(&true)
}

/// Whether an axis, counted from either end of input 0, is not that of the rows.
pub(crate) fn is_within_rows(axis: i64, signature: &Signature<'_>) -> bool {
    let rank = signature.inputs.first().map_or(0, |t| t.shape.len());
    resolve_axis(axis, rank).is_ok_and(|axis| axis > 0)
}
