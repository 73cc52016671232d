//! Sums, products, extremes, norms and positions of extremes over any axes.
//!
//! The order of every sum follows from the shape alone: elements go to a fixed number of lanes in
//! blocks of a fixed size, lanes are folded pairwise, blocks are added in double precision.

use crate::cast::CastTo;
use crate::element::{Element, Float};
use crate::error::check_len;
use crate::par::{Par, chunk_by_work, par_chunks_mut, par_columns_mut};
use crate::scratch::Scratch;
use crate::strides::{Space, contiguous};
use crate::vectorize::vectorized;
use folds::*;
use std::ops::Range;

pub(crate) mod folds;
mod moments;

pub use moments::{row_square_sums, row_sums};

/// Makes [`Reduction`] and the choice between its folds from the table.
macro_rules! define_reductions {
    ($($name:ident $([$($operator:literal)*])? $doc:literal { float: $float:ty, integers: $integers:ty, finish: $finish:ident })*) => {
        /// Reductions over axes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Reduction {
            $(#[doc = $doc] $name,)*
        }

        /// The fold of a reduction for the element type.
        fn folds_of<T: Element>(op: Reduction) -> Folds<T> {
            match op {
                $(Reduction::$name if T::FLOAT => Folds::of::<$float>(Finish::$finish),)*
                $(Reduction::$name => Folds::of::<$integers>(Finish::$finish),)*
            }
        }
    };
}
crate::reductions!(define_reductions);

/// Elements (or rows) that are summed in the lane type before they go to the total.
const BLOCK: usize = 4096;
const ROW_BLOCK: usize = 128;
const LANES: usize = 32;
/// Neighbouring outputs that are accumulated together.
const WIDTH: usize = 256;
/// Fewer outputs than this are not enough for all threads, which share the blocks of each.
const FEW_OUTPUTS: usize = 8;
/// Fewer columns than this are folded by blocks of rows.
const FEW_COLUMNS: usize = 16 * WIDTH;
/// Blocks that a thread folds at once.
const BLOCKS_AT_ONCE: usize = 8;

/// Reduces the axes of `x` marked in `reduced`; `out` has the other axes, in order.
pub fn reduce<T: Element>(par: &dyn Par, op: Reduction, x: &[T], shape: &[usize], reduced: &[bool], out: &mut [T]) {
    check_len("the input", x.len(), shape.iter().product());
    let left = shape.iter().zip(reduced).filter(|(_, r)| !**r).map(|(n, _)| n).product();
    check_len("the output", out.len(), left);
    run(par, folds_of(op), x, shape, reduced, out);
}

/// A fold as functions. The code that cuts and walks arrays is compiled once for each element type.
struct Folds<T> {
    finish: Finish,
    /// result of an empty reduction
    nothing: fn(Finish) -> T,
    rows: fn(&[T], &Gone) -> T,
    blocks: fn(&dyn Par, &[T], &Gone) -> T,
    columns: fn(&[T], &Gone, &mut [T]),
    tall: fn(&dyn Par, &[T], &Gone, &mut [T]),
}

/// The axes that are reduced, and how totals of them finish.
struct Gone {
    space: Space<1>,
    /// elements of a total
    count: usize,
    finish: Finish,
}

impl Gone {
    fn result<T: Element, F: Fold<T>>(&self, total: F::Total) -> T {
        F::finish(total, self.count, self.finish)
    }
}

impl<T: Element> Folds<T> {
    fn of<F: Fold<T>>(finish: Finish) -> Folds<T> {
        Folds {
            finish,
            nothing: |finish| F::finish(F::start(), 0, finish),
            rows: fold_rows::<T, F>,
            blocks: fold_blocks::<T, F>,
            columns: fold_columns::<T, F>,
            tall: fold_tall::<T, F>,
        }
    }
}

/// Selects the axes of `shape` that are (or are not) marked, with their strides.
fn select(shape: &[usize], marks: &[bool], wanted: bool) -> Space<1> {
    let strides = contiguous(shape);
    let axes = || (0..shape.len()).filter(|&a| marks[a] == wanted && shape[a] != 1);
    let sizes: Vec<usize> = axes().map(|a| shape[a]).collect();
    let steps: Vec<isize> = axes().map(|a| strides[a]).collect();
    Space::new(&sizes, [&steps])
}

fn run<T: Element>(par: &dyn Par, fold: Folds<T>, x: &[T], shape: &[usize], reduced: &[bool], out: &mut [T]) {
    let (kept, space) = (select(shape, reduced, false), select(shape, reduced, true));
    let count = space.rows * space.inner.0;
    if out.is_empty() {
        return;
    }
    if count == 0 {
        return out.fill((fold.nothing)(fold.finish));
    }
    let contiguous = space.inner.1 == [1];
    let gone = Gone { space, count, finish: fold.finish };
    let chunk = chunk_by_work(count);
    if contiguous && out.len() < FEW_OUTPUTS && count >= 2 * BLOCKS_AT_ONCE * BLOCK {
        kept.for_rows(0, out.len(), |[row], column, at, n| {
            let step = kept.inner.1[0] as usize;
            for (j, out) in out[at..][..n].iter_mut().enumerate() {
                *out = (fold.blocks)(par, &x[row as usize + (column + j) * step..], &gone);
            }
        });
    } else if contiguous {
        par_chunks_mut(par, out, chunk, |i, out| {
            kept.for_rows(i * chunk, out.len(), |[row], column, at, n| {
                let step = kept.inner.1[0] as usize;
                for (j, out) in out[at..][..n].iter_mut().enumerate() {
                    *out = (fold.rows)(&x[row as usize + (column + j) * step..], &gone);
                }
            });
        });
    } else {
        // The innermost axis stays: neighbouring outputs are accumulated side by side.
        if kept.rows == 1 && out.len() < FEW_COLUMNS && count >= 2 * ROW_BLOCK {
            return (fold.tall)(par, x, &gone, out);
        }
        // Wide pieces read memory in longer runs.
        let wide = (out.len() / 16).min(WIDTH) / 16 * 16;
        let chunk = chunk.max(16).max(wide);
        par_chunks_mut(par, out, chunk, |i, out| {
            kept.for_rows(i * chunk, out.len(), |[row], column, at, n| {
                for (j, out) in out[at..][..n].chunks_mut(WIDTH).enumerate() {
                    (fold.columns)(&x[row as usize + column + j * WIDTH..], &gone, out);
                }
            });
        });
    }
}

/// Folds one output whose elements are in contiguous rows of `x`.
fn fold_rows<T: Element, F: Fold<T>>(x: &[T], gone: &Gone) -> T {
    let (n, mut total) = (gone.space.inner.0, F::start());
    let mut cursor = gone.space.cursor(0);
    for _ in 0..gone.space.rows {
        for block in x[cursor.offset[0] as usize..][..n].chunks(BLOCK) {
            total = F::add(total, lane_of::<T, F>(block));
        }
        cursor.advance();
    }
    gone.result::<T, F>(total)
}

/// Folds one output as [`fold_rows`] does, with the same bits, but its blocks in all threads.
fn fold_blocks<T: Element, F: Fold<T>>(par: &dyn Par, x: &[T], gone: &Gone) -> T {
    let (space, n) = (&gone.space, gone.space.inner.0);
    let blocks = n.div_ceil(BLOCK);
    let mut lanes = Scratch::filled(par, space.rows * blocks, F::INIT);
    par_chunks_mut(par, &mut lanes, BLOCKS_AT_ONCE, |i, lanes| {
        for (j, lane) in lanes.iter_mut().enumerate() {
            let (row, block) = ((i * BLOCKS_AT_ONCE + j) / blocks, (i * BLOCKS_AT_ONCE + j) % blocks);
            let row = &x[space.cursor(row).offset[0] as usize..][..n];
            *lane = lane_of::<T, F>(&row[block * BLOCK..n.min((block + 1) * BLOCK)]);
        }
    });
    gone.result::<T, F>(lanes.iter().copied().fold(F::start(), F::add))
}

/// Folds one block.
fn lane_of<T: Element, F: Fold<T>>(block: &[T]) -> F::Lane {
    let mut lane = F::INIT;
    if block.len() < 16 {
        block.iter().for_each(|&v| lane = F::step(lane, v));
    } else {
        fold_block::<T, F>(block, &mut lane);
    }
    lane
}

/// Folds neighbouring outputs: `out[j]` folds `x[offset + j]` over all offsets of the reduced axes.
fn fold_columns<T: Element, F: Fold<T>>(x: &[T], gone: &Gone, out: &mut [T]) {
    let (width, count) = (out.len(), gone.count);
    let (mut lanes, mut totals) = ([F::INIT; WIDTH], [F::start(); WIDTH]);
    for first in (0..count).step_by(ROW_BLOCK) {
        fold_block_of_rows::<T, F>(x, &gone.space, first..count.min(first + ROW_BLOCK), &mut lanes[..width]);
        flush::<T, F>(&mut lanes[..width], &mut totals[..width]);
    }
    for (out, total) in out.iter_mut().zip(totals) {
        *out = gone.result::<T, F>(total);
    }
}

/// Folds few neighbouring outputs of many rows as [`fold_columns`] does, with the same bits, but
/// blocks of rows in all threads.
fn fold_tall<T: Element, F: Fold<T>>(par: &dyn Par, x: &[T], gone: &Gone, out: &mut [T]) {
    let (width, count) = (out.len(), gone.count);
    let mut lanes = Scratch::filled(par, count.div_ceil(ROW_BLOCK) * width, F::INIT);
    par_chunks_mut(par, &mut lanes, width, |block, lanes| {
        let first = block * ROW_BLOCK;
        fold_block_of_rows::<T, F>(x, &gone.space, first..count.min(first + ROW_BLOCK), lanes);
    });
    let mut totals = Scratch::filled(par, width, F::start());
    lanes.chunks_mut(width).for_each(|lanes| flush::<T, F>(lanes, &mut totals));
    for (out, total) in out.iter_mut().zip(&totals) {
        *out = gone.result::<T, F>(*total);
    }
}

/// Folds some of the rows that the reduced axes number, each with an element for every lane.
fn fold_block_of_rows<T: Element, F: Fold<T>>(x: &[T], gone: &Space<1>, rows: Range<usize>, lanes: &mut [F::Lane]) {
    let step = gone.inner.1[0] as usize;
    gone.for_rows(rows.start, rows.len(), |[offset], first, _, n| {
        fold_some_rows::<T, F>(&x[offset as usize + first * step..], step, n, lanes);
    });
}

fn flush<T: Element, F: Fold<T>>(lanes: &mut [F::Lane], totals: &mut [F::Total]) {
    for (total, lane) in totals.iter_mut().zip(lanes) {
        *total = F::add(*total, *lane);
        *lane = F::INIT;
    }
}

vectorized! {
    fn fold_block[T: Element, F: Fold<T>](x: &[T], result: &mut F::Lane) {
        let mut lanes = [F::INIT; LANES];
        let (chunks, rest) = x.as_chunks::<LANES>();
        for chunk in chunks {
            for i in 0..LANES {
                lanes[i] = F::step(lanes[i], chunk[i]);
            }
        }
        for (lane, &v) in lanes.iter_mut().zip(rest) {
            *lane = F::step(*lane, v);
        }
        let mut width = LANES / 2;
        while width > 0 {
            for i in 0..width {
                lanes[i] = F::join(lanes[i], lanes[i + width]);
            }
            width /= 2;
        }
        *result = lanes[0];
    }
}

vectorized! {
    /// Folds the first elements of `n` rows, `step` apart; four rows together, so that lanes are
    /// read and written less often.
    fn fold_some_rows[T: Element, F: Fold<T>](x: &[T], step: usize, n: usize, lanes: &mut [F::Lane]) {
        let width = lanes.len();
        let row = |k: usize| &x[k * step..][..width];
        let together = n / 4 * 4;
        for k in (0..together).step_by(4) {
            let (a, b, c, d) = (row(k), row(k + 1), row(k + 2), row(k + 3));
            for i in 0..width {
                let lane = F::step(F::step(lanes[i], a[i]), b[i]);
                lanes[i] = F::step(F::step(lane, c[i]), d[i]);
            }
        }
        for k in together..n {
            for (lane, &v) in lanes.iter_mut().zip(row(k)) {
                *lane = F::step(*lane, v);
            }
        }
    }
}

/// The mean and the mean squared distance from it.
pub(crate) fn moments_of_row<T: Element>(x: &[T]) -> (T::Acc, T::Acc) {
    let n = x.len() as f64;
    let mut total = 0.0;
    for block in x.chunks(BLOCK) {
        let mut lane = <T::Acc as Element>::ZERO;
        fold_block::<T, FloatSum<0>>(block, &mut lane);
        total += lane.to_f64();
    }
    let mean = T::Acc::from_f64(total / n);
    let mut total = 0.0;
    for block in x.chunks(BLOCK) {
        let mut lane = <T::Acc as Element>::ZERO;
        squared_distances(block, mean, &mut lane);
        total += lane.to_f64();
    }
    (mean, T::Acc::from_f64(total / n))
}

vectorized! {
    fn squared_distances[T: Element](x: &[T], mean: T::Acc, result: &mut T::Acc) {
        let mut lanes = [<T::Acc as Element>::ZERO; LANES];
        let (chunks, rest) = x.as_chunks::<LANES>();
        for chunk in chunks {
            for i in 0..LANES {
                let d = chunk[i].acc() - mean;
                lanes[i] += d * d;
            }
        }
        for (lane, &v) in lanes.iter_mut().zip(rest) {
            let d = v.acc() - mean;
            *lane += d * d;
        }
        let mut width = LANES / 2;
        while width > 0 {
            for i in 0..width {
                let other = lanes[i + width];
                lanes[i] += other;
            }
            width /= 2;
        }
        *result = lanes[0];
    }
}

/// The sum of squares of a contiguous row, in double precision.
pub(crate) fn sum_squares_of_row<T: Element>(x: &[T]) -> f64 {
    x.chunks(BLOCK).fold(0.0, |total, block| {
        let mut lane = 0.0;
        fold_block::<T, Squares>(block, &mut lane);
        total + lane
    })
}

/// The sum of a contiguous row in its type of sums.
pub(crate) fn sum_of_row<A: Float>(x: &[A]) -> A {
    let mut total = 0.0;
    for block in x.chunks(BLOCK) {
        let mut lane = A::ZERO;
        fold_block::<A, FloatSum<0>>(block, &mut lane);
        total += lane.to_f64();
    }
    A::from_f64(total)
}

/// Folds a contiguous row in lanes.
pub(crate) fn fold_slice<T: Element, F: Fold<T>>(x: &[T]) -> F::Lane {
    let mut lane = F::INIT;
    fold_block::<T, F>(x, &mut lane);
    lane
}

/// Finds, along the middle axis of `x`, of shape `[outer, n, inner]`, the position of the largest
/// element: the first NaN, or else the first of equals.
pub fn argmax<T: Element, I: Element>(par: &dyn Par, x: &[T], shape: [usize; 3], out: &mut [I]) {
    arg_extreme::<T, I, true>(par, x, shape, out)
}

/// Finds positions of smallest elements; otherwise like [`argmax`].
pub fn argmin<T: Element, I: Element>(par: &dyn Par, x: &[T], shape: [usize; 3], out: &mut [I]) {
    arg_extreme::<T, I, false>(par, x, shape, out)
}

fn arg_extreme<T: Element, I: Element, const MAX: bool>(
    par: &dyn Par,
    x: &[T],
    [outer, n, inner]: [usize; 3],
    out: &mut [I],
) {
    check_len("the input", x.len(), outer * n * inner);
    check_len("the output", out.len(), outer * inner);
    if n == 0 {
        return out.fill(I::ZERO);
    }
    if inner == 1 {
        return arg_extremes_of_rows::<T, I, MAX>(par, x, n, out);
    }
    let width = (inner / FEW_OUTPUTS).max(chunk_by_work(n)).clamp(16, WIDTH);
    par_columns_mut(par, out, [outer, 1, inner], width, 0, |o, start, mut band, _| {
        let out = band.row(0);
        let (mut best, mut found) = ([T::ZERO; WIDTH], [0i32; WIDTH]);
        let rows = &x[o * n * inner + start..];
        best[..out.len()].copy_from_slice(&rows[..out.len()]);
        best_of_columns::<T, Extreme<MAX>>(rows, inner, n, &mut best[..out.len()], &mut found[..out.len()]);
        for (out, found) in out.iter_mut().zip(found) {
            *out = I::from_i64(found as i64);
        }
    });
}

vectorized! {
    /// Finds the best element of each column of `n` rows, `step` apart, beginning with those of the
    /// first row.
    fn best_of_columns[T: Element, F: Choice<T>](x: &[T], step: usize, n: usize, best: &mut [T], found: &mut [i32]) {
        for k in 1..n {
            let row = &x[k * step..][..best.len()];
            for ((best, found), &v) in best.iter_mut().zip(found.iter_mut()).zip(row) {
                let keep = F::keeps(*best, v);
                *found = if keep { *found } else { k as i32 };
                *best = if keep { *best } else { v };
            }
        }
    }
}

/// Finds extremes of contiguous rows of `n` elements: first their value, by blocks, then the first
/// element that has it.
fn arg_extremes_of_rows<T: Element, I: Element, const MAX: bool>(par: &dyn Par, x: &[T], n: usize, out: &mut [I]) {
    let extreme = |best: &T, value: &T| *best == *value || (best.nan() && value.nan());
    let place = |row: &[T], bests: &[T]| {
        let best = bests.iter().fold(<Extreme<MAX> as Fold<T>>::INIT, |a, b| <Extreme<MAX> as Fold<T>>::step(a, *b));
        let block = bests.iter().position(|of_block| extreme(&best, of_block)).unwrap_or(0) * BLOCK;
        let mut found = 0;
        find(&row[block..n.min(block + BLOCK)], best, &mut found);
        I::from_i64((block + found) as i64)
    };
    if out.len() < FEW_OUTPUTS && n >= 2 * BLOCKS_AT_ONCE * BLOCK {
        let mut bests = Scratch::<T>::new(par, n.div_ceil(BLOCK));
        for (row, out) in x.chunks(n).zip(out) {
            par_chunks_mut(par, &mut bests, BLOCKS_AT_ONCE, |i, bests| {
                let blocks = row[i * BLOCKS_AT_ONCE * BLOCK..].chunks(BLOCK);
                bests.iter_mut().zip(blocks).for_each(|(best, block)| *best = lane_of::<T, Extreme<MAX>>(block));
            });
            *out = place(row, &bests);
        }
        return;
    }
    let rows = chunk_by_work(n);
    par_chunks_mut(par, out, rows, |i, out| {
        let mut bests = Scratch::<T>::new(par, n.div_ceil(BLOCK));
        for (row, out) in x[i * rows * n..].chunks(n).zip(out) {
            let blocks = row.chunks(BLOCK);
            bests.iter_mut().zip(blocks).for_each(|(best, block)| *best = lane_of::<T, Extreme<MAX>>(block));
            *out = place(row, &bests);
        }
    });
}

vectorized! {
    /// Finds the first element that is `wanted`, or the first NaN if that is one.
    fn find[T: Element](x: &[T], wanted: T, found: &mut usize) {
        let chunks = x.as_chunks::<LANES>().0.iter();
        let before = if wanted.nan() {
            chunks.take_while(|chunk| !chunk.iter().fold(false, |any, v| any | v.nan())).count()
        } else {
            chunks.take_while(|chunk| !chunk.iter().fold(false, |any, v| any | (*v == wanted))).count()
        };
        let rest = &x[before * LANES..];
        *found = before * LANES + rest.iter().position(|v| *v == wanted || (wanted.nan() && v.nan())).unwrap_or(0);
    }
}

/// Running sums along the middle axis of `x`, of shape `[outer, n, inner]`, in the type of the
/// output.
pub fn cumsum<T: CastTo<O>, O: Element>(par: &dyn Par, x: &[T], [outer, n, inner]: [usize; 3], out: &mut [O]) {
    check_len("the input", x.len(), outer * n * inner);
    // Zero added to the first element keeps its sign only if it is negative.
    let zero = O::from_f64(-0.0);
    if inner == 1 && n > 0 {
        let rows = chunk_by_work(n);
        return par_chunks_mut(par, out, rows * n, |i, out| {
            for (out, x) in out.chunks_mut(n).zip(x[i * rows * n..].chunks(n)) {
                let mut sum = zero;
                for (out, &v) in out.iter_mut().zip(x) {
                    sum = sum.plus(v.cast());
                    *out = sum;
                }
            }
        });
    }
    par_columns_mut(par, out, [outer, n, inner], WIDTH, 0, |o, start, mut band, _| {
        let mut sums = [zero; WIDTH];
        for k in 0..n {
            let row = &x[(o * n + k) * inner + start..];
            for ((out, sum), &v) in band.row(k).iter_mut().zip(&mut sums).zip(row) {
                *sum = sum.plus(v.cast());
                *out = *sum;
            }
        }
    });
}

#[cfg(test)]
mod tests;
