//! `_contrib_dequantize`: from bytes to float32.

use super::layer::rows;
use super::{Range, bytes_of, infer_float_ranges, infer_same, infer_scalars, int8_form, levels};
use crate::prelude::*;
use mxrt_kernels::int8::dequantize;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_dequantize",
    doc: "The float32 numbers that int8 or uint8 integers with a range stand for.",
    inputs: Inputs::Fixed(&INPUTS),
    attrs: &[AttrDef::new("out_type", AttrKind::Enum(&["float32"]), "float32", "dtype of the numbers.")],
    infer_shape: |shapes| {
        infer_same(shapes)?;
        infer_scalars(shapes, 1, &INPUTS)
    },
    infer_dtype: |dtypes| {
        bytes_of(dtypes, 0, "data")?;
        infer_float_ranges(dtypes, 1, &INPUTS)?;
        dtypes.set_output(0, DType::F32)
    },
    bind,
    form: |_, _| int8_form(Int8Form::Dequantize),
    ..OpDef::BASE
}];

const INPUTS: [&str; 3] = ["data", "min_range", "max_range"];

fn bind(_: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let dtype = signature.inputs[0].dtype;
    Ok(costed_kernel_fn("dequantize", elementwise_ns(signature, 0), move |call| {
        let step = Range::read("data", call.inputs, 1)?.largest() / levels(dtype);
        dequantize(call.par, rows(&call.inputs[0]), step, elements_mut::<f32>(&mut call.outputs[0])?);
        Ok(())
    }))
}
