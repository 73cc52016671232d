//! `_npi_around`: rounding to decimal places.

use crate::prelude::*;
use crate::shape::bind_copy;
use mxrt_kernels::elementwise::around;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npi_around",
    doc: "Rounded to a number of decimal places; of two equally near, the even one.",
    inputs: Inputs::Fixed(&["x"]),
    attrs: &[AttrDef::new("decimals", AttrKind::Int, "0", "Decimal places; negative ones are before the point.")],
    infer_dtype: |dtypes| {
        if dtypes.inputs[0] == Some(DType::F16) {
            return Err(unsupported_dtype(DType::F16, "float32, float64 and whole numbers"));
        }
        dtypes.all_same()
    },
    bind: |attrs, signature| {
        let decimals = attrs.int("decimals");
        if !signature.inputs[0].dtype.is_float() && decimals >= 0 {
            check_numeric(signature.inputs[0].dtype)?;
            return bind_copy(attrs, signature);
        }
        let places = places(decimals);
        dispatch!(signature.inputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
            around(call.par, places, elements::<T>(&call.inputs[0])?, elements_mut::<T>(&mut call.outputs[0])?);
            Ok(())
        })))
    },
    form: |attrs, signature| {
        let (dtype, decimals) = (signature.inputs[0].dtype, attrs.int("decimals"));
        let stays = !dtype.is_float() && decimals >= 0;
        for_numeric(dtype, if stays { KernelForm::Copy } else { KernelForm::Rounded { places: places(decimals) } })
    },
    ..OpDef::BASE
}];

/// Decimal places within the range of all numbers.
fn places(decimals: i64) -> i32 {
    decimals.clamp(-400, 400) as i32
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn halves_are_rounded_to_even_numbers() {
        let x = OpTest::new("_npi_around").f32([4], &[0.5, 1.5, -2.5, 2.25]);
        assert_eq!(f32s(&x.run(), [4]), [0.0, 2.0, -2.0, 2.0]);
        let x = OpTest::new("_npi_around").attr("decimals", "1").f32([2], &[0.25, 1.5]);
        assert_eq!(f32s(&x.run(), [2]), [0.2, 1.5]);
        // In single precision this is half way between, and 2.4 the even neighbour.
        assert_eq!(f32s(&OpTest::new("_npi_around").attr("decimals", "1").f32([1], &[2.35]).run(), [1]), [2.4]);
    }
}
