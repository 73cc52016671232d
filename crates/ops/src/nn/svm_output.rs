//! `SVMOutput`: the loss of support vector machines, the identity at inference.

use crate::prelude::*;
use crate::shape::bind_copy;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "SVMOutput",
    doc: "At inference data unchanged; label does not matter.",
    inputs: Inputs::Fixed(&["data", "label"]),
    attrs: &[
        AttrDef::new("margin", AttrKind::Float, "1", "For training."),
        AttrDef::new("regularization_coefficient", AttrKind::Float, "1", "For training."),
        AttrDef::new("use_linear", AttrKind::Bool, "False", "For training."),
    ],
    infer_shape: |shapes| {
        shapes.same_as_first()?;
        let Some(dims) = shapes.dims(0) else { return Ok(()) };
        let label = dims[..dims.len().saturating_sub(1)].iter().copied();
        shapes.set_input(1, "label", PartialShape::from_dims(label))
    },
    bind: bind_copy,
    rewrites: &Rewrites { is_identity: |_| true, ..Rewrites::NONE },
    ..OpDef::BASE
}];
