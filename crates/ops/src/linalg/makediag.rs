//! `_linalg_makediag`: matrices with a diagonal.

use super::diagonal::{OFFSET, diagonal_steps, last, start};
use crate::prelude::*;
use mxrt_kernels::par::par_chunks_mut;
use mxrt_kernels::strides::contiguous;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_linalg_makediag",
    aliases: &["linalg_makediag"],
    doc: "Matrices with the last axis of A as a diagonal, and zeros around it.",
    inputs: Inputs::Fixed(&["A"]),
    attrs: OFFSET,
    infer_shape: |shapes| {
        let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
        let Some(last) = dims.pop() else { return Err(shape_error("A must have an axis at least")) };
        let far = shapes.attrs.int("offset").unsigned_abs() as usize;
        let order = last.map(|n| n.checked_add(far).ok_or_else(|| shape_error("offset is too large"))).transpose()?;
        dims.extend([order, order]);
        shapes.set_output(0, PartialShape::from_dims(dims))
    },
    bind: bind_make,
    form: |attrs, signature| make_form(attrs.int("offset"), signature),
    ..OpDef::BASE
}];

/// The form of matrices made of diagonals.
fn make_form(offset: i64, signature: &Signature<'_>) -> MaybeForm {
    let (input, count) = (&signature.inputs[0], last(&signature.inputs[0]));
    let shape = vec![input.shape.size().checked_div(count).unwrap_or(0), count];
    let from = (0, contiguous(&shape));
    let into = diagonal_steps(offset, last(&signature.outputs[0]));
    let moves = vec![Move { input: 0, output: 0, shape, from, into }];
    for_wide(input.dtype, KernelForm::Move { fill: Some(0.0), moves })
}

fn bind_make(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
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

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn diagonals_are_made() {
        let make = |offset: &str| OpTest::new("linalg_makediag").attr("offset", offset).f32([1, 2], &[1.0, 2.0]).run();
        assert_close(&f32s(&make("0"), [1, 2, 2]), &[1.0, 0.0, 0.0, 2.0]);
        assert_close(&f32s(&make("-1"), [1, 3, 3]), &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 2.0, 0.0]);
        assert_close(&f32s(&make("1"), [1, 3, 3]), &[0.0, 1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0]);
    }
}
