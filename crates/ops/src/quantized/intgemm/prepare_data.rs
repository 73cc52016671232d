//! `_contrib_intgemm_prepare_data`: data as bytes.

use super::prepare;
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_intgemm_prepare_data",
    aliases: &["_npx_intgemm_prepare_data"],
    doc: "Quantizes float32 to int8 from -127 to 127, so that maxabs becomes 127.",
    inputs: Inputs::Fixed(&["data", "maxabs"]),
    infer_shape: |shapes| {
        shapes.same_as_first()?;
        shapes.set_input(1, "maxabs", PartialShape::from_dims([Some(1)]))
    },
    infer_dtype: |dtypes| {
        dtypes.set_input(0, "data", DType::F32)?;
        dtypes.set_input(1, "maxabs", DType::F32)?;
        dtypes.set_output(0, DType::I8)
    },
    bind: |_, signature| Ok(costed_kernel_fn("quantize", elementwise_ns(signature, 0), prepare)),
    ..OpDef::BASE
}];

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    #[test]
    fn quantized_numbers_never_are_minus_128() {
        let test = OpTest::new("_contrib_intgemm_prepare_data").f32([5], &[0.5, 1.5, -2.5, -127.0, -300.0]);
        assert_eq!(test.f32([1], &[127.0]).run().values::<i8>(), [0, 2, -2, -127, -127]);
    }

    #[test]
    fn a_magnitude_that_is_none_is_refused() {
        let of = |maxabs: f32| OpTest::new("_contrib_intgemm_prepare_data").f32([1], &[1.0]).f32([1], &[maxabs]);
        assert!(of(f32::NAN).error().message.contains("maxabs is NaN"));
        assert!(of(-1.0).error().message.contains("maxabs is -1"));
    }
}
