//! `_contrib_intgemm_take_weight`: rows of prepared weights.

use crate::prelude::*;
use mxrt_kernels::index::{OutOfRange, take};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_intgemm_take_weight",
    aliases: &["_npx_intgemm_take_weight"],
    doc: "The rows of a prepared weight that indices name.",
    inputs: Inputs::Fixed(&["weight", "indices"]),
    infer_shape: infer_taken,
    infer_dtype: |dtypes| {
        dtypes.set_input(0, "weight", DType::I8)?;
        dtypes.set_input(1, "indices", DType::I32)?;
        dtypes.set_output(0, DType::I8)
    },
    bind: bind_take,
    ..OpDef::BASE
}];

fn infer_taken(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let (weight, indices) = (shapes.inputs[0].clone(), shapes.inputs[1].clone());
    shapes.set_input(0, "weight", PartialShape::of_rank(2))?;
    shapes.set_input(1, "indices", PartialShape::of_rank(1))?;
    shapes.set_output(0, PartialShape::from_dims([indices.dim(0), weight.dim(1)]))
}

fn bind_take(_: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let [rows, width] = signature.inputs[0].shape[..] else { return Err(wrong_arity()) };
    Ok(kernel_fn(signature, move |call| {
        let (indices, table) = (integers(call.par, &call.inputs[1])?, elements::<i8>(&call.inputs[0])?);
        let out = elements_mut(&mut call.outputs[0])?;
        take(call.par, table, [1, rows, width], &indices, OutOfRange::Raise, 0, out).map_err(kernel_error)
    }))
}
