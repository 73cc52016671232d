//! `_blocked_concat`: joining blocked operands along their channels.

use super::{in_lines, infer_from_layout, shape_of, takes_lines};
use crate::prelude::*;
use mxrt_kernels::blocked::{BLOCK, Blocked, BlockedMut, BlockedShape, concat, concat_behind};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_blocked_concat",
    doc: "`Concat` along the channels of blocked data.",
    inputs: Inputs::Variadic { count: "num_args", prefix: "arg", named: |_| None },
    attrs: &[
        AttrDef::required("num_args", AttrKind::IntFrom(1), "Number of inputs."),
        AttrDef::new("dim", AttrKind::Int, "1", "The axis of channels."),
        LAYOUTS,
        OUT_LAYOUT,
    ],
    infer_shape: |shapes| infer_from_layout(shapes),
    bind,
    internal: true,
    rewrites: &Rewrites {
        concatenation: |attrs, signature| concatenation(attrs, signature).ok()?,
        lines: |_, signature| Some(LinesForm { alike: true, ..takes_lines(signature, signature.inputs.len())? }),
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

/// The offer of a concatenation along the channels.
pub(crate) fn form(attrs: &Attrs, signature: &Signature<'_>) -> Option<BlockedForm> {
    let layouts: Vec<BlockedLayout> =
        signature.inputs.iter().map(|t| BlockedLayout::plain_image(&t.shape)).collect::<Option<_>>()?;
    let axes = signature.inputs.first()?.shape.len();
    if resolve_axis(attrs.int("dim"), axes).ok()? != 1 || signature.inputs.iter().any(|t| t.dtype != DType::F32) {
        return None;
    }
    let output = Layout::Blocked(BlockedLayout::plain_image(&signature.outputs.first()?.shape)?);
    let inputs = layouts.into_iter().map(Layout::Blocked).collect();
    Some(BlockedForm { op: "_blocked_concat", inputs, from_blocked: None, output, starts: false })
}

/// One image whose parts have the halo of the whole.
fn concatenation(attrs: &Attrs, signature: &Signature<'_>) -> Result<Option<Vec<ConcatenatedInput>>, OpError> {
    let (inputs, output) = layouts(attrs)?;
    let frame = |l: &Layout| l.blocked().map(|l| (l.block, l.height, l.width, l.halo));
    let one_image = signature.outputs.iter().all(|t| t.shape.first() == Some(&1));
    if !one_image || inputs.iter().any(|l| l.blocked().is_none() || frame(l) != frame(&output)) {
        return Ok(None);
    }
    let mut channel = 0;
    let part = |input: &Layout| {
        let x = shape_of(Some(input), signature)?.in_elements();
        let (first, lane) = (channel / BLOCK, channel % BLOCK);
        channel += x.c;
        let stride = x.block_stride() * size_of::<f32>();
        let merge = (lane > 0).then(|| Box::new(MergeChannels { x, lane }) as Box<dyn Kernel>);
        Ok(ConcatenatedInput { bytes: first * stride..channel.div_ceil(BLOCK) * stride, merge })
    };
    inputs.iter().map(part).collect::<Result<_, OpError>>().map(Some)
}

/// Writes channels after others that end in the middle of a block.
struct MergeChannels {
    x: BlockedShape,
    /// Channels before them in the first block.
    lane: usize,
}

impl Kernel for MergeChannels {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        let ([data], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let BlockedShape { c, h, w, halo, .. } = self.x;
        let y = BlockedShape::new(1, self.lane + c, h, w, halo);
        let x = Blocked::new(self.x, data.as_slice()?);
        concat_behind(x, self.lane, &mut BlockedMut::new(y, out.as_mut_slice()?), call.par);
        Ok(())
    }

    fn describe(&self) -> String {
        format!("from lane {} on", self.lane)
    }
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (inputs, output) = layouts(attrs)?;
    let shape = |layout: &Layout| shape_of(Some(layout), signature);
    let y = shape(&output)?;
    let name = "plain".to_owned() + in_lines(&y, &y);
    let inputs: Vec<BlockedShape> =
        inputs.iter().map(|l| Ok(shape(l)?.in_elements())).collect::<Result<_, OpError>>()?;
    let y = y.in_elements();
    Ok(costed_kernel_fn(name, streaming_ns(signature), move |call| {
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
