//! Resizing as OpenCV does it, whose numbers for each way to interpolate are those of MXNet.

use crate::element::{Element, is_same};
use crate::error::check_len;
use crate::par::{Par, chunk_by_work, par_chunks_mut, par_chunks_mut_scratch};
use std::ops::Range;

/// How pixels between pixels are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpolation {
    /// The nearest one.
    Nearest,
    /// Of 2 × 2 neighbours, by distance.
    Linear,
    /// Of 4 × 4 neighbours.
    Cubic,
    /// The mean of the area that a pixel covers; linear where images become larger.
    Area,
    /// Of 8 × 8 neighbours.
    Lanczos,
}

/// A resize of images of `[height, width]` pixels.
#[derive(Clone, Copy, Debug)]
pub struct Resize {
    /// Height and width of the input.
    pub from: [usize; 2],
    /// Height and width of the output.
    pub to: [usize; 2],
    /// Channels of both.
    pub channels: usize,
    /// How pixels are made.
    pub interpolation: Interpolation,
}

/// The pixels of an axis that each pixel of the output is made of, neighbours all, with their
/// shares.
struct Taps {
    /// Where the taps of each output begin in the two lists below; one more at the end.
    starts: Vec<usize>,
    sources: Vec<u32>,
    shares: Vec<f32>,
}

impl Taps {
    fn of(&self, output: usize) -> impl Iterator<Item = (usize, f32)> {
        let range = self.starts[output]..self.starts[output + 1];
        self.sources[range.clone()].iter().map(|s| *s as usize).zip(self.shares[range].iter().copied())
    }

    /// Most taps of one output.
    fn most(&self) -> usize {
        self.starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
    }

    fn new(from: usize, range: Range<usize>, mut taps: impl FnMut(usize, &mut dyn FnMut(i64, f32))) -> Taps {
        let mut made = Taps { starts: vec![0], sources: Vec::new(), shares: Vec::new() };
        for i in range {
            taps(i, &mut |source, share| {
                made.sources.push(source.clamp(0, from as i64 - 1) as u32);
                made.shares.push(share);
            });
            made.starts.push(made.sources.len());
        }
        made
    }

    fn nearest(from: usize, to: usize, range: Range<usize>) -> Taps {
        let scale = 1.0 / (to as f64 / from as f64);
        Taps::new(from, range, |i, add| add((i as f64 * scale).floor() as i64, 1.0))
    }

    /// The position of an output: the pixel before it, and the way to the next one.
    fn position(from: usize, to: usize, i: usize) -> (i64, f32) {
        let scale = 1.0 / (to as f64 / from as f64);
        let at = ((i as f64 + 0.5) * scale - 0.5) as f32;
        (at.floor() as i64, at - at.floor())
    }

    fn linear(from: usize, to: usize, range: Range<usize>) -> Taps {
        Taps::new(from, range, |i, add| {
            let (before, part) = Taps::position(from, to, i);
            add(before, 1.0 - part);
            add(before + 1, part);
        })
    }

    /// Linear interpolation for the axes that grow when the mean of areas is asked for.
    fn linear_area(from: usize, to: usize, range: Range<usize>) -> Taps {
        let inverse = to as f64 / from as f64;
        let scale = 1.0 / inverse;
        Taps::new(from, range, |i, add| {
            let before = (i as f64 * scale).floor() as i64;
            let part = ((i + 1) as f64 - (before + 1) as f64 * inverse) as f32;
            let part = if part <= 0.0 || before >= from as i64 - 1 { 0.0 } else { part - part.floor() };
            add(before, 1.0 - part);
            add(before + 1, part);
        })
    }

    fn cubic(from: usize, to: usize, range: Range<usize>) -> Taps {
        const A: f32 = -0.75;
        Taps::new(from, range, |i, add| {
            let (before, x) = Taps::position(from, to, i);
            let outer = ((A * (x + 1.0) - 5.0 * A) * (x + 1.0) + 8.0 * A) * (x + 1.0) - 4.0 * A;
            let inner = |x: f32| ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0;
            let shares = [outer, inner(x), inner(1.0 - x)];
            let rest = 1.0 - shares.iter().sum::<f32>();
            for (k, share) in shares.into_iter().chain([rest]).enumerate() {
                add(before - 1 + k as i64, share);
            }
        })
    }

    fn lanczos(from: usize, to: usize, range: Range<usize>) -> Taps {
        Taps::new(from, range, |i, add| {
            let (before, x) = Taps::position(from, to, i);
            let mut shares = [0.0; 8];
            if x < f32::EPSILON {
                shares[3] = 1.0;
            } else {
                for (k, share) in shares.iter_mut().enumerate() {
                    let y = (f64::from(x) + 3.0 - k as f64) * std::f64::consts::PI;
                    *share = (y.sin() * (y / 4.0).sin() / (y * y)) as f32;
                }
                let sum: f32 = shares.iter().sum();
                shares.iter_mut().for_each(|share| *share /= sum);
            }
            for (k, share) in shares.into_iter().enumerate() {
                add(before - 3 + k as i64, share);
            }
        })
    }

    /// The pixels that an output covers, for axes that shrink.
    fn area(from: usize, to: usize, range: Range<usize>) -> Taps {
        let scale = 1.0 / (to as f64 / from as f64);
        Taps::new(from, range, |i, add| {
            let begin = i as f64 * scale;
            let end = begin + scale;
            let cell = scale.min(from as f64 - begin);
            let last = (end.floor() as i64).min(from as i64 - 1);
            let first = (begin.ceil() as i64).min(last);
            if first as f64 - begin > 1e-3 {
                add(first - 1, ((first as f64 - begin) / cell) as f32);
            }
            for source in first..last {
                add(source, (1.0 / cell) as f32);
            }
            if end - last as f64 > 1e-3 {
                add(last, ((end - last as f64).min(1.0).min(cell) / cell) as f32);
            }
        })
    }
}

impl Resize {
    /// Resizes the images of `x` into those of `out`. Values of whole types are rounded.
    ///
    /// # Panics
    /// If the lengths contradict the sizes, or pixels would have to be made out of none.
    pub fn run<T: Element>(&self, par: &dyn Par, x: &[T], out: &mut [T]) {
        self.run_window(par, [0..self.to[0], 0..self.to[1]], x, out);
    }

    /// Computes these rows and columns of the resized images alone: `out` has no other ones.
    ///
    /// # Panics
    /// If [`run`](Resize::run) would, or the window is not inside of the output.
    pub fn run_window<T: Element>(&self, par: &dyn Par, window: [Range<usize>; 2], x: &[T], out: &mut [T]) {
        if out.is_empty() {
            return;
        }
        let [rows, columns] = window.clone();
        assert!(rows.end <= self.to[0] && columns.end <= self.to[1], "the window is inside of the output");
        let [image, made] =
            [self.from, [rows.len(), columns.len()]].map(|[height, width]| height * width * self.channels);
        assert!(image > 0, "pixels cannot be made out of none");
        let images = out.len() / made;
        check_len("the output", out.len(), images * made);
        check_len("the input", x.len(), images * image);
        let row = columns.len() * self.channels;
        if self.from == self.to {
            let line = self.from[1] * self.channels;
            return par_chunks_mut(par, out, made, |i, out| {
                let x = &x[i * image + rows.start * line + columns.start * self.channels..];
                out.chunks_exact_mut(row).zip(x.chunks(line)).for_each(|(out, x)| out.copy_from_slice(&x[..row]));
            });
        }
        let (down, across) = (self.taps(0, rows), self.taps(1, columns));
        for (x, out) in x.chunks_exact(image).zip(out.chunks_exact_mut(made)) {
            match self.interpolation {
                Interpolation::Nearest => self.nearest(par, row, &down, &across, x, out),
                Interpolation::Linear if is_same::<T, u8>() && !self.halves() => {
                    let (x, out) = (bytemuck::cast_slice(x), bytemuck::cast_slice_mut(out));
                    self.fixed_point(par, row, &down, &across, x, out);
                }
                _ => self.blended(par, row, &down, &across, x, out),
            }
        }
    }

    /// Whether both axes become half as long: the mean of four pixels stands for linear
    /// interpolation then.
    fn halves(&self) -> bool {
        self.from[0] == 2 * self.to[0] && self.from[1] == 2 * self.to[1]
    }

    fn taps(&self, axis: usize, range: Range<usize>) -> Taps {
        let (from, to) = (self.from[axis], self.to[axis]);
        match self.interpolation {
            Interpolation::Nearest => Taps::nearest(from, to, range),
            Interpolation::Linear if self.halves() => Taps::area(from, to, range),
            Interpolation::Linear => Taps::linear(from, to, range),
            Interpolation::Cubic => Taps::cubic(from, to, range),
            Interpolation::Lanczos => Taps::lanczos(from, to, range),
            Interpolation::Area if self.from[0] >= self.to[0] && self.from[1] >= self.to[1] => {
                Taps::area(from, to, range)
            }
            Interpolation::Area => Taps::linear_area(from, to, range),
        }
    }

    fn nearest<T: Element>(&self, par: &dyn Par, row: usize, down: &Taps, across: &Taps, x: &[T], out: &mut [T]) {
        let line = self.from[1] * self.channels;
        let band = chunk_by_work(row);
        par_chunks_mut(par, out, band * row, |chunk, out| {
            for (i, out) in out.chunks_exact_mut(row).enumerate() {
                let x = &x[down.sources[chunk * band + i] as usize * line..][..line];
                for (out, source) in out.chunks_exact_mut(self.channels).zip(&across.sources) {
                    out.copy_from_slice(&x[*source as usize * self.channels..][..self.channels]);
                }
            }
        });
    }

    /// Sums of pixels times shares, in single precision.
    fn blended<T: Element>(&self, par: &dyn Par, row: usize, down: &Taps, across: &Taps, x: &[T], out: &mut [T]) {
        let line = self.from[1] * self.channels;
        let lines = down.most();
        self.by_rows(par, row, lines + 1, out, |output, scratch: &mut [f32], known, out| {
            let (sums, scratch) = scratch.split_at_mut(row);
            sums.fill(0.0);
            for (source, share) in down.of(output) {
                let slot = source % lines;
                let blended = &mut scratch[slot * row..][..row];
                if known[slot] != source {
                    known[slot] = source;
                    blend(across, self.channels, &x[source * line..][..line], blended);
                }
                sums.iter_mut().zip(&*blended).for_each(|(sum, v)| *sum += share * v);
            }
            // The mean of four bytes is rounded up from a half, all else as C's rint does.
            let quarters = self.halves() && is_same::<T, u8>();
            for (out, sum) in out.iter_mut().zip(&*sums) {
                *out = T::saturated(match f64::from(*sum) {
                    value if T::FLOAT => value,
                    value if quarters => (value + 0.5).floor(),
                    value => value.round_ties_even(),
                });
            }
        });
    }

    /// Linear interpolation of bytes, with shares of 11 bits, as OpenCV computes it.
    fn fixed_point(&self, par: &dyn Par, row: usize, down: &Taps, across: &Taps, x: &[u8], out: &mut [u8]) {
        let line = self.from[1] * self.channels;
        let channels = self.channels;
        let fixed = |share: f32| (share * 2048.0).round_ties_even() as i32;
        let pairs: Vec<([usize; 2], [i32; 2])> = across
            .sources
            .chunks_exact(2)
            .zip(across.shares.chunks_exact(2))
            .map(|(s, w)| {
                // At both ends of a row, though not of a column, there is one pixel only.
                let shares = if s[0] == s[1] { [2048, 0] } else { [fixed(w[0]), fixed(w[1])] };
                ([s[0] as usize * channels, s[1] as usize * channels], shares)
            })
            .collect();
        self.by_rows(par, row, 2, out, |output, scratch: &mut [i32], known, out| {
            let mut taps = down.of(output);
            let [Some((first, a)), Some((second, b))] = [taps.next(), taps.next()] else { return };
            for source in [first, second] {
                let slot = source % 2;
                if known[slot] != source {
                    known[slot] = source;
                    let x = &x[source * line..][..line];
                    let blended = &mut scratch[slot * row..][..row];
                    for (out, (at, shares)) in blended.chunks_exact_mut(channels).zip(&pairs) {
                        let pair = x[at[0]..][..channels].iter().zip(&x[at[1]..][..channels]);
                        for (out, (a, b)) in out.iter_mut().zip(pair) {
                            *out = i32::from(*a) * shares[0] + i32::from(*b) * shares[1];
                        }
                    }
                }
            }
            let [above, below] = [first, second].map(|source| &scratch[source % 2 * row..][..row]);
            let [a, b] = [fixed(a), fixed(b)];
            for (out, (above, below)) in out.iter_mut().zip(above.iter().zip(below)) {
                *out = ((((a * (above >> 4)) >> 16) + ((b * (below >> 4)) >> 16) + 2) >> 2) as u8;
            }
        });
    }

    /// Runs `body(row, scratch, known, out)` for each row of the output, with `lines` lines of
    /// scratch. Between the rows of a chunk scratch stays, and so does what `known` says of it: at
    /// first numbers of no row.
    fn by_rows<T: Element, S: bytemuck::Pod>(
        &self,
        par: &dyn Par,
        row: usize,
        lines: usize,
        out: &mut [T],
        body: impl Fn(usize, &mut [S], &mut [usize], &mut [T]) + Sync,
    ) {
        let bytes = lines * row * size_of::<S>();
        let band = chunk_by_work(row * lines).max(4);
        par_chunks_mut_scratch(par, out, band * row, bytes, |chunk, out, scratch| {
            let scratch: &mut [S] = bytemuck::cast_slice_mut(&mut scratch[..bytes]);
            let mut known = vec![usize::MAX; lines];
            for (i, out) in out.chunks_exact_mut(row).enumerate() {
                body(chunk * band + i, scratch, &mut known, out);
            }
        });
    }
}

/// Resizes one row.
fn blend<T: Element>(across: &Taps, channels: usize, x: &[T], out: &mut [f32]) {
    match channels {
        1 => blend_pixels::<T, 1>(across, x, out),
        3 => blend_pixels::<T, 3>(across, x, out),
        _ => {
            for (i, out) in out.chunks_exact_mut(channels).enumerate() {
                out.fill(0.0);
                for (source, share) in across.of(i) {
                    let x = &x[source * channels..][..channels];
                    out.iter_mut().zip(x).for_each(|(out, v)| *out += share * v.to_f64() as f32);
                }
            }
        }
    }
}

fn blend_pixels<T: Element, const C: usize>(across: &Taps, x: &[T], out: &mut [f32]) {
    let (x, _) = x.as_chunks::<C>();
    let (out, _) = out.as_chunks_mut::<C>();
    for (i, out) in out.iter_mut().enumerate() {
        let mut sum = [0.0; C];
        for (source, share) in across.of(i) {
            sum.iter_mut().zip(x[source]).for_each(|(sum, v)| *sum += share * v.to_f64() as f32);
        }
        *out = sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads, random};

    const ALL: [Interpolation; 5] = [
        Interpolation::Nearest,
        Interpolation::Linear,
        Interpolation::Cubic,
        Interpolation::Area,
        Interpolation::Lanczos,
    ];

    fn resized<T: Element>(par: &dyn Par, resize: Resize, x: &[T]) -> Vec<T> {
        let mut out = vec![T::ZERO; x.len() / (resize.from[0] * resize.from[1]) * resize.to[0] * resize.to[1]];
        resize.run(par, x, &mut out);
        out
    }

    #[test]
    fn one_colour_stays_one_colour_and_threads_change_no_bit() {
        for interpolation in ALL {
            for (from, to) in
                [([5, 7], [11, 4]), ([8, 6], [4, 3]), ([1, 1], [3, 2]), ([40, 51], [13, 120]), ([9, 9], [3, 3])]
            {
                for channels in [1, 3, 4] {
                    let resize = Resize { from, to, channels, interpolation };
                    let grey = resized(&Serial, resize, &vec![77u8; from[0] * from[1] * channels]);
                    assert!(grey.iter().all(|v| *v == 77), "{resize:?}");
                    let x = random(2 * from[0] * from[1] * channels, 3);
                    let [a, b, c] = [&Serial as &dyn Par, &Reverse, &Threads(3)].map(|par| resized(par, resize, &x));
                    assert!(a == b && b == c, "{resize:?}");
                }
            }
        }
    }

    #[test]
    fn a_window_has_the_bits_of_the_whole() {
        for interpolation in ALL {
            for (from, to) in [([5, 7], [11, 9]), ([8, 12], [4, 6]), ([9, 9], [9, 9]), ([40, 51], [13, 120])] {
                let resize = Resize { from, to, channels: 3, interpolation };
                let x: Vec<u8> = random(2 * from[0] * from[1] * 3, 7).iter().map(|v| (v.abs() * 255.0) as u8).collect();
                let whole = resized(&Serial, resize, &x);
                let window = [1..4, 2..to[1] - 1];
                let width = window[1].len();
                let mut part = vec![0u8; 2 * 3 * width * 3];
                resize.run_window(&Threads(2), window, &x, &mut part);
                for (i, row) in part.chunks_exact(width * 3).enumerate() {
                    let at = ((i / 3 * to[0] + i % 3 + 1) * to[1] + 2) * 3;
                    assert_eq!(row, &whole[at..][..width * 3], "{resize:?} row {i}");
                }
            }
        }
    }

    #[test]
    fn a_ramp_is_sampled_where_pixels_lie() {
        let x: Vec<f32> = (0..8).map(|v| v as f32).collect();
        let run = |interpolation, columns| {
            resized(&Serial, Resize { from: [1, 8], to: [1, columns], channels: 1, interpolation }, &x)
        };
        assert_eq!(run(Interpolation::Nearest, 4), [0.0, 2.0, 4.0, 6.0]);
        assert_eq!(run(Interpolation::Area, 4), [0.5, 2.5, 4.5, 6.5]);
        assert_eq!(run(Interpolation::Area, 2), [1.5, 5.5]);
        assert_eq!(run(Interpolation::Linear, 4), [0.5, 2.5, 4.5, 6.5]);
        assert_eq!(run(Interpolation::Linear, 16)[..4], [0.0, 0.25, 0.75, 1.25]);
    }

    #[test]
    fn bytes_and_floats_agree_up_to_rounding() {
        let bytes: Vec<u8> = random(30 * 20 * 3, 5).iter().map(|v| (v.abs() * 255.0) as u8).collect();
        let floats: Vec<f32> = bytes.iter().map(|v| f32::from(*v)).collect();
        for interpolation in ALL {
            for to in [[15, 10], [60, 31], [7, 9]] {
                let resize = Resize { from: [30, 20], to, channels: 3, interpolation };
                let (a, b) = (resized(&Serial, resize, &bytes), resized(&Serial, resize, &floats));
                for (a, b) in a.iter().zip(b) {
                    assert!((f32::from(*a) - b.clamp(0.0, 255.0)).abs() <= 1.01, "{resize:?}: {a} {b}");
                }
            }
        }
    }
}
