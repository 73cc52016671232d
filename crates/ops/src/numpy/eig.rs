//! `_npi_eig`, `_npi_eigvals`: eigenvalues and eigenvectors of the matrices in the last two axes,
//! computed in double precision.

use super::linalg::{float_result, matrix_error, order, square};
use crate::prelude::*;
use mxrt_kernels::linalg;

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_npi_eig",
        doc: "Eigenvalues of matrices in any order, and their eigenvectors as columns. All have to be real.",
        outputs: Outputs::Count(|_| 2),
        infer_shape: values_and_vectors,
        ..GENERAL
    },
    OpDef {
        name: "_npi_eigvals",
        doc: "Eigenvalues of matrices in any order. All have to be real.",
        infer_shape: values,
        ..GENERAL
    },
];

pub(super) const GENERAL: OpDef =
    OpDef { inputs: Inputs::Fixed(&["A"]), infer_dtype: float_result, bind: bind_general, ..OpDef::BASE };

pub(super) fn values(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(a) = square(shapes, 0, "A")? else { return Ok(()) };
    shapes.set_output(0, Shape::new(&a[..a.len() - 1]))
}

pub(super) fn values_and_vectors(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(a) = square(shapes, 0, "A")? else { return Ok(()) };
    values(shapes)?;
    shapes.set_output(1, a)
}

fn bind_general(_: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let n = order(signature);
    let epsilon = if signature.inputs[0].dtype == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
    Ok(kernel_fn(signature, move |call| {
        let a = floats(call.par, &call.inputs[0])?;
        // Without an output for vectors there is no room for them, and none are computed.
        let room = if call.outputs.len() > 1 { a.len() } else { 0 };
        let [mut vectors, mut values] = [room, a.len() / n.max(1)].map(|n| Scratch::<f64>::new(call.par, n));
        linalg::general_eigen(call.par, n, epsilon, &a, &mut vectors, &mut values).map_err(matrix_error)?;
        store_floats(&values, &mut call.outputs[0])?;
        call.outputs.get_mut(1).map_or(Ok(()), |out| store_floats(&vectors, out))
    }))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn eigenvectors_are_columns() {
        let out = OpTest::new("_npi_eig").f32([2, 2], &[1.0, 0.0, 2.0, 3.0]).run_all();
        assert_close(&f32s(&out[0], [2]), &[3.0, 1.0]);
        let half = 0.5f32.sqrt();
        assert_close(&f32s(&out[1], [2, 2]), &[0.0, half, 1.0, -half]);
    }

    #[test]
    fn complex_eigenvalues_are_refused() {
        let error = OpTest::new("_npi_eigvals").f32([2, 2], &[0.0, -1.0, 1.0, 0.0]).error();
        assert!(error.message.contains("complex eigenvalues"), "{}", error.message);
    }

    #[test]
    fn imaginary_parts_that_are_rounding_count_as_0() {
        // A product of a column and a row, rounded to float32: MXNet takes many such matrices, too.
        let a: Vec<f32> = (0..49).map(|k| (k / 7 + 1) as f32 / 3.0 * ((k % 7 + 2) as f32 / 7.0)).collect();
        let mut values = f32s(&OpTest::new("_npi_eigvals").f32([7, 7], &a).run(), [7]);
        values.sort_by(|x, y| y.total_cmp(x));
        assert_close(&values[..1], &[(0..7).map(|i| a[i * 8]).sum()]);
        assert!(values[1..].iter().all(|v| v.abs() < 1e-5), "{values:?}");
    }
}
