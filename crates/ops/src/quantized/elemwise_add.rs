//! `_contrib_quantized_elemwise_add`: sums of integers.

use super::layer::rows;
use super::{
    CALIBRATION, Range, WITH_RANGE, bytes_of, calibration, infer_float_ranges, int8_form, levels, scale, store_range,
};
use crate::prelude::*;
use mxrt_kernels::int8::{ScaledBytes, add};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_quantized_elemwise_add",
    doc: "Sum of two arrays of integers: int32 with the sum of the ranges, or, with a calibrated range, bytes.",
    inputs: Inputs::Fixed(&INPUTS),
    attrs: &CALIBRATION,
    inputs_before_attrs: 0,
    outputs: WITH_RANGE,
    infer_shape,
    infer_dtype: |dtypes| {
        let types = [bytes_of(dtypes, 0, "lhs")?, bytes_of(dtypes, 1, "rhs")?];
        infer_float_ranges(dtypes, 2, &INPUTS)?;
        match (calibration(dtypes.attrs)?, types) {
            (None, _) => dtypes.set_output(0, DType::I32),
            (Some(_), [Some(a), Some(b)]) => dtypes.set_output(0, if a == b { a } else { DType::I8 }),
            _ => Ok(()),
        }
    },
    bind: bind_add,
    form: |attrs, signature| {
        let dtype = signature.outputs[0].dtype;
        let calibrated = calibration(attrs)?.map(|range| ([range.min, range.max], scale(dtype, range)));
        int8_form(Int8Form::Add { calibrated })
    },
    ..OpDef::BASE
}];

pub(super) const INPUTS: [&str; 6] = ["lhs", "rhs", "lhs_min", "lhs_max", "rhs_min", "rhs_max"];

pub(super) fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let mut common = PartialShape::UNKNOWN;
    for shape in shapes.inputs[..2].iter().chain(shapes.outputs.first()) {
        common.merge(shape).map_err(|e| {
            shape_error(format!("lhs has shape {} and rhs {}: {e}", shapes.inputs[0], shapes.inputs[1]))
        })?;
    }
    shapes.set_input(0, "lhs", common.clone())?;
    shapes.set_input(1, "rhs", common.clone())?;
    shapes.set_output(0, common)?;
    super::infer_scalars(shapes, 2, &INPUTS)
}

fn bind_add(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (calibrated, dtype) = (calibration(attrs)?, signature.outputs[0].dtype);
    let mixed = signature.inputs[0].dtype != signature.inputs[1].dtype;
    Ok(costed_kernel_fn("add", elementwise_ns(signature, 1_000), move |call| {
        let arrays = [&call.inputs[0], &call.inputs[1]];
        let ranges = [Range::read("lhs", call.inputs, 2)?, Range::read("rhs", call.inputs, 4)?];
        let sum = ranges[0].largest() + ranges[1].largest();
        let range = calibrated.unwrap_or(Range { min: -sum, max: sum });
        // MXNet multiplies in this order where it has no calibration.
        let factor = |i: usize| match calibrated {
            Some(range) => scale(dtype, range) / scale(arrays[i].dtype, ranges[i]),
            None if sum == 0.0 => 0.0,
            None => ranges[i].largest() * i32::MAX as f32 / (sum * levels(arrays[i].dtype)),
        };
        // MXNet brings the unsigned one of two kinds to the steps of the output first.
        let rounded = |i: usize| mixed && calibrated.is_some() && arrays[i].dtype == DType::U8;
        let operand = |i: usize| ScaledBytes { rows: rows(arrays[i]), factor: factor(i), rounded: rounded(i) };
        let (operands, out) = ([operand(0), operand(1)], &mut call.outputs[0]);
        match dtype {
            DType::I32 => add::<i32>(call.par, operands, elements_mut(out)?),
            DType::U8 => add::<u8>(call.par, operands, elements_mut(out)?),
            _ => add::<i8>(call.par, operands, elements_mut(out)?),
        }
        store_range(range, call.outputs)
    }))
}

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    fn pair(name: &str, attrs: &[(&str, &str)]) -> OpTest {
        let test = OpTest::new(name).attrs(attrs);
        let test = test.i8([3], &[49, -32, 100]).i8([3], &[-84, 40, 100]);
        [-1.0, 1.0, -1.0, 1.0].iter().fold(test, |t, v| t.f32([1], &[*v]))
    }

    /// MXNet 1.9.1 on these numbers.
    #[test]
    fn sums_have_the_range_of_both_or_the_calibrated_one() {
        let y = pair("_contrib_quantized_elemwise_add", &[]).run_all();
        assert_eq!(y[0].values::<i32>()[..2], [-294_752_640, 67_372_032]);
        assert_eq!(y[2].values::<f32>(), [2.0]);
        let calibrated = [("min_calib_range", "-2"), ("max_calib_range", "2")];
        let y = pair("_contrib_quantized_elemwise_add", &calibrated).run_all();
        assert_eq!(y[0].values::<i8>(), [-18, 4, 100]);
    }

    #[test]
    fn shapes_that_differ_are_named() {
        let test = OpTest::new("_contrib_quantized_elemwise_add").i8([3], &[0; 3]).i8([2], &[0; 2]);
        let error = (0..4).fold(test, |t, _| t.f32([1], &[0.0])).error();
        assert!(error.message.contains("lhs has shape (3,) and rhs (2,)"), "{}", error.message);
    }
}
