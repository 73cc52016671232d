//! Sums of rows, and of squared distances from their means, in double precision.

use crate::element::Element;
use crate::error::check_len;
use crate::par::{Par, par_chunks_mut};
use crate::scratch::Scratch;
use crate::vectorize::vectorized;

/// Elements of a row that are summed together: parts have a fixed length, so that bits do not depend
/// on threads.
const PART: usize = 16 * 1024;
const LANES: usize = 8;

/// Sums in double precision over rows of `n` elements.
pub fn row_sums<T: Element>(par: &dyn Par, x: &[T], n: usize) -> Scratch<f64> {
    of_rows(par, x, n, |_, values, sum| sum_part(values, sum))
}

/// Sums in double precision over rows of `n` elements of the squared distances from a centre for
/// each row.
pub fn row_square_sums<T: Element>(par: &dyn Par, x: &[T], n: usize, centres: &[f64]) -> Scratch<f64> {
    check_len("the centres", centres.len(), x.len() / n.max(1));
    of_rows(par, x, n, |row, values, sum| sum_squares(values, centres[row], sum))
}

fn of_rows<T: Element>(
    par: &dyn Par,
    x: &[T],
    n: usize,
    part_of: impl Fn(usize, &[T], &mut f64) + Sync,
) -> Scratch<f64> {
    if n == 0 {
        return Scratch::new(par, 0);
    }
    let parts = n.div_ceil(PART);
    let mut sums = Scratch::new(par, x.len() / n * parts);
    // Short rows are summed several at once.
    let grain = PART / n.min(PART);
    par_chunks_mut(par, &mut sums, grain, |chunk, sums| {
        for (i, sum) in sums.iter_mut().enumerate() {
            let (row, part) = ((chunk * grain + i) / parts, (chunk * grain + i) % parts);
            part_of(row, &x[row * n..][part * PART..n.min((part + 1) * PART)], sum);
        }
    });
    if parts == 1 {
        return sums;
    }
    Scratch::collect(par, x.len() / n, sums.chunks(parts).map(|parts| parts.iter().sum()))
}

vectorized! {
    fn sum_part[T: Element](values: &[T], sum: &mut f64) {
        *sum = lanes_of(values, |v| v);
    }
}

vectorized! {
    fn sum_squares[T: Element](values: &[T], centre: f64, sum: &mut f64) {
        *sum = lanes_of(values, |v| (v - centre) * (v - centre));
    }
}

/// The sum of what `f` makes of the elements, in lanes.
#[inline(always)]
fn lanes_of<T: Element>(values: &[T], f: impl Fn(f64) -> f64) -> f64 {
    let mut lanes = [0.0f64; LANES];
    let (blocks, rest) = values.as_chunks::<LANES>();
    for block in blocks {
        for i in 0..LANES {
            lanes[i] += f(block[i].to_f64());
        }
    }
    rest.iter().fold(0.0, |sum, value| sum + f(value.to_f64())) + lanes.iter().fold(0.0, |sum, lane| sum + lane)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;
    use crate::testing::random;
    use crate::vectorize::Width;

    #[test]
    fn sums_of_rows_are_exact_to_double_precision_at_every_vector_width() {
        for [rows, n] in [[1, 40_003], [37, 21], [3, 16 * 1024], [5, 1]] {
            let (x, centres) = (random(rows * n, 3), vec![0.25; rows]);
            let expected: Vec<f64> = x.chunks(n).map(|row| row.iter().map(|v| f64::from(*v)).sum()).collect();
            let square = |v: &f32| (f64::from(*v) - 0.25).powi(2);
            let squares: Vec<f64> = x.chunks(n).map(|row| row.iter().map(square).sum()).collect();
            let all = |width: Width| {
                width.limit(|| [&row_sums(&Serial, &x, n)[..], &row_square_sums(&Serial, &x, n, &centres)].concat())
            };
            let baseline = all(Width::Baseline);
            for width in Width::all() {
                assert_eq!(all(width), baseline, "{rows} x {n} on {width:?}");
            }
            for (sum, wanted) in baseline.iter().zip(expected.iter().chain(&squares)) {
                assert!((sum - wanted).abs() < 1e-9 * n as f64, "{rows} x {n}: {sum} instead of {wanted}");
            }
        }
        assert!(row_sums::<f32>(&Serial, &[], 0).is_empty());
    }
}
