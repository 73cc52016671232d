//! `_npi_svd`: singular values and vectors.

use super::{matrix_error, no_matrices, wide_floats};
use crate::prelude::*;
use mxrt_kernels::linalg;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npi_svd",
    doc: "Singular values L, descending, and vectors of matrices with no more rows than columns: A = \
          UT diag(L) V. The element of largest magnitude of a row of V is positive.",
    inputs: Inputs::Fixed(&["A"]),
    outputs: Outputs::Count(|_| 3),
    infer_shape: |shapes| {
        let Some(a) = shapes.input(0) else { return Ok(()) };
        let [ref batch @ .., m, n] = a[..] else { return Err(no_matrices("A", &a)) };
        if m > n {
            return Err(shape_error(format!("A has shape {a}, but has to have no more rows than columns")));
        }
        let with = |last: &[usize]| batch.iter().chain(last).copied().collect::<Shape>();
        shapes.set_output(0, with(&[m, m]))?;
        shapes.set_output(1, with(&[m]))?;
        shapes.set_output(2, with(&[m, n]))
    },
    infer_dtype: wide_floats,
    bind: |_, signature| {
        let [.., m, n] = signature.inputs[0].shape[..] else { return Err(wrong_arity()) };
        Ok(kernel_fn(signature, move |call| {
            let a = floats(call.par, &call.inputs[0])?;
            let [u, l, v] = &*call.outputs else { return Err(wrong_arity()) };
            let mut made = [u, l, v].map(|out| Scratch::<f64>::new(call.par, out.len()));
            let [u, l, v] = &mut made;
            linalg::singular_values(call.par, [m, n], &a, u, l, v).map_err(matrix_error)?;
            made.iter().zip(call.outputs.iter_mut()).try_for_each(|(made, out)| store_floats(made, out))
        }))
    },
    ..OpDef::BASE
}];

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn factors_multiply_to_the_matrix() {
        let out = OpTest::new("_npi_svd").f32([1, 2], &[3.0, -4.0]).run_all();
        assert_close(&f32s(&out[0], [1, 1]), &[-1.0]);
        assert_close(&f32s(&out[1], [1]), &[5.0]);
        assert_close(&f32s(&out[2], [1, 2]), &[-0.6, 0.8]);
        assert!(OpTest::new("_npi_svd").f32([2, 1], &[1.0, 2.0]).error().message.contains("no more rows"));
    }
}
