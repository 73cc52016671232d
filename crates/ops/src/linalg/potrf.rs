//! `_linalg_potrf`: Cholesky factors.

use super::{cubic, form, matrix_error, order, square_like_input};
use crate::prelude::*;
use mxrt_kernels::linalg;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_linalg_potrf",
    aliases: &["linalg_potrf"],
    doc: "The Cholesky factor of symmetric, positive definite matrices: A = L L^T, or U^T U if \
          not lower.\n\nOne triangle of A is read. A matrix that is not positive definite is \
          an error; NaN is not.",
    inputs: Inputs::Fixed(&["A"]),
    attrs: LOWER,
    infer_shape: square_like_input,
    bind: |attrs, signature| {
        let (n, lower) = (order(signature), attrs.bool("lower"));
        dispatch!(signature.inputs[0].dtype, wide, T => Ok(costed_kernel_fn("plain", cubic(signature), move |call| {
            let out = elements_mut(&mut call.outputs[0])?;
            linalg::cholesky::<T>(call.par, n, lower, elements(&call.inputs[0])?, out).map_err(matrix_error)
        })))
    },
    form: |attrs, signature| {
        form(MatrixForm::Cholesky { order: order(signature), lower: attrs.bool("lower") }, signature)
    },
    ..OpDef::BASE
}];

pub(super) const LOWER: &[AttrDef] =
    &[AttrDef::new("lower", AttrKind::Bool, "True", "Whether the factor is lower triangular, else upper.").unlisted()];

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn a_factor_is_lower_or_upper_triangular() {
        let a = [4.0, 2.0, 2.0, 5.0];
        let lower = OpTest::new("linalg_potrf").f32([1, 2, 2], &a).run();
        assert_close(&f32s(&lower, [1, 2, 2]), &[2.0, 0.0, 1.0, 2.0]);
        let upper = OpTest::new("_linalg_potrf").attr("lower", "False").f32([2, 2], &a).run();
        assert_close(&f32s(&upper, [2, 2]), &[2.0, 1.0, 0.0, 2.0]);
    }

    #[test]
    fn what_cannot_be_factorised_is_refused() {
        let error = |test: OpTest| test.error().message.clone();
        let potrf = || OpTest::new("_linalg_potrf");
        let negative = error(potrf().f32([2, 2], &[1.0, 2.0, 2.0, 1.0]));
        assert!(negative.contains("matrix 0 is not positive definite"), "{negative}");
        assert!(error(potrf().f32([1, 2], &[1.0, 2.0])).contains("square"));
        let whole = error(potrf().i32([1, 1], &[1]));
        assert!(whole.contains("only float32 and float64"), "{whole}");
    }
}
