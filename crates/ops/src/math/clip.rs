//! `clip`: values limited to a range.

use super::bind_unary;
use crate::blocked;
use crate::prelude::*;
use mxrt_kernels::elementwise::Unary;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "clip",
    aliases: &["_npi_clip", "_sparse_clip"],
    doc: "Limits every element to the range from a_min to a_max; NaN stays NaN.",
    attrs: &[
        AttrDef::required("a_min", AttrKind::Float, "Lowest value."),
        AttrDef::required("a_max", AttrKind::Float, "Highest value."),
    ],
    bind: |attrs, signature| {
        bind_unary(Unary::Clip { low: attrs.float("a_min"), high: attrs.float("a_max") }, signature)
    },
    rewrites: &Rewrites {
        blocked_form: |_, signature| blocked::pointwise::form("_blocked_clip", signature, 1),
        elementwise: |attrs| {
            Some(Elementwise::Unary(Unary::Clip { low: attrs.float("a_min"), high: attrs.float("a_max") }))
        },
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];
