//! `_linalg_det`: determinants of square matrices.

use super::{cubic, form, order, square_matrices};
use crate::prelude::*;
use mxrt_kernels::linalg;
use mxrt_tensor::{TensorRef, is_np_shape};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_linalg_det",
    aliases: &["_npi_det", "linalg_det"],
    doc: "The determinant of square matrices; of a single matrix as an array of shape (1,), with np shapes as a scalar.",
    inputs: Inputs::Fixed(&["A"]),
    outputs: Outputs::Named(|_| &["output0"]),
    hidden_outputs: |_| 2,
    infer_shape,
    bind: |_, signature| {
        dispatch!(signature.inputs[0].dtype, wide, T => Ok(costed_kernel_fn("plain", cubic(signature), move |call| {
            let out = elements_mut::<T>(&mut call.outputs[0])?;
            let mut logarithm = Scratch::<T>::new(call.par, out.len());
            determinant(call.par, &call.inputs[0], out, &mut logarithm)?;
            out.iter_mut().zip(&logarithm).for_each(|(v, log)| *v *= T::exp(*log));
            Ok(())
        })))
    },
    form: |_, signature| form(MatrixForm::Determinants { order: order(signature), logarithms: false }, signature),
    ignores_unknown_attrs: true,
    ..OpDef::BASE
}];

pub(super) fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some((mut batch, n)) = square_matrices(shapes, 0, "A")? else { return Ok(()) };
    let mut input = batch.clone();
    input.extend([n, n]);
    shapes.set_input(0, "A", PartialShape::from_dims(input))?;
    if batch.is_empty() && !is_np_shape() {
        batch.push(Some(1));
    }
    for i in 0..shapes.outputs.len() {
        shapes.set_output(i, PartialShape::from_dims(batch.iter().copied()))?;
    }
    Ok(())
}

pub(super) fn determinant<T: mxrt_kernels::Float>(
    par: &dyn mxrt_kernels::Par,
    a: &TensorRef<'_>,
    sign: &mut [T],
    logarithm: &mut [T],
) -> Result<(), OpError> {
    linalg::determinant(par, a.shape.last().copied().unwrap_or(0), elements::<T>(a)?, sign, logarithm);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};
    use mxrt_tensor::{NpShapeScope, set_np_shape_scope};

    #[test]
    fn under_numpys_shapes_the_determinant_of_one_matrix_is_a_scalar() {
        set_np_shape_scope(NpShapeScope::Thread);
        let made = std::panic::catch_unwind(|| OpTest::new("_npi_det").f32([1, 1], &[2.0]).run().tensor.shape.to_vec());
        set_np_shape_scope(NpShapeScope::Off);
        assert_eq!(made.ok(), Some(vec![]));
    }

    #[test]
    fn determinants_of_two_matrices() {
        let a = [1.0, 2.0, 3.0, 4.0, 0.0, 1.0, 1.0, 0.0];
        assert_close(&f32s(&OpTest::new("linalg_det").f32([2, 2, 2], &a).run(), [2]), &[-2.0, -1.0]);
        assert_close(&f32s(&OpTest::new("linalg_det").f32([2, 2], &[1.0, 2.0, 2.0, 4.0]).run(), [1]), &[0.0]);
        assert!(OpTest::new("linalg_det").f32([2, 1], &[1.0, 2.0]).error().message.contains("square"));
    }
}
