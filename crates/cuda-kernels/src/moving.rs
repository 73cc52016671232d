//! Elements in other places: `moving.h`.

use crate::arguments::{AXES, MoveArgument, PlacesArgument, RangeArgument};
use crate::launch::{Bound, axes, code, each, known, launch};
use crate::product::MatrixRows;
use crate::turning::Turned;
use mxrt_engine::{DeviceCtx, DevicePtr, OpError};
use mxrt_ops::{KernelForm, Move, Signature};
use mxrt_tensor::TensorType;
use mxrt_tensor::index::Region;

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    match form {
        KernelForm::Copy => {
            let bytes = signature.outputs.first()?.bytes();
            Some(Bound::new(move |ctx, at| match bytes {
                0 => Ok(()),
                // SAFETY: arrays of the running op, of that size.
                _ => unsafe { ctx.copy(at.outputs[0], at.inputs[0], bytes) },
            }))
        }
        KernelForm::Move { fill, moves } => bind_moves(*fill, moves, signature),
        KernelForm::Range { start, step, repeat } => {
            let output = signature.outputs.first()?;
            let argument = range([*start, *step], *repeat, output)?;
            Some(Bound::kernel(c"range", each(output.shape.size()), move |at| RangeArgument {
                to: at.outputs[0].0,
                ..argument
            }))
        }
        _ => None,
    }
}

/// The argument for an array of numbers, with its place left out.
fn range([start, step]: [f64; 2], repeat: usize, output: &TensorType) -> Option<RangeArgument> {
    // Whole numbers start and step by whole numbers.
    let whole = |v: f64| if output.dtype.is_float() { v } else { v.trunc() };
    known(output).then(|| RangeArgument {
        to: 0,
        n: output.shape.size() as i64,
        repeat: repeat as i64,
        start: whole(start),
        step: whole(step),
        dtype: code(output.dtype),
        unused: 0,
    })
}

/// Stores one number in all elements of an array, whose type is known.
pub(crate) fn fill(ctx: &DeviceCtx<'_>, to: DevicePtr, array: &TensorType, value: f64) -> Result<(), OpError> {
    match range([value, 0.0], 1, array).zip(each(array.shape.size())) {
        Some((argument, grid)) => launch(ctx, c"range", grid, &RangeArgument { to: to.0, ..argument }),
        None => Ok(()),
    }
}

/// A move with the places of its arrays left out.
#[derive(Clone, Copy)]
struct BoundMove {
    input: usize,
    output: usize,
    /// bytes before the first elements
    to: usize,
    from: usize,
    moved: Moved,
}

/// How elements are moved.
#[derive(Clone, Copy)]
enum Moved {
    Each(MoveArgument),
    Turned(Turned),
}

fn bind_moves(fill: Option<f64>, moves: &[Move], signature: &Signature<'_>) -> Option<Bound> {
    let output = signature.outputs.first()?;
    let size = output.dtype.size();
    let fill = match fill {
        Some(value) => Some(range([value, 0.0], 1, output)?),
        None => None,
    };
    let bind_move = |m: &Move| {
        let moved = moved(&m.shape, &m.into.1, &m.from.1, size)?;
        Some(BoundMove { input: m.input, output: m.output, to: m.into.0 * size, from: m.from.0 * size, moved })
    };
    let moves: Vec<BoundMove> = moves.iter().map(bind_move).collect::<Option<_>>()?;
    Some(Bound::new(move |ctx, at| {
        if let Some((grid, argument)) = fill.and_then(|fill| Some((each(fill.n as usize)?, fill))) {
            launch(ctx, c"range", grid, &RangeArgument { to: at.outputs[0].0, ..argument })?;
        }
        moves.iter().try_for_each(|m| {
            submit(ctx, m.moved, at.outputs[m.output].offset(m.to), at.inputs[m.input].offset(m.from))
        })
    }))
}

fn moved(shape: &[usize], to: &[isize], from: &[isize], size: usize) -> Option<Moved> {
    let (axes, [to_steps, from_steps]) = axes(shape, [to, from])?;
    let n = shape.iter().product::<usize>() as i64;
    let argument = MoveArgument { to: 0, from: 0, n, size: size as i32, unused: 0, axes, to_steps, from_steps };
    let turned = if n > 0 { Turned::of(&argument) } else { None };
    Some(turned.map_or(Moved::Each(argument), Moved::Turned))
}

fn submit(ctx: &DeviceCtx<'_>, moved: Moved, to: DevicePtr, from: DevicePtr) -> Result<(), OpError> {
    match moved {
        Moved::Turned(turned) => turned.launch(ctx, to, from),
        Moved::Each(argument) => match each(argument.n as usize) {
            Some(grid) => launch(ctx, c"move_elements", grid, &MoveArgument { to: to.0, from: from.0, ..argument }),
            None => Ok(()),
        },
    }
}

/// Copies between regions of arrays.
pub(crate) fn copy_region(
    ctx: &DeviceCtx<'_>,
    (to, into): (DevicePtr, &Region),
    (from, region): (DevicePtr, &Region),
    size: usize,
) -> Result<(), OpError> {
    let steps = |region: &Region| region.axes.iter().map(|axis| axis.1).collect::<Vec<_>>();
    let Some(moved) = moved(&into.shape(), &steps(into), &steps(region), size) else {
        let message = format!("a region of more than {AXES} axes that cannot be joined is not copied on a GPU");
        return Err(OpError::new(mxrt_engine::FailureKind::NotImplemented, message));
    };
    submit(ctx, moved, to.offset(into.start * size), from.offset(region.start * size))
}

/// Rows of an array one after the other.
pub(crate) fn copy_rows(
    ctx: &DeviceCtx<'_>,
    to: DevicePtr,
    from: MatrixRows,
    [rows, columns]: [usize; 2],
    size: usize,
) -> Result<(), OpError> {
    let (to_steps, from_steps) = ([columns as isize, 1], [from.step as isize, 1]);
    // Two axes are never too many.
    let Some(moved) = moved(&[rows, columns], &to_steps, &from_steps, size) else { return Ok(()) };
    submit(ctx, moved, to, from.first)
}

/// Copies of single elements.
pub(crate) fn copy_places(
    ctx: &DeviceCtx<'_>,
    to: DevicePtr,
    from: DevicePtr,
    places: DevicePtr,
    count: usize,
    size: usize,
) -> Result<(), OpError> {
    let Some(grid) = each(count) else { return Ok(()) };
    let (n, size) = (count as i64, size as i32);
    let argument = PlacesArgument { to: to.0, from: from.0, places: places.0, n, size, unused: 0 };
    launch(ctx, c"move_places", grid, &argument)
}
