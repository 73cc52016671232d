//! `_npi_eigh`, `_npi_eigvalsh`: eigenvalues and eigenvectors of symmetric matrices.

use super::eig::{GENERAL, values, values_and_vectors};
use super::linalg::{matrix_error, order};
use crate::prelude::*;
use mxrt_kernels::linalg;

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_npi_eigh",
        doc: "Eigenvalues of symmetric matrices in ascending order, and their eigenvectors as columns.",
        outputs: Outputs::Count(|_| 2),
        infer_shape: values_and_vectors,
        ..SYMMETRIC
    },
    OpDef {
        name: "_npi_eigvalsh",
        doc: "Eigenvalues of symmetric matrices in ascending order.",
        infer_shape: values,
        ..SYMMETRIC
    },
];

const UPLO: AttrDef = AttrDef::new("UPLO", AttrKind::Enum(&["L", "U"]), "L", "The triangle that is read.");

const SYMMETRIC: OpDef = OpDef { attrs: &[UPLO], bind: bind_symmetric, ..GENERAL };

fn bind_symmetric(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (n, upper) = (order(signature), attrs.str("UPLO") == "U");
    Ok(kernel_fn(signature, move |call| {
        let mut a = floats(call.par, &call.inputs[0])?;
        if upper {
            a.chunks_mut((n * n).max(1)).for_each(|a| turn_over(a, n));
        }
        // Without an output for vectors there is no room for them, and none are computed.
        let room = if call.outputs.len() > 1 { a.len() } else { 0 };
        let [mut vectors, mut values] = [room, a.len() / n.max(1)].map(|n| Scratch::<f64>::new(call.par, n));
        linalg::symmetric_eigen(call.par, n, &a, &mut vectors, &mut values).map_err(matrix_error)?;
        store_floats(&values, &mut call.outputs[0])?;
        if let Some(out) = call.outputs.get_mut(1) {
            vectors.chunks_mut((n * n).max(1)).for_each(|vectors| turn_over(vectors, n));
            store_floats(&vectors, out)?;
        }
        Ok(())
    }))
}

/// A square matrix transposed in its place.
fn turn_over(a: &mut [f64], n: usize) {
    for i in 0..n {
        (0..i).for_each(|j| a.swap(i * n + j, j * n + i));
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn one_triangle_is_read() {
        let out = OpTest::new("_npi_eigh").attr("UPLO", "U").f32([2, 2], &[2.0, 1.0, 9.0, 2.0]).run_all();
        assert_close(&f32s(&out[0], [2]), &[1.0, 3.0]);
    }
}
