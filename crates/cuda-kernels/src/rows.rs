//! Normalisations: `rows.h`.

use crate::arguments::{
    BatchNormArgument, FoldBatchNormArgument, LayerNormArgument, ResponseNormArgument, SoftmaxArgument,
    UnitNormArgument,
};
use crate::launch::{Bound, Computes, ROW_THREADS, code, computes, each, each_row, known, launch, of_floats};
use mxrt_cuda::Grid;
use mxrt_kernels::norm::LrnParams;
use mxrt_kernels::softmax::SoftmaxParams;
use mxrt_ops::{DeviceOperands, KernelForm, Signature};
use mxrt_tensor::DType;
use std::ffi::CStr;

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    match *form {
        KernelForm::Softmax { params, split, has_length } => bind_softmax(params, split, has_length, signature),
        KernelForm::LayerNorm { split, eps, of_rows } => bind_layer_norm(split, eps, of_rows, signature),
        KernelForm::UnitNorm { split, eps } => bind_unit_norm(split, eps, signature),
        KernelForm::ResponseNorm { params, split } => bind_response_norm(params, split, signature),
        KernelForm::BatchNorm { split, eps, fix_gamma, relu } => {
            bind_batch_norm(split, eps, (fix_gamma, relu), signature)
        }
        KernelForm::FoldBatchNorm { eps, fix_gamma, factor } => bind_fold(eps, fix_gamma, factor, signature),
        _ => None,
    }
}

/// Kernels for rows of at most 128 and of at most 1024 numbers, of float16 and of float32.
type ShortNames = [[&'static CStr; 2]; 2];
const SHORT_SOFTMAX: ShortNames =
    [[c"short_softmax_128_f16", c"short_softmax_128_f32"], [c"short_softmax_1024_f16", c"short_softmax_1024_f32"]];
const SHORT_LAYER_NORM: ShortNames = [
    [c"short_layer_norm_128_f16", c"short_layer_norm_128_f32"],
    [c"short_layer_norm_1024_f16", c"short_layer_norm_1024_f32"],
];

/// The kernel for contiguous rows, with a warp for each, and its grid.
fn short(names: ShortNames, dtype: DType, [rows, extent, inner]: [usize; 3]) -> Option<(&'static CStr, Grid)> {
    if inner != 1 || extent % 2 != 0 || extent == 0 || extent > 1024 {
        return None;
    }
    let of_type = match dtype {
        DType::F16 => 0,
        DType::F32 => 1,
        _ => return None,
    };
    let grid = each_row(rows.div_ceil(ROW_THREADS as usize / 32))?;
    Some((names[usize::from(extent > 128)][of_type], grid))
}

/// The argument's kernel for short rows if arrays are aligned for pairs of numbers, or the general
/// one.
fn short_or_any<T: Copy + 'static>(
    short: Option<(&'static CStr, Grid)>,
    (name, grid): (&'static CStr, Option<Grid>),
    argument: impl Fn(&DeviceOperands<'_>) -> T + Send + Sync + 'static,
) -> Bound {
    Bound::new(move |ctx, at| {
        let mut addresses = at.inputs.iter().chain(at.outputs);
        match (short, grid) {
            (Some((name, grid)), _) if addresses.all(|at| at.0 % 8 == 0) => launch(ctx, name, grid, &argument(at)),
            (_, Some(grid)) => launch(ctx, name, grid, &argument(at)),
            (_, None) => Ok(()),
        }
    })
}

fn bind_softmax(
    params: SoftmaxParams,
    [outer, extent, inner]: [usize; 3],
    has_length: bool,
    signature: &Signature<'_>,
) -> Option<Bound> {
    let (input, output) = (signature.inputs.first()?, signature.outputs.first()?);
    let lengths = if has_length { Some(signature.inputs.get(1)?) } else { None };
    let name = of_floats(input.dtype, [c"softmax_f32", c"softmax_f64"])?;
    if lengths.is_some_and(|t| !known(t)) || !output.dtype.is_float() || !known(output) {
        return None;
    }
    let argument = SoftmaxArgument {
        to: 0,
        from: 0,
        lengths: 0,
        rows: (outer * inner) as i64,
        extent: extent as i64,
        inner: inner as i64,
        temperature: params.temperature,
        dtype: code(input.dtype),
        to_dtype: code(output.dtype),
        length_dtype: lengths.map_or(0, |t| code(t.dtype)),
        log: i32::from(params.log),
        negate: i32::from(params.negate),
        unused: 0,
    };
    let rows = if extent == 0 { 0 } else { outer * inner };
    let short = short(SHORT_SOFTMAX, input.dtype, [rows, extent, inner]);
    let short = short.filter(|_| !has_length && output.dtype == input.dtype);
    Some(short_or_any(short, (name, each_row(rows)), move |at| SoftmaxArgument {
        to: at.outputs[0].0,
        from: at.inputs[0].0,
        lengths: if has_length { at.inputs[1].0 } else { 0 },
        ..argument
    }))
}

fn bind_layer_norm(
    [outer, extent, inner]: [usize; 3],
    eps: f64,
    of_rows: Option<usize>,
    signature: &Signature<'_>,
) -> Option<Bound> {
    let input = signature.inputs.first()?;
    let of_rows = i32::try_from(of_rows.unwrap_or(0)).ok()?;
    let name = of_floats(input.dtype, [c"layer_norm_f32", c"layer_norm_f64"])?;
    let (dtype, rows) = (code(input.dtype), if extent == 0 { 0 } else { outer * inner });
    let short = short(SHORT_LAYER_NORM, input.dtype, [rows, extent, inner]).filter(|_| of_rows == 0);
    Some(short_or_any(short, (name, each_row(rows)), move |at| LayerNormArgument {
        to: at.outputs[0].0,
        mean: at.outputs.get(1).map_or(0, |mean| mean.0),
        deviation: at.outputs.get(2).map_or(0, |deviation| deviation.0),
        from: at.inputs[0].0,
        gamma: at.inputs[1].0,
        beta: at.inputs[2].0,
        rows: rows as i64,
        extent: extent as i64,
        inner: inner as i64,
        eps,
        dtype,
        of_rows,
    }))
}

fn bind_unit_norm([outer, extent, inner]: [usize; 3], eps: f64, signature: &Signature<'_>) -> Option<Bound> {
    let input = signature.inputs.first()?;
    let name = of_floats(input.dtype, [c"unit_norm_f32", c"unit_norm_f64"])?;
    let (dtype, rows) = (code(input.dtype), if extent == 0 { 0 } else { outer * inner });
    Some(Bound::kernel(name, each_row(rows), move |at| UnitNormArgument {
        to: at.outputs[0].0,
        from: at.inputs[0].0,
        rows: rows as i64,
        extent: extent as i64,
        inner: inner as i64,
        eps,
        dtype,
        unused: 0,
    }))
}

fn bind_response_norm(
    params: LrnParams,
    [outer, channels, inner]: [usize; 3],
    signature: &Signature<'_>,
) -> Option<Bound> {
    let input = signature.inputs.first()?;
    let name = of_floats(input.dtype, [c"response_norm_f32", c"response_norm_f64"])?;
    let (n, dtype) = (outer * channels * inner, code(input.dtype));
    let half = i32::try_from(params.size / 2).ok()?;
    Some(Bound::kernel(name, each(n), move |at| ResponseNormArgument {
        to: at.outputs[0].0,
        from: at.inputs[0].0,
        n: n as i64,
        channels: channels as i64,
        inner: inner as i64,
        alpha: params.alpha / params.size as f64,
        beta: params.beta,
        knorm: params.knorm,
        dtype,
        half,
    }))
}

fn bind_batch_norm(
    [outer, channels, inner]: [usize; 3],
    eps: f64,
    (fix_gamma, relu): (bool, bool),
    signature: &Signature<'_>,
) -> Option<Bound> {
    let (input, statistic) = (signature.inputs.first()?, signature.inputs.get(3)?);
    let name = of_floats(input.dtype, [c"batch_norm_f32", c"batch_norm_f64"])?;
    if signature.outputs.len() != 1 || !known(statistic) {
        return None;
    }
    let n = outer * channels * inner;
    let (dtype, statistic_dtype) = (code(input.dtype), code(statistic.dtype));
    Some(Bound::kernel(name, each(n), move |at| BatchNormArgument {
        to: at.outputs[0].0,
        from: at.inputs[0].0,
        gamma: if fix_gamma { 0 } else { at.inputs[1].0 },
        beta: at.inputs[2].0,
        mean: at.inputs[3].0,
        variance: at.inputs[4].0,
        n: n as i64,
        channels: channels as i64,
        inner: inner as i64,
        eps,
        dtype,
        statistic_dtype,
        relu: i32::from(relu),
        unused: 0,
    }))
}

fn bind_fold(eps: f64, fix_gamma: bool, factor: f64, signature: &Signature<'_>) -> Option<Bound> {
    let (weight, bias) = (signature.inputs.first()?, signature.outputs.get(1)?);
    let computed = computes(weight.dtype)?;
    if computed == Computes::Whole {
        return None;
    }
    // The last four are gamma, beta, mean and variance.
    let first = signature.inputs.len().checked_sub(4)?;
    let (n, dtype, statistic_dtype) =
        (weight.shape.size(), code(weight.dtype), code(signature.inputs.get(first)?.dtype));
    let each_channel = n.checked_div(bias.shape.size()).unwrap_or(0).max(1);
    Some(Bound::kernel(c"fold_batch_norm", each(n), move |at| FoldBatchNormArgument {
        weight_to: at.outputs[0].0,
        bias_to: at.outputs[1].0,
        weight: at.inputs[0].0,
        bias: if first == 2 { at.inputs[1].0 } else { 0 },
        gamma: if fix_gamma { 0 } else { at.inputs[first].0 },
        beta: at.inputs[first + 1].0,
        mean: at.inputs[first + 2].0,
        variance: at.inputs[first + 3].0,
        n: n as i64,
        each: each_channel as i64,
        eps,
        factor,
        dtype,
        statistic_dtype,
    }))
}
