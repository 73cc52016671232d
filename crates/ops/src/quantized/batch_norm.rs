//! `_contrib_quantized_batch_norm`: normalisation of integers with moving statistics.

use super::{
    Range, WITH_RANGE, bytes_of, calibration, dispatch_bytes, infer_float_ranges, infer_scalars, scale, store_range,
};
use crate::nn::batch_norm::{ATTRS, infer_shape};
use crate::prelude::*;
use mxrt_kernels::int8::RoundTo;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_quantized_batch_norm",
    doc: "BatchNorm of int8 or uint8 integers; returns int8 integers of the calibrated range, which is required. \
        fix_gamma is without effect, as in MXNet.",
    inputs: Inputs::Fixed(&INPUTS),
    aux: &[3, 4],
    attrs: ATTRS,
    outputs: WITH_RANGE,
    infer_shape: |shapes| {
        let Shapes { attrs, inputs, outputs } = shapes;
        infer_shape(&mut Shapes { attrs, inputs, outputs: &mut outputs[..1] })?;
        infer_scalars(shapes, 5, &INPUTS)
    },
    infer_dtype: |dtypes| {
        bytes_of(dtypes, 0, "data")?;
        dtypes.set_output(0, DType::I8)?;
        infer_float_ranges(dtypes, 1, &INPUTS)
    },
    bind,
    ..OpDef::BASE
}];

const INPUTS: [&str; 7] = ["data", "gamma", "beta", "moving_mean", "moving_var", "min_data", "max_data"];

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let Some(range) = calibration(attrs)? else {
        return Err(value_error(
            "min_calib_range and max_calib_range are missing: quantize the model with calib_mode naive or entropy",
        ));
    };
    let (shape, eps) = (&signature.inputs[0].shape, attrs.float("eps") as f32);
    let axis = resolve_axis(attrs.int("axis"), shape.len())?;
    let [_, channels, inner] = split_around(axis, shape);
    let dtype = signature.inputs[0].dtype;
    dispatch_bytes!(dtype, T => Ok(costed_kernel_fn("batch norm", elementwise_ns(signature, 500), move |call| {
        let data = Range::read("data", call.inputs, 5)?;
        let of = |i: usize| elements::<f32>(&call.inputs[i]);
        let (gamma, beta, mean, variance) = (of(1)?, of(2)?, of(3)?, of(4)?);
        let step = scale(DType::I8, range);
        // MXNet normalises integers of a variance of 1, to which oneDNN adds eps again.
        let again = 1.0 / (1.0 + eps).sqrt();
        let channel = |c: usize| {
            let factor = gamma[c] * (1.0 / (variance[c] + eps).sqrt());
            (factor * data.largest() * (step / 127.5) * again, (beta[c] - mean[c] * factor) * step)
        };
        let parts = Scratch::collect(call.par, channels, (0..channels).map(channel));
        // MXNet brings unsigned data to the steps of signed ones first.
        let as_signed = |v: f32| if dtype == DType::U8 { f32::from(i8::round_to(v * (127.5 / 255.5))) } else { v };
        let from = elements::<T>(&call.inputs[0])?.chunks(inner.max(1));
        let to = elements_mut::<i8>(&mut call.outputs[0])?.chunks_mut(inner.max(1));
        for (i, (from, to)) in from.zip(to).enumerate() {
            let (factor, shift) = parts[i % channels];
            to.iter_mut().zip(from).for_each(|(to, v)| {
                *to = i8::round_to(as_signed(v.to_f64() as f32) * factor + shift);
            });
        }
        store_range(range, call.outputs)
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    fn normalised(attrs: &[(&str, &str)]) -> OpTest {
        let data: Vec<i8> = (-12..12).map(|v| v * 10).collect();
        let test = OpTest::new("_contrib_quantized_batch_norm").attrs(attrs);
        let test = test.i8([1, 3, 2, 4], &data).f32([3], &[1.0, 2.0, 0.5]).f32([3], &[0.1, 0.2, 0.3]);
        test.f32([3], &[0.0, 0.1, 0.2]).f32([3], &[1.0, 2.0, 0.5]).f32([1], &[-1.0]).f32([1], &[1.0])
    }

    /// MXNet 1.9.1 on these numbers.
    #[test]
    fn integers_are_normalised_within_the_calibrated_range() {
        let y = normalised(&[("min_calib_range", "-2"), ("max_calib_range", "2")]).run_all();
        let want =
            [-54, -49, -44, -39, -34, -29, -24, -19, -25, -17, -10, -3, 4, 11, 18, 25, 24, 28, 31, 35, 38, 42, 45, 49];
        assert_eq!(y[0].values::<i8>(), want);
    }

    /// MXNet 1.9.1 on these numbers.
    #[test]
    fn eps_is_added_to_the_variance_twice() {
        let attrs = [("min_calib_range", "-2"), ("max_calib_range", "2"), ("eps", "0.125")];
        let y = normalised(&attrs).run_all();
        let want =
            [-47, -43, -38, -34, -29, -25, -20, -16, -22, -15, -9, -2, 4, 10, 17, 23, 23, 26, 29, 32, 35, 38, 41, 44];
        assert_eq!(y[0].values::<i8>(), want);
    }

    #[test]
    fn a_missing_calibration_is_an_error_that_names_it() {
        assert!(normalised(&[]).error().message.contains("min_calib_range and max_calib_range are missing"));
    }
}
