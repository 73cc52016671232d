//! `_contrib_box_iou`: how far boxes overlap.

use super::boxes::{FORMATS, box_axes, format};
use crate::prelude::*;
use mxrt_kernels::vision::boxes::overlaps;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_box_iou",
    doc: "Intersection over union of every box of lhs with every box of rhs.\n\n\
        lhs is (..., 4), rhs (..., 4); the output has the leading axes of lhs, then those of \
        rhs.",
    inputs: Inputs::Fixed(&["lhs", "rhs"]),
    attrs: &[AttrDef::new(
        "format",
        FORMATS,
        "corner",
        "corner: left, top, right, bottom; center: x, y, width, height.",
    )],
    infer_shape: iou_shapes,
    infer_dtype: |dtypes| dtypes.uniform(&["lhs", "rhs"]),
    bind: bind_iou,
    form: |attrs, signature| for_floats(signature.inputs[0].dtype, KernelForm::BoxOverlaps(format(attrs, "format"))),
    ..OpDef::BASE
}];

fn iou_shapes(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let (lhs, rhs) = (box_axes(shapes, 0, "lhs")?, box_axes(shapes, 1, "rhs")?);
    let (Some(lhs), Some(rhs)) = (lhs, rhs) else { return Ok(()) };
    shapes.set_output(0, PartialShape::from_dims(lhs.into_iter().chain(rhs)))
}

fn bind_iou(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let format = format(attrs, "format");
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let (a, b) = (elements::<T>(&call.inputs[0])?, elements::<T>(&call.inputs[1])?);
        overlaps(call.par, format, a, b, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn boxes_overlap_in_all_pairs() {
        let a = [0.0, 0.0, 2.0, 2.0, 1.0, 1.0, 3.0, 3.0];
        let y = OpTest::new("_contrib_box_iou").f32([2, 4], &a).f32([1, 1, 4], &a[..4]).run();
        assert_close(&f32s(&y, [2, 1, 1]), &[1.0, 1.0 / 7.0]);
        let error = OpTest::new("_contrib_box_iou").f32([2, 4], &a).f32([1, 2], &a[..2]).error();
        assert!(error.message.contains("rhs has shape (1, 2)"));
    }
}
