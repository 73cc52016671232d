//! `_contrib_PSROIPooling`: means in the bins of regions of interest, each bin of channels of its
//! own.

use super::image_dims;
use super::roi::{DATA_AND_ROIS, SCALE, region_shapes, regions};
use crate::prelude::*;
use mxrt_kernels::vision::roi::PositionSensitivePool;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_PSROIPooling",
    doc: "Means in the bins of regions of interest, where every bin reads channels of its \
        own.\n\n\
        data is (batch, output_dim * group_size ** 2, height, width), rois (n, 5): image, \
        left, top, right, bottom. The output is (n, output_dim, pooled_size, pooled_size). Dai \
        et al., \"R-FCN\" (2016).",
    attrs: &[
        SCALE,
        AttrDef::required("output_dim", AttrKind::IntFrom(1), "Channels of the output."),
        AttrDef::required("pooled_size", AttrKind::IntFrom(1), "Rows and columns of the output."),
        AttrDef::new(
            "group_size",
            AttrKind::IntFrom(0),
            "0",
            "Rows and columns of groups of channels; pooled_size if 0.",
        ),
    ],
    infer_shape: position_sensitive_shapes,
    bind: bind_position_sensitive,
    form: |attrs, signature| {
        for_floats(signature.inputs[0].dtype, KernelForm::RoiMeans(position_sensitive(attrs, signature)?))
    },
    ..DATA_AND_ROIS
}];

/// Rows and columns of groups of channels, and channels of the output.
fn groups(attrs: &Attrs) -> (usize, usize) {
    let pooled = attrs.count("pooled_size");
    (if attrs.count("group_size") == 0 { pooled } else { attrs.count("group_size") }, attrs.count("output_dim"))
}

fn position_sensitive_shapes(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let ((groups, channels), pooled) = (groups(shapes.attrs), shapes.attrs.count("pooled_size"));
    let Some([_, have, ..]) = image_dims(shapes, 0, "data")? else { return Ok(()) };
    let need = checked_product(&[channels, groups, groups])?;
    if have.is_some_and(|have| have != need) {
        return Err(shape_error(format!(
            "data has shape {}, but output_dim={channels} and group_size={groups} need {need} \
             channels",
            shapes.inputs[0]
        )));
    }
    region_shapes(shapes, Some(channels), [pooled; 2])
}

fn position_sensitive(attrs: &Attrs, signature: &Signature<'_>) -> Result<PositionSensitivePool, OpError> {
    let (groups, channels) = groups(attrs);
    Ok(PositionSensitivePool { regions: regions(signature, attrs.float("spatial_scale"))?, channels, groups })
}

fn bind_position_sensitive(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let pool = position_sensitive(attrs, signature)?;
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let (x, rois) = (elements::<T>(&call.inputs[0])?, elements::<T>(&call.inputs[1])?);
        pool.run(call.par, x, rois, elements_mut(&mut call.outputs[0])?).map_err(kernel_error)
    })))
}
