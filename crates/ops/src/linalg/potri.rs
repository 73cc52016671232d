//! `_linalg_potri`: inverses of matrices that are given by Cholesky factors.

use super::potrf::LOWER;
use super::{cubic, form, matrix_error, order, square_like_input};
use crate::prelude::*;
use mxrt_kernels::linalg;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_linalg_potri",
    aliases: &["linalg_potri"],
    doc: "The inverse of symmetric, positive definite matrices that are given by the factor of \
          linalg.potrf.",
    inputs: Inputs::Fixed(&["A"]),
    attrs: LOWER,
    infer_shape: square_like_input,
    bind: |attrs, signature| {
        let (n, lower) = (order(signature), attrs.bool("lower"));
        dispatch!(signature.inputs[0].dtype, wide, T => Ok(costed_kernel_fn("plain", cubic(signature), move |call| {
            let out = elements_mut(&mut call.outputs[0])?;
            linalg::cholesky_inverse::<T>(call.par, n, lower, elements(&call.inputs[0])?, out).map_err(matrix_error)
        })))
    },
    form: |attrs, signature| {
        form(MatrixForm::CholeskyInverse { order: order(signature), lower: attrs.bool("lower") }, signature)
    },
    ..OpDef::BASE
}];

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn an_inverse_is_made_of_a_factor() {
        // 1 / 16 of [[5, -2], [-2, 4]].
        let want = [0.3125, -0.125, -0.125, 0.25];
        let inverse = OpTest::new("linalg_potri").f32([1, 2, 2], &[2.0, 0.0, 1.0, 2.0]).run();
        assert_close(&f32s(&inverse, [1, 2, 2]), &want);
        let inverse = OpTest::new("_linalg_potri").attr("lower", "0").f32([2, 2], &[2.0, 1.0, 0.0, 2.0]).run();
        assert_close(&f32s(&inverse, [2, 2]), &want);
        let error = OpTest::new("_linalg_potri").f32([2, 2], &[0.0; 4]).error();
        assert!(error.message.contains("zero on its diagonal"), "{}", error.message);
    }
}
