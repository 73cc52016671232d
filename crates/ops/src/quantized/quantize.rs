//! `_contrib_quantize`: bytes of a given range.

use super::{
    NUMBERED_RANGE, Range, dispatch_bytes, infer_float_ranges, infer_same, infer_scalars, int8_form, store_range,
};
use crate::prelude::*;
use mxrt_kernels::int8::quantize;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_quantize",
    doc: "Quantizes float32 to int8 (127 steps on either side of zero) or uint8 (255 steps) for a given range. \
        Returns the integers and their range.",
    inputs: Inputs::Fixed(&RANGED),
    attrs: &[AttrDef::new("out_type", AttrKind::Enum(&["int8", "uint8"]), "uint8", "dtype of the integers.")],
    outputs: NUMBERED_RANGE,
    infer_shape: |shapes| {
        infer_same(shapes)?;
        infer_scalars(shapes, 1, &RANGED)
    },
    infer_dtype: |dtypes| {
        infer_float_ranges(dtypes, 0, &RANGED)?;
        dtypes.set_output(0, out_type(dtypes.attrs, None))
    },
    bind: bind_given,
    form: |attrs, _| {
        let steps = given_steps(out_type(attrs, None));
        int8_form(Int8Form::Quantize { steps, range: RangeSource::Given })
    },
    ..OpDef::BASE
}];

const RANGED: [&str; 3] = ["data", "min_range", "max_range"];

/// The type of the integers.
pub(super) fn out_type(attrs: &Attrs, calibrated: Option<Range>) -> DType {
    match attrs.str("out_type") {
        "uint8" => DType::U8,
        "auto" if calibrated.is_some_and(|range| range.min >= 0.0) => DType::U8,
        _ => DType::I8,
    }
}

/// An empty range stands for nothing but zeros.
pub(super) fn per_unit(levels: f32, range: Range) -> f32 {
    let largest = range.largest();
    if largest == 0.0 { 0.0 } else { levels / largest }
}

/// Refuses a calibrated range without extent: nothing can be quantized with it.
pub(super) fn not_empty(range: Option<Range>) -> Result<Option<Range>, OpError> {
    match range {
        Some(range) if range.largest() == 0.0 => Err(value_error(
            "min_calib_range and max_calib_range are both 0: nothing can be quantized within an empty range; \
             calibrate with data that are not all zero, or leave both out",
        )),
        other => Ok(other),
    }
}

/// Integers from zero to the end of a range that is given.
pub(super) fn given_steps(dtype: DType) -> f32 {
    if dtype == DType::U8 { 255.0 } else { 127.0 }
}

fn bind_given(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let dtype = out_type(attrs, None);
    dispatch_bytes!(dtype, T => Ok(costed_kernel_fn("quantize", elementwise_ns(signature, 0), move |call| {
        let range = Range::read("data", call.inputs, 1)?;
        let data = elements::<f32>(&call.inputs[0])?;
        quantize::<T>(call.par, data, per_unit(given_steps(dtype), range), elements_mut(&mut call.outputs[0])?);
        store_range(if dtype == DType::U8 { range } else { range.centred() }, call.outputs)
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    #[test]
    fn a_range_that_is_none_is_an_error_that_says_so() {
        let given = OpTest::new("_contrib_quantize").f32([1], &[1.0]).f32([1], &[3.0]).f32([1], &[f32::NAN]);
        assert!(given.error().message.contains("the range of data"));
    }
}
