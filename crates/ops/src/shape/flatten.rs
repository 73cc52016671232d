//! `Flatten`: all axes but the first in one.

use super::{bind_copy, known_product};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "Flatten",
    aliases: &["_npx_batch_flatten", "flatten"],
    doc: "Joins all axes but the first: (n, c, h, w) becomes (n, c * h * w).",
    ignores_unknown_attrs: true,
    infer_shape: infer_flat,
    bind: bind_copy,
    rewrites: &Rewrites { is_identity: |_| true, ..Rewrites::NONE },
    ..OpDef::BASE
}];

/// Joins all axes of the data but the first.
pub(crate) fn infer_flat(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(data) = shapes.dims(0) else { return Ok(()) };
    let Some((batch, rest)) = data.split_first() else {
        return Err(shape_error("data has shape (): at least one axis is needed"));
    };
    shapes.set_output(0, PartialShape::from_dims([*batch, known_product(rest)]))?;
    // The batch size may follow from the result only.
    let mut data = data.clone();
    data[0] = data[0].or(shapes.outputs.first().and_then(|s| s.dim(0)));
    shapes.set_input(0, "data", PartialShape::from_dims(data))
}
