//! Resizing of planes: bilinear interpolation and repetition of pixels.

use crate::element::Element;
use crate::error::check_len;
use crate::par::{Par, chunk_by_work, par_chunks_mut, par_chunks_mut_scratch};
use crate::scratch::Scratch;
use crate::vectorize::vectorized;

/// A bilinear resize of planes of `[height, width]` pixels.
#[derive(Clone, Copy, Debug)]
pub struct BilinearResize {
    /// Height and width of the input.
    pub from: [usize; 2],
    /// Height and width of the output.
    pub to: [usize; 2],
    /// Whether the centers of the corner pixels fall on each other; otherwise the edges of the
    /// images do.
    pub align_corners: bool,
}

/// The two pixels of an axis between which an output is.
#[derive(Clone, Copy)]
struct Neighbours {
    first: usize,
    second: usize,
    /// Share of the second one.
    weight: f32,
}

/// Source pixels of all outputs of an axis; positions in single precision whatever the dtype, as in
/// MXNet.
fn neighbours(par: &dyn Par, from: usize, to: usize, align_corners: bool) -> Scratch<Neighbours> {
    let scale = match to {
        0 | 1 => 0.0,
        _ if align_corners => (from - 1) as f32 / (to - 1) as f32,
        _ => from as f32 / to as f32,
    };
    let position = |i: usize| {
        if align_corners {
            return scale * i as f32;
        }
        ((f64::from(scale) * (i as f64 + 0.5) - 0.5) as f32).max(0.0)
    };
    let neighbours = (0..to).map(|i| {
        let at = position(i);
        let first = (at as usize).min(from - 1);
        Neighbours { first, second: (first + 1).min(from - 1), weight: at - first as f32 }
    });
    Scratch::collect(par, to, neighbours)
}

impl BilinearResize {
    /// Resizes the planes of `x` into those of `out`.
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
        assert!(height > 0 && width > 0, "pixels cannot be made out of none");
        if self.from == self.to {
            let chunk = crate::par::chunk_elems::<T>();
            return par_chunks_mut(par, out, chunk, |i, out| out.copy_from_slice(&x[i * chunk..][..out.len()]));
        }
        let down = neighbours(par, height, rows, self.align_corners);
        let across = neighbours(par, width, columns, self.align_corners);
        let band = chunk_by_work(width + 4 * columns);
        let bytes = width * size_of::<T::Acc>();
        par_chunks_mut_scratch(par, out, band * columns, bytes, |chunk, out, scratch| {
            let blended: &mut [T::Acc] = bytemuck::cast_slice_mut(&mut scratch[..bytes]);
            for (i, out) in out.chunks_exact_mut(columns).enumerate() {
                let (plane, row) = ((chunk * band + i) / rows, (chunk * band + i) % rows);
                let x = &x[plane * height * width..][..height * width];
                let Neighbours { first, second, weight } = down[row];
                blend_rows(&x[first * width..][..width], &x[second * width..][..width], weight, blended);
                blend_columns(blended, &across, out);
            }
        });
    }
}

vectorized! {
    fn blend_rows[T: Element](above: &[T], below: &[T], weight: f32, out: &mut [T::Acc]) {
        let weight = <T::Acc as Element>::from_f64(f64::from(weight));
        let rest = <T::Acc as Element>::ONE - weight;
        for ((out, above), below) in out.iter_mut().zip(above).zip(below) {
            *out = rest * above.acc() + weight * below.acc();
        }
    }
}

fn blend_columns<T: Element>(row: &[T::Acc], across: &[Neighbours], out: &mut [T]) {
    for (out, at) in out.iter_mut().zip(across) {
        let weight = <T::Acc as Element>::from_f64(f64::from(at.weight));
        let rest = <T::Acc as Element>::ONE - weight;
        *out = T::from_acc(rest * row[at.first] + weight * row[at.second]);
    }
}

/// Repeats every pixel of a plane `scale` times along both axes: one of several inputs that an
/// output is made of.
#[derive(Clone, Copy, Debug)]
pub struct Repeat {
    /// Channels, height and width of the input.
    pub shape: [usize; 3],
    /// Repetitions.
    pub scale: usize,
    /// Channels of the output.
    pub channels: usize,
    /// Channel of the output that the first channel of the input becomes.
    pub first: usize,
    /// Whether the pixels are added to those of the output; otherwise they replace them.
    pub add: bool,
}

/// Writes the channels of an output whose `parts` are the inputs in order; channels that no part
/// covers do not change.
///
/// # Panics
/// If the sizes contradict each other.
pub fn repeat_pixels<T: Element>(par: &dyn Par, part: Repeat, x: &[T], batch: usize, out: &mut [T]) {
    let [channels, height, width] = part.shape;
    let (rows, columns) = (height * part.scale, width * part.scale);
    check_len("the input", x.len(), batch * channels * height * width);
    check_len("the output", out.len(), batch * part.channels * rows * columns);
    assert!(part.first + channels <= part.channels, "{part:?}: more channels than the output has");
    if x.is_empty() {
        return;
    }
    // A chunk is a number of input rows, each of which fills `scale` rows of the output.
    let group = part.scale * columns;
    let band = chunk_by_work(group);
    par_chunks_mut(par, out, band * group, |chunk, out| {
        for (i, out) in out.chunks_exact_mut(group).enumerate() {
            let row = chunk * band + i;
            let (channel, row) = (row / height, row % height);
            let Some(channel) = part.source(channel) else { continue };
            let x = &x[(channel * height + row) * width..][..width];
            repeat_row(x, part.scale, part.add, out);
        }
    });
}

impl Repeat {
    /// The channel of the input, counted over the batch, that becomes a channel of the output.
    fn source(&self, channel: usize) -> Option<usize> {
        let (image, channel) = (channel / self.channels, channel % self.channels);
        let own = channel.checked_sub(self.first).filter(|c| *c < self.shape[0])?;
        Some(image * self.shape[0] + own)
    }
}

/// Fills `scale` rows of the output with one row of the input.
fn repeat_row<T: Element>(x: &[T], scale: usize, add: bool, out: &mut [T]) {
    let columns = x.len() * scale;
    if add {
        for out in out.chunks_exact_mut(columns) {
            for (out, &v) in out.chunks_exact_mut(scale).zip(x) {
                out.iter_mut().for_each(|out| *out = out.plus(v));
            }
        }
        return;
    }
    let (first, rest) = out.split_at_mut(columns);
    for (out, &v) in first.chunks_exact_mut(scale).zip(x) {
        out.fill(v);
    }
    rest.chunks_exact_mut(columns).for_each(|out| out.copy_from_slice(first));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads, assert_close, random};

    /// Bilinear interpolation in double precision, pixel by pixel.
    fn reference(resize: BilinearResize, x: &[f32]) -> Vec<f64> {
        let ([height, width], [rows, columns]) = (resize.from, resize.to);
        let source = |i: usize, from: usize, to: usize| {
            let at = match (resize.align_corners, to) {
                (_, 1) if resize.align_corners => 0.0,
                (true, _) => i as f64 * (from - 1) as f64 / (to - 1) as f64,
                (false, 1) => 0.0,
                (false, _) => ((i as f64 + 0.5) * from as f64 / to as f64 - 0.5).max(0.0),
            };
            let low = at.floor() as usize;
            (low, (low + 1).min(from - 1), at - low as f64)
        };
        let mut out = Vec::new();
        for plane in x.chunks(height * width) {
            for r in 0..rows {
                let (top, bottom, v) = source(r, height, rows);
                for c in 0..columns {
                    let (left, right, h) = source(c, width, columns);
                    let pixel = |r: usize, c: usize| f64::from(plane[r * width + c]);
                    let above = pixel(top, left) * (1.0 - h) + pixel(top, right) * h;
                    let below = pixel(bottom, left) * (1.0 - h) + pixel(bottom, right) * h;
                    out.push(above * (1.0 - v) + below * v);
                }
            }
        }
        out
    }

    #[test]
    fn bilinear_resizing_agrees_with_double_precision_on_any_number_of_threads() {
        for (from, to) in [([5, 7], [11, 4]), ([6, 6], [1, 9]), ([1, 1], [3, 2]), ([40, 50], [90, 120])] {
            for align_corners in [false, true] {
                let resize = BilinearResize { from, to, align_corners };
                let x = random(3 * from[0] * from[1], 7);
                let want = reference(resize, &x);
                let results = [&Serial as &dyn Par, &Reverse, &Threads(3)].map(|par| {
                    let mut out = vec![0.0; want.len()];
                    resize.run(par, &x, &mut out);
                    out
                });
                assert_close(&results[0], &want, 2e-5);
                assert!(results.iter().all(|r| *r == results[0]));
            }
        }
    }

    #[test]
    fn a_size_that_stays_is_copied() {
        let x = random(2 * 12, 3);
        let mut out = vec![0.0; 24];
        BilinearResize { from: [3, 4], to: [3, 4], align_corners: false }.run(&Serial, &x, &mut out);
        assert_eq!(out, x);
    }

    #[test]
    fn pixels_are_repeated_into_their_channels_or_added() {
        let part = Repeat { shape: [1, 1, 2], scale: 2, channels: 2, first: 1, add: false };
        let mut out = vec![9.0f32; 16];
        repeat_pixels(&Threads(2), part, &[1.0f32, 2.0], 1, &mut out);
        assert_eq!(out[..8], [9.0; 8]);
        assert_eq!(out[8..], [1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0]);
        repeat_pixels(&Reverse, Repeat { first: 0, add: true, ..part }, &[10.0f32, 20.0], 1, &mut out[..]);
        assert_eq!(out[..8], [19.0, 19.0, 29.0, 29.0, 19.0, 19.0, 29.0, 29.0]);
    }
}
