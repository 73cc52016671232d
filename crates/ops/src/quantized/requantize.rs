//! `_contrib_requantize`: from sums of 32 bits to bytes.

use super::quantize::{given_steps, not_empty, out_type};
use super::{
    CALIBRATION, NUMBERED_RANGE, Range, calibration, dispatch_bytes, infer_float_ranges, infer_same, infer_scalars,
    int8_form, store_range,
};
use crate::prelude::*;
use mxrt_kernels::int8::requantize;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_requantize",
    doc: "Quantizes int32 sums with a range to int8 or uint8, for the calibrated range or that of the data. Returns \
        the integers and their range.",
    inputs: Inputs::Fixed(&INPUTS),
    attrs: &[
        AttrDef::new("out_type", AttrKind::Enum(&["auto", "int8", "uint8"]), "int8", "dtype of the integers."),
        CALIBRATION[0],
        CALIBRATION[1],
    ],
    outputs: NUMBERED_RANGE,
    infer_shape: |shapes| {
        infer_same(shapes)?;
        infer_scalars(shapes, 1, &INPUTS)
    },
    infer_dtype: |dtypes| {
        dtypes.set_input(0, "data", DType::I32)?;
        infer_float_ranges(dtypes, 1, &INPUTS)?;
        dtypes.set_output(0, out_type(dtypes.attrs, calibration(dtypes.attrs)?))
    },
    bind,
    form: |attrs, signature| {
        let largest = not_empty(calibration(attrs)?)?.map(Range::largest);
        int8_form(Int8Form::Requantize { steps: given_steps(signature.outputs[0].dtype), largest })
    },
    ..OpDef::BASE
}];

const INPUTS: [&str; 3] = ["data", "min_range", "max_range"];

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let calibrated = not_empty(calibration(attrs)?)?;
    let dtype = signature.outputs[0].dtype;
    dispatch_bytes!(dtype, T => Ok(costed_kernel_fn("requantize", elementwise_ns(signature, 0), move |call| {
        let given = Range::read("data", call.inputs, 1)?.largest();
        let from = elements::<i32>(&call.inputs[0])?;
        let largest = calibrated.map_or_else(|| largest_sum(from) * given / i32::MAX as f32, Range::largest);
        let steps = given_steps(dtype);
        let scale = if largest == 0.0 { 0.0 } else { (given / i32::MAX as f32) * (steps / largest) };
        requantize::<T>(call.par, from, scale, elements_mut(&mut call.outputs[0])?);
        store_range(Range { min: if dtype == DType::U8 { 0.0 } else { -largest }, max: largest }, call.outputs)
    })))
}

/// The largest magnitude.
fn largest_sum(sums: &[i32]) -> f32 {
    sums.iter().map(|sum| sum.unsigned_abs()).max().unwrap_or(0) as f32
}

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    /// MXNet 1.9.1 on these numbers.
    #[test]
    fn sums_are_rounded_as_mxnet_rounds_them() {
        let of = |attrs: &[(&str, &str)]| {
            let test = OpTest::new("_contrib_requantize").attrs(attrs);
            test.i32([4], &[1 << 20, -5 << 20, 3 << 22, 7]).f32([1], &[-4.0]).f32([1], &[4.0]).run_all()
        };
        assert_eq!(of(&[])[0].values::<i8>(), [11, -53, 127, 0]);
        assert_eq!(of(&[])[2].values::<f32>(), [0.0234375]);
        assert_eq!(of(&[("out_type", "uint8")])[0].values::<u8>(), [21, 0, 255, 0]);
        let auto = [("out_type", "auto"), ("min_calib_range", "0"), ("max_calib_range", "0.01")];
        assert_eq!(of(&auto)[0].values::<u8>(), [50, 0, 255, 0]);
    }
}
