//! `_linalg_extractdiag`: diagonals of matrices.

use super::diagonal::{OFFSET, diagonal_len, diagonal_steps, last, start};
use super::square_matrices;
use crate::prelude::*;
use mxrt_kernels::par::par_chunks_mut;
use mxrt_kernels::strides::contiguous;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
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
}];

/// The form of diagonals of matrices.
fn extract_form(offset: i64, signature: &Signature<'_>) -> MaybeForm {
    let (output, count) = (&signature.outputs[0], last(&signature.outputs[0]));
    let shape = vec![output.shape.size().checked_div(count).unwrap_or(0), count];
    let into = (0, contiguous(&shape));
    let from = diagonal_steps(offset, last(&signature.inputs[0]));
    let moves = vec![Move { input: 0, output: 0, shape, from, into }];
    for_wide(output.dtype, KernelForm::Move { fill: None, moves })
}

fn bind_extract(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
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

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn diagonals_are_taken() {
        let take = |offset: &str| OpTest::new("linalg_extractdiag").attr("offset", offset);
        let below = take("-1").f32([1, 3, 3], &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 2.0, 0.0]).run();
        assert_close(&f32s(&below, [1, 2]), &[1.0, 2.0]);
        let above = take("1").f32([1, 3, 3], &[0.0, 1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0]).run();
        assert_close(&f32s(&above, [1, 2]), &[1.0, 2.0]);
        let far = take("2").f32([2, 2], &[1.0; 4]).error();
        assert!(far.message.contains("offset=2 is outside"), "{}", far.message);
    }
}
