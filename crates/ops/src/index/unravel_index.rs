//! `_unravel_index`: places as one number for each axis.

use super::ravel_multi_index::{ATTRS, form, shape, steps_and_extents};
use super::take::first_decides;
use crate::prelude::*;
use mxrt_kernels::positions::unravel;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_unravel_index",
    aliases: &["unravel_index"],
    doc: "Positions in the flattened array as indices along each axis, in the columns of the \
        result.",
    attrs: ATTRS,
    infer_shape: |shapes| {
        let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
        dims.insert(0, Some(shape(shapes.attrs)?.len()));
        shapes.set_output(0, PartialShape::from_dims(dims))
    },
    infer_dtype: first_decides,
    bind: bind_unravel,
    form: |attrs, signature| form(PositionKind::Unravel, attrs, signature),
    ..OpDef::BASE
}];

fn bind_unravel(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let axes = steps_and_extents(&shape(attrs)?);
    dispatch!(signature.inputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
        unravel(call.par, elements::<T>(&call.inputs[0])?, &axes, elements_mut::<T>(&mut call.outputs[0])?);
        Ok(())
    })))
}
