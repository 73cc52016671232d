//! `_contrib_allclose`: whether two arrays are nearly equal.

use crate::prelude::*;
use mxrt_kernels::Float;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
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
}];

fn bind_close(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
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
    use crate::testing::OpTest;

    #[test]
    fn closeness_is_relative_to_the_second_array() {
        let close = |a: [f32; 2], b: [f32; 2], attrs: &[(&str, &str)]| {
            let test = OpTest::new("_contrib_allclose").attrs(attrs);
            test.f32([2], &a).f32([2], &b).run().values::<u8>()
        };
        assert_eq!(close([1.0, 2.0], [1.0, 2.1], &[]), [0]);
        assert_eq!(close([1.0, 2.0], [1.0, 2.1], &[("rtol", "0.05")]), [1]);
        assert_eq!(close([1.0, f32::NAN], [1.0, f32::NAN], &[]), [1]);
        assert_eq!(close([1.0, f32::NAN], [1.0, f32::NAN], &[("equal_nan", "False")]), [0]);
    }
}
