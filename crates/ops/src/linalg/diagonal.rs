//! `_linalg_makediag`, `_linalg_extractdiag`, `_linalg_sumlogdiag`: diagonals of matrices.

use super::{form, square_matrices};
use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::Element;
use mxrt_kernels::par::{chunk_rows, par_chunks_mut};
use mxrt_kernels::strides::contiguous;
use mxrt_tensor::{PartialShape, TensorType};

const OFFSET: &[AttrDef] =
    &[AttrDef::new("offset", AttrKind::Int, "0", "Which diagonal: above the main one if positive, below if negative.")];

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_linalg_makediag",
        aliases: &["linalg_makediag"],
        doc: "Matrices with the last axis of A as a diagonal, and zeros around it.",
        inputs: Inputs::Fixed(&["A"]),
        attrs: OFFSET,
        infer_shape: |shapes| {
            let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
            let Some(last) = dims.pop() else { return Err(shape_error("A must have an axis at least")) };
            let far = shapes.attrs.int("offset").unsigned_abs() as usize;
            let order =
                last.map(|n| n.checked_add(far).ok_or_else(|| shape_error("offset is too large"))).transpose()?;
            dims.extend([order, order]);
            shapes.set_output(0, PartialShape::from_dims(dims))
        },
        bind: bind_make,
        form: |attrs, signature| make_form(attrs.int("offset"), signature),
        ..OpDef::BASE
    },
    OpDef {
        name: "_linalg_extractdiag",
        aliases: &["linalg_extractdiag"],
        doc: "A diagonal of square matrices.",
        inputs: Inputs::Fixed(&["A"]),
        attrs: OFFSET,
        infer_shape: |shapes| {
            let Some((mut dims, order)) = square_matrices(shapes, 0, "A")? else { return Ok(()) };
            let offset = shapes.attrs.int("offset");
            dims.push(order.map(|n| diagonal_len(n, offset)).transpose()?);
            shapes.set_output(0, PartialShape::from_dims(dims))
        },
        bind: bind_extract,
        form: |attrs, signature| extract_form(attrs.int("offset"), signature),
        ..OpDef::BASE
    },
    OpDef {
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
    },
];

/// Elements of a diagonal of a square matrix.
pub(super) fn diagonal_len(order: usize, offset: i64) -> Result<usize, OpError> {
    usize::try_from(offset.unsigned_abs())
        .ok()
        .and_then(|far| order.checked_sub(far))
        .filter(|n| *n > 0)
        .ok_or_else(|| value_error(format!("offset={offset} is outside of matrices with {order} rows and columns")))
}

/// Row and column where a diagonal begins.
fn start(offset: i64) -> [usize; 2] {
    let far = offset.unsigned_abs() as usize;
    if offset < 0 { [far, 0] } else { [0, far] }
}

/// The extent of the last axis.
fn last(tensor: &TensorType) -> usize {
    tensor.shape.last().copied().unwrap_or(0)
}

/// The first element of a diagonal of matrices with `order` rows, and the steps between diagonals
/// and between their elements.
fn diagonal_steps(offset: i64, order: usize) -> (usize, Vec<isize>) {
    let [row, column] = start(offset);
    (row * order + column, vec![(order * order) as isize, order as isize + 1])
}

/// The form of matrices made of diagonals.
fn make_form(offset: i64, signature: &Signature<'_>) -> MaybeForm {
    let (input, count) = (&signature.inputs[0], last(&signature.inputs[0]));
    let shape = vec![input.shape.size().checked_div(count).unwrap_or(0), count];
    let from = (0, contiguous(&shape));
    let into = diagonal_steps(offset, last(&signature.outputs[0]));
    let moves = vec![Move { input: 0, output: 0, shape, from, into }];
    for_wide(input.dtype, KernelForm::Move { fill: Some(0.0), moves })
}

/// The form of diagonals of matrices.
fn extract_form(offset: i64, signature: &Signature<'_>) -> MaybeForm {
    let (output, count) = (&signature.outputs[0], last(&signature.outputs[0]));
    let shape = vec![output.shape.size().checked_div(count).unwrap_or(0), count];
    let into = (0, contiguous(&shape));
    let from = diagonal_steps(offset, last(&signature.inputs[0]));
    let moves = vec![Move { input: 0, output: 0, shape, from, into }];
    for_wide(output.dtype, KernelForm::Move { fill: None, moves })
}

fn bind_make(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let [row, column] = start(attrs.int("offset"));
    let count = signature.inputs[0].shape.last().copied().unwrap_or(0);
    let order = signature.outputs[0].shape.last().copied().unwrap_or(0);
    dispatch!(signature.inputs[0].dtype, wide, T => Ok(kernel_fn(signature, move |call| {
        let a = elements::<T>(&call.inputs[0])?;
        par_chunks_mut(call.par, elements_mut(&mut call.outputs[0])?, order * order, |matrix, out| {
            out.fill(T::ZERO);
            for i in 0..count {
                out[(row + i) * order + column + i] = a[matrix * count + i];
            }
        });
        Ok(())
    })))
}

fn bind_extract(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let [row, column] = start(attrs.int("offset"));
    let order = signature.inputs[0].shape.last().copied().unwrap_or(0);
    let count = signature.outputs[0].shape.last().copied().unwrap_or(0);
    dispatch!(signature.inputs[0].dtype, wide, T => Ok(kernel_fn(signature, move |call| {
        let a = elements::<T>(&call.inputs[0])?;
        par_chunks_mut(call.par, elements_mut(&mut call.outputs[0])?, count, |matrix, out| {
            for (i, out) in out.iter_mut().enumerate() {
                *out = a[(matrix * order + row + i) * order + column + i];
            }
        });
        Ok(())
    })))
}

fn bind_sum(_: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
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
    fn diagonals_are_made_and_taken() {
        let make = |offset: &str| OpTest::new("linalg_makediag").attr("offset", offset).f32([1, 2], &[1.0, 2.0]).run();
        assert_close(&f32s(&make("0"), [1, 2, 2]), &[1.0, 0.0, 0.0, 2.0]);
        let below = make("-1");
        assert_close(&f32s(&below, [1, 3, 3]), &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 2.0, 0.0]);
        let taken = OpTest::new("linalg_extractdiag").attr("offset", "-1").array(below).run();
        assert_close(&f32s(&taken, [1, 2]), &[1.0, 2.0]);
        let above = OpTest::new("linalg_extractdiag").attr("offset", "1").array(make("1")).run();
        assert_close(&f32s(&above, [1, 2]), &[1.0, 2.0]);
        let far = OpTest::new("linalg_extractdiag").attr("offset", "2").f32([2, 2], &[1.0; 4]).error();
        assert!(far.message.contains("offset=2 is outside"), "{}", far.message);
    }

    #[test]
    fn logarithms_of_a_diagonal_are_summed() {
        let y = OpTest::new("linalg_sumlogdiag").f32([2, 2], &[2.0, 9.0, 9.0, 4.0]).run();
        assert_close(&f32s(&y, [1]), &[8f32.ln()]);
        assert!(f32s(&OpTest::new("linalg_sumlogdiag").f32([1, 1, 1], &[-1.0]).run(), [1])[0].is_nan());
    }
}
