//! `_contrib_arange_like`: as many evenly spaced values as another array has.

use super::CTX;
use super::arange::{bind_range, range_form};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_arange_like",
    aliases: &["_npx_arange_like"],
    doc: "Values from start in steps, as many as data has elements (in its shape) or along one \
        axis.",
    attrs: &[
        AttrDef::new("start", AttrKind::Float, "0", "First value.").wide(),
        AttrDef::new("step", AttrKind::Float, "1", "Distance between values.").wide(),
        AttrDef::new("repeat", AttrKind::IntFrom(1), "1", "How often each value is repeated."),
        CTX,
        AttrDef::new("axis", AttrKind::OptInt, "None", "Axis whose length counts; all elements if not given."),
    ],
    infer_shape,
    bind: |attrs, signature| bind_range(attrs.float("start"), attrs.float("step"), attrs.int("repeat"), signature),
    form: |attrs, signature| range_form(attrs.float("start"), attrs.float("step"), attrs.int("repeat"), signature),
    ..OpDef::BASE
}];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(dims) = shapes.dims(0) else { return Ok(()) };
    match shapes.attrs.opt_int("axis") {
        None => shapes.set_output(0, PartialShape::from_dims(dims)),
        Some(axis) => {
            let axis = resolve_axis(axis, dims.len())?;
            shapes.set_output(0, PartialShape::from_dims([dims[axis]]))
        }
    }
}
