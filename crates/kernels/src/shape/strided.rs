//! Copies that read their source with strides: what transposes, flips, slices, repeats and joins
//! have in common.
//!
//! Where an axis outside of the innermost has neighbours in memory, blocks of both are turned in
//! squares, so that lines of source and output are used whole. All else is copied plane by plane:
//! rows of the two innermost axes, with loops for the runs that are frequent.

use super::Item;
use crate::KernelError;
use crate::error::check_len;
use crate::par::{Columns, Par, chunk_elems, par_cells_mut, par_chunks_mut};
use crate::scratch::Scratch;
use crate::squares;
use crate::strides::Space;
use crate::vectorize::{Loop, vectorize};

/// Bytes of a run of a block that is turned, along either axis: memory delivers as many at once.
const BLOCK_BYTES: usize = 512;
/// Rows or columns from which on blocks are turned.
const LEAST: usize = 16;

/// `out[i0, i1, ...] = src[offset + i0 * strides[0] + i1 * strides[1] + ...]` over `shape`.
pub fn copy_strided<T: Item>(
    par: &dyn Par,
    src: &[T],
    offset: usize,
    strides: &[isize],
    shape: &[usize],
    out: &mut [T],
) -> Result<(), KernelError> {
    check_len("the output", out.len(), shape.iter().product());
    assert_eq!(strides.len(), shape.len(), "strides {strides:?} do not fit shape {shape:?}");
    if out.is_empty() {
        return Ok(());
    }
    check_reach(src.len(), offset, strides, shape)?;
    let space = Space::new(shape, [strides]);
    match TurnedAxes::of(&space) {
        Some(turned) => turned.copy(par, src, offset as isize, out),
        None => copy_planes(par, src, offset as isize, &space, out),
    }
    Ok(())
}

/// Refuses places outside of an array.
pub(super) fn check_reach(len: usize, offset: usize, strides: &[isize], shape: &[usize]) -> Result<(), KernelError> {
    let (mut low, mut high) = (offset as i128, offset as i128);
    for (&n, &step) in shape.iter().zip(strides) {
        let reach = (n as i128 - 1) * step as i128;
        if reach < 0 { low += reach } else { high += reach }
    }
    if low < 0 || high >= len as i128 {
        let clamp = |v: i128| v.clamp(i64::MIN as i128, i64::MAX as i128) as i64;
        return Err(KernelError::OutOfBounds { low: clamp(low), high: clamp(high), len });
    }
    Ok(())
}

/// An index space one of whose outer axes has neighbours in the source.
struct TurnedAxes {
    /// Extents and steps of the axes before that axis, and of those between it and the innermost.
    before: Vec<(usize, isize)>,
    between: Vec<(usize, isize)>,
    /// Extent of the axis; whether its neighbours are in descending order.
    rows: usize,
    backwards: bool,
    /// Extent and step of the innermost axis.
    columns: usize,
    step: isize,
}

impl TurnedAxes {
    fn of(space: &Space<1>) -> Option<TurnedAxes> {
        let (columns, [step]) = space.inner;
        let axes: Vec<(usize, isize)> = space.outer().iter().map(|(n, [step])| (*n, *step)).collect();
        let axis = axes.iter().rposition(|(_, step)| step.abs() == 1)?;
        let (rows, unit) = axes[axis];
        if step.abs() <= 1 || columns < LEAST || rows < 2 {
            return None;
        }
        let (before, between) = (axes[..axis].to_vec(), axes[axis + 1..].to_vec());
        Some(TurnedAxes { before, between, rows, backwards: unit < 0, columns, step })
    }

    /// Copies cells of the output: some rows, or all those of several planes, by some columns.
    fn copy<T: Item>(&self, par: &dyn Par, src: &[T], offset: isize, out: &mut [T]) {
        let side = (BLOCK_BYTES / size_of::<T>().max(1)).max(LEAST);
        let [planes, width] =
            [&self.before, &self.between].map(|axes| axes.iter().map(|axis| axis.0).product::<usize>());
        let width = width * self.columns;
        let tall = self.rows.min(side);
        // As wide as makes a whole block, in parts of one size, and as many planes as fit then.
        let wide = (side * side / tall).next_multiple_of(LEAST);
        let wide = if width <= wide { width } else { wide };
        let together = (side * side / (self.rows * width).max(1)).max(1);
        let parts = self.rows.div_ceil(tall);
        let pieces = if parts > 1 { planes * parts } else { planes.div_ceil(together) };
        let bound = |piece: usize| match parts {
            1 => (piece * together).min(planes) * self.rows,
            _ => piece / parts * self.rows + piece % parts * tall,
        };
        let bounds = Scratch::collect(par, pieces + 1, (0..=pieces).map(bound));
        par_cells_mut(par, out, width, &bounds, wide, 0, |piece, first, mut cell, _| {
            let begin = bounds[piece];
            let (mut row, end) = (begin, bounds[piece + 1]);
            while row < end {
                let rows = (self.rows - row % self.rows).min(end - row);
                let unit = if self.backwards { -1 } else { 1 };
                let plane = offset + place(&self.before, row / self.rows) + (row % self.rows) as isize * unit;
                let mut column = 0;
                while column < cell.width() {
                    let at = (first + column) % self.columns;
                    let columns = (self.columns - at).min(cell.width() - column);
                    let from = plane + place(&self.between, (first + column) / self.columns) + at as isize * self.step;
                    self.block(src, from, &mut cell, [row - begin, column], [rows, columns]);
                    column += columns;
                }
                row += rows;
            }
        });
    }

    /// Copies a block to the rows and columns of a cell from these on.
    fn block<T: Item>(
        &self,
        src: &[T],
        from: isize,
        out: &mut Columns<'_, T>,
        [row, column]: [usize; 2],
        [rows, columns]: [usize; 2],
    ) {
        let side = squares::side(size_of::<T>()).unwrap_or(usize::MAX);
        if rows.min(columns) >= side {
            let block = squares::TurnedBlock { from, step: self.step, backwards: self.backwards, rows, columns };
            return squares::turn(src, block, out, [row, column]);
        }
        // In parts that stay in the cache until every row has read them.
        for begin in (0..columns).step_by(4 * LEAST) {
            let part = (columns - begin).min(4 * LEAST);
            for r in 0..rows {
                let unit = if self.backwards { -(r as isize) } else { r as isize };
                let first = from + begin as isize * self.step + unit;
                copy_row(src, first, self.step, &mut out.row(row + r)[column + begin..][..part]);
            }
        }
    }
}

/// The place of an index of some axes, counted in row-major order.
fn place(axes: &[(usize, isize)], mut index: usize) -> isize {
    let mut place = 0;
    for (n, step) in axes.iter().rev() {
        place += (index % n) as isize * step;
        index /= n;
    }
    place
}

/// Copies rows of the two innermost axes.
fn copy_planes<T: Item>(par: &dyn Par, src: &[T], offset: isize, space: &Space<1>, out: &mut [T]) {
    let (n, [step]) = space.inner;
    let (&(rows, [row_step]), before) = space.outer().split_last().unwrap_or((&(1, [0]), &[]));
    let before: Vec<(usize, isize)> = before.iter().map(|(n, [step])| (*n, *step)).collect();
    let chunk = chunk_elems::<T>().max(if step == 1 { n.min(1 << 16) } else { 0 });
    par_chunks_mut(par, out, chunk, |i, out| {
        let (mut row, mut column) = (i * chunk / n, i * chunk % n);
        let mut rest = out;
        while !rest.is_empty() {
            // The rest of a row; then rows of a plane, as many as are whole; then the beginning of a row.
            let whole = (rows - row % rows).min(rest.len() / n);
            let [count, width] = if column > 0 || whole == 0 { [1, (n - column).min(rest.len())] } else { [whole, n] };
            let first = offset + place(&before, row / rows) + (row % rows) as isize * row_step + column as isize * step;
            let (plane, after) = rest.split_at_mut(count * width);
            copy_plane(src, first, [row_step, step], plane, width);
            rest = after;
            (row, column) = (row + count, 0);
        }
    });
}

/// `out[i * n + j] = src[first + i * steps[0] + j * steps[1]]`.
fn copy_plane<T: Item>(src: &[T], first: isize, steps: [isize; 2], out: &mut [T], n: usize) {
    match n {
        _ if out.len() <= n => copy_row(src, first, steps[1], out),
        2 => vectorize(NarrowRows::<T, 2> { src, first, steps, out }),
        3 => vectorize(NarrowRows::<T, 3> { src, first, steps, out }),
        4 => vectorize(NarrowRows::<T, 4> { src, first, steps, out }),
        _ => {
            for (i, out) in out.chunks_exact_mut(n).enumerate() {
                copy_row(src, first + i as isize * steps[0], steps[1], out);
            }
        }
    }
}

/// Rows of `N` elements, of which rows or columns may be neighbours in the source.
struct NarrowRows<'a, T, const N: usize> {
    src: &'a [T],
    first: isize,
    steps: [isize; 2],
    out: &'a mut [T],
}

impl<T: Item, const N: usize> Loop for NarrowRows<'_, T, N> {
    #[inline(always)]
    fn run(self) {
        let (src, first, [down, across]) = (self.src, self.first, self.steps);
        let (out, _) = self.out.as_chunks_mut::<N>();
        let rows = out.len();
        match (down, across) {
            (1, 0) => out.iter_mut().zip(&src[first as usize..][..rows]).for_each(|(out, v)| *out = [*v; N]),
            (1, _) => {
                let columns: [&[T]; N] =
                    std::array::from_fn(|c| &src[(first + c as isize * across) as usize..][..rows]);
                for i in 0..rows {
                    for c in 0..N {
                        out[i][c] = columns[c][i];
                    }
                }
            }
            _ => {
                for (i, out) in out.iter_mut().enumerate() {
                    let from = first + i as isize * down;
                    if across == 1 {
                        out.copy_from_slice(&src[from as usize..][..N]);
                    } else {
                        *out = std::array::from_fn(|c| src[(from + c as isize * across) as usize]);
                    }
                }
            }
        }
    }
}

/// `out[i] = src[first + i * step]`.
fn copy_row<T: Item>(src: &[T], first: isize, step: isize, out: &mut [T]) {
    let n = out.len();
    match step {
        1 => out.copy_from_slice(&src[first as usize..][..n]),
        0 => out.fill(src[first as usize]),
        -1 => vectorize(Reversed { src: &src[(first + 1) as usize - n..][..n], out }),
        2 => vectorize(Every::<T, 2> { src: &src[first as usize..], out }),
        3 => vectorize(Every::<T, 3> { src: &src[first as usize..], out }),
        4 => vectorize(Every::<T, 4> { src: &src[first as usize..], out }),
        _ => {
            let mut at = first;
            for out in out {
                *out = src[at as usize];
                at += step;
            }
        }
    }
}

/// The elements in descending order.
struct Reversed<'a, T> {
    src: &'a [T],
    out: &'a mut [T],
}

impl<T: Item> Loop for Reversed<'_, T> {
    #[inline(always)]
    fn run(self) {
        self.out.iter_mut().zip(self.src.iter().rev()).for_each(|(out, v)| *out = *v);
    }
}

/// Every `N`th element.
struct Every<'a, T, const N: usize> {
    src: &'a [T],
    out: &'a mut [T],
}

impl<T: Item, const N: usize> Loop for Every<'_, T, N> {
    #[inline(always)]
    fn run(self) {
        let Some((last, out)) = self.out.split_last_mut() else { return };
        let (src, _) = self.src.as_chunks::<N>();
        let whole = out.len();
        out.iter_mut().zip(&src[..whole]).for_each(|(out, v)| *out = v[0]);
        *last = self.src[whole * N];
    }
}
