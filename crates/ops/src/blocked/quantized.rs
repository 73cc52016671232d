//! `_blocked_sg_mkldnn_conv`, `_blocked_quantized_pooling` and `_blocked_quantized_concat`:
//! quantized layers on pixels of bytes.

use super::pooling::BlockedPoolWindows;
use super::{infer_from_layout, is_bytes, shape_of, with_layouts};
use crate::fused::convolution as conv;
use crate::nn::convolution::ConvGeometry;
use crate::nn::pooling;
use crate::prelude::*;
use crate::quantized::activation::copy_range;
use crate::quantized::layer::rows;
use crate::quantized::{WITH_RANGE, concat, infer_scalars, scale, store_range};
use mxrt_engine::OpError;
use mxrt_kernels::blocked::BlockedShape;
use mxrt_kernels::blocked::{PIXEL, PoolKind};
use mxrt_kernels::int8::{JoinedPixels, PixelForm, join_pixels, pool_pixels};
use mxrt_kernels::window::three;
use mxrt_tensor::DType;

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
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
    },
    OpDef {
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
    },
    OpDef {
        name: "_blocked_quantized_concat",
        doc: "`_contrib_quantized_concat` along the channels of pixels of bytes.",
        inputs: Inputs::Ranged { count: "num_args", prefix: "arg" },
        attrs: &with_layouts::<2, 4>(concat::ATTRS),
        outputs: WITH_RANGE,
        infer_shape: |shapes| {
            infer_from_layout(shapes)?;
            infer_scalars(shapes, shapes.inputs.len() / 3, &[])
        },
        infer_dtype: concat::infer_dtype,
        bind: bind_concat,
        internal: true,
        ..OpDef::BASE
    },
];

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

fn bind_conv(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let (inputs, output) = layouts(attrs)?;
    let n = signature.inputs.first().and_then(|t| t.shape.first().copied()).unwrap_or(0);
    let data = inputs.first().and_then(Layout::blocked);
    let shape = data.map_or_else(|| signature.inputs[0].shape.clone(), |layout| layout.logical(n));
    let out = output.blocked().ok_or_else(wrong_arity)?;
    let addend = conv::Parts::of(attrs).addend().and_then(|at| inputs.get(at)?.blocked()).unwrap_or(out);
    let form = PixelForm { data: data.map(|layout| layout.shape(n)), output: out.shape(n), addend: addend.shape(n) };
    Ok(Box::new(conv::layer(attrs, [&shape, &out.logical(n)], &signature.options, Some(form))?))
}

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

fn bind_pool(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
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

/// The offer of a concatenation along the channels to read and make pixels.
pub(crate) fn concat_form(attrs: &Attrs, signature: &Signature<'_>) -> Option<BlockedForm> {
    let arrays = signature.inputs.len() / 3;
    let data = &signature.inputs[..arrays];
    let axes = data.first()?.shape.len();
    if resolve_axis(attrs.int("dim"), axes).ok()? != 1 || data.iter().any(|t| !is_bytes(t.dtype)) {
        return None;
    }
    let mut inputs = vec![Layout::Plain; signature.inputs.len()];
    for (layout, array) in inputs.iter_mut().zip(data) {
        *layout = Layout::Blocked(BlockedLayout::pixels(&array.shape)?);
    }
    let output = Layout::Blocked(BlockedLayout::pixels(&signature.outputs.first()?.shape)?);
    Some(BlockedForm { op: "_blocked_quantized_concat", inputs, from_blocked: None, output, starts: false })
}

fn bind_concat(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let (inputs, output) = layouts(attrs)?;
    let arrays = signature.inputs.len() / 3;
    let parts = inputs.iter().take(arrays).map(|layout| shape_of(Some(layout), signature));
    let (parts, output) = (parts.collect::<Result<Vec<BlockedShape>, OpError>>()?, shape_of(Some(&output), signature)?);
    let dtype = signature.outputs[0].dtype;
    Ok(costed_kernel_fn("pixels", elementwise_ns(signature, 100), move |call| {
        let (ranges, all) = concat::ranges(call.inputs, arrays)?;
        let part = |i: usize| {
            let array = &call.inputs[i];
            let factor = scale(dtype, all) / scale(array.dtype, ranges[i]);
            JoinedPixels { rows: rows(array), shape: parts[i], factor }
        };
        let parts: Vec<JoinedPixels<'_>> = (0..arrays).map(part).collect();
        let to = call.outputs[0].bytes_mut();
        match dtype {
            DType::I8 => join_pixels::<i8>(call.par, &parts, output, to),
            _ => join_pixels::<u8>(call.par, &parts, output, to),
        }
        store_range(all, call.outputs)
    }))
}
