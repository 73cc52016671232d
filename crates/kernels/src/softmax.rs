//! Softmax and its relatives along one axis.

use crate::cast::CastTo;
use crate::element::{Element, Float};
use crate::error::check_len;
use crate::par::{Columns, Par, chunk_by_work, par_chunks_mut_scratch, par_columns_mut};
use crate::reduce::{max_of_row, sum_of_row};
use crate::vectorize::vectorized;

/// What [`softmax`] computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SoftmaxParams {
    /// The logarithm of the softmax.
    pub log: bool,
    /// Of the negated input: softmin.
    pub negate: bool,
    /// Divides the input.
    pub temperature: f64,
}

impl Default for SoftmaxParams {
    fn default() -> Self {
        SoftmaxParams { log: false, negate: false, temperature: 1.0 }
    }
}

/// Columns that are computed side by side when the axis is not the last.
const WIDTH: usize = 64;

/// Softmax along the middle axis of `x`, of shape `[outer, n, inner]`.
///
/// With `lengths` (one for each of the `outer * inner` columns) only that many elements count; the rest of the output is 0.
/// Computes in single precision for `f32` and `f16`, in double precision otherwise.
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
    let used = |column: usize| lengths.map_or(n, |l| l[column].clamp(0, n as i64) as usize);
    if inner == 1 {
        let rows = chunk_by_work(8 * n);
        let bytes = n * size_of::<T::Acc>();
        par_chunks_mut_scratch(par, out, rows * n, bytes, |i, out, scratch| {
            let buffer: &mut [T::Acc] = bytemuck::cast_slice_mut(&mut scratch[..bytes]);
            for (j, out) in out.chunks_mut(n).enumerate() {
                let row = i * rows + j;
                let used = used(row);
                softmax_row(params, &x[row * n..][..used], &mut buffer[..used], &mut out[..used]);
                out[used..].fill(O::ZERO);
            }
        });
        return;
    }
    let bytes = n * WIDTH * size_of::<T::Acc>();
    par_columns_mut(par, out, [outer, n, inner], WIDTH, bytes, |o, start, mut band, scratch| {
        let buffer: &mut [T::Acc] = bytemuck::cast_slice_mut(&mut scratch[..bytes]);
        let mut limits = [0; WIDTH];
        for (i, limit) in limits[..band.width()].iter_mut().enumerate() {
            *limit = used(o * inner + start + i);
        }
        let x = &x[o * n * inner + start..];
        softmax_columns(params, x, n, inner, &limits, lengths.is_some(), buffer, &mut band);
    });
}

fn softmax_row<T: Element, O: Element>(params: SoftmaxParams, x: &[T], buffer: &mut [T::Acc], out: &mut [O])
where
    T::Acc: CastTo<O>,
{
    load(params.negate, x, buffer);
    let max = max_of_row(buffer);
    if params.log {
        shift(buffer, max, params.temperature);
        // The output is made from the shifted values, so their exponentials need another place: they are summed in blocks.
        let mut sum = 0.0;
        let mut block = [<T::Acc as Element>::ZERO; 256];
        for part in buffer.chunks(block.len()) {
            let block = &mut block[..part.len()];
            block.copy_from_slice(part);
            exponentials(block);
            sum += sum_of_row(block).to_f64();
        }
        let sum = T::Acc::from_f64(sum.ln());
        store_difference(buffer, sum, out);
    } else {
        shift(buffer, max, params.temperature);
        exponentials(buffer);
        let sum = sum_of_row(buffer);
        store_quotient(buffer, sum, out);
    }
}

vectorized! {
    fn load[T: Element](negate: bool, x: &[T], buffer: &mut [T::Acc]) {
        if negate {
            buffer.iter_mut().zip(x).for_each(|(b, v)| *b = -v.acc());
        } else {
            buffer.iter_mut().zip(x).for_each(|(b, v)| *b = v.acc());
        }
    }
}

vectorized! {
    fn shift[A: Float](x: &mut [A], max: A, temperature: f64) {
        if temperature == 1.0 {
            x.iter_mut().for_each(|v| *v = *v - max);
        } else {
            let temperature = A::from_f64(temperature);
            x.iter_mut().for_each(|v| *v = (*v - max) / temperature);
        }
    }
}

vectorized! {
    fn exponentials[A: Float](x: &mut [A]) {
        for v in x {
            *v = v.exp();
        }
    }
}

vectorized! {
    fn store_quotient[A: CastTo<O>, O: Element](x: &[A], sum: A, out: &mut [O]) {
        for (out, &v) in out.iter_mut().zip(x) {
            *out = v.over(sum).cast();
        }
    }
}

vectorized! {
    fn store_difference[A: CastTo<O>, O: Element](x: &[A], sum: A, out: &mut [O]) {
        for (out, &v) in out.iter_mut().zip(x) {
            *out = v.minus(sum).cast();
        }
    }
}

vectorized! {
    fn softmax_columns[T: Element, O: Element](
        params: SoftmaxParams,
        x: &[T],
        n: usize,
        inner: usize,
        limits: &[usize; WIDTH],
        limited: bool,
        buffer: &mut [T::Acc],
        band: &mut Columns<'_, O>,
    ) where [T::Acc: CastTo<O>] {
        let width = band.width();
        let temperature = T::Acc::from_f64(params.temperature);
        let mut max = [<T::Acc as Element>::BOTTOM; WIDTH];
        let mut sum = [<T::Acc as Element>::ZERO; WIDTH];
        for k in 0..n {
            let row = &mut buffer[k * WIDTH..][..width];
            for (i, (b, v)) in row.iter_mut().zip(&x[k * inner..][..width]).enumerate() {
                let v = if params.negate { -v.acc() } else { v.acc() };
                *b = v;
                let counts = !limited || k < limits[i];
                max[i] = if counts && v > max[i] { v } else { max[i] };
            }
        }
        for k in 0..n {
            let row = &mut buffer[k * WIDTH..][..width];
            for (i, b) in row.iter_mut().enumerate() {
                let v = (*b - max[i]) / temperature;
                let e = v.exp();
                *b = if params.log { v } else { e };
                let counts = !limited || k < limits[i];
                sum[i] += if counts { e } else { <T::Acc as Element>::ZERO };
            }
        }
        if params.log {
            sum.iter_mut().for_each(|s| *s = s.ln());
        }
        for k in 0..n {
            let row = &buffer[k * WIDTH..][..width];
            for (i, (out, &b)) in band.row(k).iter_mut().zip(row).enumerate() {
                let v = if params.log { b - sum[i] } else { b / sum[i] };
                *out = if !limited || k < limits[i] { v.cast() } else { O::ZERO };
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
