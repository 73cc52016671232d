//! `all_finite`, `multi_all_finite`: whether all elements are finite.

use crate::prelude::*;
use mxrt_tensor::TensorRef;

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
];

const INIT: AttrDef =
    AttrDef::new("init_output", AttrKind::Bool, "True", "Whether out is overwritten; only True is there.");

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

pub(super) fn check_float(array: &mxrt_tensor::TensorType) -> Result<(), OpError> {
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
}
