//! Random choices among places: `draws.h`.

use crate::arguments::{ChoicesArgument, DistinctArgument, OutcomesArgument, PlaceDrawsArgument, WeightsArgument};
use crate::indexing::take_rows;
use crate::launch::{Bound, code, each, each_row, known, launch, of_floats};
use crate::order::{first_positions, sorted_rows};
use crate::reduce::{least_of_rows, running_sums};
use crate::scatter::store_numbers;
use mxrt_engine::{DeviceCtx, DevicePtr, OpError};
use mxrt_kernels::sort::Order;
use mxrt_ops::{DeviceOperands, DrawForm, KernelForm, Signature, probabilities_error, weights_error};
use mxrt_tensor::{DType, TensorType};
use std::sync::Arc;

/// Bytes of a number of 64 bits.
const WIDE: usize = 8;

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    let KernelForm::Draw(draw) = form else { return None };
    match draw {
        DrawForm::Shuffle => bind_shuffle(signature),
        DrawForm::Places { below, distinct } => bind_places(*below, *distinct, signature),
        DrawForm::Weighted { weights, distinct } => bind_weighted(*weights, *distinct, signature),
        DrawForm::Choices => bind_choices(signature),
        DrawForm::Outcomes { trials, probabilities } => bind_outcomes(*trials, probabilities.clone(), signature),
    }
}

/// Seed and position of the piece of the random stream.
fn key(at: &DeviceOperands<'_>) -> (u64, u64) {
    at.random.map_or((0, 0), |key| (key.seed, key.position))
}

/// Whether elements can be ordered: their positions are numbers of 32 bits.
fn can_be_ordered(elements: usize) -> bool {
    u32::try_from(elements).is_ok()
}

fn bind_shuffle(signature: &Signature<'_>) -> Option<Bound> {
    let input = signature.inputs.first()?;
    let (rows, size) = (input.shape.first().copied().unwrap_or(1), input.dtype.size());
    let inner = input.shape.size().checked_div(rows).unwrap_or(0);
    can_be_ordered(rows).then(|| {
        Bound::new(move |ctx, at| {
            if inner == 0 {
                return Ok(());
            }
            let order = ctx.scratch(rows * WIDE)?;
            draw_distinct(ctx, at, order, [rows, rows], true)?;
            take_rows(ctx, [at.outputs[0], at.inputs[0], order], [rows, inner, size])
        })
    })
}

fn bind_places(below: usize, distinct: bool, signature: &Signature<'_>) -> Option<Bound> {
    let output = signature.outputs.first().filter(|output| output.dtype == DType::I64)?;
    let count = output.shape.size();
    if distinct {
        let draw = move |ctx: &DeviceCtx<'_>, at: &DeviceOperands<'_>| {
            draw_distinct(ctx, at, at.outputs[0], [count, below], false)
        };
        return can_be_ordered(count).then(|| Bound::new(draw));
    }
    Some(Bound::kernel(c"draw_places", each(count), move |at| {
        let (seed, position) = key(at);
        PlaceDrawsArgument { to: at.outputs[0].0, count: count as i64, n: below as u64, seed, position }
    }))
}

/// Draws `count` different places of `n`. Upwards they are those of a permutation that begins with
/// the first place; downwards they are the permutation of all places that begins with the last one.
fn draw_distinct(
    ctx: &DeviceCtx<'_>,
    at: &DeviceOperands<'_>,
    to: DevicePtr,
    [count, n]: [usize; 2],
    downwards: bool,
) -> Result<(), OpError> {
    let Some(grid) = each(count) else { return Ok(()) };
    let drawn = ctx.scratch(3 * count * WIDE)?;
    let (seed, position) = key(at);
    let mut argument = DistinctArgument {
        to: to.0,
        drawn: drawn.0,
        before: drawn.offset(count * WIDE).0,
        links: drawn.offset(2 * count * WIDE).0,
        positions: 0,
        count: count as i64,
        n: n as i64,
        seed,
        position,
        downwards: i32::from(downwards),
        unused: 0,
    };
    launch(ctx, c"distinct_draws", grid, &argument)?;
    let order = Order { ascending: true, k: count };
    argument.positions = sorted_rows(ctx, drawn, DType::I64, [1, count], order)?.positions;
    launch(ctx, c"distinct_links", grid, &argument)?;
    launch(ctx, c"distinct_store", grid, &argument)
}

/// The argument for weights of one row, without addresses.
fn weights_argument(n: usize, weights: &TensorType) -> WeightsArgument {
    let dtype = code(weights.dtype);
    WeightsArgument { keys: 0, from: 0, status: 0, n: n as i64, seed: 0, position: 0, dtype, some: 0 }
}

fn bind_weighted(weights: usize, distinct: bool, signature: &Signature<'_>) -> Option<Bound> {
    let input = signature.inputs.get(weights).filter(|input| known(input))?.clone();
    let output = signature.outputs.first().filter(|output| output.dtype == DType::I64)?.clone();
    let (n, count) = (input.shape.size(), output.shape.size());
    if distinct && !can_be_ordered(n) {
        return None;
    }
    let sums = RowSums { rows: 1, extent: n };
    sums.bytes()?;
    Some(Bound::new(move |ctx, at| {
        let Some(one) = each_row(1).filter(|_| n > 0) else { return Ok(()) };
        let status = ctx.status_word(move |said| {
            // The kernel reports 1, which is a probability, if all weights are zero.
            let wrong = Some(f64::from_bits(said)).filter(|wrong| *wrong != 1.0);
            weights_error(wrong, n)
        })?;
        let (from, (seed, position)) = (at.inputs[weights], key(at));
        let argument = weights_argument(n, &input);
        let argument = WeightsArgument { from: from.0, seed, position, some: i32::from(count > 0), ..argument };
        launch(ctx, c"check_weights", one, &WeightsArgument { status: status.0, ..argument })?;
        match each(n).filter(|_| distinct && count > 0) {
            Some(grid) => {
                let keys = ctx.scratch(n * WIDE)?;
                launch(ctx, c"weighted_keys", grid, &WeightsArgument { keys: keys.0, ..argument })?;
                first_positions(ctx, keys, n, Order { ascending: true, k: count }, at.outputs[0])
            }
            None => sums.choose(ctx, at, (from, &input), (at.outputs[0], &output), None, true),
        }
    }))
}

fn bind_choices(signature: &Signature<'_>) -> Option<Bound> {
    let input = signature.inputs.first()?.clone();
    of_floats(input.dtype, [(); 2])?;
    let extent = *input.shape.last()?;
    let output = signature.outputs.first().filter(|output| known(output))?.clone();
    let with_logarithms = signature.outputs.len() > 1;
    let sums = RowSums { rows: input.shape.size().checked_div(extent)?, extent };
    sums.bytes()?;
    Some(Bound::new(move |ctx, at| {
        let logarithms = with_logarithms.then(|| at.outputs[1]);
        sums.choose(ctx, at, (at.inputs[0], &input), (at.outputs[0], &output), logarithms, false)
    }))
}

/// Rows of weights, whose running sums choices are made by.
#[derive(Clone, Copy)]
struct RowSums {
    rows: usize,
    extent: usize,
}

impl RowSums {
    /// Bytes of the sums, and of the least weight of each row.
    fn bytes(self) -> Option<usize> {
        self.rows.checked_mul(self.extent.checked_add(1)?)?.checked_mul(WIDE)
    }

    /// Chooses a place of a row for each element of `to`, equally many of every row. `scaled`:
    /// weights are parts of their sum, and not of one.
    fn choose(
        self,
        ctx: &DeviceCtx<'_>,
        at: &DeviceOperands<'_>,
        (from, weights): (DevicePtr, &TensorType),
        (to, output): (DevicePtr, &TensorType),
        logarithms: Option<DevicePtr>,
        scaled: bool,
    ) -> Result<(), OpError> {
        let RowSums { rows, extent } = self;
        let n = output.shape.size();
        let (Some(grid), Some(bytes)) = (each(n), self.bytes()) else { return Ok(()) };
        let sums = ctx.scratch(bytes)?;
        let least = sums.offset(rows * extent * WIDE);
        running_sums(ctx, sums, from, weights.dtype, [rows, extent])?;
        least_of_rows(ctx, least, from, weights.dtype, [rows, extent])?;
        let (seed, position) = key(at);
        let argument = ChoicesArgument {
            to: to.0,
            logarithms: logarithms.map_or(0, |array| array.0),
            from: from.0,
            sums: sums.0,
            least: least.0,
            n: n as i64,
            extent: extent as i64,
            each: n.checked_div(rows).unwrap_or(1).max(1) as i64,
            seed,
            position,
            dtype: code(weights.dtype),
            to_dtype: code(output.dtype),
            logarithm_dtype: code(weights.dtype),
            scaled: i32::from(scaled),
        };
        launch(ctx, c"draw_choices", grid, &argument)
    }
}

fn bind_outcomes(trials: usize, given: Option<Arc<[f64]>>, signature: &Signature<'_>) -> Option<Bound> {
    let output = signature.outputs.first().filter(|output| output.dtype == DType::I64)?;
    let extent = *output.shape.last()?;
    let rows = output.shape.size().checked_div(extent).unwrap_or(0);
    let input = match &given {
        Some(_) => TensorType::new(DType::F64, output.shape.clone()),
        None => signature.inputs.first().filter(|input| known(input))?.clone(),
    };
    Some(Bound::new(move |ctx, at| {
        let Some(one) = each_row(1).filter(|_| extent > 0) else { return Ok(()) };
        let from = match &given {
            Some(probabilities) => {
                let from = ctx.scratch(extent * WIDE)?;
                store_numbers(ctx, from, probabilities)?;
                from
            }
            None => at.inputs[0],
        };
        let status = ctx.status_word(|_| probabilities_error())?;
        let argument = weights_argument(extent, &input);
        let argument = WeightsArgument { from: from.0, status: status.0, ..argument };
        launch(ctx, c"check_probabilities", one, &argument)?;
        let Some(grid) = each(rows) else { return Ok(()) };
        let (seed, position) = key(at);
        let argument = OutcomesArgument {
            to: at.outputs[0].0,
            from: from.0,
            rows: rows as i64,
            extent: extent as i64,
            trials: trials as i64,
            seed,
            position,
            dtype: code(input.dtype),
            unused: 0,
        };
        launch(ctx, c"count_outcomes", grid, &argument)
    }))
}
