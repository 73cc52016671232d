//! Softmax and its relatives along one axis.

use crate::cast::{CastTo, cast_block};
use crate::element::{Element, Float, is_same};
use crate::error::check_len;
use crate::par::{Columns, Par, chunk_by_work, par_chunks_mut, par_chunks_mut_scratch, par_columns_mut};
use crate::short_rows::{self, TOGETHER};
use crate::vectorize::vectorized;

/// The parameters of [`softmax`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SoftmaxParams {
    /// The logarithm of the softmax.
    pub log: bool,
    /// Whether to negate the input: softmin.
    pub negate: bool,
    /// Divides the input.
    pub temperature: f64,
}

impl Default for SoftmaxParams {
    fn default() -> Self {
        SoftmaxParams { log: false, negate: false, temperature: 1.0 }
    }
}

/// Columns that are computed side by side when the axis is not the last: at least, and at most.
const LEAST_WIDTH: usize = 64;
const MOST_WIDTH: usize = 512;
/// Elements of columns that stay in the first-level cache from one pass to the next.
const CACHED: usize = 6 << 10;
/// Elements of a row up to which rows are computed sixteen at a time; sums of longer ones are taken
/// block by block.
const SHORT: usize = 1024;
/// Elements of a row that are folded side by side.
const LANES: usize = 64;

/// Softmax along the middle axis of `x`, of shape `[outer, n, inner]`.
///
/// With `lengths` (one for each of the `outer * inner` columns) only that many elements count; the
/// rest of the output is 0. Computes in single precision for `f32` and `f16`, in double precision
/// otherwise.
pub fn softmax<T: Element, O: Element>(
    par: &dyn Par,
    params: SoftmaxParams,
    x: &[T],
    [outer, n, inner]: [usize; 3],
    lengths: Option<&[i64]>,
    out: &mut [O],
) where
    T::Acc: CastTo<O>,
{
    check_len("the input", x.len(), outer * n * inner);
    check_len("the output", out.len(), x.len());
    if let Some(lengths) = lengths {
        check_len("the lengths", lengths.len(), outer * inner);
    }
    if x.is_empty() {
        return;
    }
    if inner == 1 && n <= SHORT && lengths.is_none() && params.temperature == 1.0 && is_same::<T::Acc, f32>() {
        return softmax_short_rows(par, params, x, n, out);
    }
    if inner == 1 {
        let rows = chunk_by_work(2 * n);
        let bytes = 3 * n * size_of::<T::Acc>();
        par_chunks_mut_scratch(par, out, rows * n, bytes, |i, out, scratch| {
            let buffer: &mut [T::Acc] = bytemuck::cast_slice_mut(&mut scratch[..bytes]);
            let (first, count) = (i * rows, out.len() / n);
            softmax_rows(params, &x[first * n..][..out.len()], lengths.map(|l| &l[first..][..count]), buffer, out);
        });
        return;
    }
    let width = (CACHED / n / LEAST_WIDTH * LEAST_WIDTH).clamp(LEAST_WIDTH, MOST_WIDTH);
    let bytes = (n + 1) * width * size_of::<T::Acc>();
    par_columns_mut(par, out, [outer, n, inner], width, bytes, |o, start, mut band, scratch| {
        let buffer: &mut [T::Acc] = bytemuck::cast_slice_mut(&mut scratch[..bytes]);
        let lengths = lengths.map(|l| &l[o * inner + start..][..band.width()]);
        softmax_columns(params, &x[o * n * inner + start..], n, inner, lengths, buffer, &mut band);
    });
}

/// Short rows of what is computed in single precision.
fn softmax_short_rows<T: Element, O: Element>(par: &dyn Par, params: SoftmaxParams, x: &[T], n: usize, out: &mut [O])
where
    T::Acc: CastTo<O>,
{
    let SoftmaxParams { log, negate, .. } = params;
    let rows = chunk_by_work(2 * n).next_multiple_of(TOGETHER);
    if !negate && is_same::<T, f32>() && is_same::<O, f32>() {
        let (x, out): (&[f32], &mut [f32]) = (bytemuck::cast_slice(x), bytemuck::cast_slice_mut(out));
        return par_chunks_mut(par, out, rows * n, |i, out| {
            short_rows::softmax(log, &x[i * rows * n..][..out.len()], n, out);
        });
    }
    let bytes = TOGETHER * n * size_of::<T::Acc>();
    par_chunks_mut_scratch(par, out, rows * n, bytes, |i, out, scratch| {
        let x = x[i * rows * n..][..out.len()].chunks(TOGETHER * n);
        for (x, out) in x.zip(out.chunks_mut(TOGETHER * n)) {
            let buffer: &mut [T::Acc] = &mut bytemuck::cast_slice_mut(&mut scratch[..bytes])[..x.len()];
            load(negate, x, buffer);
            short_rows::softmax_in_place(log, bytemuck::cast_slice_mut(buffer), n);
            cast_block(buffer, out);
        }
    });
}

/// How many elements of a row or column of `n` count.
#[inline(always)]
fn clamped(length: i64, n: usize) -> usize {
    length.clamp(0, n as i64) as usize
}

/// The larger; the first where the second is NaN.
#[inline(always)]
fn larger<A: Float>(a: A, b: A) -> A {
    if b > a { b } else { a }
}

/// The lanes folded into the first, in halves, so that this is done in vectors, too.
#[inline(always)]
fn folded<A: Float>(lanes: &mut [A; LANES], fold: impl Fn(A, A) -> A) -> A {
    let mut half = LANES / 2;
    while half > 0 {
        let (low, high) = lanes.split_at_mut(half);
        low.iter_mut().zip(&high[..half]).for_each(|(l, h)| *l = fold(*l, *h));
        half /= 2;
    }
    lanes[0]
}

/// The largest of a row; NaN does not count.
#[inline(always)]
fn largest<A: Float>(x: &[A]) -> A {
    let mut lanes = [A::BOTTOM; LANES];
    let (parts, rest) = x.as_chunks::<LANES>();
    parts.iter().for_each(|part| lanes.iter_mut().zip(part).for_each(|(l, v)| *l = larger(*l, *v)));
    lanes.iter_mut().zip(rest).for_each(|(l, v)| *l = larger(*l, *v));
    folded(&mut lanes, larger)
}

/// Elements as they are compared and shifted.
#[inline(always)]
fn load<T: Element>(negate: bool, x: &[T], buffer: &mut [T::Acc]) {
    T::acc_all(x, &mut buffer[..x.len()]);
    if negate {
        buffer.iter_mut().for_each(|b| *b = -*b);
    }
}

/// Shifted by the maximum and divided by the temperature, where exponentials of differences will
/// not do; what is to be subtracted then.
#[inline(always)]
fn shifted<A: Float>(params: &SoftmaxParams, x: &mut [A], max: A) -> A {
    if !params.log && params.temperature == 1.0 {
        return max;
    }
    for v in x.iter_mut() {
        *v = *v - max;
    }
    cool(params.temperature, x);
    A::ZERO
}

/// Divided by the temperature; not where that would change nothing, as divisions take as long as
/// all else.
#[inline(always)]
fn cool<A: Float>(temperature: f64, x: &mut [A]) {
    if temperature != 1.0 {
        let temperature = A::from_f64(temperature);
        x.iter_mut().for_each(|v| *v = *v / temperature);
    }
}

vectorized! {
    fn softmax_rows[T: Element, O: Element](
        params: SoftmaxParams,
        x: &[T],
        lengths: Option<&[i64]>,
        buffer: &mut [T::Acc],
        out: &mut [O],
    ) where [T::Acc: CastTo<O>] {
        let n = buffer.len() / 3;
        let (spare, both) = buffer.split_at_mut(n);
        let (even, odd) = both.split_at_mut(n);
        let (buffers, mut sums) = ([even, odd], [0.0; 2]);
        let used = |row: usize| lengths.map_or(n, |l| clamped(l[row], n));
        let rows = x.len() / n;
        // The sum of a row is there long after its last exponential has begun; meanwhile the row
        // before is finished.
        for row in 0..=rows {
            if row < rows {
                let values = &mut buffers[row % 2][..used(row)];
                load(params.negate, &x[row * n..][..values.len()], values);
                let max = shifted(&params, values, largest(values));
                let soon = [x.as_ptr().wrapping_add((row + 1) * n).cast(), out[row * n..].as_ptr().cast()];
                sums[row % 2] = exponentials(params.log, values, max, spare, soon);
            }
            if let Some(last) = row.checked_sub(1) {
                let (out, rest) = out[last * n..][..n].split_at_mut(used(last));
                shares(params.log, &buffers[last % 2][..out.len()], sums[last % 2], out);
                rest.fill(O::ZERO);
            }
        }
    }
}

/// Exponentials of a row, or for logarithms what they are of; the sum of exponentials.
#[inline(always)]
fn exponentials<A: Float>(log: bool, x: &mut [A], max: A, spare: &mut [A], soon: [*const u8; 2]) -> f64 {
    if !log {
        return A::exponentials(x, max, soon);
    }
    let spare = &mut spare[..x.len()];
    spare.copy_from_slice(x);
    A::exponentials(spare, max, soon)
}

/// The softmax of a row, or its logarithm.
#[inline(always)]
fn shares<A: Float + CastTo<O>, O: Element>(log: bool, x: &[A], sum: f64, out: &mut [O]) {
    if log {
        let sum = A::from_f64(sum.ln());
        out.iter_mut().zip(x).for_each(|(out, v)| *out = (*v - sum).cast());
    } else {
        let share = A::from_f64(1.0 / sum);
        out.iter_mut().zip(x).for_each(|(out, e)| *out = (*e * share).cast());
    }
}

vectorized! {
    fn softmax_columns[T: Element, O: Element](
        params: SoftmaxParams,
        x: &[T],
        n: usize,
        inner: usize,
        lengths: Option<&[i64]>,
        buffer: &mut [T::Acc],
        band: &mut Columns<'_, O>,
    ) where [T::Acc: CastTo<O>] {
        let width = band.width();
        let zero = <T::Acc as Element>::ZERO;
        let (buffer, spare) = buffer.split_at_mut(n * width);
        let (mut max, mut sum) = ([<T::Acc as Element>::BOTTOM; MOST_WIDTH], [zero; MOST_WIDTH]);
        for (k, row) in buffer.chunks_exact_mut(width).enumerate() {
            load(params.negate, &x[k * inner..][..width], row);
            match lengths {
                None => max.iter_mut().zip(row).for_each(|(max, v)| *max = larger(*max, *v)),
                Some(lengths) => {
                    for ((max, v), length) in max.iter_mut().zip(row).zip(lengths) {
                        *max = if k < clamped(*length, n) { larger(*max, *v) } else { *max };
                    }
                }
            }
        }
        let zeros = [zero; MOST_WIDTH];
        for (k, row) in buffer.chunks_exact_mut(width).enumerate() {
            let mut left = &max;
            if params.log || params.temperature != 1.0 {
                row.iter_mut().zip(&max).for_each(|(v, max)| *v = *v - *max);
                cool(params.temperature, row);
                left = &zeros;
            }
            let row = if params.log {
                spare[..width].copy_from_slice(row);
                &mut spare[..width]
            } else {
                row
            };
            let soon = [x.as_ptr().wrapping_add(k * inner + width).cast(), band.row(k).as_ptr().cast()];
            let Some(lengths) = lengths else {
                T::Acc::exponentials_of_columns(row, left, &mut sum, soon);
                continue;
            };
            T::Acc::exponentials_of_columns(row, left, &mut [zero; MOST_WIDTH], soon);
            for ((sum, e), length) in sum.iter_mut().zip(row).zip(lengths) {
                *sum += if k < clamped(*length, n) { *e } else { zero };
            }
        }
        let sum = &mut sum[..width];
        sum.iter_mut().for_each(|s| *s = if params.log { s.ln() } else { T::Acc::from_f64(1.0) / *s });
        for (k, row) in buffer.chunks_exact(width).enumerate() {
            let out = band.row(k);
            if params.log {
                out.iter_mut().zip(row).zip(&*sum).for_each(|((out, v), sum)| *out = (*v - *sum).cast());
            } else {
                out.iter_mut().zip(row).zip(&*sum).for_each(|((out, v), sum)| *out = (*v * *sum).cast());
            }
            for (out, length) in out.iter_mut().zip(lengths.unwrap_or(&[])) {
                *out = if k < clamped(*length, n) { *out } else { O::ZERO };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads, assert_close, random};
    use half::f16;

    fn by_definition(p: SoftmaxParams, x: &[f64], used: usize) -> Vec<f64> {
        let sign = if p.negate { -1.0 } else { 1.0 };
        let v: Vec<f64> = x.iter().map(|v| sign * v / p.temperature).collect();
        let sum: f64 = v[..used].iter().map(|v| v.exp()).sum();
        let value = |v: f64| if p.log { v - sum.ln() } else { v.exp() / sum };
        v.iter().enumerate().map(|(i, &v)| if i < used { value(v) } else { 0.0 }).collect()
    }

    fn check(shape: [usize; 3], p: SoftmaxParams, lengths: Option<Vec<i64>>) {
        let [outer, n, inner] = shape;
        let x: Vec<f32> = random(outer * n * inner, 5).iter().map(|v| v * 6.0).collect();
        let mut want = vec![0.0; x.len()];
        for o in 0..outer {
            for i in 0..inner {
                let at = |k| (o * n + k) * inner + i;
                let column: Vec<f64> = (0..n).map(|k| x[at(k)] as f64).collect();
                let used = lengths.as_ref().map_or(n, |l| l[o * inner + i] as usize);
                for (k, v) in by_definition(p, &column, used).into_iter().enumerate() {
                    want[at(k)] = v;
                }
            }
        }
        let mut first = vec![f32::NAN; x.len()];
        softmax(&Serial, p, &x, shape, lengths.as_deref(), &mut first);
        assert_close(&first, &want, 2e-6);
        for par in [&Reverse as &dyn Par, &Threads(3)] {
            let mut again = vec![f32::NAN; x.len()];
            softmax(par, p, &x, shape, lengths.as_deref(), &mut again);
            assert!(first.iter().zip(&again).all(|(a, b)| a.to_bits() == b.to_bits()));
        }
        let wide: Vec<f64> = x.iter().map(|&v| v as f64).collect();
        let mut narrow = vec![0f32; x.len()];
        softmax(&Serial, p, &wide, shape, lengths.as_deref(), &mut narrow);
        assert_close(&narrow, &want, 1e-7);
    }

    #[test]
    fn all_kinds_agree_with_their_definition_along_any_axis() {
        for shape in [[5, 7, 1], [3, 1000, 1], [2, 9, 130], [1, 3, 70], [40, 1, 1]] {
            for log in [false, true] {
                for negate in [false, true] {
                    for temperature in [1.0, 2.5] {
                        check(shape, SoftmaxParams { log, negate, temperature }, None);
                    }
                }
            }
        }
    }

    #[test]
    fn elements_beyond_the_length_do_not_count_and_come_out_zero() {
        for shape in [[4, 6, 1], [2, 6, 2]] {
            for log in [false, true] {
                check(shape, SoftmaxParams { log, ..Default::default() }, Some(vec![6, 3, 1, 2]));
            }
        }
        let mut out = [9f32; 2];
        softmax(&Serial, SoftmaxParams::default(), &[1f32, 2.0], [1, 2, 1], Some(&[0]), &mut out);
        assert_eq!(out, [0.0, 0.0]);
    }

    #[test]
    fn halves_are_computed_in_single_precision_whatever_comes_out() {
        for (n, negate) in [(7, false), (64, true), (1500, false)] {
            let x: Vec<f16> = random(40 * n, 7).iter().map(|v| f16::from_f32(v * 6.0)).collect();
            let wide: Vec<f64> = x.iter().map(|v| v.to_f64()).collect();
            let p = SoftmaxParams { negate, ..Default::default() };
            let want: Vec<f64> = wide.chunks(n).flat_map(|row| by_definition(p, row, n)).collect();
            let (mut halves, mut singles) = (vec![f16::NAN; x.len()], vec![f32::NAN; x.len()]);
            for par in [&Serial as &dyn Par, &Reverse, &Threads(3)] {
                softmax(par, p, &x, [40, n, 1], None, &mut halves);
                softmax(par, p, &x, [40, n, 1], None, &mut singles);
                assert_close(&singles, &want, 2e-6);
                assert!(singles.iter().zip(&halves).all(|(single, half)| f16::from_f32(*single) == *half), "{n}");
            }
        }
    }

    /// The error that `docs/differences.md` states.
    #[test]
    fn errors_are_within_five_ulp_and_one_more_for_each_unit_below_the_largest() {
        for (n, spread) in [(10, 5.0), (128, 20.0), (1000, 80.0), (5000, 10.0)] {
            let x: Vec<f32> = random(4 * n, n as u64).iter().map(|v| v * spread).collect();
            let mut out = vec![f32::NAN; x.len()];
            softmax(&Serial, SoftmaxParams::default(), &x, [4, n, 1], None, &mut out);
            for (x, out) in x.chunks(n).zip(out.chunks(n)) {
                let wide: Vec<f64> = x.iter().map(|v| f64::from(*v)).collect();
                let max = wide.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                for ((got, want), x) in out.iter().zip(by_definition(SoftmaxParams::default(), &wide, n)).zip(&wide) {
                    let least = f64::from(f32::MIN_POSITIVE);
                    let ulp = 2f64.powi(want.max(least).log2().floor() as i32 - 23);
                    let error = (f64::from(*got) - want).abs() / ulp;
                    assert!(error <= 5.0 + (max - x), "{n}: {got}, expected {want}, {error} ulp at {}", x - max);
                }
            }
        }
    }

    #[test]
    fn large_inputs_do_not_overflow() {
        let mut out = [0f32; 3];
        softmax(&Serial, SoftmaxParams::default(), &[1e4f32, 1e4, -1e4], [1, 3, 1], None, &mut out);
        assert_eq!(out, [0.5, 0.5, 0.0]);
        let x = [60000.0, 60000.0].map(f16::from_f32);
        let mut out = [0f32; 2];
        softmax(&Serial, SoftmaxParams::default(), &x, [1, 2, 1], None, &mut out);
        assert_eq!(out, [0.5, 0.5]);
    }
}
