//! Functions of every element: a row each.

use crate::math::bind_unary;
use crate::prelude::*;
use mxrt_kernels::elementwise::Unary;

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
        ]
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
