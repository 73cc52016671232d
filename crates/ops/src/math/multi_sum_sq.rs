//! `multi_sum_sq`: sums of squares of whole arrays.

use super::all_finite::check_float;
use crate::prelude::*;
use mxrt_tensor::TensorRef;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
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
}];

fn sum_of_squares(array: &TensorRef<'_>) -> Result<f32, OpError> {
    dispatch!(array.dtype, float, T => {
        Ok(elements::<T>(array)?.iter().fold(0.0, |sum, v| sum + v.to_f64() * v.to_f64()) as f32)
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn squares_are_summed_for_each_array() {
        let sums = OpTest::new("multi_sum_sq").attr("num_arrays", "2").f32([2], &[1.0, 2.0]).f32([1, 2], &[1.0, 3.0]);
        assert_eq!(f32s(&sums.run(), [2]), [5.0, 10.0]);
        let error = OpTest::new("multi_sum_sq").attr("num_arrays", "1").i32([1], &[1]).error();
        assert!(error.message.contains("int32"), "{}", error.message);
    }
}
