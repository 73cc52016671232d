//! `_blocked_sg_mkldnn_conv`: quantized convolutions on pixels of bytes.

use super::{infer_from_layout, is_bytes, with_layouts};
use crate::fused::convolution as conv;
use crate::nn::convolution::ConvGeometry;
use crate::prelude::*;
use mxrt_kernels::blocked::PIXEL;
use mxrt_kernels::int8::PixelForm;
use mxrt_kernels::window::three;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_blocked_sg_mkldnn_conv",
    doc: "`_sg_mkldnn_conv` whose results are pixels of bytes.",
    inputs: Inputs::ByAttrs(conv::inputs),
    aux_by_attrs: Some(conv::states),
    attrs: &with_layouts::<10, 12>(conv::ATTRS),
    outputs: Outputs::Named(conv::outputs),
    infer_shape: |shapes| {
        infer_from_layout(shapes)?;
        conv::infer_ranges(shapes)
    },
    infer_dtype: conv::infer_dtype,
    bind: bind_conv,
    internal: true,
    ..OpDef::BASE
}];

/// Largest ratio of an image with its halo to the image, unless both are small.
const MOST_PADDED: usize = 16;

/// Whether pixels take much more memory than planes.
fn is_wasteful(layout: &BlockedLayout) -> bool {
    let BlockedLayout { channels, height, width, .. } = *layout;
    let pixel = channels.next_multiple_of(PIXEL);
    pixel > 4 * channels && pixel.saturating_mul(height).saturating_mul(width) > 4 << 20
}

/// The offer of a quantized convolution to make pixels. It reads them where its data are pixels.
pub(crate) fn conv_form(attrs: &Attrs, signature: &Signature<'_>) -> Option<BlockedForm> {
    let parts = conv::Parts::of(attrs);
    let (data, out) = (signature.inputs.first()?, signature.outputs.first()?);
    if !parts.quantized || !is_bytes(data.dtype) || !is_bytes(out.dtype) {
        return None;
    }
    let geometry = conv::geometry(attrs).ok()?;
    let (input, output) = (BlockedLayout::pixels(&data.shape)?, BlockedLayout::pixels(&out.shape)?);
    let input = with_halo(input, &output, &geometry)?;
    let (channels, groups) = (input.channels, geometry.groups);
    let depthwise = channels == groups && geometry.filters == groups;
    // Products take four channels of a group together.
    if groups > 1 && !depthwise && !(channels / groups).is_multiple_of(4) {
        return None;
    }
    if is_wasteful(&output) {
        return None;
    }
    let padded = (input.height + input.halo[0] + input.halo[2])
        .checked_mul(input.width.checked_add(input.halo[1])?.checked_add(input.halo[3])?)?;
    let from_blocked = (padded <= MOST_PADDED * (input.height * input.width).max(256)).then_some(input);
    let mut inputs = vec![Layout::Plain; signature.inputs.len()];
    if let Some(at) = parts.addend() {
        if signature.inputs.get(at)?.shape != out.shape {
            return None;
        }
        *inputs.get_mut(at)? = Layout::Blocked(output);
    }
    let output = Layout::Blocked(output);
    Some(BlockedForm { op: "_blocked_sg_mkldnn_conv", inputs, from_blocked, output, starts: true })
}

/// Pixels with the halo that a convolution reads.
fn with_halo(mut input: BlockedLayout, output: &BlockedLayout, geometry: &ConvGeometry) -> Option<BlockedLayout> {
    let [kernel, stride, dilate] = [&geometry.kernel, &geometry.stride, &geometry.dilate].map(|v| three(v, 1));
    let pad = three(&geometry.pad, 0);
    let sizes = [(input.height, output.height), (input.width, output.width)];
    for (axis, (size, outputs)) in sizes.into_iter().enumerate() {
        let at = axis + 1;
        let reach = (kernel[at] - 1).checked_mul(dilate[at])?;
        // More would be a halo without end.
        if pad[at] > reach {
            return None;
        }
        input.halo[axis] = pad[at];
        input.halo[axis + 2] = ((outputs - 1) * stride[at] + reach + 1).saturating_sub(pad[at] + size);
    }
    Some(input)
}

fn bind_conv(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (inputs, output) = layouts(attrs)?;
    let n = signature.inputs.first().and_then(|t| t.shape.first().copied()).unwrap_or(0);
    let data = inputs.first().and_then(Layout::blocked);
    let shape = data.map_or_else(|| signature.inputs[0].shape.clone(), |layout| layout.logical(n));
    let out = output.blocked().ok_or_else(wrong_arity)?;
    let addend = conv::Parts::of(attrs).addend().and_then(|at| inputs.get(at)?.blocked()).unwrap_or(out);
    let form = PixelForm { data: data.map(|layout| layout.shape(n)), output: out.shape(n), addend: addend.shape(n) };
    Ok(Box::new(conv::layer(attrs, [&shape, &out.logical(n)], &signature.options, Some(form))?))
}
