//! Sampling of planes at real positions, and the grids of positions.

use crate::element::{Element, Float, c_i32};
use crate::error::check_len;
use crate::par::{Par, chunk_by_work, par_chunks_mut};

/// Columns whose positions are worked out together.
const BLOCK: usize = 64;

/// The four pixels around a position and their shares; pixels outside of the plane are absent and
/// count as zero.
#[derive(Clone, Copy)]
struct Corners<A> {
    /// Top left, top right, bottom left, bottom right; `usize::MAX` outside.
    at: [usize; 4],
    /// Shares of the rows and of the columns. Their products would not be finite far outside.
    rows: [A; 2],
    columns: [A; 2],
}

impl<A: Float> Corners<A> {
    fn new(y: A, x: A, [height, width]: [usize; 2]) -> Self {
        let (top, left) = (c_i32(y.to_f64().floor()), c_i32(x.to_f64().floor()));
        let inside = |i: i32, size: usize| usize::try_from(i).ok().filter(|i| *i < size);
        let rows = [inside(top, height), inside(top.saturating_add(1), height)];
        let columns = [inside(left, width), inside(left.saturating_add(1), width)];
        let at = std::array::from_fn(|i| match (rows[i / 2], columns[i % 2]) {
            (Some(row), Some(column)) => row * width + column,
            _ => usize::MAX,
        });
        let (below, right) = (y - A::from_i64(top.into()), x - A::from_i64(left.into()));
        Corners { at, rows: [A::ONE - below, below], columns: [A::ONE - right, right] }
    }

    fn sample<T: Element<Acc = A>>(&self, plane: &[T]) -> T {
        let mut sum = A::ZERO;
        for (i, at) in self.at.iter().enumerate() {
            // In this order, as MXNet does: an absent pixel stays zero with shares that are huge.
            sum += plane.get(*at).map_or(A::ZERO, |v| v.acc()) * self.rows[i / 2] * self.columns[i % 2];
        }
        T::from_acc(sum)
    }
}

/// Samples `x`, of shape `[batch, channels, height, width]`, at the positions of `grid`, of shape
/// `[batch, 2, rows, columns]`: x in the first plane, y in the second, -1 to 1 from the first to
/// the last pixel.
///
/// # Panics
/// If the lengths contradict the shapes.
pub fn sample_bilinear<T: Element>(
    par: &dyn Par,
    x: &[T],
    [batch, channels, height, width]: [usize; 4],
    grid: &[T],
    [rows, columns]: [usize; 2],
    out: &mut [T],
) {
    check_len("the input", x.len(), batch * channels * height * width);
    check_len("the grid", grid.len(), batch * 2 * rows * columns);
    check_len("the output", out.len(), batch * channels * rows * columns);
    if out.is_empty() {
        return;
    }
    let plane = rows * columns;
    // Positions are worked out once for the planes of a chunk.
    let band = chunk_by_work(8 * plane);
    let one = <T::Acc as Element>::ONE;
    let to_pixel = |v: T, size: usize| {
        let last = T::Acc::from_i64(size as i64 - 1);
        (v.acc() + one) * last / T::Acc::from_i64(2)
    };
    par_chunks_mut(par, out, band * plane, |chunk, out| {
        let first = chunk * band;
        for block in (0..plane).step_by(BLOCK) {
            let count = BLOCK.min(plane - block);
            let mut image = usize::MAX;
            let mut corners = [Corners { at: [0; 4], rows: [one; 2], columns: [one; 2] }; BLOCK];
            for (i, out) in out.chunks_exact_mut(plane).enumerate() {
                if (first + i) / channels != image {
                    image = (first + i) / channels;
                    let grid = &grid[image * 2 * plane..][..2 * plane];
                    for (j, corner) in corners[..count].iter_mut().enumerate() {
                        let (column, row) = (grid[block + j], grid[plane + block + j]);
                        *corner = Corners::new(to_pixel(row, height), to_pixel(column, width), [height, width]);
                    }
                }
                let x = &x[(first + i) * height * width..][..height * width];
                for (out, corner) in out[block..block + count].iter_mut().zip(&corners) {
                    *out = corner.sample(x);
                }
            }
        }
    });
}

/// Position number `i` of `n` between -1 and 1. One position alone has no place between the ends:
/// it is NaN, or infinite, as in MXNet.
fn between_ends<A: Float>(i: usize, n: usize) -> A {
    A::from_f64(-1.0) + A::from_i64(i as i64) * A::from_f64(2.0 / (n as f64 - 1.0))
}

/// The grid of an affine map for each image: `maps` has shape `[batch, 2, 3]`, `out` `[batch, 2,
/// rows, columns]`.
///
/// # Panics
/// If the lengths contradict the shapes.
pub fn affine_grid<T: Element>(par: &dyn Par, maps: &[T], [rows, columns]: [usize; 2], out: &mut [T]) {
    let plane = rows * columns;
    check_len("the maps", maps.len() * plane, out.len() * 3);
    if out.is_empty() {
        return;
    }
    let band = chunk_by_work(4 * columns);
    par_chunks_mut(par, out, band * columns, |chunk, out| {
        for (i, out) in out.chunks_exact_mut(columns).enumerate() {
            let (map, row) = ((chunk * band + i) / rows, (chunk * band + i) % rows);
            let [a, b, c] = [0, 1, 2].map(|j| maps[map * 3 + j].acc());
            let y: T::Acc = between_ends(row, rows);
            for (column, out) in out.iter_mut().enumerate() {
                let x: T::Acc = between_ends(column, columns);
                *out = T::from_acc(a * x + b * y + c);
            }
        }
    });
}

/// The grid of an optical flow in pixels: `flow` and `out` have shape `[batch, 2, rows, columns]`.
///
/// # Panics
/// If the lengths contradict the shapes.
pub fn flow_grid<T: Element>(par: &dyn Par, flow: &[T], [rows, columns]: [usize; 2], out: &mut [T]) {
    check_len("the output", out.len(), flow.len());
    if out.is_empty() {
        return;
    }
    let one = <T::Acc as Element>::ONE;
    let half = |n: usize| T::Acc::from_f64((n as f64 - 1.0) / 2.0);
    let band = chunk_by_work(4 * columns);
    par_chunks_mut(par, out, band * columns, |chunk, out| {
        for (i, out) in out.chunks_exact_mut(columns).enumerate() {
            let line = chunk * band + i;
            let (vertical, row) = (line / rows % 2 == 1, line % rows);
            let flow = &flow[line * columns..][..columns];
            for (column, (out, flow)) in out.iter_mut().zip(flow).enumerate() {
                let (at, half) = if vertical { (row, half(rows)) } else { (column, half(columns)) };
                *out = T::from_acc((flow.acc() + T::Acc::from_i64(at as i64)) / half - one);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads, assert_close, random};

    #[test]
    fn the_identity_samples_every_pixel() {
        let (rows, columns) = (5, 9);
        let mut grid = vec![0.0f32; 2 * 2 * rows * columns];
        let identity = [1.0f32, 0.0, 0.0, 0.0, 1.0, 0.0];
        affine_grid(&Threads(3), &[identity, identity].concat(), [rows, columns], &mut grid);
        let x = random(2 * 3 * rows * columns, 5);
        let mut out = vec![0.0; x.len()];
        sample_bilinear(&Reverse, &x, [2, 3, rows, columns], &grid, [rows, columns], &mut out);
        assert_close(&out, &x.iter().map(|v| f64::from(*v)).collect::<Vec<_>>(), 1e-5);
    }

    #[test]
    fn positions_outside_count_as_zero_and_no_value_of_the_grid_panics() {
        let x = [1.0f32, 2.0, 3.0, 4.0];
        let special = [-1.0f32, 0.0, 1.5, 9.0, f32::INFINITY, f32::NAN];
        let grid: Vec<f32> = special.iter().chain(&[-1.0; 6]).copied().collect();
        let mut out = [7.0f32; 6];
        sample_bilinear(&Serial, &x, [1, 1, 2, 2], &grid, [1, 6], &mut out);
        assert_eq!(out[..4], [1.0, 1.5, 1.5, 0.0]);
        assert!(out[5].is_nan());
    }

    /// Expects what MXNet 1.9.1 gives: zero as long as the position is finite.
    #[test]
    fn positions_far_outside_count_as_zero() {
        let x: Vec<f32> = (1..=9).map(|v| v as f32).collect();
        let far = [1e5, 3e9, 1e15, 1e19, 1e20, -1e20, 3e20, 1e25, -1e30, 1e30f32];
        for other in [0.0, 1.0, 2.0, 1e20, -1e30f32] {
            let others = [other; 10];
            for grid in [[far, others].concat(), [others, far].concat()] {
                let mut out = [7.0f32; 10];
                sample_bilinear(&Serial, &x, [1, 1, 3, 3], &grid, [1, 10], &mut out);
                assert_eq!(out, [0.0; 10], "{grid:?}");
            }
        }
        let mut out = [0.0f32];
        sample_bilinear(&Serial, &x, [1, 1, 3, 3], &[3e38, 1e20], [1, 1], &mut out);
        assert!(out[0].is_nan(), "the position is not finite");
    }

    #[test]
    fn a_flow_of_pixels_shifts_the_image() {
        let (rows, columns) = (3, 4);
        let flow = [vec![1.0f32; rows * columns], vec![0.0; rows * columns]].concat();
        let mut grid = vec![0.0f32; flow.len()];
        flow_grid(&Reverse, &flow, [rows, columns], &mut grid);
        let x: Vec<f32> = (0..rows * columns).map(|v| v as f32).collect();
        let mut out = vec![0.0f32; x.len()];
        sample_bilinear(&Threads(2), &x, [1, 1, rows, columns], &grid, [rows, columns], &mut out);
        let want: Vec<f64> =
            (0..rows * columns).map(|i| if i % columns + 1 < columns { (i + 1) as f64 } else { 0.0 }).collect();
        assert_close(&out, &want, 1e-5);
    }

    #[test]
    fn results_do_not_depend_on_threads() {
        let x = random(2 * 70 * 6 * 5, 1);
        let grid: Vec<f32> = random(2 * 2 * 90, 2).iter().map(|v| v * 1.3).collect();
        let results = [&Serial as &dyn Par, &Reverse, &Threads(3)].map(|par| {
            let mut out = vec![0.0; 2 * 70 * 90];
            sample_bilinear(par, &x, [2, 70, 6, 5], &grid, [9, 10], &mut out);
            out
        });
        assert!(results.iter().all(|r| *r == results[0]));
    }
}
