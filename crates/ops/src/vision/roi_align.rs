//! `_contrib_ROIAlign`: means of samples in the bins of regions of interest.

use super::image_dims;
use super::roi::{DATA_AND_ROIS, POOLED, SCALE, pooled_size, region_shapes, regions};
use crate::prelude::*;
use mxrt_kernels::vision::roi::RoiAlign;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_ROIAlign",
    doc: "Means of bilinear samples in the bins of regions of interest.\n\n\
        data is (batch, channels, height, width), rois (n, 5): image, left, top, right, \
        bottom. The output is (n, channels, rows, columns). A region of a negative image gives \
        zeros. He et al., \"Mask R-CNN\" (2017).",
    attrs: &[
        POOLED,
        SCALE,
        AttrDef::new(
            "sample_ratio",
            AttrKind::Int,
            "-1",
            "Samples along an axis of a bin; as many as pixels if not positive.",
        ),
        AttrDef::new("position_sensitive", AttrKind::Bool, "False", "Whether every bin reads channels of its own."),
        AttrDef::new("aligned", AttrKind::Bool, "False", "Whether coordinates are shifted by half a pixel."),
    ],
    infer_shape: align_shapes,
    bind: bind_align,
    form: |attrs, signature| for_floats(signature.inputs[0].dtype, KernelForm::RoiAlign(align(attrs, signature)?)),
    ..DATA_AND_ROIS
}];

fn align_shapes(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let pooled = pooled_size(shapes.attrs)?;
    let Some([_, channels, ..]) = image_dims(shapes, 0, "data")? else { return Ok(()) };
    if !shapes.attrs.bool("position_sensitive") {
        return region_shapes(shapes, channels, pooled);
    }
    let bins = checked_product(&pooled)?;
    if channels.is_some_and(|c| !c.is_multiple_of(bins)) {
        return Err(shape_error(format!(
            "data has shape {}, but position_sensitive needs a multiple of the {bins} bins as \
             channels",
            shapes.inputs[0]
        )));
    }
    region_shapes(shapes, channels.map(|c| c / bins), pooled)
}

fn align(attrs: &Attrs, signature: &Signature<'_>) -> Result<RoiAlign, OpError> {
    let samples = usize::try_from(attrs.int("sample_ratio")).ok().filter(|n| *n > 0);
    if samples.is_some_and(|n| n > 4096) {
        return Err(value_error("sample_ratio must be at most 4096"));
    }
    Ok(RoiAlign {
        regions: regions(signature, attrs.float("spatial_scale"))?,
        samples,
        position_sensitive: attrs.bool("position_sensitive"),
        aligned: attrs.bool("aligned"),
    })
}

fn bind_align(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let align = align(attrs, signature)?;
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let (x, rois) = (elements::<T>(&call.inputs[0])?, elements::<T>(&call.inputs[1])?);
        align.run(call.par, x, rois, elements_mut(&mut call.outputs[0])?).map_err(kernel_error)
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn what_does_not_fit_is_named() {
        let error = |attrs: &[(&str, &str)], rois: [usize; 2]| {
            let test = OpTest::new("_contrib_ROIAlign").attrs(attrs);
            let zeros = vec![9.0; rois[0] * rois[1]];
            test.attr("spatial_scale", "1").f32([1, 1, 4, 4], &[0.0; 16]).f32(rois, &zeros).error().message.clone()
        };
        let pooled = ("pooled_size", "(2, 2)");
        assert!(error(&[("pooled_size", "(2, 0)")], [1, 5]).contains("positive"));
        assert!(error(&[pooled], [1, 4]).starts_with("rois"));
        assert!(error(&[pooled], [1, 5]).contains("index 9"));
        assert!(error(&[pooled, ("position_sensitive", "True")], [1, 5]).contains("4 bins"));
    }

    #[test]
    fn bins_of_the_whole_image_have_means_of_samples() {
        let x: Vec<f32> = (0..16).map(|v| v as f32).collect();
        let test = OpTest::new("_contrib_ROIAlign").attr("pooled_size", "(2, 2)").attr("spatial_scale", "1");
        let y = test.f32([1, 1, 4, 4], &x).f32([1, 5], &[0.0, 0.0, 0.0, 3.0, 3.0]).run();
        assert_close(&f32s(&y, [1, 1, 2, 2]), &[3.75, 5.25, 9.75, 11.25]);
    }
}
