//! `reverse`: elements in opposite order along some axes.

use super::{Strided, bind_strided, strided_form};
use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::strides::contiguous;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "reverse",
    aliases: &["flip"],
    doc: "Reverses the order of elements along the given axes.",
    attrs: &[AttrDef::required("axis", AttrKind::Shape, "Axes to reverse.")],
    bind: |attrs, signature| bind_strided(view(attrs, signature)?, signature),
    form: |attrs, signature| strided_form(&view(attrs, signature)?),
    rewrites: &Rewrites {
        row_wise: |attrs, signature, divided| {
            rows_of_data(attrs, signature, divided) && attrs.ints("axis").iter().all(|a| is_within_rows(*a, signature))
        },
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

/// The elements of the output.
fn view(attrs: &Attrs, signature: &Signature<'_>) -> Result<Strided, OpError> {
    let shape = &signature.inputs[0].shape;
    let mut strides = contiguous(shape);
    let mut offset = 0;
    for axis in resolve_axes(attrs.ints("axis"), shape.len())? {
        offset += shape[axis].saturating_sub(1) * strides[axis] as usize;
        strides[axis] = -strides[axis];
    }
    Ok(Strided { offset, strides, shape: shape.to_vec() })
}
