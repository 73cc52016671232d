//! Elements in order: `order.h`.

use crate::arguments::OrderArgument;
use crate::launch::{Bound, code, each, known, launch};
use mxrt_cuda::Grid;
use mxrt_engine::{DeviceCtx, DevicePtr, FailureKind, OpError};
use mxrt_kernels::sort::Order;
use mxrt_ops::{KernelForm, Ordered, Signature};
use mxrt_tensor::DType;

/// Pairs that a block sorts (`ORDER_CHUNK` of the text), of 12 bytes each.
const CHUNK: usize = 1024;
const PAIR: usize = 12;

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    let KernelForm::Order { split, order, give } = *form else { return None };
    bind_order(split, order, give, signature)
}

fn bind_order(
    [outer, extent, inner]: [usize; 3],
    order: Order,
    give: Ordered,
    signature: &Signature<'_>,
) -> Option<Bound> {
    let input = signature.inputs.first()?;
    if !known(input) || !signature.outputs.iter().all(known) {
        return None;
    }
    let (values, places) = match give {
        Ordered::Values | Ordered::Mask => (Some(0), None),
        Ordered::Positions => (None, Some(0)),
        Ordered::Both => (Some(0), Some(1)),
    };
    let (rows, padded) = (outer * inner, extent.next_power_of_two().max(2));
    let total = rows.checked_mul(padded)?;
    let bytes = total.checked_mul(PAIR)?;
    let place_dtype = places.map_or(0, |output: usize| code(signature.outputs[output].dtype));
    let argument = OrderArgument {
        dtype: code(input.dtype),
        size: input.dtype.size() as i32,
        place_dtype,
        mask: i32::from(give == Ordered::Mask),
        ..of_rows([rows, extent, inner], padded, order)
    };
    let stored = rows * if give == Ordered::Mask { extent } else { order.k };
    Some(Bound::new(move |ctx, at| {
        let (Some(fill), Some(step), Some(store)) = (each(total), each(total / 2), each(stored)) else { return Ok(()) };
        let keys = ctx.scratch(bytes)?;
        let address = |output: Option<usize>| output.map_or(0, |i| at.outputs[i].0);
        let (values, places) = (address(values), address(places));
        let positions = keys.offset(8 * total).0;
        let argument = OrderArgument { keys: keys.0, positions, from: at.inputs[0].0, values, places, ..argument };
        launch(ctx, c"order_fill", fill, &argument)?;
        sort_rows(ctx, (total, padded), step, argument)?;
        launch(ctx, c"order_store", store, &argument)
    }))
}

/// The order of the elements of rows.
pub(crate) struct SortedRows {
    /// address of the positions of all elements, a `u32` for each
    pub positions: u64,
    /// positions of a row; those after its elements do not matter
    pub padded: i64,
}

/// Sorts rows of numbers, and finds the positions of all elements.
pub(crate) fn sorted_rows(
    ctx: &DeviceCtx<'_>,
    from: DevicePtr,
    dtype: DType,
    [rows, extent]: [usize; 2],
    order: Order,
) -> Result<SortedRows, OpError> {
    let padded = extent.next_power_of_two().max(2);
    let total = rows.checked_mul(padded).filter(|total| total.checked_mul(PAIR).is_some());
    let too_many = || format!("{rows} rows of {extent} elements are too many to be sorted on a GPU");
    let total = total.ok_or_else(|| OpError::new(FailureKind::NotImplemented, too_many()))?;
    let keys = ctx.scratch(total * PAIR)?;
    let positions = keys.offset(8 * total).0;
    if let (Some(fill), Some(step)) = (each(total), each(total / 2)) {
        let plain = of_rows([rows, extent, 1], padded, order);
        let argument = OrderArgument { keys: keys.0, positions, from: from.0, dtype: code(dtype), ..plain };
        launch(ctx, c"order_fill", fill, &argument)?;
        sort_rows(ctx, (total, padded), step, argument)?;
    }
    Ok(SortedRows { positions, padded: padded as i64 })
}

/// Stores the positions of the first of some numbers in double precision, in 64 bits.
pub(crate) fn first_positions(
    ctx: &DeviceCtx<'_>,
    from: DevicePtr,
    extent: usize,
    order: Order,
    to: DevicePtr,
) -> Result<(), OpError> {
    let Some(store) = each(order.k) else { return Ok(()) };
    let SortedRows { positions, padded } = sorted_rows(ctx, from, DType::F64, [1, extent], order)?;
    let place_dtype = code(DType::I64);
    let argument = of_rows([1, extent, 1], padded as usize, order);
    launch(ctx, c"order_store", store, &OrderArgument { positions, places: to.0, place_dtype, ..argument })
}

/// The argument for rows of that many elements, without addresses and element types.
fn of_rows([rows, extent, inner]: [usize; 3], padded: usize, order: Order) -> OrderArgument {
    OrderArgument {
        keys: 0,
        positions: 0,
        from: 0,
        values: 0,
        places: 0,
        rows: rows as i64,
        extent: extent as i64,
        inner: inner as i64,
        padded: padded as i64,
        kept: order.k as i64,
        stage: 0,
        last: 0,
        distance: 0,
        dtype: 0,
        size: 0,
        place_dtype: 0,
        ascending: i32::from(order.ascending),
        mask: 0,
        unused: 0,
    }
}

/// Sorts rows of `padded` pairs, `total` in all: chunks first, then longer and longer parts of rows.
fn sort_rows(
    ctx: &DeviceCtx<'_>,
    (total, padded): (usize, usize),
    step: Grid,
    argument: OrderArgument,
) -> Result<(), OpError> {
    let chunks = Grid { blocks: [blocks(total), 1, 1], threads: 256, shared_bytes: (CHUNK * PAIR) as u32 };
    let last = padded.min(CHUNK) as i64;
    launch(ctx, c"order_chunks", chunks, &OrderArgument { stage: 2, last, ..argument })?;
    let mut stage = 2 * CHUNK;
    while stage <= padded {
        let argument = OrderArgument { stage: stage as i64, last: stage as i64, ..argument };
        let mut distance = stage / 2;
        while distance >= CHUNK {
            launch(ctx, c"order_step", step, &OrderArgument { distance: distance as i64, ..argument })?;
            distance /= 2;
        }
        launch(ctx, c"order_chunks", chunks, &argument)?;
        stage *= 2;
    }
    Ok(())
}

/// Blocks that sort chunks; they continue with further ones.
fn blocks(total: usize) -> u32 {
    total.div_ceil(CHUNK).min(1 << 16) as u32
}
