//! `_contrib_quantize_v2`: bytes of a calibrated range, or that of the data.

use super::quantize::{not_empty, out_type, per_unit};
use super::{
    CALIBRATION, NUMBERED_RANGE, Range, calibration, dispatch_bytes, infer_float_ranges, infer_same, infer_scalars,
    int8_form, levels, store_range,
};
use crate::prelude::*;
use mxrt_kernels::int8::quantize;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_quantize_v2",
    doc: "Quantizes float32 to int8 or uint8, for the calibrated range or that of the data. out_type auto is \
        uint8 where min_calib_range is not negative, else int8. Integers pass. Returns the integers and their \
        range.",
    attrs: &[
        AttrDef::new("out_type", AttrKind::Enum(&["auto", "int8", "uint8"]), "int8", "dtype of the integers."),
        CALIBRATION[0],
        CALIBRATION[1],
    ],
    outputs: NUMBERED_RANGE,
    infer_shape: |shapes| {
        infer_same(shapes)?;
        infer_scalars(shapes, 1, &[])
    },
    infer_dtype: |dtypes| infer_v2(dtypes),
    bind: bind_v2,
    form: form_v2,
    ..OpDef::BASE
}];

fn infer_v2(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    let out = out_type(dtypes.attrs, calibration(dtypes.attrs)?);
    match dtypes.inputs[0] {
        None | Some(DType::F32) => {}
        Some(bytes @ (DType::I8 | DType::U8)) if bytes == out => {}
        Some(bytes @ (DType::I8 | DType::U8)) => {
            return Err(type_error(format!(
                "data is {bytes} already, but out_type says {out}; leave the integers out of the quantization"
            )));
        }
        Some(other) => return Err(unsupported_dtype(other, "float32, int8 and uint8")),
    }
    dtypes.set_output(0, out)?;
    infer_float_ranges(dtypes, 1, &[])
}

/// The range of integers that pass, without a calibration.
fn own_range(dtype: DType) -> Range {
    Range { min: if dtype == DType::U8 { 0.0 } else { -levels(dtype) }, max: levels(dtype) }
}

fn form_v2(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let calibrated = not_empty(calibration(attrs)?)?;
    let dtype = signature.outputs[0].dtype;
    let fixed = |range: Range| RangeSource::Fixed([range.min, range.max]);
    if signature.inputs[0].dtype != DType::F32 {
        let range = fixed(calibrated.unwrap_or(own_range(dtype)));
        return int8_form(Int8Form::Pass { relu: false, range });
    }
    let range = calibrated.map_or(RangeSource::Found, fixed);
    int8_form(Int8Form::Quantize { steps: levels(dtype), range })
}

fn bind_v2(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let calibrated = not_empty(calibration(attrs)?)?;
    let (dtype, cost) = (signature.outputs[0].dtype, elementwise_ns(signature, 0));
    if signature.inputs[0].dtype != DType::F32 {
        let own = own_range(dtype);
        return Ok(costed_kernel_fn("copy", cost, move |call| {
            copy_first(call)?;
            store_range(calibrated.unwrap_or(own), call.outputs)
        }));
    }
    dispatch_bytes!(dtype, T => Ok(costed_kernel_fn("quantize", cost, move |call| {
        let data = elements::<f32>(&call.inputs[0])?;
        let range = match calibrated {
            Some(range) => range,
            None => Range::of("data", data)?,
        };
        quantize::<T>(call.par, data, per_unit(levels(dtype), range), elements_mut(&mut call.outputs[0])?);
        store_range(if dtype == DType::U8 { range } else { range.centred() }, call.outputs)
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    fn v2(values: &[f32], attrs: &[(&str, &str)]) -> OpTest {
        OpTest::new("_contrib_quantize_v2").attrs(attrs).f32([values.len()], values)
    }

    #[test]
    fn the_range_of_the_data_has_127_steps_on_either_side() {
        let y = v2(&[-2.0, 1.0, 0.0, 2.0], &[]).run_all();
        assert_eq!(y[0].values::<i8>(), [-128, 64, 0, 127]);
        assert_eq!((f32s(&y[1], [1]), f32s(&y[2], [1])), (vec![-2.0], vec![2.0]));
    }

    #[test]
    fn auto_is_unsigned_where_nothing_is_negative() {
        let y = v2(&[-1.0, 1.0, 9.0], &[("out_type", "auto"), ("min_calib_range", "0"), ("max_calib_range", "2")]);
        assert_eq!(y.run_all()[0].values::<u8>(), [0, 128, 255]);
    }

    #[test]
    fn zeros_are_quantized_to_zeros() {
        assert_eq!(v2(&[0.0; 3], &[]).run_all()[0].values::<i8>(), [0; 3]);
    }

    #[test]
    fn ranges_that_are_none_are_errors_that_say_which() {
        let calibrated = |min: &str, max: &str| {
            v2(&[1.0], &[("min_calib_range", min), ("max_calib_range", max)]).error().message.clone()
        };
        assert!(calibrated("2", "1").contains("min=2, max=1"), "{}", calibrated("2", "1"));
        assert!(calibrated("nan", "1").contains("finite"));
        assert!(calibrated("0", "0").contains("empty range"));
        assert!(v2(&[1.0], &[("min_calib_range", "1")]).error().message.contains("max_calib_range is missing"));
        assert!(v2(&[f32::INFINITY], &[]).error().message.contains("infinity"));
    }
}
