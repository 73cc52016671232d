//! Comparisons that write bool at once: of two arrays of one shape, and of floats and a number.

use crate::prelude::*;
use mxrt_kernels::elementwise::{self, Comparison};

/// Compares arrays of one shape and element type.
pub(super) fn bind_arrays(comparison: Comparison, signature: &Signature<'_>) -> BoundKernel {
    dispatch!(signature.inputs[0].dtype, all, T => Ok(kernel_fn(signature, move |call| {
        let (x, y) = (elements::<T>(&call.inputs[0])?, elements::<T>(&call.inputs[1])?);
        elementwise::compare(call.par, comparison, x, y, elements_mut::<u8>(&mut call.outputs[0])?);
        Ok(())
    })))
}

/// Compares an array of floats with a number, which is rounded to their type.
pub(super) fn bind_number(comparison: Comparison, number: f64, signature: &Signature<'_>) -> BoundKernel {
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let (x, out) = (elements::<T>(&call.inputs[0])?, elements_mut::<u8>(&mut call.outputs[0])?);
        elementwise::compare_number(call.par, comparison, x, T::from_f64(number), out);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    #[test]
    fn nothing_but_inequality_holds_for_nan() {
        let x = [1.0, f32::NAN, 3.0];
        for (op, arrays, number) in [
            ("_npi_equal", [1, 0, 0], [0, 0, 1]),
            ("_npi_not_equal", [0, 1, 1], [1, 1, 0]),
            ("_npi_less", [0, 0, 1], [1, 0, 0]),
            ("_npi_less_equal", [1, 0, 1], [1, 0, 1]),
            ("_npi_greater", [0, 0, 0], [0, 0, 0]),
            ("_npi_greater_equal", [1, 0, 0], [0, 0, 1]),
        ] {
            let two = OpTest::new(op).f32([3], &x).f32([3], &[1.0, 2.0, 4.0]).run();
            assert_eq!(two.values::<u8>(), arrays, "{op}");
            let one = OpTest::new(&format!("{op}_scalar")).attr("scalar", "3").f32([3], &x).run();
            assert_eq!(one.values::<u8>(), number, "{op}");
        }
    }
}
