//! `_unravel_index`: places as one number for each axis.

use super::ravel_multi_index::{ATTRS, form, shape};
use super::take::first_decides;
use crate::prelude::*;
use mxrt_kernels::strides::contiguous;

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
    let shape = shape(attrs)?;
    let strides = contiguous(&shape);
    dispatch!(signature.inputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
        let x = elements::<T>(&call.inputs[0])?;
        let out = elements_mut::<T>(&mut call.outputs[0])?;
        for (axis, out) in out.chunks_mut(x.len().max(1)).enumerate() {
            let (step, size) = ((strides[axis] as i64).max(1), (shape[axis] as i64).max(1));
            for (out, x) in out.iter_mut().zip(x) {
                let place = x.to_i64() / step;
                *out = T::from_i64(if axis == 0 { place } else { place % size });
            }
        }
        Ok(())
    })))
}
