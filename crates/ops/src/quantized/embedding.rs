//! `_contrib_quantized_embedding`: rows of a table of integers.

use super::{Range, WITH_RANGE, infer_float_ranges, infer_scalars, store_range};
use crate::nn::embedding::{ATTRS, infer_shape};
use crate::prelude::*;
use mxrt_kernels::index::{OutOfRange, take};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_quantized_embedding",
    doc: "The rows of an int8 weight that data names, with the range of the weight. Numbers outside of the table are \
        moved to its ends.",
    inputs: Inputs::Fixed(&INPUTS),
    attrs: &ATTRS,
    outputs: WITH_RANGE,
    infer_shape: |shapes| {
        infer_shape(shapes)?;
        infer_scalars(shapes, 2, &INPUTS)
    },
    infer_dtype: |dtypes| {
        dtypes.set_input(1, "weight", DType::I8)?;
        dtypes.set_output(0, DType::I8)?;
        infer_float_ranges(dtypes, 2, &INPUTS)
    },
    bind,
    ..OpDef::BASE
}];

const INPUTS: [&str; 4] = ["data", "weight", "min_weight", "max_weight"];

fn bind(_: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let [rows, width] = signature.inputs[1].shape[..] else { return Err(wrong_arity()) };
    check_integers("data", signature.inputs[0].dtype)?;
    Ok(kernel_fn(signature, move |call| {
        let range = Range::read("weight", call.inputs, 2)?;
        let (indices, table) = (integers(call.par, &call.inputs[0])?, elements::<i8>(&call.inputs[1])?);
        let out = elements_mut(&mut call.outputs[0])?;
        take(call.par, table, [1, rows, width], &indices, OutOfRange::Clip, 0, out).map_err(kernel_error)?;
        store_range(range, call.outputs)
    }))
}
