//! `broadcast_axis`: chosen axes of size 1 repeated.

use super::broadcast_to::{bind_broadcast, broadcast_form};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "broadcast_axis",
    aliases: &["broadcast_axes"],
    doc: "Repeats the given axes, which must have size 1.",
    attrs: &[
        AttrDef::new("axis", AttrKind::Shape, "()", "Axes to repeat."),
        AttrDef::new("size", AttrKind::Shape, "()", "Their new extents."),
    ],
    infer_shape,
    bind: bind_broadcast,
    form: broadcast_form,
    rewrites: &Rewrites {
        row_wise: |attrs, signature, divided| {
            rows_of_data(attrs, signature, divided) && attrs.ints("axis").iter().all(|a| is_within_rows(*a, signature))
        },
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
    let (axes, sizes) = (shapes.attrs.ints("axis"), extents("size", shapes.attrs.ints("size"))?);
    if axes.len() != sizes.len() {
        return Err(value_error(format!("axis names {} axes but size gives {} extents", axes.len(), sizes.len())));
    }
    for (axis, size) in axes.iter().zip(sizes) {
        let axis = resolve_axis(*axis, dims.len())?;
        match dims[axis] {
            Some(1) => dims[axis] = Some(size),
            None => {}
            Some(n) => {
                return Err(shape_error(format!("axis {axis} has {n} elements; only axes of size 1 can be broadcast")));
            }
        }
    }
    shapes.set_output(0, PartialShape::from_dims(dims))
}
