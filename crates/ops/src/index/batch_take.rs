//! `batch_take`: one element of each row of a matrix.

use super::take::first_decides;
use crate::prelude::*;
use mxrt_kernels::index::{OutOfRange, pick};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "batch_take",
    doc: "From row i of a the element that indices[i] names; indices outside are clipped.",
    inputs: Inputs::Fixed(&["a", "indices"]),
    ignores_unknown_attrs: true,
    infer_shape,
    infer_dtype: |dtypes| {
        dtypes.set_input(1, "indices", DType::I32)?;
        first_decides(dtypes)
    },
    bind,
    form,
    ..OpDef::BASE
}];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(a) = shapes.dims(0) else { return Ok(()) };
    if a.len() < 2 {
        return Err(shape_error(format!("a has shape {}, but rows of elements are needed", shapes.inputs[0])));
    }
    let rows = PartialShape::from_dims(a[..a.len() - 1].iter().copied());
    shapes.set_input(1, "indices", rows.clone())?;
    shapes.set_output(0, rows)
}

fn form(_: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let shape = &signature.inputs[0].shape;
    let axis = shape.len() - 1;
    let (split, mode) = (split_around(axis, shape), OutOfRange::Clip);
    Ok(Some(KernelForm::Take { data: 0, indices: 1, split, mode, axis, pick: true }))
}

fn bind(_: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let shape = &signature.inputs[0].shape;
    let axis = shape.len() - 1;
    let split = split_around(axis, shape);
    dispatch_size!(signature.inputs[0].dtype, T => Ok(kernel_fn(signature, move |call| {
        let ([a, indices], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let (x, indices) = (elements::<T>(a)?, integers(call.par, indices)?);
        pick(call.par, x, split, &indices, OutOfRange::Clip, axis, elements_mut(out)?).map_err(kernel_error)
    })))
}
