//! Elements put into places given by number, and positions in arrays: `scatter.h`.

use crate::arguments::{AXES, KNOWN_NUMBERS, KnownNumbersArgument, PositionsArgument, ScatterRowsArgument};
use crate::indexing::row_out_of_range;
use crate::launch::{Bound, code, each, known, launch};
use crate::moving::fill;
use mxrt_engine::{DeviceCtx, DevicePtr, OpError};
use mxrt_ops::{KernelForm, PositionKind, Signature};
use mxrt_tensor::{DType, TensorType};

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    match form {
        KernelForm::ScatterRows { .. } => bind_scatter(form, signature),
        KernelForm::Positions { kind, axes } => bind_positions(*kind, axes, signature),
        KernelForm::Numbers(values) => bind_numbers(values, signature),
        _ => None,
    }
}

fn bind_scatter(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    let KernelForm::ScatterRows { onto_first, values, indices, ref sizes, inner, count } = *form else { return None };
    let (from, numbers, output) =
        (signature.inputs.get(values)?, signature.inputs.get(indices)?, signature.outputs.first()?.clone());
    let rows: usize = sizes.iter().product();
    let n = from.shape.size();
    // Rows are counted in 32 bits, and a row that is named must be there.
    if !known(numbers) || !known(&output) || sizes.len() > AXES || i32::try_from(count).is_err() || (n > 0 && rows == 0)
    {
        return None;
    }
    let argument = scatter_argument([count, inner], sizes, output.dtype, numbers.dtype);
    let sizes = sizes.to_vec();
    Some(Bound::new(move |ctx, at| {
        match onto_first {
            true if output.bytes() == 0 => {}
            // SAFETY: arrays of the running op, of that size.
            true => unsafe { ctx.copy(at.outputs[0], at.inputs[0], output.bytes()) }?,
            false => fill(ctx, at.outputs[0], &output, 0.0)?,
        }
        let (Some(of_rows), Some(of_elements)) = (each(count), each(n)) else { return Ok(()) };
        let last = ctx.scratch(rows * size_of::<i32>())?;
        fill(ctx, last, &TensorType::new(DType::I32, [rows]), 0.0)?;
        let sizes = sizes.clone();
        let mut argument = argument;
        (argument.to, argument.from, argument.indices) = (at.outputs[0].0, at.inputs[values].0, at.inputs[indices].0);
        argument.status = ctx.status_word(move |said| row_out_of_range(said, &sizes))?.0;
        argument.last = last.0;
        launch(ctx, c"scatter_last", of_rows, &argument)?;
        launch(ctx, c"scatter_rows", of_elements, &argument)
    }))
}

/// The argument of the kernels that scatter rows, without addresses.
fn scatter_argument(
    [count, inner]: [usize; 2],
    sizes: &[usize],
    dtype: DType,
    index_dtype: DType,
) -> ScatterRowsArgument {
    let mut argument = ScatterRowsArgument {
        to: 0,
        from: 0,
        indices: 0,
        last: 0,
        status: 0,
        count: count as i64,
        inner: inner as i64,
        axes: sizes.len() as i32,
        size: dtype.size() as i32,
        index_dtype: code(index_dtype),
        unused: 0,
        sizes: [0; AXES],
    };
    argument.sizes.iter_mut().zip(sizes).for_each(|(place, size)| *place = *size as i64);
    argument
}

fn bind_positions(kind: PositionKind, axes: &[[usize; 2]], signature: &Signature<'_>) -> Option<Bound> {
    let (input, output) = (signature.inputs.first()?, signature.outputs.first()?);
    let n = output.shape.size();
    if !known(output) || (kind != PositionKind::Own && !known(input)) || axes.len() > AXES {
        return None;
    }
    let of_axes = if kind == PositionKind::Ravel { 1 } else { axes.len() };
    let mut argument = PositionsArgument {
        to: 0,
        from: 0,
        n: n.checked_div(of_axes).unwrap_or(0).max(1) as i64,
        axes: axes.len() as i32,
        kind: kind as i32,
        from_dtype: code(input.dtype),
        dtype: code(output.dtype),
        steps: [1; AXES],
        sizes: [1; AXES],
    };
    for (axis, [step, size]) in axes.iter().enumerate() {
        (argument.steps[axis], argument.sizes[axis]) = (*step.max(&1) as i64, *size.max(&1) as i64);
    }
    Some(Bound::kernel(c"positions", each(n), move |at| {
        let mut argument = argument;
        (argument.to, argument.from) = (at.outputs[0].0, at.inputs[0].0);
        argument
    }))
}

/// Stores numbers that the host knows, in double precision.
pub(crate) fn store_numbers(ctx: &DeviceCtx<'_>, to: DevicePtr, numbers: &[f64]) -> Result<(), OpError> {
    let mut argument = KnownNumbersArgument { to: 0, count: 0, dtype: code(DType::I64), values: [0; KNOWN_NUMBERS] };
    for (i, some) in numbers.chunks(KNOWN_NUMBERS).enumerate() {
        let Some(grid) = each(some.len()) else { continue };
        (argument.to, argument.count) = (to.offset(i * KNOWN_NUMBERS * size_of::<f64>()).0, some.len() as i32);
        // Their bits, as integers.
        argument.values.iter_mut().zip(some).for_each(|(bits, number)| *bits = number.to_bits() as i64);
        launch(ctx, c"known_numbers", grid, &argument)?;
    }
    Ok(())
}

fn bind_numbers(values: &[i64], signature: &Signature<'_>) -> Option<Bound> {
    let output = signature.outputs.first().filter(|output| known(output))?;
    let mut argument = KnownNumbersArgument {
        to: 0,
        count: values.len() as i32,
        dtype: code(output.dtype),
        values: [0; KNOWN_NUMBERS],
    };
    argument.values.get_mut(..values.len())?.copy_from_slice(values);
    Some(Bound::kernel(c"known_numbers", each(values.len()), move |at| {
        let mut argument = argument;
        argument.to = at.outputs[0].0;
        argument
    }))
}
