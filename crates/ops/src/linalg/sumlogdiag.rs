//! `_linalg_sumlogdiag`: sums of the logarithms of diagonals.

use super::diagonal::last;
use super::{form, square_matrices};
use crate::prelude::*;
use mxrt_kernels::par::{chunk_rows, par_chunks_mut};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_linalg_sumlogdiag",
    aliases: &["linalg_sumlogdiag"],
    doc: "The sum of the logarithms of the diagonal of square matrices; of a single matrix as \
          an array of shape (1,).",
    inputs: Inputs::Fixed(&["A"]),
    infer_shape: |shapes| {
        let Some((mut dims, _)) = square_matrices(shapes, 0, "A")? else { return Ok(()) };
        if dims.is_empty() {
            dims.push(Some(1));
        }
        shapes.set_output(0, PartialShape::from_dims(dims))
    },
    bind: bind_sum,
    form: |_, signature| form(MatrixForm::LogSums { order: last(&signature.inputs[0]) }, signature),
    ignores_unknown_attrs: true,
    ..OpDef::BASE
}];

fn bind_sum(_: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let order = signature.inputs[0].shape.last().copied().unwrap_or(0);
    dispatch!(signature.inputs[0].dtype, wide, T => Ok(kernel_fn(signature, move |call| {
        let a = elements::<T>(&call.inputs[0])?;
        let band = chunk_rows::<T>(order);
        par_chunks_mut(call.par, elements_mut(&mut call.outputs[0])?, band, |chunk, out| {
            for (i, out) in out.iter_mut().enumerate() {
                let matrix = chunk * band + i;
                let diagonal = (0..order).map(|j| a[(matrix * order + j) * order + j]);
                *out = T::from_f64(diagonal.map(|v| v.to_f64().ln()).sum());
            }
        });
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn logarithms_of_a_diagonal_are_summed() {
        let y = OpTest::new("linalg_sumlogdiag").f32([2, 2], &[2.0, 9.0, 9.0, 4.0]).run();
        assert_close(&f32s(&y, [1]), &[8f32.ln()]);
        assert!(f32s(&OpTest::new("linalg_sumlogdiag").f32([1, 1, 1], &[-1.0]).run(), [1])[0].is_nan());
    }
}
