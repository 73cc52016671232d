//! `_set_value`: one number everywhere in an array that is there.

use crate::math::identity::{bind_fill, fill_form};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_set_value",
    doc: "Writes a number to every element of the array that is given as out.",
    inputs: Inputs::Fixed(&[]),
    attrs: &[AttrDef::required("src", AttrKind::Float, "The number.")],
    // Shape and dtype are those of out.
    infer_shape: |_| Ok(()),
    infer_dtype: |dtypes| dtypes.set_output(0, dtypes.outputs[0].unwrap_or(DType::F32)),
    bind: |attrs, signature| bind_fill(attrs.float("src"), signature),
    form: |attrs, signature| fill_form(attrs.float("src"), signature),
    ..OpDef::BASE
}];
