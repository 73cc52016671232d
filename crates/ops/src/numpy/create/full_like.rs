//! `_npi_full_like`: one value in the shape of another array.

use super::DTYPES;
use crate::math::identity::{bind_fill, fill_form};
use crate::numpy::CTX;
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npi_full_like",
    doc: "One value in the shape of an array, and in its dtype if none is given.",
    inputs: Inputs::Fixed(&["a"]),
    attrs: &[
        AttrDef::required("fill_value", AttrKind::Float, "The value.").wide(),
        CTX,
        AttrDef::new("dtype", DTYPES, "None", "dtype of the result."),
    ],
    infer_dtype: |dtypes| match dtypes.attrs.opt_dtype("dtype").or(dtypes.inputs[0]) {
        Some(dtype) => dtypes.set_output(0, dtype),
        None => Ok(()),
    },
    bind: |attrs, signature| bind_fill(attrs.float("fill_value"), signature),
    form: |attrs, signature| fill_form(attrs.float("fill_value"), signature),
    ..OpDef::BASE
}];
