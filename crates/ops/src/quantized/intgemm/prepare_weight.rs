//! `_contrib_intgemm_prepare_weight`: weights as bytes.

use super::prepare;
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_intgemm_prepare_weight",
    aliases: &["_npx_intgemm_prepare_weight"],
    doc: "Prepares weights for _contrib_intgemm_fully_connected: quantizes float32 ones as \
        _contrib_intgemm_prepare_data does.",
    inputs: Inputs::ByAttrs(|attrs| if attrs.bool("already_quantized") { &["weight"] } else { &["weight", "maxabs"] }),
    attrs: &[AttrDef::new("already_quantized", AttrKind::Bool, "False", "Whether the weight is int8 already.")],
    infer_shape: |shapes| {
        shapes.same_as_first()?;
        shapes.set_input(1, "maxabs", PartialShape::from_dims([Some(1)]))
    },
    infer_dtype: |dtypes| {
        let prepared = dtypes.attrs.bool("already_quantized");
        dtypes.set_input(0, "weight", if prepared { DType::I8 } else { DType::F32 })?;
        dtypes.set_input(1, "maxabs", DType::F32)?;
        dtypes.set_output(0, DType::I8)
    },
    bind: |attrs, signature| {
        let run = if attrs.bool("already_quantized") { copy_first } else { prepare };
        Ok(costed_kernel_fn("prepare", elementwise_ns(signature, 0), run))
    },
    ..OpDef::BASE
}];
