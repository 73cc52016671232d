//! `_contrib_quantized_conv`: a convolution of integers.

use super::layer::{Int8Layer, PackedLayer};
use super::sums::{INPUTS, SumsKernel, infer_dtype, infer_ranges};
use super::{WITH_RANGE, int8_form};
use crate::nn::convolution::{ALL_ATTRS, ConvGeometry, infer_shape};
use crate::prelude::*;
use mxrt_kernels::window::three;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_quantized_conv",
    doc: "Convolution of int8 or uint8 data with int8 weights; returns int32 sums and their range. An int8 bias is \
        brought to the steps of the sums of int8 data; those of uint8 data it is added to unchanged, as in MXNet.",
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
        let ConvGeometry { kernel, stride, pad, dilate, groups, .. } = ConvGeometry::new(attrs)?;
        let windows = Int8Windows {
            kernel: three(&kernel, 1),
            stride: three(&stride, 1),
            pad: three(&pad, 0),
            dilate: three(&dilate, 1),
        };
        int8_form(Int8Form::Layer { dense: false, bias: !attrs.bool("no_bias"), windows, groups })
    },
    ..OpDef::BASE
}];

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (data, out) = (&signature.inputs[0].shape, &signature.outputs[0].shape);
    let layer = Int8Layer::convolution(&ConvGeometry::new(attrs)?, data, out, &signature.options, None);
    Ok(Box::new(SumsKernel { packed: PackedLayer::new(layer)?, bias: !attrs.bool("no_bias") }))
}

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    #[test]
    fn a_bias_is_brought_to_the_steps_of_the_sums_of_signed_data() {
        let of = |signed: bool| {
            let test = OpTest::new("_contrib_quantized_conv").attr("kernel", "(1, 1)").attr("num_filter", "1");
            let test = match signed {
                true => test.i8([1, 1, 1, 2], &[100, 50]),
                false => test.u8([1, 1, 1, 2], &[100, 50]),
            };
            let test = test.i8([1, 1, 1, 1], &[127]).i8([1], &[64]);
            let ranges = [-1.0, 1.0, -1.0, 1.0, -2.0, 2.0];
            ranges.iter().fold(test, |t, v| t.f32([1], &[*v])).run_all()[0].values::<i32>()
        };
        // 64 * 2 / 127.5 are 16320 steps of 1 / 127.5 squared.
        assert_eq!(of(true), [100 * 127 + 16_320, 50 * 127 + 16_320]);
        // MXNet 1.9.1, by oneDNN.
        assert_eq!(of(false), [100 * 127 + 64, 50 * 127 + 64]);
    }

    #[test]
    fn an_image_whose_padding_cannot_be_counted_is_an_error_that_says_so() {
        let huge = format!("({0}, {0})", 1 << 30);
        let test = OpTest::new("_contrib_quantized_conv").attr("kernel", "(1, 1)").attr("num_filter", "1");
        let test = test.attr("pad", &huge).attr("stride", &huge).attr("no_bias", "True");
        let test = test.i8([1, 1, 1, 1], &[1]).i8([1, 1, 1, 1], &[1]);
        let error = [-1.0, 1.0, -1.0, 1.0].iter().fold(test, |t, v| t.f32([1], &[*v])).error();
        let message = &error.message;
        assert!(message.contains("larger than the address space") && message.contains("1073741824"), "{message}");
    }
}
