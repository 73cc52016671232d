//! `_npi_cholesky`: the lower triangular factor of positive definite matrices.

use super::{matrix_error, order, square, wide_floats};
use crate::prelude::*;
use mxrt_kernels::linalg;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npi_cholesky",
    doc: "The lower triangular factor of symmetric, positive definite matrices: A = L L^T.",
    inputs: Inputs::Fixed(&["A"]),
    infer_shape: |shapes| {
        square(shapes, 0, "A")?;
        shapes.all_same()
    },
    infer_dtype: wide_floats,
    bind: |_, signature| {
        let n = order(signature);
        Ok(kernel_fn(signature, move |call| {
            let a = floats(call.par, &call.inputs[0])?;
            let mut out = Scratch::<f64>::new(call.par, a.len());
            linalg::cholesky(call.par, n, true, &a, &mut out).map_err(matrix_error)?;
            store_floats(&out, &mut call.outputs[0])
        }))
    },
    ..OpDef::BASE
}];

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn the_factor_is_lower_triangular() {
        let lower = OpTest::new("_npi_cholesky").f32([2, 2], &[4.0, 2.0, 2.0, 5.0]).run();
        assert_close(&f32s(&lower, [2, 2]), &[2.0, 0.0, 1.0, 2.0]);
    }
}
