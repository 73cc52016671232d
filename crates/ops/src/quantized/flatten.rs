//! `_contrib_quantized_flatten`: all axes but the first in one.

use super::activation::copy_range;
use super::{WITH_RANGE, infer_float_ranges, infer_scalars, int8_form};
use crate::prelude::*;
use crate::shape::flatten::infer_flat;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_quantized_flatten",
    doc: "Joins all axes but the first; integers and range stay.",
    inputs: Inputs::Fixed(&INPUTS),
    ignores_unknown_attrs: true,
    outputs: WITH_RANGE,
    infer_shape: |shapes| {
        infer_flat(shapes)?;
        infer_scalars(shapes, 1, &INPUTS)
    },
    infer_dtype: |dtypes| {
        if let Some(dtype) = dtypes.inputs[0].or(dtypes.outputs[0]) {
            dtypes.set_input(0, "data", dtype)?;
            dtypes.set_output(0, dtype)?;
        }
        infer_float_ranges(dtypes, 1, &INPUTS)
    },
    bind: |_, signature| {
        Ok(costed_kernel_fn("copy", streaming_ns(signature), |call| {
            copy_first(call)?;
            copy_range(call)
        }))
    },
    form: |_, _| int8_form(Int8Form::Pass { relu: false, range: RangeSource::Given }),
    ..OpDef::BASE
}];

const INPUTS: [&str; 3] = ["data", "min_data", "max_data"];
