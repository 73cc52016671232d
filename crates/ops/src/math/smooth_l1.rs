//! `smooth_l1`: absolute values, rounded off near zero.

use super::{bind_unary, unary_form};
use crate::prelude::*;
use mxrt_kernels::elementwise::Unary;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "smooth_l1",
    aliases: &["_npx_smooth_l1"],
    doc: "Element by element, |x| - 0.5 / scalar^2, and 0.5 * (scalar * x)^2 where |x| < 1 / \
        scalar^2.",
    attrs: &[AttrDef::new("scalar", AttrKind::Float, "1", "Where the parabola ends: at 1 / scalar^2.").wide()],
    bind: |attrs, signature| bind_unary(function(attrs), signature),
    form: |attrs, signature| unary_form(function(attrs), signature),
    ..OpDef::BASE
}];

fn function(attrs: &Attrs) -> Unary {
    Unary::SmoothL1 { sigma: attrs.float("scalar") }
}
