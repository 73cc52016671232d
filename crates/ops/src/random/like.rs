//! `_random_uniform_like`, `_random_normal_like`: random numbers in the shape of another array.

use super::{Distribution, bind_constant};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_random_uniform_like",
        doc: "Numbers drawn uniformly from a range, in the shape and dtype of data.",
        attrs: &[
            AttrDef::new("low", AttrKind::Float, "0", "Lower end."),
            AttrDef::new("high", AttrKind::Float, "1", "Upper end, not included."),
        ],
        bind: |attrs, signature| {
            bind_constant(Distribution::Uniform, attrs.float("low"), attrs.float("high"), signature)
        },
        random: true,
        ..OpDef::BASE
    },
    OpDef {
        name: "_random_normal_like",
        doc: "Numbers drawn from a normal distribution, in the shape and dtype of data.",
        attrs: &[
            AttrDef::new("loc", AttrKind::Float, "0", "Mean."),
            AttrDef::new("scale", AttrKind::Float, "1", "Deviation."),
        ],
        bind: |attrs, signature| {
            bind_constant(Distribution::Normal, attrs.float("loc"), attrs.float("scale"), signature)
        },
        random: true,
        ..OpDef::BASE
    },
];
