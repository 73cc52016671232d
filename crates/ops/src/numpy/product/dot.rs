//! `_np_dot`: products over the last axis and the second to last.

use super::{PAIR, bind, form, infer_shape, paired, product};
use crate::numpy::contract::{Label, Operand};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[product!(
    "_np_dot",
    PAIR,
    &[],
    dot,
    "The sum of products over the last axis of a and the second to last of b, or its only one; of \
         a scalar, the product."
)];

fn dot(_: &Attrs, shapes: &[Shape]) -> Result<(Vec<Operand>, Vec<Label>), OpError> {
    let [a, b] = shapes else { return Err(wrong_arity()) };
    match (a.len(), b.len()) {
        (0, _) | (_, 0) => paired(shapes, &[]),
        (m, n) => paired(shapes, &[(m - 1, n.saturating_sub(2))]),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    const X: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

    #[test]
    fn the_last_axis_meets_the_second_to_last() {
        let dot = || OpTest::new("_np_dot");
        assert_eq!(f32s(&dot().f32([2, 3], &X).f32([3], &[1.0, 0.0, 1.0]).run(), [2]), [4.0, 10.0]);
        assert_eq!(f32s(&dot().f32([], &[2.0]).f32([2], &X[..2]).run(), [2]), [2.0, 4.0]);
        assert!(dot().f32([2, 3], &X).f32([2], &X[..2]).error().message.contains("(2, 3) and (2,)"));
    }
}
