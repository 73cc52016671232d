//! Trigonometric and hyperbolic functions.

use super::unary_op;
use crate::prelude::*;
use mxrt_kernels::elementwise::Unary;

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    unary_op!("sin", &["_sparse_sin"], Unary::Sin, "Element by element, the sine."),
    unary_op!("cos", &["_sparse_cos"], Unary::Cos, "Element by element, the cosine."),
    unary_op!("tan", &["_sparse_tan"], Unary::Tan, "Element by element, the tangent."),
    unary_op!("arcsin", &["_sparse_arcsin"], Unary::Asin, "Element by element, the inverse sine."),
    unary_op!("arccos", &["_sparse_arccos"], Unary::Acos, "Element by element, the inverse cosine."),
    unary_op!("arctan", &["_sparse_arctan"], Unary::Atan, "Element by element, the inverse tangent."),
    unary_op!(
        "degrees",
        &["_sparse_degrees"],
        Unary::Degrees,
        "Element by element, the angle in degrees, of one in radians."
    ),
    unary_op!(
        "radians",
        &["_sparse_radians"],
        Unary::Radians,
        "Element by element, the angle in radians, of one in degrees."
    ),
    unary_op!("sinh", &["_sparse_sinh"], Unary::Sinh, "Element by element, the hyperbolic sine."),
    unary_op!("cosh", &["_sparse_cosh"], Unary::Cosh, "Element by element, the hyperbolic cosine."),
    unary_op!("tanh", &["_sparse_tanh"], Unary::Tanh, "Element by element, the hyperbolic tangent."),
    unary_op!("arcsinh", &["_sparse_arcsinh"], Unary::Asinh, "Element by element, the inverse hyperbolic sine."),
    unary_op!("arccosh", &["_sparse_arccosh"], Unary::Acosh, "Element by element, the inverse hyperbolic cosine."),
    unary_op!("arctanh", &["_sparse_arctanh"], Unary::Atanh, "Element by element, the inverse hyperbolic tangent."),
];
