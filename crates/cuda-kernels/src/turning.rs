//! Moves between arrays with different neighbours, such as a transpose: the second half of
//! `moving.h`.

use crate::arguments::{AXES, AxesArgument, MoveArgument, TurnArgument};
use crate::launch::{THREADS, launch};
use mxrt_cuda::Grid;
use mxrt_engine::{DeviceCtx, DevicePtr, OpError};
use std::ffi::CStr;

/// Bytes of a piece.
const PIECE: i64 = 16;
/// Rows or columns that are few.
const FEW: usize = 8;
/// Columns or rows from which on a block is worth while for few of the others.
const MANY: usize = 256;
/// Bytes of each of few rows that a block moves (`TURN_BYTES` of the text).
const RUN: usize = 2048;
/// Bytes of the largest tile with what is between its rows.
const TILE: u32 = 64 * 66 * 2;

/// A way to turn a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Tiles,
    /// Rows whose elements of several columns are neighbours in the result.
    FewRows,
    /// Columns whose elements of several rows are neighbours in the operand.
    FewColumns,
}

/// A move through shared memory, with the places of its arrays left out.
#[derive(Clone, Copy)]
pub(crate) struct Turned {
    way: Way,
    grid: Grid,
    argument: TurnArgument,
}

impl Turned {
    /// Finds the axis along which elements are neighbours in either array; none if it is the same
    /// one, or if blocks would have little to do.
    pub fn of(m: &MoveArgument) -> Option<Turned> {
        let rank = m.axes.rank as usize;
        let together = |steps: &[i64; AXES]| (0..rank).find(|axis| steps[*axis] == 1);
        let (row, column) = (together(&m.to_steps)?, together(&m.from_steps)?);
        let sides = [row, column].map(|axis| m.axes.shape[axis] as usize);
        let (to_step, from_step) = (m.to_steps[column], m.from_steps[row]);
        let way = way(sides, [to_step, from_step]).filter(|_| row != column)?;
        let (outer, [to_steps, from_steps]) = without(m, [row, column]);
        let matrices: i64 = outer.shape[..outer.rank as usize].iter().product();
        let (blocks, shared_bytes) = blocks(way, sides, m.size as usize);
        let blocks = i32::try_from(blocks.checked_mul(usize::try_from(matrices).ok()?)?).ok()?;
        let [rows, columns] = [i32::try_from(sides[0]).ok()?, i32::try_from(sides[1]).ok()?];
        let (size, to, from) = (m.size, 0, 0);
        let argument = TurnArgument {
            to,
            from,
            to_step,
            from_step,
            rows,
            columns,
            size,
            together: 0,
            outer,
            to_steps,
            from_steps,
        };
        Some(Turned { way, grid: Grid { blocks: [blocks as u32, 1, 1], threads: THREADS, shared_bytes }, argument })
    }

    pub fn launch(&self, ctx: &DeviceCtx<'_>, to: DevicePtr, from: DevicePtr) -> Result<(), OpError> {
        let p = &self.argument;
        let (name, first, steps) = match self.way {
            Way::Tiles => (c"turn_tiles", to, &p.to_steps),
            Way::FewRows => (c"turn_few_rows", to, &p.to_steps),
            Way::FewColumns => (c"turn_few_columns", from, &p.from_steps),
        };
        let name: &CStr = name;
        // Either way the same bytes are moved, so the address may choose the size of a move.
        let aligned = first.0 % PIECE as u64 == 0 && steps.iter().all(|step| step * i64::from(p.size) % PIECE == 0);
        launch(ctx, name, self.grid, &TurnArgument { to: to.0, from: from.0, together: i32::from(aligned), ..*p })
    }
}

fn way([rows, columns]: [usize; 2], [to_step, from_step]: [i64; 2]) -> Option<Way> {
    if rows <= FEW && columns >= MANY && to_step == rows as i64 {
        return Some(Way::FewRows);
    }
    if columns <= FEW && rows >= MANY && from_step == columns as i64 {
        return Some(Way::FewColumns);
    }
    (rows > FEW && columns > FEW).then_some(Way::Tiles)
}

/// Blocks of a matrix, and the shared memory of each.
fn blocks(way: Way, [rows, columns]: [usize; 2], size: usize) -> (usize, u32) {
    let run = RUN / size;
    match way {
        Way::Tiles => {
            let side = if size <= 2 { 64 } else { 32 };
            (rows.div_ceil(side) * columns.div_ceil(side), TILE)
        }
        Way::FewRows => (columns.div_ceil(run), (RUN * rows) as u32),
        Way::FewColumns => (rows.div_ceil(run), (RUN * columns) as u32),
    }
}

/// The axes of a move but two, and the steps of both arrays in them.
fn without(m: &MoveArgument, gone: [usize; 2]) -> (AxesArgument, [[i64; AXES]; 2]) {
    let mut outer = AxesArgument { rank: 0, unused: 0, shape: [1; AXES] };
    let mut steps = [[0; AXES]; 2];
    for axis in (0..m.axes.rank as usize).filter(|axis| !gone.contains(axis)) {
        let at = outer.rank as usize;
        outer.shape[at] = m.axes.shape[axis];
        steps[0][at] = m.to_steps[axis];
        steps[1][at] = m.from_steps[axis];
        outer.rank += 1;
    }
    (outer, steps)
}
