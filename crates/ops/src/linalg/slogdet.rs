//! `_linalg_slogdet`: signs and logarithms of determinants.

use super::det::{determinant, infer_shape};
use super::{cubic, form, order};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_linalg_slogdet",
    aliases: &["_npi_slogdet", "linalg_slogdet"],
    doc: "Sign of the determinant of square matrices, and the logarithm of its absolute value; \
          of a single matrix as arrays of shape (1,), with np shapes as scalars.",
    inputs: Inputs::Fixed(&["A"]),
    outputs: Outputs::Count(|_| 2),
    hidden_outputs: |_| 2,
    infer_shape,
    bind: |_, signature| {
        dispatch!(signature.inputs[0].dtype, wide, T => Ok(costed_kernel_fn("plain", cubic(signature), move |call| {
            let ([a], [sign, logarithm]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
            determinant::<T>(call.par, a, elements_mut(sign)?, elements_mut(logarithm)?)
        })))
    },
    form: |_, signature| form(MatrixForm::Determinants { order: order(signature), logarithms: true }, signature),
    ignores_unknown_attrs: true,
    ..OpDef::BASE
}];

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn signs_and_logarithms_of_two_matrices() {
        let a = [1.0, 2.0, 3.0, 4.0, 0.0, 1.0, 1.0, 0.0];
        let out = OpTest::new("linalg_slogdet").f32([2, 2, 2], &a).run_all();
        assert_close(&f32s(&out[0], [2]), &[-1.0, -1.0]);
        assert_close(&f32s(&out[1], [2]), &[2f32.ln(), 0.0]);
    }
}
