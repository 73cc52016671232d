//! Bytes that stand for numbers: `int8.h`.

use crate::arguments::{
    ByteLayerArgument, ByteRangeArgument, ByteReluArgument, ByteSumArgument, CopyRangeArgument, DequantizeArgument,
    ExtremesArgument, PoolingArgument, QuantizeArgument, RequantizeArgument,
};
use crate::launch::{Bound, ROW_THREADS, code, each, each_row, launch, small};
use crate::pooling;
use mxrt_engine::{DeviceCtx, DevicePtr, OpError};
use mxrt_kernels::window::three;
use mxrt_ops::{
    DeviceOperands, Int8Form, Int8Windows, KernelForm, RangeSource, Signature, infinity_error, range_error,
};
use mxrt_tensor::DType;

/// Blocks that search the range of an array at most, and elements that a thread of them reads.
const SEARCHING: usize = 256;
const EACH: usize = 16;

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    let KernelForm::Int8(form) = *form else { return None };
    match form {
        Int8Form::Quantize { steps, range } => bind_quantize(steps, range, signature),
        Int8Form::Pass { relu, range } => bind_pass(relu, range, signature),
        Int8Form::Dequantize => bind_dequantize(signature),
        Int8Form::Requantize { steps, largest } => bind_requantize(steps, largest, signature),
        Int8Form::Add { calibrated } => bind_add(calibrated, signature),
        Int8Form::Pool { kind, windows: Int8Windows { kernel, stride, pad, .. }, channels_last } => {
            let argument = pooling::argument(kind, [kernel, stride, pad], channels_last, signature)?;
            Some(Bound::new(move |ctx, at| {
                if let Some(grid) = each(argument.n as usize) {
                    let argument = PoolingArgument { to: at.outputs[0].0, from: at.inputs[0].0, ..argument };
                    launch(ctx, c"byte_pooling", grid, &argument)?;
                }
                copy_range(ctx, at)
            }))
        }
        Int8Form::Layer { dense, bias, windows, groups } => bind_layer(dense, bias, windows, groups, signature),
    }
}

/// A range that is known when kernels are bound.
fn fixed(ends: [f32; 2]) -> ByteRangeArgument {
    ByteRangeArgument { min: 0, max: 0, status: 0, fixed: ends }
}

/// The range of an array in the inputs `at` and the one after it; the kernel reports one that is
/// none.
fn given(
    ctx: &DeviceCtx<'_>,
    operands: &DeviceOperands<'_>,
    name: &'static str,
    at: usize,
) -> Result<ByteRangeArgument, OpError> {
    let status = ctx.status_word(move |said| {
        let [min, max] = [(said >> 32) as u32, said as u32].map(f32::from_bits);
        range_error(name, min, max)
    })?;
    let [min, max] = [operands.inputs[at].0, operands.inputs[at + 1].0];
    Ok(ByteRangeArgument { min, max, status: status.0, fixed: [0.0; 2] })
}

/// Copies the range in inputs 1 and 2 to the outputs.
fn copy_range(ctx: &DeviceCtx<'_>, at: &DeviceOperands<'_>) -> Result<(), OpError> {
    store_range(ctx, at, given(ctx, at, "data", 1)?)
}

fn store_range(ctx: &DeviceCtx<'_>, at: &DeviceOperands<'_>, from: ByteRangeArgument) -> Result<(), OpError> {
    let Some(grid) = each(1) else { return Ok(()) };
    launch(ctx, c"copy_range", grid, &CopyRangeArgument { min: at.outputs[1].0, max: at.outputs[2].0, from })
}

/// Finds the least and the largest of `n` elements: two numbers in memory of the op.
fn extremes(ctx: &DeviceCtx<'_>, from: DevicePtr, n: usize, dtype: DType) -> Result<DevicePtr, OpError> {
    let blocks = n.div_ceil(EACH * ROW_THREADS as usize).clamp(1, SEARCHING);
    let parts = ctx.scratch((blocks + 1) * 2 * size_of::<f32>())?;
    let found = parts.offset(blocks * 2 * size_of::<f32>());
    let (Some(all), Some(one)) = (each_row(blocks), each_row(1)) else { return Ok(found) };
    let argument = ExtremesArgument { to: parts.0, from: from.0, n: n as i64, dtype: code(dtype), pairs: 0 };
    launch(ctx, c"extremes", all, &argument)?;
    let n = 2 * blocks as i64;
    let argument = ExtremesArgument { to: found.0, from: parts.0, n, dtype: code(DType::F32), pairs: 1 };
    launch(ctx, c"extremes", one, &argument)?;
    Ok(found)
}

fn bind_quantize(steps: f32, range: RangeSource, signature: &Signature<'_>) -> Option<Bound> {
    let (input, output) = (signature.inputs.first()?, signature.outputs.first()?);
    if input.dtype != DType::F32 || !is_byte(output.dtype) {
        return None;
    }
    let (n, dtype) = (output.shape.size(), code(output.dtype));
    Some(Bound::new(move |ctx, at| {
        // The range is written in any case.
        let Some(grid) = each(n.max(1)) else { return Ok(()) };
        let range_of = match range {
            RangeSource::Given => given(ctx, at, "data", 1)?,
            RangeSource::Fixed(ends) => fixed(ends),
            RangeSource::Found => {
                let status = ctx.status_word(|_| infinity_error("data"))?.0;
                let found = extremes(ctx, at.inputs[0], n, DType::F32)?;
                let max = found.offset(size_of::<f32>()).0;
                ByteRangeArgument { min: found.0, max, status, fixed: [0.0; 2] }
            }
        };
        let argument = QuantizeArgument {
            to: at.outputs[0].0,
            from: at.inputs[0].0,
            min: at.outputs[1].0,
            max: at.outputs[2].0,
            range: range_of,
            n: n as i64,
            steps,
            found: i32::from(range == RangeSource::Found),
            dtype,
            unused: 0,
        };
        launch(ctx, c"quantize", grid, &argument)
    }))
}

fn is_byte(dtype: DType) -> bool {
    matches!(dtype, DType::I8 | DType::U8)
}

fn bind_pass(relu: bool, range: RangeSource, signature: &Signature<'_>) -> Option<Bound> {
    let output = signature.outputs.first()?;
    let (n, bytes) = (output.shape.size(), output.bytes());
    if range == RangeSource::Found || (relu && output.dtype != DType::I8) {
        return None;
    }
    Some(Bound::new(move |ctx, at| {
        let (to, from) = (at.outputs[0], at.inputs[0]);
        match each(n) {
            None => {}
            Some(grid) if relu => {
                launch(ctx, c"byte_relu", grid, &ByteReluArgument { to: to.0, from: from.0, n: n as i64 })?;
            }
            // SAFETY: arrays of the running op, of that size.
            Some(_) => unsafe { ctx.copy(to, from, bytes)? },
        }
        match range {
            RangeSource::Fixed(ends) => store_range(ctx, at, fixed(ends)),
            _ => copy_range(ctx, at),
        }
    }))
}

fn bind_dequantize(signature: &Signature<'_>) -> Option<Bound> {
    let (input, output) = (signature.inputs.first()?, signature.outputs.first()?);
    if !is_byte(input.dtype) || output.dtype != DType::F32 {
        return None;
    }
    let (n, dtype) = (output.shape.size(), code(input.dtype));
    Some(Bound::new(move |ctx, at| {
        let Some(grid) = each(n.max(1)) else { return Ok(()) };
        let (to, from, range) = (at.outputs[0].0, at.inputs[0].0, given(ctx, at, "data", 1)?);
        launch(ctx, c"dequantize", grid, &DequantizeArgument { to, from, range, n: n as i64, dtype, unused: 0 })
    }))
}

fn bind_requantize(steps: f32, largest: Option<f32>, signature: &Signature<'_>) -> Option<Bound> {
    let (input, output) = (signature.inputs.first()?, signature.outputs.first()?);
    if input.dtype != DType::I32 || !is_byte(output.dtype) {
        return None;
    }
    let (n, dtype) = (output.shape.size(), code(output.dtype));
    Some(Bound::new(move |ctx, at| {
        let Some(grid) = each(n.max(1)) else { return Ok(()) };
        let range = given(ctx, at, "data", 1)?;
        let sums = if largest.is_some() { 0 } else { extremes(ctx, at.inputs[0], n, DType::I32)?.0 };
        let argument = RequantizeArgument {
            to: at.outputs[0].0,
            from: at.inputs[0].0,
            min: at.outputs[1].0,
            max: at.outputs[2].0,
            sums,
            range,
            n: n as i64,
            most: largest.unwrap_or(0.0),
            steps,
            dtype,
            unused: 0,
        };
        launch(ctx, c"requantize", grid, &argument)
    }))
}

fn bind_add(calibrated: Option<([f32; 2], f32)>, signature: &Signature<'_>) -> Option<Bound> {
    let ([lhs, rhs, ..], output) = (signature.inputs, signature.outputs.first()?) else { return None };
    if !is_byte(lhs.dtype) || !is_byte(rhs.dtype) {
        return None;
    }
    let (n, dtype) = (output.shape.size(), code(output.dtype));
    let from_dtypes = [code(lhs.dtype), code(rhs.dtype)];
    let (result, unit) = calibrated.unwrap_or(([0.0; 2], 0.0));
    Some(Bound::new(move |ctx, at| {
        let Some(grid) = each(n.max(1)) else { return Ok(()) };
        let argument = ByteSumArgument {
            to: at.outputs[0].0,
            from: [at.inputs[0].0, at.inputs[1].0],
            min: at.outputs[1].0,
            max: at.outputs[2].0,
            ranges: [given(ctx, at, "lhs", 2)?, given(ctx, at, "rhs", 4)?],
            n: n as i64,
            result,
            unit,
            is_calibrated: i32::from(calibrated.is_some()),
            from_dtypes,
            dtype,
            unused: 0,
        };
        launch(ctx, c"byte_sum", grid, &argument)
    }))
}

fn bind_layer(
    dense: bool,
    bias: bool,
    windows: Int8Windows,
    groups: usize,
    signature: &Signature<'_>,
) -> Option<Bound> {
    let ([data, weight, ..], output) = (signature.inputs, signature.outputs.first()?) else { return None };
    if !is_byte(data.dtype) || weight.dtype != DType::I8 {
        return None;
    }
    // A dense layer has an image of one pixel for each row of data.
    let (filters, channels) = (weight.shape[0], if dense { weight.shape[1] } else { data.shape[1] / groups });
    let planes = |shape: &[usize]| if dense { Some([1; 3]) } else { Some(three(shape.get(2..)?, 1)) };
    let n = output.shape.size();
    // The bias of a convolution of uint8 is added unchanged, whatever its range is. Else it is
    // brought to the steps of the sums, which `dense` stands for; it changes nothing else of int8.
    let scaled = dense || data.dtype == DType::I8;
    let argument = ByteLayerArgument {
        to: 0,
        from: 0,
        weight: 0,
        bias: 0,
        min: 0,
        max: 0,
        data: fixed([0.0; 2]),
        of_weight: fixed([0.0; 2]),
        of_bias: fixed([0.0; 2]),
        n: n as i64,
        filters: filters as i64,
        each: (filters / groups) as i64,
        channels: channels as i64,
        groups: groups as i64,
        size: small(planes(&data.shape)?)?,
        out: small(planes(&output.shape)?)?,
        kernel: small(windows.kernel)?,
        step: small(windows.stride)?,
        pad: small(windows.pad)?,
        dilate: small(windows.dilate)?,
        dense: i32::from(scaled),
        dtype: code(data.dtype),
    };
    let arrays = 2 + usize::from(bias);
    Some(Bound::new(move |ctx, at| {
        let Some(grid) = each(n.max(1)) else { return Ok(()) };
        let mut argument = argument;
        (argument.to, argument.min, argument.max) = (at.outputs[0].0, at.outputs[1].0, at.outputs[2].0);
        (argument.from, argument.weight) = (at.inputs[0].0, at.inputs[1].0);
        argument.data = given(ctx, at, "data", arrays)?;
        argument.of_weight = given(ctx, at, "weight", arrays + 2)?;
        if bias {
            argument.bias = at.inputs[2].0;
        }
        if bias && scaled {
            argument.of_bias = given(ctx, at, "bias", arrays + 4)?;
        }
        launch(ctx, c"byte_layer", grid, &argument)
    }))
}
