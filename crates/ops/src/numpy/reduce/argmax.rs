//! `_npi_argmax`, `_npi_argmin`: positions of extremes.

use super::{KEEPDIMS, left_shape, marked};
use crate::math::reduce::Reduced;
use crate::prelude::*;
use mxrt_kernels::reduce;

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_npi_argmax",
        doc: "Where the largest element along an axis is, in int64; of equals the first.",
        bind: |attrs, signature| bind_place(true, attrs, signature),
        form: |attrs, signature| place_form(true, attrs, signature),
        ..PLACE
    },
    OpDef {
        name: "_npi_argmin",
        doc: "Where the smallest element along an axis is, in int64; of equals the first.",
        bind: |attrs, signature| bind_place(false, attrs, signature),
        form: |attrs, signature| place_form(false, attrs, signature),
        ..PLACE
    },
];

const PLACE: OpDef = OpDef {
    attrs: &[AttrDef::new("axis", AttrKind::OptInt, "None", "The axis; the flattened array if not given."), KEEPDIMS],
    infer_shape: |shapes| {
        let Some(dims) = shapes.dims(0) else { return Ok(()) };
        let reduced = one_axis(shapes.attrs, dims.len())?;
        shapes.set_output(0, left_shape(&dims, &reduced, shapes.attrs.bool("keepdims")))
    },
    infer_dtype: |dtypes| dtypes.set_output(0, DType::I64),
    ..OpDef::BASE
};

fn one_axis(attrs: &Attrs, rank: usize) -> Result<Reduced, OpError> {
    let axis = attrs.opt_int("axis");
    marked(axis.as_ref().map(std::slice::from_ref), rank)
}

/// The joined axes of which the middle one is searched.
fn searched(largest: bool, attrs: &Attrs, signature: &Signature<'_>) -> Result<[usize; 3], OpError> {
    let shape = &signature.inputs[0].shape;
    let reduced = one_axis(attrs, shape.len())?;
    let split = match reduced.iter().position(|r| *r) {
        Some(axis) if attrs.opt_int("axis").is_some() => split_around(axis, shape),
        _ => [1, shape.size(), 1],
    };
    if split[1] == 0 && signature.outputs[0].shape.size() > 0 {
        let function = if largest { "argmax" } else { "argmin" };
        return Err(value_error(format!("attempt to get {function} of an empty sequence")));
    }
    Ok(split)
}

fn place_form(largest: bool, attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let split = searched(largest, attrs, signature)?;
    for_numeric(signature.inputs[0].dtype, KernelForm::Extreme { largest, split })
}

fn bind_place(largest: bool, attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let split = searched(largest, attrs, signature)?;
    dispatch!(signature.inputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
        let (x, out) = (elements::<T>(&call.inputs[0])?, elements_mut::<i64>(&mut call.outputs[0])?);
        if largest { reduce::argmax(call.par, x, split, out) } else { reduce::argmin(call.par, x, split, out) }
        Ok(())
    })))
}
