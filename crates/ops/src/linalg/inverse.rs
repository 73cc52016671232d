//! `_linalg_inverse`: inverses of square matrices.

use super::{cubic, form, matrix_error, order, square_like_input};
use crate::prelude::*;
use mxrt_kernels::linalg;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_linalg_inverse",
    aliases: &["_npi_inv", "linalg_inverse"],
    doc: "The inverse of square matrices. A singular matrix is an error.",
    inputs: Inputs::Fixed(&["A"]),
    infer_shape: square_like_input,
    bind: |_, signature| {
        let n = order(signature);
        dispatch!(signature.inputs[0].dtype, wide, T => Ok(costed_kernel_fn("plain", cubic(signature), move |call| {
            let out = elements_mut(&mut call.outputs[0])?;
            linalg::inverse::<T>(call.par, n, elements(&call.inputs[0])?, out).map_err(matrix_error)
        })))
    },
    form: |_, signature| form(MatrixForm::Inverses { order: order(signature) }, signature),
    ignores_unknown_attrs: true,
    ..OpDef::BASE
}];

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn an_inverse_by_hand() {
        let y = OpTest::new("linalg_inverse").f32([2, 2], &[1.0, 2.0, 3.0, 4.0]).run();
        assert_close(&f32s(&y, [2, 2]), &[-2.0, 1.0, 1.5, -0.5]);
        let error = OpTest::new("linalg_inverse").f32([2, 2], &[1.0, 2.0, 2.0, 4.0]).error();
        assert!(error.message.contains("singular"), "{}", error.message);
    }
}
