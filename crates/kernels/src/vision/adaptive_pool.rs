//! Pooling to a given size: windows follow from the sizes of input and output.

use crate::element::{Element, Float};
use crate::error::check_len;
use crate::par::{Par, chunk_by_work, par_chunks_mut_scratch};
use crate::scratch::Scratch;
use crate::vectorize::vectorized;
use std::ops::Range;

/// Means over windows that divide planes of `from` into `to` parts; neighbouring windows may share
/// pixels.
#[derive(Clone, Copy, Debug)]
pub struct AdaptiveAverage {
    /// Height and width of the input.
    pub from: [usize; 2],
    /// Height and width of the output.
    pub to: [usize; 2],
}

/// The window of output `i` of `to`, in single precision as in MXNet.
fn window(i: usize, from: usize, to: usize) -> Range<usize> {
    let start = ((i * from) as f32 / to as f32).floor() as usize;
    let end = (((i + 1) * from) as f32 / to as f32).ceil() as usize;
    start.min(from)..end.min(from)
}

impl AdaptiveAverage {
    /// Pools the planes of `x` into those of `out`.
    ///
    /// # Panics
    /// If `x` and `out` do not hold the same number of planes, or a plane of `x` is empty and one
    /// of `out` is not.
    pub fn run<T: Element>(&self, par: &dyn Par, x: &[T], out: &mut [T]) {
        let ([height, width], [rows, columns]) = (self.from, self.to);
        if out.is_empty() {
            return;
        }
        let planes = out.len() / (rows * columns);
        check_len("the output", out.len(), planes * rows * columns);
        check_len("the input", x.len(), planes * height * width);
        assert!(height > 0 && width > 0, "there is no mean of no pixels");
        let window_of = |i: usize| {
            let Range { start, end } = window(i, width, columns);
            [start, end]
        };
        let across = Scratch::collect(par, columns, (0..columns).map(window_of));
        let band = chunk_by_work(height.div_ceil(rows) * width + columns);
        let bytes = width * size_of::<T::Acc>();
        par_chunks_mut_scratch(par, out, band * columns, bytes, |chunk, out, scratch| {
            let sums: &mut [T::Acc] = bytemuck::cast_slice_mut(&mut scratch[..bytes]);
            for (i, out) in out.chunks_exact_mut(columns).enumerate() {
                let (plane, row) = ((chunk * band + i) / rows, (chunk * band + i) % rows);
                let lines = window(row, height, rows);
                let x = &x[plane * height * width..][..height * width];
                sums.fill(<T::Acc as Element>::ZERO);
                for line in x[lines.start * width..lines.end * width].chunks_exact(width) {
                    add_line(line, sums);
                }
                let lines = T::Acc::from_f64(lines.len() as f64);
                for (out, window) in out.iter_mut().zip(&across) {
                    let sum = sum_of(&sums[window[0]..window[1]]);
                    *out = T::from_acc(sum / T::Acc::from_f64((window[1] - window[0]) as f64) / lines);
                }
            }
        });
    }
}

vectorized! {
    fn add_line[T: Element](line: &[T], sums: &mut [T::Acc]) {
        for (sum, v) in sums.iter_mut().zip(line) {
            *sum += v.acc();
        }
    }
}

fn sum_of<A: Float>(values: &[A]) -> A {
    values.iter().fold(A::ZERO, |sum, v| sum + *v)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads, assert_close, random};

    #[test]
    fn windows_cover_all_pixels_and_are_never_empty() {
        for from in 1..20 {
            for to in 1..25 {
                let windows: Vec<_> = (0..to).map(|i| window(i, from, to)).collect();
                assert!(windows.iter().all(|w| !w.is_empty()), "{from} to {to}");
                assert_eq!((windows[0].start, windows[to - 1].end), (0, from));
                assert!(windows.windows(2).all(|w| w[1].start <= w[0].end));
            }
        }
    }

    #[test]
    fn means_agree_with_double_precision_on_any_number_of_threads() {
        for (from, to) in [([5, 7], [2, 3]), ([4, 4], [6, 9]), ([33, 60], [6, 6]), ([7, 7], [1, 1])] {
            let x = random(4 * from[0] * from[1], 11);
            let mut want = Vec::new();
            for plane in x.chunks(from[0] * from[1]) {
                for row in 0..to[0] {
                    for column in 0..to[1] {
                        let (h, w) = (window(row, from[0], to[0]), window(column, from[1], to[1]));
                        let pixels = h.flat_map(|y| w.clone().map(move |x| (y, x)));
                        let values: Vec<f64> = pixels.map(|(y, x)| f64::from(plane[y * from[1] + x])).collect();
                        want.push(values.iter().sum::<f64>() / values.len() as f64);
                    }
                }
            }
            let results = [&Serial as &dyn Par, &Reverse, &Threads(3)].map(|par| {
                let mut out = vec![0.0; want.len()];
                AdaptiveAverage { from, to }.run(par, &x, &mut out);
                out
            });
            assert_close(&results[0], &want, 1e-5);
            assert!(results.iter().all(|r| *r == results[0]));
        }
    }
}
