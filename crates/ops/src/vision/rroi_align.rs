//! `_contrib_RROIAlign`: pooling of regions that are turned.

use super::image_dims;
use super::roi::{POOLED, SCALE, pooled_size, regions};
use crate::prelude::*;
use mxrt_kernels::vision::rotated_roi::RotatedRoiAlign;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_RROIAlign",
    doc: "Means of bilinear samples in the bins of regions of interest that are turned.\n\n\
    data is (batch, channels, height, width), rois (n, 6): image, x and y of the centre, \
    width, height, degrees. The output is (n, channels, rows, columns). A region of a \
    negative image gives zeros.",
    inputs: Inputs::Fixed(&["data", "rois"]),
    attrs: &[
        POOLED,
        SCALE,
        AttrDef::new(
            "sampling_ratio",
            AttrKind::Int,
            "-1",
            "Samples along an axis of a bin; as many as pixels if not positive.",
        ),
    ],
    infer_shape: |shapes| {
        let [rows, columns] = pooled_size(shapes.attrs)?;
        let Some([_, channels, ..]) = image_dims(shapes, 0, "data")? else { return Ok(()) };
        shapes.set_input(1, "rois", PartialShape::from_dims([None, Some(6)]))?;
        let count = shapes.inputs[1].dim(0);
        shapes.set_output(0, PartialShape::from_dims([count, channels, Some(rows), Some(columns)]))
    },
    infer_dtype: |dtypes| dtypes.uniform(&["data", "rois"]),
    bind: bind_rotated,
    form: |attrs, signature| for_floats(signature.inputs[0].dtype, KernelForm::RoiTurned(rotated(attrs, signature)?)),
    ..OpDef::BASE
}];

fn rotated(attrs: &Attrs, signature: &Signature<'_>) -> Result<RotatedRoiAlign, OpError> {
    let samples = usize::try_from(attrs.int("sampling_ratio")).ok().filter(|n| *n > 0);
    if samples.is_some_and(|n| n > 4096) {
        return Err(value_error("sampling_ratio must be at most 4096"));
    }
    Ok(RotatedRoiAlign { regions: regions(signature, attrs.float("spatial_scale"))?, samples })
}

fn bind_rotated(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let align = rotated(attrs, signature)?;
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let (x, rois) = (elements::<T>(&call.inputs[0])?, elements::<T>(&call.inputs[1])?);
        align.run(call.par, x, rois, elements_mut(&mut call.outputs[0])?).map_err(kernel_error)
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn a_quarter_turn_reads_columns_as_rows() {
        let x: Vec<f32> = (0..16).map(|v| v as f32).collect();
        let of = |degrees: f32| {
            let test = OpTest::new("_contrib_RROIAlign").attr("pooled_size", "(2, 2)").attr("spatial_scale", "1");
            let test = test.attr("sampling_ratio", "1").f32([1, 1, 4, 4], &x);
            f32s(&test.f32([1, 6], &[0.0, 1.5, 1.5, 2.0, 2.0, degrees]).run(), [1, 1, 2, 2])
        };
        // Samples lie half a pixel off the centre (1.5, 1.5).
        assert_close(&of(0.0), &[5.0, 6.0, 9.0, 10.0]);
        assert_close(&of(90.0), &[9.0, 5.0, 10.0, 6.0]);
        assert_close(&of(180.0), &[10.0, 9.0, 6.0, 5.0]);
    }
}
