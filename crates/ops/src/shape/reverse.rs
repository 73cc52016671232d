//! `reverse`: elements in opposite order along some axes.

use super::{Strided, bind_strided};
use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::strides::contiguous;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "reverse",
    aliases: &["flip"],
    doc: "Reverses the order of elements along the given axes.",
    attrs: &[AttrDef::required("axis", AttrKind::Shape, "Axes to reverse.")],
    bind,
    rewrites: &Rewrites {
        row_wise: |attrs, signature, divided| {
            rows_of_data(attrs, signature, divided) && attrs.ints("axis").iter().all(|a| is_within_rows(*a, signature))
        },
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let shape = &signature.inputs[0].shape;
    let mut strides = contiguous(shape);
    let mut offset = 0;
    for axis in resolve_axes(attrs.ints("axis"), shape.len())? {
        offset += shape[axis].saturating_sub(1) * strides[axis] as usize;
        strides[axis] = -strides[axis];
    }
    bind_strided(Strided { offset, strides, shape: shape.to_vec() }, signature)
}
