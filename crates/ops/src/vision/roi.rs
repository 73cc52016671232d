//! `_contrib_ROIAlign`, `ROIPooling`, `_contrib_PSROIPooling`: pooling of regions of interest.

use super::image_dims;
use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::vision::roi::{PositionSensitivePool, Regions, RoiAlign, roi_max_pool};
use mxrt_tensor::PartialShape;

pub(super) const SCALE: AttrDef = AttrDef::required(
    "spatial_scale",
    AttrKind::FloatIn(0.0, 1.0),
    "Pixels of data for a unit of the coordinates of rois.",
);
pub(super) const POOLED: AttrDef = AttrDef::required("pooled_size", AttrKind::Shape, "Rows and columns of the output.");

const DATA_AND_ROIS: OpDef = OpDef {
    inputs: Inputs::Fixed(&["data", "rois"]),
    infer_dtype: |dtypes| dtypes.uniform(&["data", "rois"]),
    ..OpDef::BASE
};

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
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
    },
    OpDef {
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
    },
    OpDef {
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
    },
];

pub(super) fn pooled_size(attrs: &Attrs) -> Result<[usize; 2], OpError> {
    match extents("pooled_size", attrs.ints("pooled_size"))?[..] {
        [rows, columns] if rows > 0 && columns > 0 => Ok([rows, columns]),
        _ => Err(value_error("pooled_size must be two positive numbers: (rows, columns)")),
    }
}

/// The regions, and the output for this number of channels.
fn region_shapes(shapes: &mut Shapes<'_>, channels: Option<usize>, [rows, columns]: [usize; 2]) -> Result<(), OpError> {
    shapes.set_input(1, "rois", PartialShape::from_dims([None, Some(5)]))?;
    let count = shapes.inputs[1].dim(0);
    shapes.set_output(0, PartialShape::from_dims([count, channels, Some(rows), Some(columns)]))
}

pub(super) fn regions(signature: &Signature<'_>, scale: f64) -> Result<Regions, OpError> {
    let ([data, ..], [out]) = (signature.inputs, signature.outputs) else { return Err(wrong_arity()) };
    let (data, out) = (&data.shape, &out.shape);
    if out.size() > 0 && data.size() == 0 {
        return Err(shape_error(format!("data has shape {data}: there are no pixels to pool")));
    }
    Ok(Regions { data: [data[0], data[1], data[2], data[3]], pooled: [out[2], out[3]], scale })
}

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

fn bind_align(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let align = align(attrs, signature)?;
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let (x, rois) = (elements::<T>(&call.inputs[0])?, elements::<T>(&call.inputs[1])?);
        align.run(call.par, x, rois, elements_mut(&mut call.outputs[0])?).map_err(kernel_error)
    })))
}

fn bind_max(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let regions = regions(signature, attrs.float("spatial_scale"))?;
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let (x, rois) = (elements::<T>(&call.inputs[0])?, elements::<T>(&call.inputs[1])?);
        roi_max_pool(call.par, regions, x, rois, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}

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

fn bind_position_sensitive(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let pool = position_sensitive(attrs, signature)?;
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let (x, rois) = (elements::<T>(&call.inputs[0])?, elements::<T>(&call.inputs[1])?);
        pool.run(call.par, x, rois, elements_mut(&mut call.outputs[0])?).map_err(kernel_error)
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    const WHOLE: [f32; 5] = [0.0, 0.0, 0.0, 3.0, 3.0];

    #[test]
    fn the_whole_image_as_a_region() {
        let x: Vec<f32> = (0..16).map(|v| v as f32).collect();
        let of = |name: &str| {
            OpTest::new(name)
                .attr("pooled_size", "(2, 2)")
                .attr("spatial_scale", "1")
                .f32([1, 1, 4, 4], &x)
                .f32([1, 5], &WHOLE)
        };
        assert_close(&f32s(&of("ROIPooling").run(), [1, 1, 2, 2]), &[5.0, 7.0, 13.0, 15.0]);
        assert_close(&f32s(&of("_contrib_ROIAlign").run(), [1, 1, 2, 2]), &[3.75, 5.25, 9.75, 11.25]);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let error = |attrs: &[(&str, &str)], rois: [usize; 2]| {
            let test = attrs.iter().fold(OpTest::new("_contrib_ROIAlign"), |t, (k, v)| t.attr(k, v));
            let zeros = vec![9.0; rois[0] * rois[1]];
            test.attr("spatial_scale", "1").f32([1, 1, 4, 4], &[0.0; 16]).f32(rois, &zeros).error().message.clone()
        };
        let pooled = ("pooled_size", "(2, 2)");
        assert!(error(&[("pooled_size", "(2, 0)")], [1, 5]).contains("positive"));
        assert!(error(&[pooled], [1, 4]).starts_with("rois"));
        assert!(error(&[pooled], [1, 5]).contains("index 9"));
        assert!(error(&[pooled, ("position_sensitive", "True")], [1, 5]).contains("4 bins"));
    }
}
