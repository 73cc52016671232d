//! `_linalg_det`, `_linalg_slogdet`, `_linalg_inverse`.

use super::{cost_ns, form, matrix_error, square_like_input, square_matrices};
use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::linalg;
use mxrt_tensor::{PartialShape, TensorRef, is_np_shape};

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_linalg_det",
        aliases: &["_npi_det", "linalg_det"],
        doc: "The determinant of square matrices; of a single matrix as an array of shape (1,), with np shapes as a scalar.",
        inputs: Inputs::Fixed(&["A"]),
        outputs: Outputs::Named(|_| &["output0"]),
        hidden_outputs: |_| 2,
        infer_shape,
        bind: |_, signature| {
            dispatch!(signature.inputs[0].dtype, wide, T => Ok(costed_kernel_fn("plain", cost(signature), move |call| {
                let out = elements_mut::<T>(&mut call.outputs[0])?;
                let mut logarithm = Scratch::<T>::new(call.par, out.len());
                determinant(call.par, &call.inputs[0], out, &mut logarithm)?;
                out.iter_mut().zip(&logarithm).for_each(|(v, log)| *v *= T::exp(*log));
                Ok(())
            })))
        },
        form: |_, signature| form(MatrixForm::Determinants { order: rows(signature), logarithms: false }, signature),
        ignores_unknown_attrs: true,
        ..OpDef::BASE
    },
    OpDef {
        name: "_linalg_slogdet",
        aliases: &["_npi_slogdet", "linalg_slogdet"],
        doc: "Sign of the determinant of square matrices, and the logarithm of its absolute value; \
              of a single matrix as arrays of shape (1,), with np shapes as scalars.",
        inputs: Inputs::Fixed(&["A"]),
        outputs: Outputs::Count(|_| 2),
        hidden_outputs: |_| 2,
        infer_shape,
        bind: |_, signature| {
            dispatch!(signature.inputs[0].dtype, wide, T => Ok(costed_kernel_fn("plain", cost(signature), move |call| {
                let ([a], [sign, logarithm]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
                determinant::<T>(call.par, a, elements_mut(sign)?, elements_mut(logarithm)?)
            })))
        },
        form: |_, signature| form(MatrixForm::Determinants { order: rows(signature), logarithms: true }, signature),
        ignores_unknown_attrs: true,
        ..OpDef::BASE
    },
    OpDef {
        name: "_linalg_inverse",
        aliases: &["_npi_inv", "linalg_inverse"],
        doc: "The inverse of square matrices. A singular matrix is an error.",
        inputs: Inputs::Fixed(&["A"]),
        infer_shape: square_like_input,
        bind: |_, signature| {
            let n = rows(signature);
            dispatch!(signature.inputs[0].dtype, wide, T => Ok(costed_kernel_fn("plain", cost(signature), move |call| {
                let out = elements_mut(&mut call.outputs[0])?;
                linalg::inverse::<T>(call.par, n, elements(&call.inputs[0])?, out).map_err(matrix_error)
            })))
        },
        form: |_, signature| form(MatrixForm::Inverses { order: rows(signature) }, signature),
        ignores_unknown_attrs: true,
        ..OpDef::BASE
    },
];

fn order(shape: &[usize]) -> usize {
    shape.last().copied().unwrap_or(0)
}

/// Rows of the matrices of input 0.
fn rows(signature: &Signature<'_>) -> usize {
    order(&signature.inputs[0].shape)
}

fn cost(signature: &Signature<'_>) -> u64 {
    cost_ns(signature.inputs[0].shape.size().saturating_mul(rows(signature)))
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
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

fn determinant<T: mxrt_kernels::Float>(
    par: &dyn mxrt_kernels::Par,
    a: &TensorRef<'_>,
    sign: &mut [T],
    logarithm: &mut [T],
) -> Result<(), OpError> {
    linalg::determinant(par, order(a.shape), elements::<T>(a)?, sign, logarithm);
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
        let out = OpTest::new("linalg_slogdet").f32([2, 2, 2], &a).run_all();
        assert_close(&f32s(&out[0], [2]), &[-1.0, -1.0]);
        assert_close(&f32s(&out[1], [2]), &[2f32.ln(), 0.0]);
        assert_close(&f32s(&OpTest::new("linalg_det").f32([2, 2], &[1.0, 2.0, 2.0, 4.0]).run(), [1]), &[0.0]);
    }

    #[test]
    fn an_inverse_by_hand() {
        let y = OpTest::new("linalg_inverse").f32([2, 2], &[1.0, 2.0, 3.0, 4.0]).run();
        assert_close(&f32s(&y, [2, 2]), &[-2.0, 1.0, 1.5, -0.5]);
        let error = OpTest::new("linalg_inverse").f32([2, 2], &[1.0, 2.0, 2.0, 4.0]).error();
        assert!(error.message.contains("singular"), "{}", error.message);
        assert!(OpTest::new("linalg_det").f32([2, 1], &[1.0, 2.0]).error().message.contains("square"));
    }
}
