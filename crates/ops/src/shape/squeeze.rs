//! `squeeze`: axes of size 1 removed.

use super::bind_copy;
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "squeeze",
    doc: "Removes axes of size 1: those given, or all. At least one axis stays.",
    attrs: &[AttrDef::new("axis", AttrKind::OptShape, "None", "Axes to remove; all of size 1 if not given.")],
    infer_shape,
    bind: bind_copy,
    rewrites: &Rewrites { is_identity: |_| true, ..Rewrites::NONE },
    ..OpDef::BASE
}];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(data) = shapes.input(0) else { return Ok(()) };
    let removed: Dims = match shapes.attrs.opt_ints("axis") {
        None => (0..data.len()).filter(|i| data[*i] == 1).collect(),
        Some(axes) => resolve_axes(axes, data.len())?,
    };
    if let Some(axis) = removed.iter().find(|a| data[**a] != 1) {
        return Err(shape_error(format!(
            "axis {axis} of {data} cannot be removed: its size is {}, not 1",
            data[*axis]
        )));
    }
    let mut out: Shape = (0..data.len()).filter(|i| !removed.contains(i)).map(|i| data[i]).collect();
    if out.is_empty() {
        out = Shape::new(&[1]);
    }
    shapes.set_output(0, out)
}
