//! `_npi_solve`: solutions of linear equations.

use super::{bind_solution, float_result, order, square};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npi_solve",
    doc: "The solution x of A x = B for a vector or matrix B.",
    inputs: Inputs::Fixed(&["A", "B"]),
    infer_shape: |shapes| {
        let (Some(a), Some(b)) = (square(shapes, 0, "A")?, shapes.input(1)) else { return Ok(()) };
        let (n, outer) = (a[a.len() - 1], &a[..a.len() - 2]);
        let vectors = b.len() + 1 == a.len();
        let fits = b.starts_with(outer) && b.get(outer.len()) == Some(&n) && (vectors || b.len() == a.len());
        if !fits {
            return Err(shape_error(format!("A {a} and B {b} do not fit: expected {n} rows in B")));
        }
        shapes.set_output(0, b)
    },
    infer_dtype: float_result,
    bind: |_, signature| {
        let [a, b] = signature.inputs else { return Err(wrong_arity()) };
        let n = order(signature);
        let columns = if b.shape.len() == a.shape.len() { b.shape[b.shape.len() - 1] } else { 1 };
        bind_solution(n, columns, (0..a.shape.len()).collect(), signature)
    },
    ..OpDef::BASE
}];

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn equations_are_solved() {
        let x = OpTest::new("_npi_solve").f32([2, 2], &[4.0, 2.0, 2.0, 5.0]).f32([2], &[8.0, 9.0]).run();
        assert_close(&f32s(&x, [2]), &[1.375, 1.25]);
        let error = OpTest::new("_npi_solve").f32([2, 2], &[1.0; 4]).f32([2], &[1.0, 2.0]).error();
        assert!(error.message.contains("singular"), "{}", error.message);
    }
}
