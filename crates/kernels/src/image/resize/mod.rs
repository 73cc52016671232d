//! Resizes images as OpenCV does. MXNet has the same numbers for each way to interpolate.

use crate::element::{Element, is_same};
use crate::error::check_len;
use crate::par::{Par, chunk_by_work, par_chunks_mut, par_chunks_mut_scratch};
use std::ops::Range;
use taps::Taps;

mod bytes;
mod taps;

/// Ways to interpolate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpolation {
    /// The nearest pixel.
    Nearest,
    /// Weighted mean of 2 × 2 neighbours, by distance.
    Linear,
    /// Weighted mean of 2 × 2 neighbours with shares of 8 bits: sums of bytes are exact until they
    /// are rounded.
    LinearExact,
    /// Cubic interpolation of 4 × 4 neighbours.
    Cubic,
    /// Mean of the area that a pixel covers; linear interpolation where images become larger.
    Area,
    /// Lanczos interpolation of 8 × 8 neighbours.
    Lanczos,
}

/// A resize of images of `[height, width]` pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resize {
    /// Height and width of the input.
    pub from: [usize; 2],
    /// Height and width of the output.
    pub to: [usize; 2],
    /// Channels of input and output.
    pub channels: usize,
    /// Way to interpolate.
    pub interpolation: Interpolation,
}

impl Resize {
    /// Resizes the images of `x` into those of `out`. Values of whole types are rounded.
    ///
    /// # Panics
    /// If the lengths contradict the sizes, or pixels would have to be made out of none.
    pub fn run<T: Element>(&self, par: &dyn Par, x: &[T], out: &mut [T]) {
        self.run_window(par, [0..self.to[0], 0..self.to[1]], x, out);
    }

    /// Computes these rows and columns of the resized images alone, which fill `out`.
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
        let left = columns.start * self.channels;
        let (down, across) = (self.taps(0, rows), self.taps(1, columns));
        for (x, out) in x.chunks_exact(image).zip(out.chunks_exact_mut(made)) {
            match self.interpolation {
                Interpolation::Nearest => self.nearest(par, row, &down, &across, x, out),
                _ if is_same::<T, u8>() && (self.halves() || !self.takes_means()) => {
                    let (x, out) = (bytemuck::cast_slice(x), bytemuck::cast_slice_mut(out));
                    self.bytes(par, [row, left], [&down, &across], x, out);
                }
                _ => self.blended(par, row, &down, &across, x, out),
            }
        }
    }

    /// Whether both axes become half as long. The mean of four pixels then replaces linear
    /// interpolation.
    pub fn halves(&self) -> bool {
        self.from[0] == 2 * self.to[0] && self.from[1] == 2 * self.to[1]
    }

    /// Whether pixels are means of areas.
    pub fn takes_means(&self) -> bool {
        match self.interpolation {
            Interpolation::Linear | Interpolation::LinearExact => self.halves(),
            Interpolation::Area => self.shrinks(),
            _ => false,
        }
    }

    /// Whether no axis grows.
    fn shrinks(&self) -> bool {
        self.from[0] >= self.to[0] && self.from[1] >= self.to[1]
    }

    fn taps(&self, axis: usize, range: Range<usize>) -> Taps {
        let (from, to) = (self.from[axis], self.to[axis]);
        match self.interpolation {
            Interpolation::Nearest => Taps::nearest(from, to, range),
            _ if self.takes_means() => Taps::area(from, to, range),
            Interpolation::Linear => Taps::linear(from, to, range),
            Interpolation::LinearExact => Taps::linear_exact(from, to, range),
            Interpolation::Cubic => Taps::cubic(from, to, range),
            Interpolation::Lanczos => Taps::lanczos(from, to, range),
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

    /// Blends pixels: sums of pixels times shares, in single precision.
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
            for (out, sum) in out.iter_mut().zip(&*sums) {
                let value = f64::from(*sum);
                *out = T::saturated(if T::FLOAT { value } else { value.round_ties_even() });
            }
        });
    }

    /// Runs `body(row, scratch, known, out)` for each row of the output, with `lines` lines of
    /// scratch. Scratch and `known`, which says whose numbers it holds, persist between the rows of
    /// a chunk. At first scratch holds numbers of no row.
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

    const ALL: [Interpolation; 6] = [
        Interpolation::Nearest,
        Interpolation::Linear,
        Interpolation::LinearExact,
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

    /// Pseudo-random bytes.
    fn picture(pixels: usize) -> Vec<u8> {
        (0..pixels as u32).map(|i| (i.wrapping_mul(2654435761) >> 13) as u8).collect()
    }

    /// The FNV-1a hash of bytes.
    fn digest(bytes: &[u8]) -> u64 {
        bytes.iter().fold(0xcbf29ce484222325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100000001b3))
    }

    /// Rows and columns before and after, channels, digests.
    type Resized = ([usize; 2], [usize; 2], usize, [u64; 4]);

    /// Digests of the images that `mx.image.imresize` of MXNet 1.9.1 made of these pictures, by
    /// `interp` 1 to 4.
    #[rustfmt::skip]
    const RECORDED: [Resized; 14] = [
        ([30, 20], [60, 31], 1, [0xafb79e9abb90045e, 0x28d28c0c0c5133d7, 0x5dbbeac7dd298859, 0x86ca6064ac96ae66]),
        ([33, 47], [15, 10], 1, [0x23d68236d2bbbfa3, 0x3ed1892742930965, 0x2bba82a997eb8a65, 0x750dc7bd0eac6f10]),
        ([64, 48], [32, 24], 1, [0x7a352a7f44dba673, 0xb4a15f82d3c8637b, 0x7a352a7f44dba673, 0x3f31e9202cafb1e0]),
        ([7, 5], [21, 18], 1, [0xc436ad2998c0aea2, 0xa83498ade453394c, 0x32b8f23cea4e0713, 0x0a79a3d961991e12]),
        ([120, 90], [21, 200], 1, [0x3abb116d19b547e3, 0x7fb4985d02c06b51, 0x192315c78f5a97b1, 0x55cf230818ed0c9e]),
        ([40, 51], [13, 120], 1, [0x81ebaa8fb0e59e01, 0xd251fb29ec611d17, 0xeacdfeaf63710a4b, 0xd8fbf952eebd0d05]),
        ([9, 9], [9, 20], 1, [0xf8c02fca442c7dbf, 0xf46b533f5c6f0dc8, 0xd67c8eedbc34e896, 0x26f55733ba6e2de3]),
        ([30, 20], [60, 31], 3, [0xa549d70fca5253d9, 0x3ea44e221ca18cb2, 0xf5abfd036cc4514f, 0x729855f08c3b7bde]),
        ([33, 47], [15, 10], 3, [0x194df4e285467192, 0x5da38e808ceb3c09, 0xe5ecb757d2ba6975, 0x9a570e640d522eeb]),
        ([64, 48], [32, 24], 3, [0x305322ae5136eff9, 0x80fc8e00029aa9d5, 0x305322ae5136eff9, 0x0386b1db4f814ae4]),
        ([7, 5], [21, 18], 3, [0xd0b9095f57dffec9, 0xe592a85cae5ae4da, 0xb401d151b4907a7a, 0x4910640f1e62de45]),
        ([120, 90], [21, 200], 3, [0x6e95bd2e94099ab1, 0x2a0edae3b20f461e, 0xe6d116f310512f6d, 0x49be456e2b12a729]),
        ([40, 51], [13, 120], 3, [0xaf31035c05cfbb20, 0x58e00a6db086d2aa, 0x72443ad504e3e559, 0x991de58d864c4998]),
        ([9, 9], [9, 20], 3, [0x730f6f8ee8baa403, 0x51783ab8bf7b4c9b, 0x9badab34a3232dde, 0x136a38c642364c79]),
    ];

    /// Digests of the same images by `interp` 5.
    #[rustfmt::skip]
    const RECORDED_EXACT: [u64; 14] = [
        0xf2b275fa47d0ca72, 0x4228eed77addb0cd, 0x7a352a7f44dba673, 0x3fd5aefad968bd5a, 0x9fe8a4182d24ee12,
        0xac86621041d59e04, 0x6f565b3ab03d072a, 0x7d49ab07936c054f, 0xebb5dc1ba03c5b18, 0x305322ae5136eff9,
        0xf28cf2e239f42821, 0x126f86d3f0689508, 0x59c5f7ba872604f6, 0xfdd3323d4fc02289,
    ];

    #[test]
    fn bytes_are_those_of_mxnet() {
        let kinds = [
            Interpolation::Linear,
            Interpolation::Cubic,
            Interpolation::Area,
            Interpolation::Lanczos,
            Interpolation::LinearExact,
        ];
        for ((from, to, channels, [a, b, c, d]), exact) in RECORDED.into_iter().zip(RECORDED_EXACT) {
            let found = kinds.map(|interpolation| {
                let x = picture(from[0] * from[1] * channels);
                digest(&resized(&Threads(2), Resize { from, to, channels, interpolation }, &x))
            });
            assert_eq!(found, [a, b, c, d, exact], "{from:?} to {to:?} with {channels} channels");
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
