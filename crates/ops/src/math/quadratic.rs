//! `_contrib_quadratic`, `_contrib_div_sqrt_dim`: small polynomials.

use crate::prelude::*;
use mxrt_kernels::elementwise::{Binary, binary_scalar};

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_contrib_quadratic",
        doc: "a * x^2 + b * x + c, element by element.",
        attrs: &[
            AttrDef::new("a", AttrKind::Float, "0", "Factor of the square."),
            AttrDef::new("b", AttrKind::Float, "0", "Factor of the element."),
            AttrDef::new("c", AttrKind::Float, "0", "What is added."),
        ],
        bind: |attrs, signature| {
            let (a, b, c) = (attrs.float("a"), attrs.float("b"), attrs.float("c"));
            dispatch!(signature.inputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
                let x = elements::<T>(&call.inputs[0])?;
                for (out, x) in elements_mut::<T>(&mut call.outputs[0])?.iter_mut().zip(x) {
                    let x = x.to_f64();
                    *out = T::from_f64((a * x + b) * x + c);
                }
                Ok(())
            })))
        },
        ..OpDef::BASE
    },
    OpDef {
        name: "_contrib_div_sqrt_dim",
        doc: "The input divided by the square root of its last extent; whole numbers by the whole part of it.",
        ignores_unknown_attrs: true,
        bind: |_, signature| {
            let root = root_of_last(signature);
            dispatch!(signature.inputs[0].dtype, numeric, T => {
                Ok(kernel_fn(signature, move |call| {
                    let x = elements::<T>(&call.inputs[0])?;
                    binary_scalar(call.par, Binary::Div, x, T::from_f64(root), elements_mut(&mut call.outputs[0])?);
                    Ok(())
                }))
            })
        },
        form: |_, signature| {
            let (function, number) = (Binary::Div, root_of_last(signature));
            let number = if signature.inputs[0].dtype.is_float() { number } else { number.trunc() };
            for_numeric(signature.inputs[0].dtype, KernelForm::WithNumber { function, number, first: false })
        },
        ..OpDef::BASE
    },
];

/// The square root of the last extent.
fn root_of_last(signature: &Signature<'_>) -> f64 {
    (signature.inputs[0].shape.last().copied().unwrap_or(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn whole_numbers_are_divided_by_a_whole_root() {
        let of = |n: usize, x: &[i32]| OpTest::new("_contrib_div_sqrt_dim").i32([n], x).run().values::<i32>();
        assert_eq!(of(3, &[20, -20, 0]), [20, -20, 0]);
        assert_eq!(of(5, &[21, -21, 3, 1, 0]), [10, -10, 1, 0, 0]);
        assert_eq!(f32s(&OpTest::new("_contrib_div_sqrt_dim").f32([4], &[1.0; 4]).run(), [4]), [0.5; 4]);
    }
}
