//! `hard_sigmoid`: a logistic function made of three straight lines.

use super::bind_unary;
use crate::prelude::*;
use mxrt_kernels::elementwise::Unary;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "hard_sigmoid",
    doc: "Element by element, alpha * x + beta limited to the range from 0 to 1.",
    attrs: &[
        AttrDef::new("alpha", AttrKind::Float, "0.200000003", "Slope."),
        AttrDef::new("beta", AttrKind::Float, "0.5", "Value at 0."),
    ],
    bind: |attrs, signature| bind_unary(function(attrs), signature),
    rewrites: &Rewrites { elementwise: |attrs| Some(Elementwise::Unary(function(attrs))), ..Rewrites::NONE },
    ..OpDef::BASE
}];

fn function(attrs: &Attrs) -> Unary {
    Unary::HardSigmoid { alpha: attrs.float("alpha"), beta: attrs.float("beta") }
}
