//! `ROIPooling`: largest elements in the bins of regions of interest.

use super::image_dims;
use super::roi::{DATA_AND_ROIS, POOLED, SCALE, pooled_size, region_shapes, regions};
use crate::prelude::*;
use mxrt_kernels::vision::roi::roi_max_pool;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "ROIPooling",
    aliases: &["_npx_roi_pooling"],
    doc: "The largest pixel in the bins of regions of interest.\n\n\
        data is (batch, channels, height, width), rois (n, 5): image, left, top, right, \
        bottom. The output is (n, channels, rows, columns); bins without pixels, and regions \
        of an image that is not there, give zeros. Girshick, \"Fast R-CNN\" (2015).",
    attrs: &[POOLED, SCALE],
    hidden_outputs: |_| 1,
    infer_shape: |shapes| {
        let pooled = pooled_size(shapes.attrs)?;
        let Some([_, channels, ..]) = image_dims(shapes, 0, "data")? else { return Ok(()) };
        region_shapes(shapes, channels, pooled)
    },
    bind: bind_max,
    form: |attrs, signature| {
        let regions = regions(signature, attrs.float("spatial_scale"))?;
        for_floats(signature.inputs[0].dtype, KernelForm::RoiMaxima(regions))
    },
    ..DATA_AND_ROIS
}];

fn bind_max(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let regions = regions(signature, attrs.float("spatial_scale"))?;
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let (x, rois) = (elements::<T>(&call.inputs[0])?, elements::<T>(&call.inputs[1])?);
        roi_max_pool(call.par, regions, x, rois, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn bins_of_the_whole_image_have_their_largest_elements() {
        let x: Vec<f32> = (0..16).map(|v| v as f32).collect();
        let test = OpTest::new("ROIPooling").attr("pooled_size", "(2, 2)").attr("spatial_scale", "1");
        let y = test.f32([1, 1, 4, 4], &x).f32([1, 5], &[0.0, 0.0, 0.0, 3.0, 3.0]).run();
        assert_close(&f32s(&y, [1, 1, 2, 2]), &[5.0, 7.0, 13.0, 15.0]);
    }
}
