//! Functions of one number, element by element.

use super::unary_op;
use crate::prelude::*;
use mxrt_kernels::elementwise::Unary;

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    unary_op!("abs", &["_sparse_abs"], Unary::Abs, "Element by element, the absolute value."),
    unary_op!("sign", &["_sparse_sign"], Unary::Sign, "Element by element, the sign: -1, 0 or 1."),
    unary_op!("negative", &["_sparse_negative"], Unary::Negative, "Element by element, the negative."),
    unary_op!("square", &["_sparse_square"], Unary::Square, "Element by element, the square."),
    unary_op!("sqrt", &["_sparse_sqrt"], Unary::Sqrt, "Element by element, the square root."),
    unary_op!("rsqrt", &["_sparse_rsqrt"], Unary::Rsqrt, "Element by element, the reciprocal of the square root."),
    unary_op!("cbrt", &["_sparse_cbrt"], Unary::Cbrt, "Element by element, the cube root."),
    unary_op!("rcbrt", &[], Unary::Rcbrt, "Element by element, the reciprocal of the cube root."),
    unary_op!("reciprocal", &[], Unary::Reciprocal, "Element by element, the reciprocal."),
    unary_op!("exp", &["_sparse_exp"], Unary::Exp, "Element by element, e to the power."),
    unary_op!("expm1", &["_sparse_expm1"], Unary::Expm1, "Element by element, e to the power minus 1, precise near 0."),
    unary_op!("log", &["_sparse_log"], Unary::Ln, "Element by element, the natural logarithm."),
    unary_op!("log2", &["_sparse_log2"], Unary::Log2, "Element by element, the logarithm to base 2."),
    unary_op!("log10", &["_sparse_log10"], Unary::Log10, "Element by element, the logarithm to base 10."),
    unary_op!(
        "log1p",
        &["_sparse_log1p"],
        Unary::Log1p,
        "Element by element, the natural logarithm of 1 plus the input, precise near 0."
    ),
    unary_op!(
        "floor",
        &["_sparse_floor"],
        Unary::Floor,
        "Element by element, the largest integer that is not greater."
    ),
    unary_op!("ceil", &["_sparse_ceil"], Unary::Ceil, "Element by element, the smallest integer that is not less."),
    unary_op!("trunc", &["_sparse_trunc"], Unary::Trunc, "Element by element, the integer part."),
    unary_op!("fix", &["_sparse_fix"], Unary::Fix, "Element by element, the nearest integer towards zero."),
    unary_op!("rint", &["_sparse_rint"], Unary::Rint, "Element by element, the nearest integer, halves going down."),
    unary_op!(
        "round",
        &["_sparse_round"],
        Unary::Round,
        "Element by element, the nearest integer, halves going away from zero."
    ),
    unary_op!(
        "sigmoid",
        &["_sparse_sigmoid"],
        Unary::Sigmoid,
        "Element by element, the logistic function 1 / (1 + exp(-x))."
    ),
    unary_op!("softsign", &[], Unary::Softsign, "Element by element, x / (1 + |x|)."),
    unary_op!("relu", &["_sparse_relu"], Unary::Relu, "Element by element, max(x, 0)."),
    unary_op!("erf", &["_npx_erf"], Unary::Erf, "Element by element, the error function."),
    unary_op!("erfinv", &["_npx_erfinv"], Unary::Erfinv, "Element by element, the inverse of the error function."),
    unary_op!("gamma", &["_npx_gamma", "_sparse_gamma"], Unary::Gamma, "Element by element, the gamma function."),
    unary_op!(
        "gammaln",
        &["_npx_gammaln", "_sparse_gammaln"],
        Unary::Gammaln,
        "Element by element, the logarithm of the absolute value of the gamma function."
    ),
    unary_op!(
        "logical_not",
        &[],
        Unary::LogicalNot,
        "Element by element, 1 where the input is 0, else 0, in the dtype of the input."
    ),
];
