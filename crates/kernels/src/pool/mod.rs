//! Pooling over one, two or three spatial axes, channels first or last.

mod planes;
mod rows;

use crate::element::{Element, Float, is_same};
use crate::error::check_len;
use crate::par::{Par, chunk_by_work, par_chunks_mut_scratch};
use crate::reduce::folds::Largest;
use crate::reduce::{fold_slice, sum_of_row};
use crate::simd::Simd;
use crate::vectorize::vectorized;
use crate::window::{inside, three};
use half::f16;
use std::ops::Range;

pub use crate::window::{Convention, pooled_size};

/// The function of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolKind {
    /// The largest; a window in the padding altogether gives the lowest finite number.
    Max,
    /// The mean of the window, which reaches into the padding (counted as zeros) if
    /// `count_include_pad`.
    Avg {
        /// Whether the padding counts.
        count_include_pad: bool,
    },
    /// The sum.
    Sum,
    /// The p-th root of the sum of p-th powers, p = 1, 2 or 3 (signs are kept, as in MXNet).
    Lp {
        /// The power.
        p: u32,
    },
}

/// A pooling: kernel, stride and padding have one number for every spatial axis.
///
/// Global pooling is a kernel as large as the input.
#[derive(Clone, Copy, Debug)]
pub struct PoolParams<'a> {
    /// The function to compute.
    pub kind: PoolKind,
    /// Sizes of the window.
    pub kernel: &'a [usize],
    /// Distances between windows.
    pub stride: &'a [usize],
    /// Padding before (and after).
    pub pad: &'a [usize],
    /// Whether shapes are (batch, spatial..., channels) and not (batch, channels, spatial...).
    pub channels_last: bool,
}

/// A pooling with three spatial axes over `planes` planes of pixels with `inner` values each.
#[derive(Clone, Copy)]
struct PoolPlan {
    kind: PoolKind,
    kernel: [usize; 3],
    stride: [usize; 3],
    pad: [usize; 3],
    size: [usize; 3],
    out: [usize; 3],
    inner: usize,
    /// Whether the mean of no places is NaN, as in MXNet where there are three spatial axes.
    nothing_is_nan: bool,
}

/// Pools `x` into `out`, whose spatial sizes say how many windows there are (see [`pooled_size`]).
pub fn pool<T: Element>(
    par: &dyn Par,
    params: PoolParams<'_>,
    x: &[T],
    shape: &[usize],
    out: &mut [T],
    out_shape: &[usize],
) {
    check_len("the input", x.len(), shape.iter().product());
    check_len("the output", out.len(), out_shape.iter().product());
    assert!((3..=5).contains(&shape.len()) && shape.len() == out_shape.len(), "pooling {shape:?} to {out_shape:?}");
    let rank = shape.len() - 2;
    let spatial = if params.channels_last { 1..rank + 1 } else { 2..rank + 2 };
    let channels = if params.channels_last { shape[rank + 1] } else { shape[1] };
    let out_channels = if params.channels_last { out_shape[rank + 1] } else { out_shape[1] };
    assert_eq!((shape[0], channels), (out_shape[0], out_channels), "pooling {shape:?} to {out_shape:?}");
    let plan = PoolPlan {
        // A sum by another name.
        kind: if params.kind == (PoolKind::Lp { p: 1 }) { PoolKind::Sum } else { params.kind },
        kernel: three(params.kernel, 1),
        stride: three(params.stride, 1).map(|s| s.max(1)),
        pad: three(params.pad, 0),
        size: three(&shape[spatial.clone()], 1),
        out: three(&out_shape[spatial], 1),
        inner: if params.channels_last { channels } else { 1 },
        nothing_is_nan: rank == 3,
    };
    plan.run(par, x, out);
}

impl PoolPlan {
    fn run<T: Element>(&self, par: &dyn Par, x: &[T], out: &mut [T]) {
        let row = self.out[2] * self.inner;
        if out.is_empty() {
            return;
        }
        if self.in_vectors(par, x, out) {
            return;
        }
        let plane = self.plane() * self.inner;
        let rows = chunk_by_work(row * self.kernel.iter().product::<usize>());
        // Accumulators are no smaller than elements.
        let line = self.size[2] * self.inner;
        let bytes = (line + row) * size_of::<T::Acc>();
        par_chunks_mut_scratch(par, out, rows * row, bytes, |i, out, scratch| {
            let (line, sums) = scratch[..bytes].split_at_mut(line * size_of::<T::Acc>());
            for (j, out) in out.chunks_mut(row).enumerate() {
                let at = i * rows + j;
                let (oh, od) = (at % self.out[1], at / self.out[1] % self.out[0]);
                let x = &x[at / (self.out[1] * self.out[0]) * plane..][..plane];
                let few = self.inner == 1 && self.out[2] < 4;
                if self.kind == PoolKind::Max {
                    if few { self.max_each(x, od, oh, out) } else { self.max_row(x, od, oh, elements(line), out) }
                } else {
                    let sums: &mut [T::Acc] = elements(sums);
                    if few {
                        self.sum_each(x, od, oh, sums)
                    } else {
                        self.sum_row(x, od, oh, elements(line), sums)
                    }
                    self.finish(od, oh, sums, out)
                }
            }
        });
    }

    /// Pools what is pooled in vectors written out; whether it is.
    fn in_vectors<T: Element>(&self, par: &dyn Par, x: &[T], out: &mut [T]) -> bool {
        if self.has_nan() {
            return false;
        }
        let (rows, planes) = (rows::fits(self), planes::fits(self));
        if is_same::<T, f32>() && (rows || planes) {
            let pool = if rows { rows::pool } else { planes::pool };
            pool(self, par, bytemuck::cast_slice(x), bytemuck::cast_slice_mut(out));
            return true;
        }
        if is_same::<T, f16>() && (rows || planes) {
            let pool = if rows { rows::pool_halves } else { planes::pool_halves };
            pool(self, par, bytemuck::cast_slice(x), bytemuck::cast_slice_mut(out));
            return true;
        }
        false
    }

    /// Pixels of a plane of the input.
    fn plane(&self) -> usize {
        self.size.iter().product()
    }

    /// The window of output `o` on an axis, cut to the input.
    fn window(&self, axis: usize, o: usize) -> Range<usize> {
        let start = o * self.stride[axis];
        let end = (start + self.kernel[axis]).saturating_sub(self.pad[axis]).min(self.size[axis]);
        let start = start.saturating_sub(self.pad[axis]).min(end);
        start..end
    }

    /// The input rows that the windows of an output row see.
    fn lines<'a, T>(&self, x: &'a [T], od: usize, oh: usize) -> impl Iterator<Item = &'a [T]> {
        let (row, height, rows) = (self.size[2] * self.inner, self.size[1], self.window(1, oh));
        self.window(0, od).flat_map(move |d| rows.clone().map(move |h| &x[(d * height + h) * row..][..row]))
    }

    /// Calls `body(outputs, first input, distance between inputs)` for runs of the outputs of a row
    /// and each place in their windows; in numbers of values.
    fn taps(&self, mut body: impl FnMut(Range<usize>, usize, usize)) {
        let (inner, stride) = (self.inner, self.stride[2]);
        for tap in 0..self.kernel[2] {
            let outputs = inside(tap, stride, self.pad[2], self.size[2], self.out[2]);
            if outputs.is_empty() {
                continue;
            }
            let first = outputs.start * stride + tap - self.pad[2];
            if inner == 1 || stride == 1 {
                body(outputs.start * inner..outputs.end * inner, first * inner, stride);
            } else {
                outputs
                    .enumerate()
                    .for_each(|(k, o)| body(o * inner..(o + 1) * inner, (first + k * stride) * inner, 1));
            }
        }
    }

    /// The rows of the windows become one line, whose columns are then compared: fewer steps than
    /// there are places in a window, and most go along rows.
    fn max_row<T: Element>(&self, x: &[T], od: usize, oh: usize, line: &mut [T], out: &mut [T]) {
        let line = &mut line[..self.size[2] * self.inner];
        line.fill(T::LOWEST);
        self.lines(x, od, oh).for_each(|row| max_step(row, 1, line));
        out.fill(T::LOWEST);
        self.taps(|outputs, first, stride| max_step(&line[first..], stride, &mut out[outputs]));
    }

    fn sum_row<T: Element>(&self, x: &[T], od: usize, oh: usize, line: &mut [T::Acc], sums: &mut [T::Acc]) {
        let power = if let PoolKind::Lp { p } = self.kind { p } else { 1 };
        line.fill(<T::Acc as Element>::ZERO);
        self.lines(x, od, oh).for_each(|row| power_step(row, power, line));
        sums.fill(<T::Acc as Element>::ZERO);
        self.taps(|outputs, first, stride| sum_step(&line[first..], stride, &mut sums[outputs]));
    }

    /// Few outputs in a row (global pooling has one): goes along the window instead of along the
    /// outputs.
    fn max_each<T: Element>(&self, x: &[T], od: usize, oh: usize, out: &mut [T]) {
        for (ow, out) in out.iter_mut().enumerate() {
            *out = T::LOWEST;
            self.window_rows(x, od, oh, ow, |row| {
                let m = fold_slice::<T, Largest>(row);
                *out = if m > *out { m } else { *out };
            });
        }
    }

    fn sum_each<T: Element>(&self, x: &[T], od: usize, oh: usize, sums: &mut [T::Acc]) {
        let power = if let PoolKind::Lp { p } = self.kind { p } else { 1 };
        let mut block = [<T::Acc as Element>::ZERO; 256];
        for (ow, sum) in sums.iter_mut().enumerate() {
            *sum = <T::Acc as Element>::ZERO;
            self.window_rows(x, od, oh, ow, |row| {
                for row in row.chunks(block.len()) {
                    let block = &mut block[..row.len()];
                    block.fill(<T::Acc as Element>::ZERO);
                    power_step(row, power, block);
                    *sum += sum_of_row(block);
                }
            });
        }
    }

    /// Calls `body` with the contiguous pieces of the window of one output.
    fn window_rows<'a, T>(&self, x: &'a [T], od: usize, oh: usize, ow: usize, mut body: impl FnMut(&'a [T])) {
        let (d, h, w) = (self.window(0, od), self.window(1, oh), self.window(2, ow));
        if w.len() == self.size[2] && h.len() == self.size[1] {
            let plane = self.size[1] * self.size[2];
            return body(&x[d.start * plane..d.end * plane]);
        }
        for d in d {
            for h in h.clone() {
                body(&x[(d * self.size[1] + h) * self.size[2]..][w.clone()]);
            }
        }
    }

    /// How far the window of output `o` reaches on an axis: with the padding, or without.
    fn extent(&self, axis: usize, o: usize, padded: bool) -> usize {
        usize::try_from(self.signed_extent(axis, o, padded)).unwrap_or(0)
    }

    /// The extent as MXNet has it, below zero where a window begins after what it reaches into.
    fn signed_extent(&self, axis: usize, o: usize, padded: bool) -> isize {
        let (start, pad) = (o * self.stride[axis], self.pad[axis]);
        let [first, last] = if padded { [0, self.size[axis] + 2 * pad] } else { [pad, pad + self.size[axis]] };
        (start + self.kernel[axis]).min(last) as isize - start.max(first) as isize
    }

    /// Whether the mean of a window is NaN.
    fn has_nan(&self) -> bool {
        let PoolKind::Avg { count_include_pad: padded } = self.kind else { return false };
        let empty = |axis: usize| (0..self.out[axis]).any(|o| self.signed_extent(axis, o, padded) == 0);
        self.nothing_is_nan && (0..3).any(empty)
    }

    /// Applies a divisor, the window's size, or a root to the sums of a row.
    fn finish<T: Element>(&self, od: usize, oh: usize, sums: &[T::Acc], out: &mut [T]) {
        let each = |f: &dyn Fn(T::Acc) -> T::Acc, out: &mut [T]| {
            out.iter_mut().zip(sums).for_each(|(out, &sum)| *out = T::from_acc(f(sum)));
        };
        match self.kind {
            PoolKind::Avg { count_include_pad } => self.average(od, oh, count_include_pad, sums, out),
            PoolKind::Lp { p: 2 } => each(&|sum| sum.sqrt(), out),
            PoolKind::Lp { p: 3 } => each(&|sum| sum.cbrt(), out),
            PoolKind::Lp { p } if p > 1 => each(&|sum| sum.powf(T::Acc::from_f64(1.0 / p as f64)), out),
            _ => divide(sums, T::Acc::from_f64(1.0), out),
        }
    }

    /// Averages windows, which have the same size all along a row except for its ends.
    fn average<T: Element>(&self, od: usize, oh: usize, padded: bool, sums: &[T::Acc], out: &mut [T]) {
        let lines = self.signed_extent(0, od, padded) * self.signed_extent(1, oh, padded);
        let (kernel, stride, pad) = (self.kernel[2], self.stride[2], self.pad[2]);
        let inside = (self.size[2] + pad).checked_sub(kernel).map_or(0, |last| last / stride + 1);
        let whole = pad.div_ceil(stride)..inside.min(self.out[2]);
        let mut first = 0;
        while first < self.out[2] {
            let places = match lines * self.signed_extent(2, first, padded) {
                0 if self.nothing_is_nan => 0,
                places => places.max(1),
            };
            let same = if whole.contains(&first) { whole.end - first } else { 1 };
            let some = first * self.inner..(first + same) * self.inner;
            divide(&sums[some.clone()], T::Acc::from_f64(places as f64), &mut out[some]);
            first += same;
        }
    }
}

vectorized! {
    fn divide[T: Element](sums: &[T::Acc], divisor: T::Acc, out: &mut [T]) {
        out.iter_mut().zip(sums).for_each(|(out, &sum)| *out = T::from_acc(sum / divisor));
    }
}

vectorized! {
    fn max_step[T: Element](x: &[T], stride: usize, out: &mut [T]) {
        fold(x, stride, out, |a, b| if b > a { b } else { a });
    }
}

vectorized! {
    fn sum_step[A: Float](x: &[A], stride: usize, sums: &mut [A]) {
        fold(x, stride, sums, |a, b| a + b);
    }
}

/// Each output with the input at its number times the stride.
#[inline(always)]
fn fold<T: Copy>(x: &[T], stride: usize, out: &mut [T], with: impl Fn(T, T) -> T) {
    match stride {
        1 => out.iter_mut().zip(x).for_each(|(o, v)| *o = with(*o, *v)),
        2 => {
            // The last output may have no second element after it: it is done by itself.
            let Some((last, most)) = out.split_last_mut() else { return };
            *last = with(*last, x[2 * most.len()]);
            let (pairs, _) = x.as_chunks::<2>();
            most.iter_mut().zip(pairs).for_each(|(o, v)| *o = with(*o, v[0]));
        }
        _ => out.iter_mut().zip(x.iter().step_by(stride)).for_each(|(o, v)| *o = with(*o, *v)),
    }
}

vectorized! {
    fn power_step[T: Element](x: &[T], power: u32, sums: &mut [T::Acc]) {
        let values = x.iter().map(|v| v.acc());
        match power {
            1 => sums.iter_mut().zip(values).for_each(|(s, v)| *s += v),
            2 => sums.iter_mut().zip(values).for_each(|(s, v)| *s += v * v),
            3 => sums.iter_mut().zip(values).for_each(|(s, v)| *s += v * v * v),
            p => sums.iter_mut().zip(values).for_each(|(s, v)| *s += v.powf(T::Acc::from_f64(p as f64))),
        }
    }
}

/// The larger or the sum; of a NaN and a number the larger is the number `v`.
#[inline(always)]
fn fold_vectors<S: Simd, const MAX: bool>(s: S, value: S::V, v: S::V) -> S::V {
    if MAX { s.max(value, v) } else { s.add(v, value) }
}

/// The beginning of scratch memory as elements, as many as fit.
fn elements<T: Element>(scratch: &mut [u8]) -> &mut [T] {
    let bytes = scratch.len() / size_of::<T>() * size_of::<T>();
    bytemuck::cast_slice_mut(&mut scratch[..bytes])
}

#[cfg(test)]
mod tests;
