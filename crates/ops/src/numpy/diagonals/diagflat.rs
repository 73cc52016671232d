//! `_np_diagflat`: a matrix with a diagonal.

use super::{K, bind_placed, square, start};
use crate::prelude::*;
use crate::shape::placed_form;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_np_diagflat",
    doc: "The square matrix that has the flattened array as its k-th diagonal.",
    attrs: &[K],
    infer_shape: |shapes| {
        let Some(data) = shapes.input(0) else { return Ok(()) };
        shapes.set_output(0, square(data.size(), shapes.attrs.int("k"))?)
    },
    bind: |attrs, signature| bind_placed(attrs.int("k"), signature),
    form: |attrs, signature| placed_form(start(attrs.int("k")), signature),
    ..OpDef::BASE
}];
