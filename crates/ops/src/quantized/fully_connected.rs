//! `_contrib_quantized_fully_connected`: a dense layer of integers.

use super::layer::{Int8Layer, PackedLayer};
use super::sums::{INPUTS, SumsKernel, infer_dtype, infer_ranges};
use super::{WITH_RANGE, int8_form};
use crate::nn::fully_connected::{ALL_ATTRS, infer_shape};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_quantized_fully_connected",
    doc: "Dense layer of int8 or uint8 data with int8 weights; returns int32 sums and their range. An int8 bias is \
        brought to the steps of the sums.",
    inputs: INPUTS,
    attrs: &ALL_ATTRS,
    outputs: WITH_RANGE,
    infer_shape: |shapes| {
        infer_shape(shapes)?;
        infer_ranges(shapes)
    },
    infer_dtype,
    bind,
    form: |attrs, _| {
        let windows = Int8Windows { kernel: [1; 3], stride: [1; 3], pad: [0; 3], dilate: [1; 3] };
        int8_form(Int8Form::Layer { dense: true, bias: !attrs.bool("no_bias"), windows, groups: 1 })
    },
    ..OpDef::BASE
}];

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (weight, out) = (&signature.inputs[1].shape, &signature.outputs[0].shape);
    let layer = Int8Layer::dense(weight, out, &signature.options)?;
    Ok(Box::new(SumsKernel { packed: PackedLayer::new(layer)?, bias: !attrs.bool("no_bias") }))
}
