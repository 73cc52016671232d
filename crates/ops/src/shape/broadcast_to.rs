//! `broadcast_to`: axes of size 1 repeated to a given shape.

use super::{PartialDims, Strided, bind_strided, strided_form};
use crate::prelude::*;
use mxrt_kernels::strides::broadcast;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "broadcast_to",
    doc: "Repeats axes of size 1 until the array has the given shape; 0 keeps an extent.",
    attrs: &[AttrDef::new("shape", AttrKind::Shape, "()", "The new extents, as many as the input has axes.")],
    infer_shape,
    bind: bind_broadcast,
    form: broadcast_form,
    ..OpDef::BASE
}];

fn view(signature: &Signature<'_>) -> Strided {
    let shape = &signature.outputs[0].shape;
    Strided { offset: 0, strides: broadcast(&signature.inputs[0].shape, shape), shape: shape.to_vec() }
}

/// Reads input 0 as if it had the shape of the output.
pub(crate) fn bind_broadcast(_: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    bind_strided(view(signature), signature)
}

/// The form of [`bind_broadcast`].
pub(crate) fn broadcast_form(_: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    strided_form(&view(signature))
}

/// Extent that an axis takes: the target, if the axis has it already or has size 1.
pub(crate) fn broadcast_extent(
    have: Option<usize>,
    want: Option<usize>,
    axis: usize,
) -> Result<Option<usize>, OpError> {
    match (have, want) {
        (Some(have), Some(want)) if have != want && have != 1 => Err(shape_error(format!(
            "axis {axis} has {have} elements and cannot be broadcast to {want}: only axes of size \
             1 can"
        ))),
        _ => Ok(want),
    }
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(data) = shapes.dims(0) else { return Ok(()) };
    let target = extents("shape", shapes.attrs.ints("shape"))?;
    if target.len() != data.len() {
        return Err(shape_error(format!(
            "shape has {} axes but the input {} has {}; insert axes with expand_dims first",
            target.len(),
            shapes.inputs[0],
            data.len()
        )));
    }
    let mut out = PartialDims::new();
    for (axis, (have, want)) in data.iter().zip(&target).enumerate() {
        let want = if *want == 0 { *have } else { Some(*want) };
        out.push(broadcast_extent(*have, want, axis)?);
    }
    shapes.set_output(0, PartialShape::from_dims(out))
}
