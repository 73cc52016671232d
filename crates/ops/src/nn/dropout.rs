//! `Dropout`: the identity outside training.

use crate::prelude::*;
use mxrt_engine::OpError;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "Dropout",
    aliases: &["_npx_dropout"],
    doc: "Outside training the input unchanged.",
    hidden_outputs: |_| 1,
    attrs: &[
        AttrDef::new("p", AttrKind::FloatIn(0.0, 1.0), "0.5", "Part of the elements dropped in training."),
        AttrDef::new("mode", AttrKind::Enum(&["always", "training"]), "training", "When elements are dropped."),
        AttrDef::new("axes", AttrKind::Shape, "()", "Axes along which one decision is shared."),
        AttrDef::new("cudnn_off", AttrKind::OptBool, "0", "Without effect here."),
    ],
    bind,
    rewrites: &Rewrites { is_identity: |attrs| attrs.str("mode") == "training", ..Rewrites::NONE },
    ..OpDef::BASE
}];

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    if attrs.str("mode") == "always" && attrs.float("p") > 0.0 {
        return Err(not_implemented("mode='always' drops elements outside training too, which this build cannot do"));
    }
    Ok(costed_kernel_fn("copy", elementwise_ns(signature, 0), copy_first))
}
