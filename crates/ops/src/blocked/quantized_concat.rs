//! `_blocked_quantized_concat`: joined channels of pixels of bytes.

use super::{infer_from_layout, is_bytes, shape_of, with_layouts};
use crate::prelude::*;
use crate::quantized::layer::rows;
use crate::quantized::{WITH_RANGE, concat, infer_scalars, scale, store_range};
use mxrt_kernels::blocked::BlockedShape;
use mxrt_kernels::int8::{JoinedPixels, join_pixels};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
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
}];

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

fn bind_concat(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
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
