//! `_linalg_syevd`: eigenvectors and eigenvalues of symmetric matrices.

use super::{cubic, form, matrix_error, order, square_matrices};
use crate::prelude::*;
use mxrt_kernels::linalg;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_linalg_syevd",
    doc: "Eigenvectors and eigenvalues of symmetric matrices: A = U^T diag(L) U.\n\nThe lower \
          triangle of A is read. The rows of U are the eigenvectors; the element of largest \
          magnitude of each, the first of equal ones, is positive. L ascends.",
    inputs: Inputs::Fixed(&["A"]),
    outputs: Outputs::Count(|_| 2),
    infer_shape: |shapes| {
        let Some((batch, n)) = square_matrices(shapes, 0, "A")? else { return Ok(()) };
        let dims = |count: usize| batch.iter().copied().chain(std::iter::repeat_n(n, count));
        shapes.set_output(0, PartialShape::from_dims(dims(2)))?;
        shapes.set_output(1, PartialShape::from_dims(dims(1)))
    },
    bind: |_, signature| {
        let n = order(signature);
        let cost = cubic(signature).saturating_mul(10);
        dispatch!(signature.inputs[0].dtype, wide, T => Ok(costed_kernel_fn("plain", cost, move |call| {
            let ([a], [vectors, values]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
            linalg::symmetric_eigen::<T>(call.par, n, elements(a)?, elements_mut(vectors)?, elements_mut(values)?)
                .map_err(matrix_error)
        })))
    },
    form: |_, signature| form(MatrixForm::SymmetricEigen { order: order(signature) }, signature),
    ignores_unknown_attrs: true,
    ..OpDef::BASE
}];

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn eigenvectors_are_rows() {
        // What is above the diagonal is not read.
        let out = OpTest::new("_linalg_syevd").f32([2, 2], &[2.0, 9.0, 1.0, 2.0]).run_all();
        let half = 0.5f32.sqrt();
        assert_close(&f32s(&out[0], [2, 2]), &[half, -half, half, half]);
        assert_close(&f32s(&out[1], [2]), &[1.0, 3.0]);
        let vector = OpTest::new("_linalg_syevd").f32([2], &[1.0, 2.0]).error();
        assert!(vector.message.contains("2 axes at least"), "{}", vector.message);
    }
}
