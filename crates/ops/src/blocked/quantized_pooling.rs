//! `_blocked_quantized_pooling`: pooling on pixels of bytes.

use super::pooling::BlockedPoolWindows;
use super::{infer_from_layout, is_bytes, shape_of, with_layouts};
use crate::nn::pooling;
use crate::prelude::*;
use crate::quantized::activation::copy_range;
use crate::quantized::layer::rows;
use crate::quantized::{WITH_RANGE, infer_scalars};
use mxrt_kernels::blocked::PoolKind;
use mxrt_kernels::int8::pool_pixels;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_blocked_quantized_pooling",
    doc: "`_contrib_quantized_pooling` of pixels of bytes.",
    inputs: Inputs::Fixed(&crate::quantized::pooling::INPUTS),
    attrs: &with_layouts::<10, 12>(pooling::ATTRS),
    outputs: WITH_RANGE,
    infer_shape: |shapes| {
        infer_from_layout(shapes)?;
        infer_scalars(shapes, 1, &crate::quantized::pooling::INPUTS)
    },
    infer_dtype: crate::quantized::pooling::infer_dtype,
    bind: bind_pool,
    internal: true,
    ..OpDef::BASE
}];

/// The offer of a pooling to read and make pixels.
pub(crate) fn pool_form(attrs: &Attrs, signature: &Signature<'_>) -> Option<BlockedForm> {
    let (data, out) = (signature.inputs.first()?, signature.outputs.first()?);
    let input = BlockedLayout::pixels(&data.shape)?;
    let windows = BlockedPoolWindows::new(attrs, &input).ok()??;
    let [rows, columns] = windows.params.kernel;
    // Sums of a window are 32 bits.
    let taps = rows.min(input.height).saturating_mul(columns.min(input.width));
    if !is_bytes(data.dtype) || windows.kind == PoolKind::Sum || taps > i32::MAX as usize / 255 {
        return None;
    }
    let mut inputs = vec![Layout::Plain; signature.inputs.len()];
    *inputs.first_mut()? = Layout::Blocked(input);
    let output = Layout::Blocked(BlockedLayout::pixels(&out.shape)?);
    Some(BlockedForm { op: "_blocked_quantized_pooling", inputs, from_blocked: None, output, starts: false })
}

fn bind_pool(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (inputs, output) = layouts(attrs)?;
    let data = inputs.first().and_then(Layout::blocked).ok_or_else(wrong_arity)?;
    let (x, y) = (shape_of(inputs.first(), signature)?, shape_of(Some(&output), signature)?);
    let Some(BlockedPoolWindows { kind, params }) = BlockedPoolWindows::new(attrs, &data)? else {
        return Err(not_implemented("this pooling has no kernel on pixels"));
    };
    let taps = params.kernel[0].min(x.h).saturating_mul(params.kernel[1].min(x.w));
    let cost = 500 + (y.len() as u64).saturating_mul(taps as u64) / 64;
    Ok(costed_kernel_fn("pixels", cost, move |call| {
        let ([data, ..], [out, ..]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let bytes = out.bytes_mut();
        pool_pixels(call.par, (kind, params), (rows(data), x), y, bytes);
        copy_range(call)
    }))
}
