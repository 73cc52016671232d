//! `_npi_matmul`: products of the matrices in the last two axes.

use super::{PAIR, bind, form, infer_shape, product};
use crate::numpy::contract::{Label, Operand};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    outputs: Outputs::OneNamed("out"),
    ..product!(
        "_npi_matmul",
        PAIR,
        &[],
        matmul,
        "Products of the matrices in the last two axes; the axes before them are broadcast, and a \
         vector is a row on the left and a column on the right."
    )
}];

fn matmul(_: &Attrs, shapes: &[Shape]) -> Result<(Vec<Operand>, Vec<Label>), OpError> {
    let [a, b] = shapes else { return Err(wrong_arity()) };
    if a.is_empty() || b.is_empty() {
        return Err(shape_error(format!("matmul of {a} and {b}: scalars are not allowed, use multiply")));
    }
    const ROWS: Label = 0;
    const SUMMED: Label = 1;
    const COLUMNS: Label = 2;
    // The axes before the matrices, counted from the last one.
    let outer = |rank: usize| (0..rank.saturating_sub(2)).rev().map(|axis| axis as Label + 3).collect::<Vec<Label>>();
    let matrix = |rank: usize, names: [Label; 2], alone: Label| if rank == 1 { vec![alone] } else { names.to_vec() };
    let left = [outer(a.len()), matrix(a.len(), [ROWS, SUMMED], SUMMED)].concat();
    let right = [outer(b.len()), matrix(b.len(), [SUMMED, COLUMNS], SUMMED)].concat();
    let (k, other) = (a[a.len() - 1], b[b.len().saturating_sub(2)]);
    if k != other {
        return Err(shape_error(format!("shapes {a} and {b} cannot be multiplied: {k} columns, but {other} rows")));
    }
    let mut out = outer(a.len().max(b.len()));
    out.extend((a.len() > 1).then_some(ROWS));
    out.extend((b.len() > 1).then_some(COLUMNS));
    Ok((vec![Operand::new(left, a), Operand::new(right, b)], out))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    const X: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

    #[test]
    fn matrices_of_a_batch_are_broadcast() {
        let y = OpTest::new("_npi_matmul").f32([1, 2, 3], &X).f32([2, 3, 1], &X).run();
        assert_eq!(f32s(&y, [2, 2, 1]), [14.0, 32.0, 32.0, 77.0]);
        assert_eq!(f32s(&OpTest::new("_npi_matmul").f32([2, 0], &[]).f32([0, 2], &[]).run(), [2, 2]), [0.0; 4]);
    }
}
