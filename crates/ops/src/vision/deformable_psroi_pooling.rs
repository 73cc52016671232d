//! `_contrib_DeformablePSROIPooling`: pooling of regions whose bins are moved.

use super::image_dims;
use super::roi::{SCALE, regions};
use crate::prelude::*;
use mxrt_kernels::vision::deformable_roi::DeformableRoiPool;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_DeformablePSROIPooling",
    doc: "Means in the bins of regions of interest, where every bin reads channels of its own \
    and is moved by an offset.\n\n\
    data is (batch, output_dim * group_size ** 2, height, width), rois (n, 5): image, \
    left, top, right, bottom; trans (n, 2 * classes, part_size, part_size): offsets across \
    and down. The output is (n, output_dim, pooled_size, pooled_size).",
    inputs: Inputs::ByAttrs(
        |attrs| {
            if attrs.bool("no_trans") { &["data", "rois"] } else { &["data", "rois", "trans"] }
        },
    ),
    attrs: &[
        SCALE,
        AttrDef::required("output_dim", AttrKind::IntFrom(1), "Channels of the output."),
        AttrDef::required("group_size", AttrKind::IntFrom(1), "Rows and columns of groups of channels."),
        AttrDef::required("pooled_size", AttrKind::IntFrom(1), "Rows and columns of the output."),
        AttrDef::new("part_size", AttrKind::IntFrom(0), "0", "Rows and columns of offsets; pooled_size if 0."),
        AttrDef::new("sample_per_part", AttrKind::IntFrom(1), "1", "Samples along an axis of a bin."),
        AttrDef::new(
            "trans_std",
            AttrKind::FloatIn(0.0, 1.0),
            "0",
            "Size of an offset of one, as a share of the region.",
        ),
        AttrDef::new("no_trans", AttrKind::Bool, "False", "Whether there are no offsets."),
    ],
    hidden_outputs: |_| 1,
    infer_shape: deformable_shapes,
    infer_dtype: |dtypes| dtypes.uniform(&["data", "rois", "trans"]),
    bind: bind_deformable,
    form: |attrs, signature| for_floats(signature.inputs[0].dtype, KernelForm::RoiMoved(deformable(attrs, signature)?)),
    ..OpDef::BASE
}];

/// Rows and columns of the offsets.
fn parts(attrs: &Attrs) -> usize {
    if attrs.count("part_size") == 0 { attrs.count("pooled_size") } else { attrs.count("part_size") }
}

fn deformable_shapes(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let of = |name| shapes.attrs.count(name);
    let (channels, groups, pooled, parts) =
        (of("output_dim"), of("group_size"), of("pooled_size"), parts(shapes.attrs));
    let Some([_, have, ..]) = image_dims(shapes, 0, "data")? else { return Ok(()) };
    let need = checked_product(&[channels, groups, groups])?;
    if have.is_some_and(|have| have != need) {
        return Err(shape_error(format!(
            "data has shape {}, but output_dim={channels} and group_size={groups} need {need} channels",
            shapes.inputs[0]
        )));
    }
    shapes.set_input(1, "rois", PartialShape::from_dims([None, Some(5)]))?;
    let count = shapes.inputs[1].dim(0);
    if !shapes.attrs.bool("no_trans") {
        shapes.set_input(2, "trans", PartialShape::from_dims([count, None, Some(parts), Some(parts)]))?;
        let offsets = shapes.inputs[2].dim(1);
        // As many classes as pairs of offsets, which share the channels out among them.
        if offsets.is_some_and(|n| n < 2 || n % 2 != 0 || !channels.is_multiple_of(n / 2)) {
            return Err(shape_error(format!(
                "trans has shape {}, but its second extent must be twice a number of classes that divides \
                 output_dim={channels}",
                shapes.inputs[2]
            )));
        }
    }
    shapes.set_output(0, PartialShape::from_dims([count, Some(channels), Some(pooled), Some(pooled)]))
}

fn deformable(attrs: &Attrs, signature: &Signature<'_>) -> Result<DeformableRoiPool, OpError> {
    let samples = attrs.count("sample_per_part");
    if samples > 4096 {
        return Err(value_error("sample_per_part must be at most 4096"));
    }
    Ok(DeformableRoiPool {
        regions: regions(signature, attrs.float("spatial_scale"))?,
        channels: attrs.count("output_dim"),
        groups: attrs.count("group_size"),
        parts: parts(attrs),
        samples,
        deviation: attrs.float("trans_std"),
    })
}

fn bind_deformable(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let pool = deformable(attrs, signature)?;
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let ([data, rois, trans @ ..], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let trans = trans.first().map(elements::<T>).transpose()?;
        pool.run(call.par, elements::<T>(data)?, elements::<T>(rois)?, trans, elements_mut(out)?).map_err(kernel_error)
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn offsets_move_bins_by_shares_of_the_region() {
        let x: Vec<f32> = (0..16).map(|v| v as f32).collect();
        let of = |trans: &[f32]| {
            let attrs = [("output_dim", "1"), ("group_size", "1"), ("pooled_size", "1"), ("trans_std", "0.5")];
            let test = OpTest::new("_contrib_DeformablePSROIPooling").attr("spatial_scale", "1");
            let test = attrs.iter().fold(test, |t, (k, v)| t.attr(k, v));
            // From -0.5 to 1.5: the one sample lies at its upper left corner, moved by trans.
            let test = test.f32([1, 1, 4, 4], &x).f32([1, 5], &[0.0, 0.0, 0.0, 1.0, 1.0]);
            f32s(&test.f32([1, 2, 1, 1], trans).run(), [1, 1, 1, 1])
        };
        assert_close(&of(&[0.0, 0.0]), &[0.0]);
        assert_close(&of(&[1.0, 0.5]), &[0.5]);
        assert_close(&of(&[0.5, 1.0]), &[2.0]);
    }
}
