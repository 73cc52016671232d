//! `_blocked_pooling`: two-dimensional pooling on blocked operands.

use super::{infer_from_layout, shape_of};
use crate::core::*;
use crate::nn::pooling;
use mxrt_engine::OpError;
use mxrt_kernels::conv_fast::{Blocked, BlockedMut, Pool2dParams, PoolKind, pool};
use mxrt_tensor::DType;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_blocked_pooling",
    doc: "`Pooling` over the rows and columns of blocked data.",
    attrs: &ATTRS,
    infer_shape: |shapes| infer_from_layout(shapes),
    bind,
    internal: true,
    ..OpDef::BASE
}];

static ATTRS: [AttrDef; 12] = {
    let mut all = [LAYOUTS; 12];
    let mut i = 0;
    while i < pooling::ATTRS.len() {
        all[i] = pooling::ATTRS[i];
        i += 1;
    }
    all[11] = OUT_LAYOUT;
    all
};

/// The offer of a pooling with two spatial axes, channels first.
pub(crate) fn form(attrs: &Attrs, signature: &Signature<'_>) -> Option<BlockedForm> {
    let ([x], [y]) = (signature.inputs, signature.outputs) else { return None };
    let input = BlockedLayout::plain_image(&x.shape)?;
    if x.dtype != DType::F32 || windows(attrs, [input.height, input.width]).ok()?.is_none() {
        return None;
    }
    let output = Layout::Blocked(BlockedLayout::plain_image(&y.shape)?);
    Some(BlockedForm { op: "_blocked_pooling", inputs: vec![Layout::Blocked(input)], output, starts: false })
}

/// Kind and windows, where this kernel has them.
fn windows(attrs: &Attrs, image: [usize; 2]) -> Result<Option<(PoolKind, Pool2dParams)>, OpError> {
    use mxrt_kernels::pool::PoolKind as Kind;
    let geometry = pooling::Geometry::new(attrs, 4)?;
    let kind = match geometry.kind {
        Kind::Max => PoolKind::Max,
        Kind::Sum => PoolKind::Sum,
        Kind::Avg { count_include_pad } => PoolKind::Average { count_pad: count_include_pad },
        Kind::Lp { .. } => return Ok(None),
    };
    let params = match &geometry.windows {
        None => Pool2dParams { kernel: image, stride: [1, 1], pad: [0, 0] },
        Some(w) => match (&w.kernel[..], &w.stride[..], &w.pad[..]) {
            (&[kh, kw], &[sh, sw], &[ph, pw]) => Pool2dParams { kernel: [kh, kw], stride: [sh, sw], pad: [ph, pw] },
            _ => return Ok(None),
        },
    };
    Ok((!geometry.channels_last).then_some((kind, params)))
}

/// A window costs its taps where it is not the bytes that cost more.
fn cost_ns(signature: &Signature<'_>, params: &Pool2dParams, outputs: usize) -> u64 {
    let taps_per_ns = match signature.options.isa {
        Isa::Portable => 4,
        Isa::Avx2 => 15,
        Isa::Avx512 => 25,
    };
    let taps = outputs.saturating_mul(params.kernel[0]).saturating_mul(params.kernel[1]);
    streaming_ns(signature).max(500 + taps as u64 / taps_per_ns)
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let (inputs, output) = layouts(attrs)?;
    let (x, y) = (shape_of(inputs.first(), signature)?, shape_of(Some(&output), signature)?);
    let Some((kind, params)) = windows(attrs, [x.h, x.w])? else {
        return Err(not_implemented("this pooling has no kernel on blocked data"));
    };
    let isa = signature.options.isa;
    Ok(costed_kernel_fn(cost_ns(signature, &params, y.n * y.c * y.h * y.w), move |call| {
        let ([data], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let x = Blocked::new(x, data.as_slice()?);
        pool(isa, kind, params, x, &mut BlockedMut::new(y, out.as_mut_slice()?), call.par);
        Ok(())
    }))
}
