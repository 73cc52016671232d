//! `_contrib_quantized_elemwise_mul`: products of integers.

use super::elemwise_add::{INPUTS, infer_shape};
use super::{CALIBRATION, Range, calibration, infer_float_ranges, product_range, scale, store_range};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_quantized_elemwise_mul",
    doc: "Product of two int8 arrays: int32 with its range, int8 with a calibrated one, or float32 \
        (enable_float_output). Fractions are cut off, as in MXNet.",
    inputs: Inputs::Fixed(&INPUTS),
    attrs: &[
        CALIBRATION[0],
        CALIBRATION[1],
        AttrDef::new("enable_float_output", AttrKind::Bool, "False", "Return float32 numbers alone."),
    ],
    outputs: Outputs::Named(|attrs| {
        if attrs.bool("enable_float_output") { &["output"] } else { &["output", "min_output", "max_output"] }
    }),
    infer_shape,
    infer_dtype: |dtypes| {
        dtypes.set_input(0, "lhs", DType::I8)?;
        dtypes.set_input(1, "rhs", DType::I8)?;
        infer_float_ranges(dtypes, 2, &INPUTS)?;
        let out = match (dtypes.attrs.bool("enable_float_output"), calibration(dtypes.attrs)?) {
            (true, _) => DType::F32,
            (false, Some(_)) => DType::I8,
            (false, None) => DType::I32,
        };
        dtypes.set_output(0, out)
    },
    bind: bind_mul,
    ..OpDef::BASE
}];

fn bind_mul(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (calibrated, dtype) = (calibration(attrs)?, signature.outputs[0].dtype);
    Ok(costed_kernel_fn("multiply", elementwise_ns(signature, 500), move |call| {
        let ranges = [Range::read("lhs", call.inputs, 2)?, Range::read("rhs", call.inputs, 4)?];
        let (a, b) = (elements::<i8>(&call.inputs[0])?, elements::<i8>(&call.inputs[1])?);
        let products = a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b));
        let steps = ranges.map(|range| scale(DType::I8, range));
        match dtype {
            DType::I32 => {
                let out = elements_mut::<i32>(&mut call.outputs[0])?;
                out.iter_mut().zip(products).for_each(|(out, product)| *out = product);
                return store_range(product_range(ranges[0], ranges[1], false), call.outputs);
            }
            DType::F32 => {
                let factor = 1.0 / steps[0] / steps[1];
                let out = elements_mut::<f32>(&mut call.outputs[0])?;
                out.iter_mut().zip(products).for_each(|(out, product)| *out = product as f32 * factor);
                return Ok(());
            }
            _ => {}
        }
        let range = calibrated.ok_or_else(wrong_arity)?;
        let factor = scale(DType::I8, range) / steps[0] / steps[1];
        let out = elements_mut::<i8>(&mut call.outputs[0])?;
        out.iter_mut().zip(products).for_each(|(out, product)| *out = (product as f32 * factor) as i8);
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

    #[test]
    fn products_are_cut_off_and_stay_within_the_type() {
        let name = "_contrib_quantized_elemwise_mul";
        assert_eq!(pair(name, &[]).run_all()[0].values::<i32>(), [-4116, -1280, 10_000]);
        let y = pair(name, &[("min_calib_range", "-0.5"), ("max_calib_range", "0.5")]).run_all();
        assert_eq!(y[0].values::<i8>(), [-64, -20, 127]);
        let y = pair(name, &[("enable_float_output", "True")]).run_all();
        assert_eq!(y.len(), 1);
        let (y, want) = (y[0].values::<f32>()[2], 10_000.0 / 127.5 / 127.5);
        assert!((y - want).abs() <= f32::EPSILON, "{y}, not {want}");
    }
}
