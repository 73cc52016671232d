//! `_blocked_pooling`: two-dimensional pooling on blocked operands.

use super::{in_lines, infer_from_layout, shape_of, takes_lines, with_layouts};
use crate::nn::pooling;
use crate::prelude::*;
use mxrt_kernels::blocked::{Blocked, BlockedMut, BlockedShape, Pool2dParams, PoolKind, pool};
use mxrt_kernels::conv::{ConvKernel, PooledKernel};
use mxrt_kernels::window::three;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_blocked_pooling",
    doc: "`Pooling` over the rows and columns of blocked data.",
    attrs: &ATTRS,
    infer_shape: |shapes| infer_from_layout(shapes),
    bind,
    internal: true,
    rewrites: &Rewrites { lines: |_, signature| takes_lines(signature, 1), ..Rewrites::NONE },
    ..OpDef::BASE
}];

static ATTRS: [AttrDef; 12] = with_layouts(pooling::ATTRS);

/// The offer of a pooling with one or two spatial axes, channels first.
pub(crate) fn form(attrs: &Attrs, signature: &Signature<'_>) -> Option<BlockedForm> {
    let ([x], [y]) = (signature.inputs, signature.outputs) else { return None };
    let input = BlockedLayout::plain_image(&x.shape)?;
    if x.dtype != DType::F32 || BlockedPoolWindows::new(attrs, &input).ok()?.is_none() {
        return None;
    }
    let output = Layout::Blocked(BlockedLayout::plain_image(&y.shape)?);
    let inputs = vec![Layout::Blocked(input)];
    Some(BlockedForm { op: "_blocked_pooling", inputs, from_blocked: None, output, starts: false })
}

/// Windows that this kernel has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockedPoolWindows {
    pub kind: PoolKind,
    pub params: Pool2dParams,
}

/// Kinds of pooling, by their number in attributes.
const KINDS: [PoolKind; 4] =
    [PoolKind::Max, PoolKind::Sum, PoolKind::Average { count_pad: true }, PoolKind::Average { count_pad: false }];

impl BlockedPoolWindows {
    /// The windows of a `Pooling` of data in this layout; none if this kernel does not support
    /// them.
    pub(crate) fn new(attrs: &Attrs, data: &BlockedLayout) -> Result<Option<BlockedPoolWindows>, OpError> {
        use mxrt_kernels::pool::PoolKind as Kind;
        let geometry = pooling::PoolGeometry::new(attrs, data.axes + 2)?;
        let kind = match geometry.kind {
            Kind::Max => PoolKind::Max,
            Kind::Sum => PoolKind::Sum,
            Kind::Avg { count_include_pad } => PoolKind::Average { count_pad: count_include_pad },
            Kind::Lp { .. } => return Ok(None),
        };
        let params = match &geometry.windows {
            None => Pool2dParams { kernel: [data.height, data.width], stride: [1, 1], pad: [0, 0] },
            Some(w) => match (three(&w.kernel, 1), three(&w.stride, 1), three(&w.pad, 0)) {
                ([1, kh, kw], [1, sh, sw], [0, ph, pw]) => {
                    Pool2dParams { kernel: [kh, kw], stride: [sh, sw], pad: [ph, pw] }
                }
                _ => return Ok(None),
            },
        };
        Ok((!geometry.channels_last).then_some(BlockedPoolWindows { kind, params }))
    }

    /// Formats the windows as an attribute: the number of the kind, then kernel, stride and
    /// padding, rows first.
    pub(crate) fn text(&self) -> String {
        let Pool2dParams { kernel: [kh, kw], stride: [sh, sw], pad: [ph, pw] } = self.params;
        let kind = KINDS.iter().position(|kind| *kind == self.kind).unwrap_or(0);
        format!("({kind},{kh},{kw},{sh},{sw},{ph},{pw})")
    }

    /// Parses the numbers of [`text`](Self::text).
    pub(crate) fn parse(numbers: &[i64]) -> Result<BlockedPoolWindows, OpError> {
        let bad = || value_error("the pooling after a convolution is seven numbers");
        let n = numbers.iter().map(|n| usize::try_from(*n)).collect::<Result<Vec<_>, _>>().map_err(|_| bad())?;
        let [kind, kh, kw, sh, sw, ph, pw] = n[..] else { return Err(bad()) };
        let kind = *KINDS.get(kind).ok_or_else(bad)?;
        Ok(BlockedPoolWindows { kind, params: Pool2dParams { kernel: [kh, kw], stride: [sh, sw], pad: [ph, pw] } })
    }

    /// A convolution followed by these windows that makes `y`; none if that does not pay.
    pub(crate) fn behind(&self, conv: &ConvKernel, y: BlockedShape) -> Option<PooledKernel> {
        PooledKernel::new(conv, self.kind, self.params, [y.h, y.w])
    }
}

/// A window costs its taps where it is not the bytes that cost more.
fn cost_ns(signature: &Signature<'_>, params: &Pool2dParams, outputs: usize) -> u64 {
    let taps_per_ns = match signature.options.isa {
        Isa::Portable => 4,
        Isa::Neon => 8,
        Isa::Avx2 => 15,
        Isa::Avx512 => 25,
    };
    let taps = outputs.saturating_mul(params.kernel[0]).saturating_mul(params.kernel[1]);
    streaming_ns(signature).max(500 + taps as u64 / taps_per_ns)
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (inputs, output) = layouts(attrs)?;
    let (x, y) = (shape_of(inputs.first(), signature)?, shape_of(Some(&output), signature)?);
    let windows =
        inputs.first().and_then(Layout::blocked).map(|data| BlockedPoolWindows::new(attrs, &data)).transpose()?;
    let Some(BlockedPoolWindows { kind, params }) = windows.flatten() else {
        return Err(not_implemented("this pooling has no kernel on blocked data"));
    };
    let isa = signature.options.isa;
    let name = isa.name().to_owned() + in_lines(&x, &y);
    Ok(costed_kernel_fn(name, cost_ns(signature, &params, y.n * y.c * y.h * y.w), move |call| {
        let ([data], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let x = Blocked::new(x, data.as_slice()?);
        pool(isa, kind, params, x, &mut BlockedMut::new(y, out.as_mut_slice()?), call.par);
        Ok(())
    }))
}
