//! `_blocked_concat`: joining blocked operands along their channels.

use super::{infer_from_layout, shape_of};
use crate::core::*;
use mxrt_engine::OpError;
use mxrt_kernels::conv_fast::{Blocked, BlockedMut, BlockedShape, can_concat, concat};
use mxrt_tensor::DType;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_blocked_concat",
    doc: "`Concat` along the channels of blocked data.",
    inputs: Inputs::Variadic { count: "num_args", prefix: "arg" },
    attrs: &[
        AttrDef::required("num_args", AttrKind::IntFrom(1), "Number of inputs."),
        AttrDef::new("dim", AttrKind::Int, "1", "The axis of channels."),
        LAYOUTS,
        OUT_LAYOUT,
    ],
    infer_shape: |shapes| infer_from_layout(shapes),
    bind,
    joins: |attrs, signature| joins(attrs, signature).unwrap_or(false),
    internal: true,
    ..OpDef::BASE
}];

/// The offer of a concatenation along the channels, where all inputs but the last fill their blocks.
pub(crate) fn form(attrs: &Attrs, signature: &Signature<'_>) -> Option<BlockedForm> {
    let layouts: Vec<BlockedLayout> =
        signature.inputs.iter().map(|t| BlockedLayout::plain_image(&t.shape)).collect::<Option<_>>()?;
    let channels: Vec<usize> = layouts.iter().map(|l| l.channels).collect();
    let along_channels = matches!(attrs.int("dim"), 1 | -3);
    if !along_channels || !can_concat(&channels) || signature.inputs.iter().any(|t| t.dtype != DType::F32) {
        return None;
    }
    let output = Layout::Blocked(BlockedLayout::plain_image(&signature.outputs.first()?.shape)?);
    let inputs = layouts.into_iter().map(Layout::Blocked).collect();
    Some(BlockedForm { op: "_blocked_concat", inputs, output, starts: false })
}

/// One image whose parts have the halo of the whole.
fn joins(attrs: &Attrs, signature: &Signature<'_>) -> Result<bool, OpError> {
    let (inputs, output) = layouts(attrs)?;
    let frame = |l: &Layout| l.blocked().map(|l| (l.block, l.height, l.width, l.halo));
    let one_image = signature.outputs.iter().all(|t| t.shape.first() == Some(&1));
    Ok(one_image && inputs.iter().all(|l| l.blocked().is_some() && frame(l) == frame(&output)))
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let (inputs, output) = layouts(attrs)?;
    let inputs: Vec<BlockedShape> = inputs.iter().map(|l| shape_of(Some(l), signature)).collect::<Result<_, _>>()?;
    let y = shape_of(Some(&output), signature)?;
    Ok(costed_kernel_fn("plain", streaming_ns(signature), move |call| {
        let [out] = &mut *call.outputs else { return Err(wrong_arity()) };
        let parts = inputs
            .iter()
            .zip(call.inputs)
            .map(|(shape, data)| Ok(Blocked::new(*shape, data.as_slice()?)))
            .collect::<Result<Vec<_>, OpError>>()?;
        concat(&parts, &mut BlockedMut::new(y, out.as_mut_slice()?), call.par);
        Ok(())
    }))
}
