//! Elements found by number: `indexing.h`.

use crate::arguments::{AXES, GatherRowsArgument, OneHotArgument, SelectArgument, TakeArgument};
use crate::launch::{Bound, code, each, known, launch};
use mxrt_engine::{DeviceCtx, DevicePtr, FailureKind, OpError};
use mxrt_kernels::KernelError;
use mxrt_kernels::index::OutOfRange;
use mxrt_ops::{KernelForm, Signature};
use mxrt_tensor::DType;

/// The offset that the source adds to an index that it reports, so that every report differs from
/// zero.
pub(crate) const REPORTED: u64 = 0x4000_0000_0000_0000;

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    match *form {
        KernelForm::GatherRows { ref sizes, inner } => bind_gather_rows(sizes, inner, signature),
        KernelForm::Take { data, indices, split, mode, axis, pick } => {
            bind_take((data, indices), split, mode, axis, pick, signature)
        }
        KernelForm::OneHot { depth, on, off } => {
            let (input, output) = (signature.inputs.first()?, signature.outputs.first()?);
            let n = output.shape.size();
            let (dtype, index_dtype) = (code(output.dtype), code(input.dtype));
            (known(input) && known(output)).then(|| {
                Bound::kernel(c"one_hot", each(n), move |at| OneHotArgument {
                    to: at.outputs[0].0,
                    indices: at.inputs[0].0,
                    n: n as i64,
                    depth: depth as i64,
                    on,
                    off,
                    dtype,
                    index_dtype,
                })
            })
        }
        KernelForm::Select { row } => {
            let (condition, output) = (signature.inputs.first().filter(|t| known(t))?, signature.outputs.first()?);
            let (n, size, condition_dtype) = (output.shape.size(), output.dtype.size() as i32, code(condition.dtype));
            Some(Bound::kernel(c"select_elements", each(n), move |at| SelectArgument {
                to: at.outputs[0].0,
                condition: at.inputs[0].0,
                yes: at.inputs[1].0,
                no: at.inputs[2].0,
                n: n as i64,
                row: row as i64,
                size,
                condition_dtype,
            }))
        }
        _ => None,
    }
}

fn bind_take(
    (data, indices): (usize, usize),
    [outer, extent, inner]: [usize; 3],
    mode: OutOfRange,
    axis: usize,
    pick: bool,
    signature: &Signature<'_>,
) -> Option<Bound> {
    let (from, numbers, output) =
        (signature.inputs.get(data)?, signature.inputs.get(indices)?, signature.outputs.first()?);
    let n = output.shape.size();
    if !known(numbers) || from.dtype != output.dtype || (extent == 0 && n > 0) {
        return None;
    }
    let argument = TakeArgument {
        to: 0,
        from: 0,
        indices: 0,
        status: 0,
        outer: outer as i64,
        extent: extent as i64,
        inner: inner as i64,
        count: if pick { 1 } else { numbers.shape.size() as i64 },
        size: from.dtype.size() as i32,
        index_dtype: code(numbers.dtype),
        mode: match mode {
            OutOfRange::Clip => 0,
            OutOfRange::Wrap => 1,
            OutOfRange::Raise => 2,
        },
        pick: i32::from(pick),
    };
    let grid = each(n);
    Some(Bound::new(move |ctx, at| {
        let Some(grid) = grid else { return Ok(()) };
        let status = if mode == OutOfRange::Raise { status(ctx, axis, extent)? } else { DevicePtr(0) };
        let (to, from, indices) = (at.outputs[0].0, at.inputs[data].0, at.inputs[indices].0);
        launch(ctx, c"take", grid, &TakeArgument { to, from, indices, status: status.0, ..argument })
    }))
}

fn bind_gather_rows(sizes: &[usize], inner: usize, signature: &Signature<'_>) -> Option<Bound> {
    let ([data, numbers], [output]) = (signature.inputs, signature.outputs) else { return None };
    let n = output.shape.size();
    if !known(numbers) || sizes.len() > AXES || (n > 0 && data.shape.size() == 0) {
        return None;
    }
    let mut argument = GatherRowsArgument {
        to: 0,
        from: 0,
        indices: 0,
        status: 0,
        count: (n / inner.max(1)) as i64,
        inner: inner as i64,
        axes: sizes.len() as i32,
        size: data.dtype.size() as i32,
        index_dtype: code(numbers.dtype),
        unused: 0,
        sizes: [0; AXES],
    };
    argument.sizes.iter_mut().zip(sizes).for_each(|(place, size)| *place = *size as i64);
    let (grid, sizes) = (each(n), sizes.to_vec());
    Some(Bound::new(move |ctx, at| {
        let Some(grid) = grid else { return Ok(()) };
        let sizes = sizes.clone();
        let status = ctx.status_word(move |said| row_out_of_range(said, &sizes))?.0;
        let mut argument = argument;
        (argument.to, argument.from, argument.indices) = (at.outputs[0].0, at.inputs[0].0, at.inputs[1].0);
        argument.status = status;
        launch(ctx, c"gather_rows", grid, &argument)
    }))
}

/// The error of an index that `report_place` of the text reports.
pub(crate) fn row_out_of_range(said: u64, sizes: &[usize]) -> OpError {
    let axis = (said >> 60).saturating_sub(1) as usize;
    let index = of_38_bits(said);
    let size = sizes.get(axis).copied().unwrap_or(0);
    let low = (size as i64).wrapping_neg();
    OpError::new(FailureKind::Index, KernelError::IndexOutOfRange { index, axis, size, low }.to_string())
}

/// Copies rows of `inner` elements of `size` bytes, in the order that numbers of 64 bits give.
pub(crate) fn take_rows(
    ctx: &DeviceCtx<'_>,
    [to, from, order]: [DevicePtr; 3],
    [rows, inner, size]: [usize; 3],
) -> Result<(), OpError> {
    let Some(grid) = each(rows * inner) else { return Ok(()) };
    let argument = TakeArgument {
        to: to.0,
        from: from.0,
        indices: order.0,
        status: 0,
        outer: 1,
        extent: rows as i64,
        inner: inner as i64,
        count: rows as i64,
        size: size as i32,
        index_dtype: code(DType::I64),
        mode: 0,
        pick: 0,
    };
    launch(ctx, c"take", grid, &argument)
}

/// The number that `in_38_bits` of the source makes 38 bits of: the last ones here.
pub(crate) fn of_38_bits(said: u64) -> i64 {
    match (said & ((1 << 38) - 1)) as i64 {
        0 => i64::MIN,
        held if held == (1 << 38) - 1 => i64::MAX,
        held => held - (1 << 37),
    }
}

/// A word for the first index that is out of range.
fn status(ctx: &DeviceCtx<'_>, axis: usize, size: usize) -> Result<DevicePtr, OpError> {
    ctx.status_word(move |said| out_of_range(said, axis, size))
}

/// The error of an index that a kernel reports.
pub(crate) fn out_of_range(said: u64, axis: usize, size: usize) -> OpError {
    // The report of -REPORTED would be zero, so `report_index` of the text gives that of 0, which
    // is out of range only where there are no elements.
    let index = match said.wrapping_sub(REPORTED) as i64 {
        0 if size > 0 => (REPORTED as i64).wrapping_neg(),
        index => index,
    };
    OpError::new(FailureKind::Index, KernelError::IndexOutOfRange { index, axis, size, low: 0 }.to_string())
}
