//! Functions of every element, and questions about it: a row each.

use crate::math::bind_unary;
use crate::prelude::*;
use crate::shape::bind_copy;
use mxrt_kernels::Element;
use mxrt_kernels::elementwise::{Binary, Unary};
use mxrt_tensor::DType;

macro_rules! functions {
    ($($name:literal [$($alias:literal)*] $function:ident $input:literal $doc:literal)*) => {
        &[
            $(OpDef {
                name: $name,
                aliases: &[$($alias),*],
                doc: $doc,
                inputs: Inputs::Fixed(&[$input]),
                ignores_unknown_attrs: true,
                bind: |_, signature| bind_unary(Unary::$function, signature),
                rewrites: &Rewrites {
                    elementwise: |_| Some(Elementwise::Unary(Unary::$function)),
                    ..Rewrites::NONE
                },
                ..OpDef::BASE
            },)*
            BITWISE_NOT,
            AROUND,
            NAN_TO_NUM,
            question!("_npi_logical_not", "True where an element is 0.", |x| x == 0.0, equals(0.0)),
            question!("_npi_isnan", "True where an element is NaN.", f64::is_nan, of(Unary::IsNan)),
            question!("_npi_isinf", "True where an element is infinite.", f64::is_infinite, of(Unary::IsInf)),
            question!(
                "_npi_isposinf",
                "True where an element is positive infinity.",
                |x| x == f64::INFINITY,
                equals(f64::INFINITY)
            ),
            question!(
                "_npi_isneginf",
                "True where an element is negative infinity.",
                |x| x == f64::NEG_INFINITY,
                equals(f64::NEG_INFINITY)
            ),
            question!(
                "_npi_isfinite",
                "True where an element is neither infinite nor NaN.",
                f64::is_finite,
                of(Unary::IsFinite)
            ),
        ]
    };
}

macro_rules! question {
    ($name:literal, $doc:literal, $answer:expr, $form:expr) => {
        OpDef {
            name: $name,
            doc: $doc,
            inputs: Inputs::Fixed(&["x"]),
            ignores_unknown_attrs: true,
            infer_dtype: |dtypes| dtypes.set_output(0, DType::Bool),
            bind: |_, signature| bind_question($answer, signature),
            form: |_, signature| question_form($form, signature),
            ..OpDef::BASE
        }
    };
}

/// Rows of the table.
pub static OPS: &[OpDef] = functions! {
    "_npi_absolute" ["_npi_abs"] Abs "x" "The absolute value."
    "_npi_negative" [] Negative "x" "The negative."
    "_npi_reciprocal" [] Reciprocal "x" "1 divided by the element."
    "_npi_sign" [] Sign "x" "The sign: -1, 0 or 1."
    "_npi_rint" [] Rint "x" "The nearest whole number; of two, the even one."
    "_npi_ceil" [] Ceil "x" "The next whole number above."
    "_npi_floor" [] Floor "x" "The next whole number below."
    "_npi_trunc" [] Trunc "x" "The whole part."
    "_npi_fix" [] Fix "x" "The whole part."
    "_npi_square" [] Square "x" "The square."
    "_npi_sqrt" [] Sqrt "x" "The square root."
    "_npi_cbrt" [] Cbrt "x" "The cube root."
    "_npi_exp" [] Exp "x" "e to the power of the element."
    "_npi_expm1" [] Expm1 "x" "e to the power of the element, less 1."
    "_npi_log" [] Ln "x" "The natural logarithm."
    "_npi_log2" [] Log2 "x" "The logarithm to base 2."
    "_npi_log10" [] Log10 "x" "The logarithm to base 10."
    "_npi_log1p" [] Log1p "x" "The natural logarithm of the element plus 1."
    "_npi_sin" [] Sin "x" "The sine."
    "_npi_cos" [] Cos "x" "The cosine."
    "_npi_tan" [] Tan "x" "The tangent."
    "_npi_arcsin" [] Asin "x" "The inverse sine."
    "_npi_arccos" [] Acos "x" "The inverse cosine."
    "_npi_arctan" [] Atan "x" "The inverse tangent."
    "_npi_sinh" [] Sinh "x" "The hyperbolic sine."
    "_npi_cosh" [] Cosh "x" "The hyperbolic cosine."
    "_npi_tanh" [] Tanh "x" "The hyperbolic tangent."
    "_npi_arcsinh" [] Asinh "x" "The inverse hyperbolic sine."
    "_npi_arccosh" [] Acosh "x" "The inverse hyperbolic cosine."
    "_npi_arctanh" [] Atanh "x" "The inverse hyperbolic tangent."
    "_npi_degrees" [] Degrees "x" "Radians in degrees."
    "_npi_radians" [] Radians "x" "Degrees in radians."
    "_npx_relu" [] Relu "data" "The element where positive, else 0."
    "_npx_sigmoid" [] Sigmoid "data" "1 / (1 + e^-x)."
};

const BITWISE_NOT: OpDef = OpDef {
    name: "_npi_bitwise_not",
    doc: "All bits inverted; of bool, the opposite.",
    inputs: Inputs::Fixed(&["x"]),
    ignores_unknown_attrs: true,
    bind: |_, signature| {
        if signature.inputs[0].dtype == DType::Bool {
            return bind_question(|x| x == 0.0, signature);
        }
        dispatch!(signature.inputs[0].dtype, whole, T => Ok(kernel_fn(signature, move |call| {
            let (x, out) = (elements::<T>(&call.inputs[0])?, elements_mut::<T>(&mut call.outputs[0])?);
            out.iter_mut().zip(x).for_each(|(out, x)| *out = T::from_i64(!x.to_i64()));
            Ok(())
        })))
    },
    form: |_, signature| match signature.inputs[0].dtype {
        dtype if dtype.is_float() => Ok(None),
        DType::Bool => for_all(DType::Bool, equals(0.0)),
        // All bits but the own ones.
        dtype => for_all(dtype, KernelForm::WithNumber { function: Binary::BitXor, number: -1.0, first: false }),
    },
    ..OpDef::BASE
};

const AROUND: OpDef = OpDef {
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
        let whole = !signature.inputs[0].dtype.is_float();
        dispatch!(signature.inputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
            let (x, out) = (elements::<T>(&call.inputs[0])?, elements_mut::<T>(&mut call.outputs[0])?);
            // Each step is rounded to the type, as in MXNet, but for whole numbers.
            let step = |v: f64| if whole { v } else { T::from_f64(v).to_f64() };
            out.iter_mut().zip(x).for_each(|(out, x)| *out = T::from_f64(around(x.to_f64(), places, step)));
            Ok(())
        })))
    },
    form: |attrs, signature| {
        let (dtype, decimals) = (signature.inputs[0].dtype, attrs.int("decimals"));
        let stays = !dtype.is_float() && decimals >= 0;
        for_numeric(dtype, if stays { KernelForm::Copy } else { KernelForm::Rounded { places: places(decimals) } })
    },
    ..OpDef::BASE
};

/// Decimal places within the range of all numbers.
fn places(decimals: i64) -> i32 {
    decimals.clamp(-400, 400) as i32
}

/// A number rounded to decimal places by steps of a factor of 10. One that has fewer places is
/// unchanged.
fn around(x: f64, places: i32, step: impl Fn(f64) -> f64) -> f64 {
    let shift = |x: f64, up: bool| (0..places.abs()).fold(x, |x, _| step(if up { x * 10.0 } else { x / 10.0 }));
    let scaled = shift(x, places > 0);
    if scaled.is_finite() { shift(scaled.round_ties_even(), places < 0) } else { x }
}

const NAN_TO_NUM: OpDef = OpDef {
    name: "_npi_nan_to_num",
    doc: "NaN and infinities replaced by numbers.",
    attrs: &[
        AttrDef::new("copy", AttrKind::Bool, "True", "For NumPy; the result is an array of its own."),
        AttrDef::new("nan", AttrKind::Float, "0", "In the place of NaN.").wide(),
        AttrDef::new("posinf", AttrKind::OptFloat, "None", "In the place of infinity; the largest number if none.")
            .wide(),
        AttrDef::new("neginf", AttrKind::OptFloat, "None", "In the place of -infinity; the lowest number if none.")
            .wide(),
    ],
    bind: |attrs, signature| {
        if !signature.inputs[0].dtype.is_float() {
            return bind_copy(attrs, signature);
        }
        let (nan, top, bottom) = (attrs.float("nan"), attrs.opt_float("posinf"), attrs.opt_float("neginf"));
        dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
            let (x, out) = (elements::<T>(&call.inputs[0])?, elements_mut::<T>(&mut call.outputs[0])?);
            let nan = T::from_f64(nan);
            let (top, bottom) = (top.map_or(T::HIGHEST, T::from_f64), bottom.map_or(T::LOWEST, T::from_f64));
            for (out, x) in out.iter_mut().zip(x) {
                *out = match *x {
                    x if x.nan() => nan,
                    x if x == T::TOP => top,
                    x if x == T::BOTTOM => bottom,
                    x => x,
                };
            }
            Ok(())
        })))
    },
    form: |attrs, signature| {
        let dtype = signature.inputs[0].dtype;
        if !dtype.is_float() {
            return for_all(dtype, KernelForm::Copy);
        }
        let (nan, top, bottom) = (attrs.float("nan"), attrs.opt_float("posinf"), attrs.opt_float("neginf"));
        dispatch!(dtype, float, T => {
            let (top, bottom) = (top.map_or(T::HIGHEST, T::from_f64), bottom.map_or(T::LOWEST, T::from_f64));
            Ok(Some(KernelForm::Finite { numbers: [T::from_f64(nan), top, bottom].map(|number| number.to_f64()) }))
        })
    },
    ..OpDef::BASE
};

fn of(function: Unary) -> KernelForm {
    KernelForm::of_function(Elementwise::Unary(function))
}

fn equals(number: f64) -> KernelForm {
    KernelForm::WithNumber { function: Binary::Equal, number, first: false }
}

/// The form of a question that is asked of every element, of whole numbers in double precision.
fn question_form(form: KernelForm, signature: &Signature<'_>) -> MaybeForm {
    let dtype = signature.inputs[0].dtype;
    for_all(dtype, form.within(if dtype.is_float() { dtype } else { DType::F64 }))
}

/// A kernel that asks something of every element.
fn bind_question(answer: fn(f64) -> bool, signature: &Signature<'_>) -> BoundKernel {
    dispatch!(signature.inputs[0].dtype, all, T => Ok(kernel_fn(signature, move |call| {
        let (x, out) = (elements::<T>(&call.inputs[0])?, elements_mut::<u8>(&mut call.outputs[0])?);
        out.iter_mut().zip(x).for_each(|(out, x)| *out = answer(x.to_f64()).into());
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};
    use mxrt_tensor::DType;

    #[test]
    fn halves_are_rounded_to_even_numbers() {
        let x = OpTest::new("_npi_around").f32([4], &[0.5, 1.5, -2.5, 2.25]);
        assert_eq!(f32s(&x.run(), [4]), [0.0, 2.0, -2.0, 2.0]);
        let x = OpTest::new("_npi_around").attr("decimals", "1").f32([2], &[0.25, 1.5]);
        assert_eq!(f32s(&x.run(), [2]), [0.2, 1.5]);
        // In single precision this is half way between, and 2.4 the even neighbour.
        assert_eq!(f32s(&OpTest::new("_npi_around").attr("decimals", "1").f32([1], &[2.35]).run(), [1]), [2.4]);
    }

    #[test]
    fn questions_are_answered_with_bool_for_scalars_too() {
        let y = OpTest::new("_npi_isnan").f32([], &[f32::NAN]).run();
        assert_eq!((y.tensor.dtype, y.tensor.shape.len(), y.values::<u8>()), (DType::Bool, 0, vec![1]));
    }
}
