//! `MakeLoss`, `make_loss`: the identity, which marks a loss in training.

use crate::prelude::*;
use crate::shape::bind_copy;

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "MakeLoss",
        doc: "At inference data unchanged.",
        attrs: &[
            AttrDef::new("grad_scale", AttrKind::Float, "1", "For training."),
            AttrDef::new("valid_thresh", AttrKind::Float, "0", "For training."),
            AttrDef::new("normalization", AttrKind::Enum(&["batch", "null", "valid"]), "null", "For training."),
        ],
        bind: bind_copy,
        rewrites: &Rewrites { is_identity: |_| true, ..Rewrites::NONE },
        ..OpDef::BASE
    },
    OpDef {
        name: "make_loss",
        aliases: &["_sparse_make_loss"],
        doc: "At inference data unchanged.",
        outputs: Outputs::Named(|_| &["loss"]),
        ignores_unknown_attrs: true,
        bind: bind_copy,
        rewrites: &Rewrites { is_identity: |_| true, ..Rewrites::NONE },
        ..OpDef::BASE
    },
];
