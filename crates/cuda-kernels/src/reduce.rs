//! Folds over axes: `reduce.h`.

use crate::arguments::{ExtremeArgument, MomentsArgument, ReduceArgument, RunningSumArgument, VariancesArgument};
use crate::launch::{
    Bound, Computes, ROW_THREADS, axes, code, computes, each, each_row, known, launch, of_floats, reads,
};
use mxrt_cuda::Grid;
use mxrt_engine::{DeviceCtx, DevicePtr, OpError};
use mxrt_kernels::reduce::Reduction;
use mxrt_kernels::strides::contiguous;
use mxrt_ops::{DeviceOperands, KernelForm, Signature};
use mxrt_tensor::DType;
use std::ffi::CStr;

/// Fewer rows than this are searched by blocks, whatever lies between their elements.
const FEW_ROWS: usize = 4096;

impl ReduceArgument {
    /// Sets the addresses of input 0 and output 0.
    fn with_addresses(&self, at: &DeviceOperands<'_>) -> ReduceArgument {
        ReduceArgument { to: at.outputs[0].0, from: at.inputs[0].0, ..*self }
    }
}

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    match form {
        KernelForm::Reduce { reduction, reduced } => {
            bind_reduce(*reduction, reduced, signature.inputs.first()?.dtype, signature)
        }
        KernelForm::Within { dtype, form } => match &**form {
            KernelForm::Reduce { reduction, reduced } => bind_reduce(*reduction, reduced, *dtype, signature),
            _ => None,
        },
        KernelForm::Truths { every, reduced } => bind_truths(*every, reduced, signature),
        KernelForm::Variances { reduced, divisor, root } => bind_variances(reduced, *divisor, *root, signature),
        KernelForm::Moments { reduced } => bind_moments(reduced, signature),
        KernelForm::RunningSum { split } => bind_running_sum(*split, signature),
        KernelForm::SumsOfPart { first, shape, steps } => bind_sums_of_part(*first, shape, steps, signature),
        KernelForm::Extreme { largest, split } => bind_extreme(*largest, *split, signature),
        _ => None,
    }
}

fn bind_reduce(reduction: Reduction, reduced: &[bool], within: DType, signature: &Signature<'_>) -> Option<Bound> {
    let (input, output) = (signature.inputs.first()?, signature.outputs.first()?);
    let whole = computes(within)?;
    let is_float = whole != Computes::Whole;
    let (fold, computed) = match reduction {
        Reduction::Sum => (0, whole),
        Reduction::Mean => (1, whole),
        Reduction::Prod => (2, whole),
        // Integers hold no NaN.
        Reduction::NanSum => (if is_float { 3 } else { 0 }, whole),
        Reduction::NanProd => (if is_float { 4 } else { 2 }, whole),
        Reduction::Max => (5, whole),
        Reduction::Min => (6, whole),
        Reduction::L1 => (7, whole),
        // The squares of integers are added in double precision.
        Reduction::L2 => (8, if is_float { whole } else { Computes::Double }),
        Reduction::SumSquares => return None,
    };
    // No result is converted from floats to integers, or to bool.
    let ends = output.dtype == within || (output.dtype.is_float() == within.is_float() && output.dtype != DType::Bool);
    // No elements have no largest or smallest one: without a kernel, the host's operator says so.
    let is_extreme = matches!(reduction, Reduction::Max | Reduction::Min);
    let lacks_one = is_extreme && input.shape.size() == 0 && output.shape.size() > 0;
    if !reads(input.dtype, within) || !ends || !known(output) || lacks_one {
        return None;
    }
    let argument = over_axes(fold, reduced, signature)?;
    let name = reduce_name(computed);
    Some(Bound::kernel(name, each_row(argument.results as usize), move |at| argument.with_addresses(at)))
}

/// A fold over axes of input 0, without its addresses.
fn over_axes(fold: i32, reduced: &[bool], signature: &Signature<'_>) -> Option<ReduceArgument> {
    let (input, output) = (signature.inputs.first()?, signature.outputs.first()?);
    let steps = contiguous(&input.shape);
    let part = |gone: bool| -> (Vec<usize>, Vec<isize>) {
        let chosen = (0..reduced.len()).filter(|axis| reduced[*axis] == gone);
        chosen.map(|axis| (input.shape[axis], steps[axis])).unzip()
    };
    let (kept, gone) = (part(false), part(true));
    of_parts(fold, [(&kept.0, &kept.1), (&gone.0, &gone.1)], [input.dtype, output.dtype])
}

/// A fold without addresses: extents and steps of the axes that are kept, and of the others.
fn of_parts(fold: i32, parts: [(&[usize], &[isize]); 2], [from, to]: [DType; 2]) -> Option<ReduceArgument> {
    let [Some((kept, [kept_steps])), Some((gone, [gone_steps]))] = parts.map(|(shape, steps)| axes(shape, [steps]))
    else {
        return None;
    };
    let [results, count] = parts.map(|(shape, _)| shape.iter().product::<usize>() as i64);
    Some(ReduceArgument {
        to: 0,
        from: 0,
        count,
        results,
        fold,
        dtype: code(from),
        to_dtype: code(to),
        unused: 0,
        kept,
        gone,
        kept_steps,
        gone_steps,
    })
}

/// Finds the least of each row of numbers, in double precision; NaN where there is one.
pub(crate) fn least_of_rows(
    ctx: &DeviceCtx<'_>,
    to: DevicePtr,
    from: DevicePtr,
    dtype: DType,
    [rows, extent]: [usize; 2],
) -> Result<(), OpError> {
    let parts: [(&[usize], &[isize]); 2] = [(&[rows], &[extent as isize]), (&[extent], &[1])];
    match of_parts(6, parts, [dtype, DType::F64]).zip(each_row(rows)) {
        Some((argument, grid)) => {
            launch(ctx, c"reduce_f64", grid, &ReduceArgument { to: to.0, from: from.0, ..argument })
        }
        None => Ok(()),
    }
}

fn bind_sums_of_part(first: usize, shape: &[usize], steps: &[isize], signature: &Signature<'_>) -> Option<Bound> {
    let input = signature.inputs.first()?;
    let output = signature.outputs.first().filter(|output| output.dtype == input.dtype)?;
    let name = match computes(input.dtype)? {
        Computes::Whole => c"reduce_i64",
        Computes::Single | Computes::Double => c"reduce_f64",
    };
    let ((gone, kept), (gone_step, kept_steps)) = (shape.split_last()?, steps.split_last()?);
    let argument = of_parts(0, [(kept, kept_steps), (&[*gone], &[*gone_step])], [input.dtype, output.dtype])?;
    let offset = first * input.dtype.size();
    Some(Bound::kernel(name, each_row(argument.results as usize), move |at| {
        let mut argument = argument.with_addresses(at);
        argument.from = at.inputs[0].offset(offset).0;
        argument
    }))
}

fn reduce_name(computed: Computes) -> &'static CStr {
    match computed {
        Computes::Single => c"reduce_f32",
        Computes::Double => c"reduce_f64",
        Computes::Whole => c"reduce_i64",
    }
}

fn bind_truths(every: bool, reduced: &[bool], signature: &Signature<'_>) -> Option<Bound> {
    let input = signature.inputs.first()?;
    let name = reduce_name(computes(input.dtype)?);
    let argument = over_axes(if every { 10 } else { 9 }, reduced, signature)?;
    Some(Bound::kernel(name, each_row(argument.results as usize), move |at| argument.with_addresses(at)))
}

fn bind_variances(reduced: &[bool], divisor: f64, root: bool, signature: &Signature<'_>) -> Option<Bound> {
    let (input, output) = (signature.inputs.first()?, signature.outputs.first()?);
    if !known(input) || !known(output) || !output.dtype.is_float() {
        return None;
    }
    let of = over_axes(0, reduced, signature)?;
    Some(Bound::kernel(c"variances", each_row(of.results as usize), move |at| VariancesArgument {
        of: of.with_addresses(at),
        divisor,
        root: i32::from(root),
        unused: 0,
    }))
}

fn bind_moments(reduced: &[bool], signature: &Signature<'_>) -> Option<Bound> {
    let input = signature.inputs.first()?;
    let name = of_floats(input.dtype, [c"moments_f32", c"moments_f64"])?;
    let mean = over_axes(0, reduced, signature)?;
    Some(Bound::kernel(name, each_row(mean.results as usize), move |at| MomentsArgument {
        variance: at.outputs[1].0,
        mean: mean.with_addresses(at),
    }))
}

fn bind_running_sum([outer, extent, inner]: [usize; 3], signature: &Signature<'_>) -> Option<Bound> {
    let (input, output) = (signature.inputs.first()?, signature.outputs.first()?);
    let (from, whole) = (computes(input.dtype)?, computes(output.dtype)?);
    // What is summed in one type is read in it; integers also become doubles.
    if from != whole && whole != Computes::Double {
        return None;
    }
    let name = match whole {
        Computes::Single => c"running_sum_f32",
        Computes::Double => c"running_sum_f64",
        Computes::Whole => c"running_sum_i64",
    };
    let rows = if extent > 0 { outer * inner } else { 0 };
    let grid = running_sum_grid(rows);
    let (dtype, from_dtype) = (code(output.dtype), code(input.dtype));
    Some(Bound::kernel(name, grid, move |at| RunningSumArgument {
        to: at.outputs[0].0,
        from: at.inputs[0].0,
        rows: rows as i64,
        extent: extent as i64,
        inner: inner as i64,
        dtype,
        from_dtype,
    }))
}

/// A block for each row, whose threads show their sums to each other.
fn running_sum_grid(rows: usize) -> Option<Grid> {
    each_row(rows).map(|grid| Grid { shared_bytes: 8 * ROW_THREADS, ..grid })
}

/// Computes the running sums of rows of numbers, in double precision.
pub(crate) fn running_sums(
    ctx: &DeviceCtx<'_>,
    to: DevicePtr,
    from: DevicePtr,
    dtype: DType,
    [rows, extent]: [usize; 2],
) -> Result<(), OpError> {
    let Some(grid) = running_sum_grid(rows) else { return Ok(()) };
    let argument = RunningSumArgument {
        to: to.0,
        from: from.0,
        rows: rows as i64,
        extent: extent as i64,
        inner: 1,
        dtype: code(DType::F64),
        from_dtype: code(dtype),
    };
    launch(ctx, c"running_sum_f64", grid, &argument)
}

fn bind_extreme(largest: bool, [outer, extent, inner]: [usize; 3], signature: &Signature<'_>) -> Option<Bound> {
    let (input, output) = (signature.inputs.first()?, signature.outputs.first()?);
    if computes(input.dtype).is_none() || computes(output.dtype).is_none() || extent == 0 {
        return None;
    }
    let (dtype, to_dtype) = (code(input.dtype), code(output.dtype));
    let rows = outer * inner;
    // A thread for each row is faster only where neighbouring threads read neighbouring elements.
    let long = extent >= ROW_THREADS as usize && (inner == 1 || rows < FEW_ROWS);
    let (name, grid) = match input.dtype {
        _ if !long => (c"extreme", each(rows)),
        DType::I64 => (c"extreme_of_row_i64", each_row(rows)),
        _ => (c"extreme_of_row_f64", each_row(rows)),
    };
    // A number and its place for every warp.
    let grid = grid.map(|grid| Grid { shared_bytes: 2 * grid.shared_bytes, ..grid });
    Some(Bound::kernel(name, grid, move |at| ExtremeArgument {
        to: at.outputs[0].0,
        from: at.inputs[0].0,
        outer: outer as i64,
        extent: extent as i64,
        inner: inner as i64,
        dtype,
        to_dtype,
        largest: i32::from(largest),
        unused: 0,
    }))
}
