//! `slice_like`: the leading part of an array, as large as another array.

use super::slice::{Range, bind_ranges, ranges_form};
use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_tensor::PartialShape;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "slice_like",
    doc: "The leading part of data that is as large as shape_like, along all axes or those given.",
    inputs: Inputs::Fixed(&["data", "shape_like"]),
    attrs: &[AttrDef::new("axes", AttrKind::Shape, "()", "Axes along which to cut; all if empty.")],
    infer_shape,
    infer_dtype: |dtypes| match dtypes.inputs[0] {
        Some(dtype) => dtypes.set_output(0, dtype),
        None => Ok(()),
    },
    bind: |_, signature| bind_ranges(&leading(signature), signature),
    form: |_, signature| ranges_form(&leading(signature), signature),
    rewrites: &Rewrites {
        row_wise: |attrs, signature, divided| {
            let axes = attrs.ints("axes");
            let rows_stay = !axes.is_empty() && axes.iter().all(|axis| is_within_rows(*axis, signature));
            matches!(divided, [true, like] if *like || rows_stay)
        },
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

fn leading(signature: &Signature<'_>) -> Vec<Range> {
    signature.outputs[0].shape.iter().map(|n| Range { start: 0, step: 1, len: *n }).collect()
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let (Some(mut dims), Some(like)) = (shapes.dims(0), shapes.dims(1)) else { return Ok(()) };
    let named = shapes.attrs.ints("axes");
    if named.is_empty() && dims.len() != like.len() {
        return Err(shape_error(format!(
            "data {} and shape_like {} have different numbers of axes; name the axes to cut with \
             axes",
            shapes.inputs[0], shapes.inputs[1]
        )));
    }
    let axes: Dims = match named {
        [] => (0..dims.len()).collect(),
        named => named.iter().map(|a| resolve_axis(*a, dims.len())).collect::<Result<_, OpError>>()?,
    };
    for axis in axes {
        let want = *like
            .get(axis)
            .ok_or_else(|| shape_error(format!("shape_like {} has no axis {axis}", shapes.inputs[1])))?;
        if let (Some(have), Some(want)) = (dims[axis], want)
            && want > have
        {
            return Err(shape_error(format!(
                "axis {axis} of data has {have} elements, fewer than the {want} of shape_like"
            )));
        }
        dims[axis] = want;
    }
    shapes.set_output(0, PartialShape::from_dims(dims))
}
