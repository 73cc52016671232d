//! `_contrib_quantized_pooling`: largest or mean of sliding windows of integers.

use super::activation::copy_range;
use super::workspace::WithWorkspace;
use super::{WITH_RANGE, bytes_of, dispatch_bytes, infer_float_ranges, infer_scalars, int8_form};
use crate::blocked::quantized_pooling::pool_form;
use crate::nn::pooling::{ATTRS, infer_shape, pooling};
use crate::prelude::*;
use mxrt_kernels::int8::RoundTo;
use mxrt_kernels::pool::{PoolKind, PoolParams, pool};
use mxrt_kernels::window::three;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_quantized_pooling",
    doc: "The largest, or the mean rounded half to even, of sliding windows of integers; the range stays.",
    inputs: Inputs::Fixed(&INPUTS),
    attrs: &ATTRS,
    outputs: WITH_RANGE,
    infer_shape: |shapes| {
        infer_shape(shapes)?;
        infer_scalars(shapes, 1, &INPUTS)
    },
    infer_dtype,
    bind,
    form,
    rewrites: &Rewrites { blocked_form: pool_form, ..Rewrites::NONE },
    ..OpDef::BASE
}];

pub(crate) const INPUTS: [&str; 3] = ["data", "min_data", "max_data"];

pub(crate) fn infer_dtype(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    if let Some(dtype) = bytes_of(dtypes, 0, "data")? {
        dtypes.set_output(0, dtype)?;
    }
    infer_float_ranges(dtypes, 1, &INPUTS)
}

fn form(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let (kind, channels_last, windows) = pooling(attrs, signature)?;
    if !matches!(kind, PoolKind::Max | PoolKind::Avg { .. }) {
        return Ok(None);
    }
    let windows = Int8Windows {
        kernel: three(&windows.kernel, 1),
        stride: three(&windows.stride, 1).map(|step| step.max(1)),
        pad: three(&windows.pad, 0),
        dilate: [1; 3],
    };
    int8_form(Int8Form::Pool { kind, windows, channels_last })
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (kind, channels_last, windows) = pooling(attrs, signature)?;
    if !matches!(kind, PoolKind::Max | PoolKind::Avg { .. }) {
        let kind = attrs.str("pool_type");
        return Err(value_error(format!(
            "pool_type {kind} has no form on integers, only max and avg; leave the node out of the quantization"
        )));
    }
    let sizes = [signature.inputs[0].shape.size(), signature.outputs[0].shape.size()];
    let singles = sizes[0].saturating_add(sizes[1]).saturating_mul(size_of::<f32>());
    let dtype = signature.inputs[0].dtype;
    let run = move |call: &mut KernelCall<'_, '_>| {
        let workspace = std::mem::take(&mut call.workspace);
        let ([x, ..], [out, ..]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let (kernel, stride, pad) = (&windows.kernel, &windows.stride, &windows.pad);
        let params = PoolParams { kind, kernel, stride, pad, channels_last };
        let out_shape = out.shape;
        dispatch_bytes!(dtype, T => {
            if kind == PoolKind::Max {
                pool(call.par, params, elements::<T>(x)?, x.shape, elements_mut(out)?, out_shape);
            } else {
                // Sums of bytes are exact in float32, up to windows of 65 thousand.
                let (numbers, means) = scratch::<f32>(workspace, sizes[0] + sizes[1])?.split_at_mut(sizes[0]);
                numbers.iter_mut().zip(elements::<T>(x)?).for_each(|(n, v)| *n = v.to_f64() as f32);
                pool(call.par, params, numbers, x.shape, means, out_shape);
                elements_mut::<T>(out)?.iter_mut().zip(means).for_each(|(out, mean)| *out = T::round_to(*mean));
            }
            Ok(())
        })?;
        copy_range(call)
    };
    let workspace = if kind == PoolKind::Max { 0 } else { singles };
    Ok(Box::new(WithWorkspace { name: "pooling", workspace, cost_ns: elementwise_ns(signature, 2_000), run }))
}
