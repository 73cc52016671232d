//! `all_finite`, `multi_all_finite`, `multi_sum_sq`, `_contrib_allclose`: one answer about whole
//! arrays.

use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::{Element, Float};
use mxrt_tensor::{DType, PartialShape, TensorRef};

const INIT: AttrDef =
    AttrDef::new("init_output", AttrKind::Bool, "True", "Whether out is overwritten; only True is there.");

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "all_finite",
        doc: "1 if all elements are finite in float32, else 0, as a float32 array of shape (1,).",
        attrs: &[INIT],
        ..FINITE
    },
    OpDef {
        name: "multi_all_finite",
        doc: "1 if all elements of all arrays are finite in float32, else 0, as a float32 array of \
              shape (1,).",
        inputs: Inputs::Variadic { count: "num_arrays", prefix: "data_", named: |_| None },
        attrs: &[AttrDef::new("num_arrays", AttrKind::IntFrom(1), "1", "Number of arrays."), INIT],
        ..FINITE
    },
    OpDef {
        name: "multi_sum_sq",
        doc: "The sum of squares of each array, in float32.",
        inputs: Inputs::Variadic { count: "num_arrays", prefix: "data_", named: |_| None },
        attrs: &[AttrDef::required("num_arrays", AttrKind::IntFrom(1), "Number of arrays.")],
        infer_shape: |shapes| {
            let count = shapes.inputs.len();
            shapes.set_output(0, PartialShape::from_dims([Some(count)]))
        },
        infer_dtype: |dtypes| dtypes.set_output(0, DType::F32),
        bind: |_, signature| {
            signature.inputs.iter().try_for_each(check_float)?;
            Ok(kernel_fn(signature, |call| {
                let sums = call.inputs.iter().map(sum_of_squares).collect::<Result<Vec<f32>, _>>()?;
                elements_mut::<f32>(&mut call.outputs[0])?.copy_from_slice(&sums);
                Ok(())
            }))
        },
        ..OpDef::BASE
    },
    OpDef {
        name: "_contrib_allclose",
        doc: "1 if all elements are equal or differ by no more than atol + rtol * |b|, else 0, as \
              a uint8 array of shape ().",
        inputs: Inputs::Fixed(&["a", "b"]),
        attrs: &[
            AttrDef::new("rtol", AttrKind::Float, "9.99999975e-06", "Difference allowed relative to b."),
            AttrDef::new("atol", AttrKind::Float, "9.99999994e-09", "Difference allowed besides."),
            AttrDef::new("equal_nan", AttrKind::Bool, "True", "Whether NaN equals NaN."),
        ],
        infer_shape: |shapes| {
            let [a, b] = shapes.inputs else { return Err(wrong_arity()) };
            PartialShape::unify(a, b).map_err(|e| shape_error(format!("a and b must have one shape: {e}")))?;
            shapes.set_output(0, PartialShape::from_dims([]))
        },
        infer_dtype: |dtypes| {
            if let Some(dtype) = dtypes.inputs[0].or(dtypes.inputs[1]) {
                dtypes.set_input(0, "a", dtype)?;
                dtypes.set_input(1, "b", dtype)?;
            }
            dtypes.set_output(0, DType::U8)
        },
        bind: bind_close,
        form: |attrs, signature| {
            let (relative, absolute, equal_nan) = (attrs.float("rtol"), attrs.float("atol"), attrs.bool("equal_nan"));
            for_numeric(signature.inputs[0].dtype, KernelForm::AllClose { relative, absolute, equal_nan })
        },
        ..OpDef::BASE
    },
];

const FINITE: OpDef = OpDef {
    infer_shape: |shapes| shapes.set_output(0, PartialShape::from_dims([Some(1)])),
    infer_dtype: |dtypes| dtypes.set_output(0, DType::F32),
    form: |attrs, signature| {
        check_finite(attrs, signature)?;
        Ok(Some(KernelForm::AllFinite))
    },
    bind: |attrs, signature| {
        check_finite(attrs, signature)?;
        Ok(kernel_fn(signature, |call| {
            let mut all = true;
            for array in call.inputs {
                all &= is_finite(array)?;
            }
            elements_mut::<f32>(&mut call.outputs[0])?.fill(f32::from(u8::from(all)));
            Ok(())
        }))
    },
    ..OpDef::BASE
};

fn check_finite(attrs: &Attrs, signature: &Signature<'_>) -> Result<(), OpError> {
    if !attrs.bool("init_output") {
        return Err(not_implemented(
            "init_output=False is not there: an operator does not read what out holds; multiply the results",
        ));
    }
    signature.inputs.iter().try_for_each(check_float)
}

fn check_float(array: &mxrt_tensor::TensorType) -> Result<(), OpError> {
    dispatch!(array.dtype, float, T => {
        let _: std::marker::PhantomData<T> = std::marker::PhantomData;
        Ok(())
    })
}

fn is_finite(array: &TensorRef<'_>) -> Result<bool, OpError> {
    dispatch!(array.dtype, float, T => {
        Ok(elements::<T>(array)?.iter().all(|v| (v.to_f64() as f32).is_finite()))
    })
}

fn sum_of_squares(array: &TensorRef<'_>) -> Result<f32, OpError> {
    dispatch!(array.dtype, float, T => {
        Ok(elements::<T>(array)?.iter().fold(0.0, |sum, v| sum + v.to_f64() * v.to_f64()) as f32)
    })
}

fn bind_close(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let (relative, absolute, equal_nan) = (attrs.float("rtol"), attrs.float("atol"), attrs.bool("equal_nan"));
    dispatch!(signature.inputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
        let [a, b] = call.inputs else { return Err(wrong_arity()) };
        let close = |(a, b): (&T, &T)| {
            if a.nan() || b.nan() {
                return equal_nan && a.nan() && b.nan();
            }
            let (a, b) = (a.to_f64(), b.to_f64());
            a == b || Float::abs(a - b) <= absolute + relative * Float::abs(b)
        };
        let all = elements::<T>(a)?.iter().zip(elements::<T>(b)?).all(close);
        elements_mut::<u8>(&mut call.outputs[0])?.fill(u8::from(all));
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn one_infinity_is_enough() {
        let finite = |values: &[f32]| f32s(&OpTest::new("all_finite").floats(&[values.len()], values).run(), [1]);
        assert_eq!(finite(&[1.0, 2.0]), [1.0]);
        assert_eq!(finite(&[1.0, f32::NEG_INFINITY]), [0.0]);
        let two = OpTest::new("multi_all_finite").attr("num_arrays", "2").f32([1], &[1.0]).f32([1, 1], &[f32::NAN]);
        assert_eq!(f32s(&two.run(), [1]), [0.0]);
        let error = OpTest::new("all_finite").attr("init_output", "False").f32([1], &[1.0]).error();
        assert!(error.message.contains("init_output=False"), "{}", error.message);
    }

    #[test]
    fn squares_are_summed_for_each_array() {
        let sums = OpTest::new("multi_sum_sq").attr("num_arrays", "2").f32([2], &[1.0, 2.0]).f32([1, 2], &[1.0, 3.0]);
        assert_eq!(f32s(&sums.run(), [2]), [5.0, 10.0]);
        let error = OpTest::new("multi_sum_sq").attr("num_arrays", "1").i32([1], &[1]).error();
        assert!(error.message.contains("int32"), "{}", error.message);
    }

    #[test]
    fn closeness_is_relative_to_the_second_array() {
        let close = |a: [f32; 2], b: [f32; 2], attrs: &[(&str, &str)]| {
            let test = attrs.iter().fold(OpTest::new("_contrib_allclose"), |t, (k, v)| t.attr(k, v));
            test.f32([2], &a).f32([2], &b).run().values::<u8>()
        };
        assert_eq!(close([1.0, 2.0], [1.0, 2.1], &[]), [0]);
        assert_eq!(close([1.0, 2.0], [1.0, 2.1], &[("rtol", "0.05")]), [1]);
        assert_eq!(close([1.0, f32::NAN], [1.0, f32::NAN], &[]), [1]);
        assert_eq!(close([1.0, f32::NAN], [1.0, f32::NAN], &[("equal_nan", "False")]), [0]);
    }
}
