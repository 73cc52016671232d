//! `_npi_flip`: axes in opposite order.

use super::{MOVED, different, reverse};
use crate::prelude::*;
use crate::shape::{Strided, bind_strided, strided_form};
use mxrt_kernels::strides::contiguous;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npi_flip",
    doc: "Elements in opposite order along the given axes, or along all.",
    inputs: Inputs::Fixed(&["data"]),
    attrs: &[AttrDef::required("axis", AttrKind::OptShape, "Axes to reverse; all with None.")],
    bind: |attrs, signature| bind_strided(flipped(attrs, &signature.inputs[0].shape)?, signature),
    form: |attrs, signature| strided_form(&flipped(attrs, &signature.inputs[0].shape)?),
    ..MOVED
}];

fn flipped(attrs: &Attrs, shape: &[usize]) -> Result<Strided, OpError> {
    let mut view = Strided { offset: 0, strides: contiguous(shape), shape: shape.to_vec() };
    let axes = match attrs.opt_ints("axis") {
        None => (0..shape.len()).collect(),
        Some(axes) => different("axis", axes, shape.len())?,
    };
    for axis in axes {
        reverse(&mut view, axis);
    }
    Ok(view)
}
