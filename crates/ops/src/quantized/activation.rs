//! `_contrib_quantized_act`: relu of integers.

use super::{WITH_RANGE, bytes_of, infer_float_ranges, infer_same, infer_scalars, int8_form};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_quantized_act",
    doc: "Relu of int8 integers; the range stays. The bytes of uint8 integers are returned as int8, as in MXNet.",
    inputs: Inputs::Fixed(&INPUTS),
    attrs: &[AttrDef::required(
        "act_type",
        AttrKind::Enum(&["relu", "sigmoid", "softrelu", "softsign", "tanh"]),
        "Only relu works on integers.",
    )],
    outputs: WITH_RANGE,
    infer_shape: |shapes| {
        infer_same(shapes)?;
        infer_scalars(shapes, 1, &INPUTS)
    },
    infer_dtype: |dtypes| {
        bytes_of(dtypes, 0, "data")?;
        dtypes.set_output(0, DType::I8)?;
        infer_float_ranges(dtypes, 1, &INPUTS)
    },
    bind,
    form: |attrs, signature| {
        if attrs.str("act_type") != "relu" {
            return Ok(None);
        }
        let relu = signature.inputs[0].dtype == DType::I8;
        int8_form(Int8Form::Pass { relu, range: RangeSource::Given })
    },
    ..OpDef::BASE
}];

const INPUTS: [&str; 3] = ["data", "min_data", "max_data"];

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let act_type = attrs.str("act_type");
    if act_type != "relu" {
        return Err(value_error(format!(
            "act_type {act_type} has no form on integers, only relu; leave the node out of the quantization"
        )));
    }
    let signed = signature.inputs[0].dtype == DType::I8;
    Ok(costed_kernel_fn("relu", elementwise_ns(signature, 0), move |call| {
        let out = call.outputs[0].bytes_mut();
        for (out, byte) in out.iter_mut().zip(call.inputs[0].bytes()) {
            *out = if signed && *byte >= 0x80 { 0 } else { *byte };
        }
        copy_range(call)
    }))
}

/// The range of the first input is that of the output.
pub(crate) fn copy_range(call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
    let range = super::Range::read("data", call.inputs, 1)?;
    super::store_range(range, call.outputs)
}
