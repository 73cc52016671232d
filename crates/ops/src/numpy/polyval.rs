//! `_npi_polyval`: values of a polynomial.

use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npi_polyval",
    doc: "A polynomial, given by its coefficients from the highest power down, at every element of x.",
    inputs: Inputs::Fixed(&["p", "x"]),
    ignores_unknown_attrs: true,
    infer_shape: |shapes| {
        if shapes.rank(0).is_some_and(|rank| rank != 1) {
            return Err(shape_error(format!("p has shape {}; expected one axis", shapes.inputs[0])));
        }
        let x = shapes.inputs[1].clone();
        shapes.set_output(0, x)
    },
    infer_dtype: |dtypes| dtypes.uniform(&["p", "x"]),
    bind: |_, signature| {
        dispatch!(signature.inputs[1].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
            let (p, x) = (elements::<T>(&call.inputs[0])?, elements::<T>(&call.inputs[1])?);
            let out = elements_mut::<T>(&mut call.outputs[0])?;
            for (out, x) in out.iter_mut().zip(x) {
                *out = p.iter().fold(T::ZERO, |sum, p| sum.times(*x).plus(*p));
            }
            Ok(())
        })))
    },
    ..OpDef::BASE
}];

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn coefficients_begin_with_that_of_the_highest_power() {
        let y = OpTest::new("_npi_polyval").f32([3], &[1.0, 0.0, 2.0]).f32([2], &[2.0, 3.0]).run();
        assert_eq!(f32s(&y, [2]), [6.0, 11.0]);
    }
}
