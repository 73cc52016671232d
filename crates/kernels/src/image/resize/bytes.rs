//! Images of bytes, as OpenCV computes them: sums of bytes times shares of a few bits, which are
//! whole numbers, and means of four bytes.

use super::taps::Taps;
use super::{Interpolation, Resize};
use crate::par::{Par, chunk_by_work, par_chunks_mut_scratch};
use crate::vectorize::{Loop, vectorize, vectorized};

/// The pixels that a pixel of the output is made of, and their shares.
type Weighted<const K: usize> = ([usize; K], [i32; K]);

impl Resize {
    /// Computes `row` elements of each row, the first of which has `left` others before it.
    pub(super) fn bytes(
        &self,
        par: &dyn Par,
        [row, left]: [usize; 2],
        [down, across]: [&Taps; 2],
        x: &[u8],
        out: &mut [u8],
    ) {
        match self.interpolation {
            _ if self.takes_means() => self.halved(par, [row, left], down, x, out),
            Interpolation::LinearExact => self.weighted::<2, 8>(par, [row, left], down, across, x, out),
            Interpolation::Cubic => self.weighted::<4, 11>(par, [row, left], down, across, x, out),
            Interpolation::Lanczos => self.weighted::<8, 11>(par, [row, left], down, across, x, out),
            _ => self.fixed_point(par, row, down, across, x, out),
        }
    }

    /// Means of 2 × 2 pixels, rounded up from a half.
    fn halved(&self, par: &dyn Par, [row, left]: [usize; 2], down: &Taps, x: &[u8], out: &mut [u8]) {
        let (line, channels) = (self.from[1] * self.channels, self.channels);
        let band = chunk_by_work(row).max(1);
        par_chunks_mut_scratch(par, out, band * row, 2 * row, |chunk, out, scratch| {
            for (i, out) in out.chunks_exact_mut(row).enumerate() {
                let first = down.starts[chunk * band + i];
                let [above, below] =
                    [0, 1].map(|k| &x[down.sources[first + k] as usize * line + 2 * left..][..2 * row]);
                let means = &mut scratch[..2 * row - channels];
                means_of_four(above, below, channels, means);
                first_of_pairs(means, channels, out);
            }
        });
    }

    /// Linear interpolation with shares of 11 bits.
    fn fixed_point(&self, par: &dyn Par, row: usize, down: &Taps, across: &Taps, x: &[u8], out: &mut [u8]) {
        let line = self.from[1] * self.channels;
        let pairs: Vec<Weighted<2>> = weighted_pixels::<2, 11>(across)
            // At both ends of a row, though not of a column, there is one pixel only.
            .map(|(s, shares)| (s, if s[0] == s[1] { [2048, 0] } else { shares }))
            .collect();
        self.by_rows(par, row, 2, out, |output, scratch: &mut [i32], known, out| {
            let mut taps = down.of(output);
            let [Some((first, a)), Some((second, b))] = [taps.next(), taps.next()] else { return };
            for source in [first, second] {
                let slot = source % 2;
                if known[slot] != source {
                    known[slot] = source;
                    weigh_row(&pairs, self.channels, &x[source * line..][..line], &mut scratch[slot * row..][..row]);
                }
            }
            let [above, below] = [first, second].map(|source| &scratch[source % 2 * row..][..row]);
            blend_lines([above, below], [fixed::<11>(a), fixed::<11>(b)], out);
        });
    }

    /// Sums of `K` bytes times shares of `BITS` bits along both axes. With four taps, columns are
    /// summed in single precision, except the elements at the end of a whole row that do not fill a
    /// vector of eight.
    fn weighted<const K: usize, const BITS: u32>(
        &self,
        par: &dyn Par,
        [row, left]: [usize; 2],
        down: &Taps,
        across: &Taps,
        x: &[u8],
        out: &mut [u8],
    ) {
        let (line, channels) = (self.from[1] * self.channels, self.channels);
        let whole = if K == 4 { (self.to[1] * channels / 8 * 8).saturating_sub(left).min(row) } else { 0 };
        let taps: Vec<Weighted<K>> = weighted_pixels::<K, BITS>(across).collect();
        self.by_rows(par, row, K, out, |output, scratch: &mut [i32], known, out| {
            let first = down.starts[output];
            let sources: [usize; K] = std::array::from_fn(|k| down.sources[first + k] as usize);
            let shares: [i32; K] = std::array::from_fn(|k| fixed::<BITS>(down.shares[first + k]));
            for source in sources {
                let slot = source % K;
                if known[slot] != source {
                    known[slot] = source;
                    weigh_row(&taps, channels, &x[source * line..][..line], &mut scratch[slot * row..][..row]);
                }
            }
            let lines: [&[i32]; K] = sources.map(|source| &scratch[source % K * row..][..row]);
            vectorize(BlendedColumns::<K, BITS> { lines, shares, whole, out });
        });
    }
}

/// The pixels of each output with shares of `BITS` bits.
fn weighted_pixels<const K: usize, const BITS: u32>(taps: &Taps) -> impl Iterator<Item = Weighted<K>> {
    let (sources, _) = taps.sources.as_chunks::<K>();
    let (shares, _) = taps.shares.as_chunks::<K>();
    sources.iter().zip(shares).map(|(s, w)| (s.map(|s| s as usize), w.map(fixed::<BITS>)))
}

/// Converts a share to a number of `BITS` bits.
fn fixed<const BITS: u32>(share: f32) -> i32 {
    (share * (1 << BITS) as f32).round_ties_even() as i32
}

/// Sums of pixels of a row times their shares.
fn weigh_row<const K: usize>(taps: &[Weighted<K>], channels: usize, x: &[u8], out: &mut [i32]) {
    match channels {
        1 => weigh_pixels::<K, 1>(taps, x, out),
        3 => weigh_pixels::<K, 3>(taps, x, out),
        4 => weigh_pixels::<K, 4>(taps, x, out),
        _ => {
            for (out, (at, shares)) in out.chunks_exact_mut(channels).zip(taps) {
                for (c, out) in out.iter_mut().enumerate() {
                    *out = at.iter().zip(shares).map(|(at, share)| i32::from(x[at * channels + c]) * share).sum();
                }
            }
        }
    }
}

fn weigh_pixels<const K: usize, const C: usize>(taps: &[Weighted<K>], x: &[u8], out: &mut [i32]) {
    let (x, _) = x.as_chunks::<C>();
    let (out, _) = out.as_chunks_mut::<C>();
    for (out, (at, shares)) in out.iter_mut().zip(taps) {
        let pixels = at.map(|at| x[at]);
        *out = std::array::from_fn(|c| pixels.iter().zip(shares).map(|(pixel, w)| i32::from(pixel[c]) * w).sum());
    }
}

vectorized! {
    /// The blend of two lines of sums with shares of 11 bits.
    fn blend_lines[](lines: [&[i32]; 2], shares: [i32; 2], out: &mut [u8]) {
        let [a, b] = shares;
        for ((out, above), below) in out.iter_mut().zip(lines[0]).zip(lines[1]) {
            *out = ((((a * (above >> 4)) >> 16) + ((b * (below >> 4)) >> 16) + 2) >> 2) as u8;
        }
    }
}

vectorized! {
    /// `out[i]` is the mean of the elements `i` and `i + apart` of both lines.
    fn means_of_four[](above: &[u8], below: &[u8], apart: usize, out: &mut [u8]) {
        let n = out.len();
        let [a, b] = [&above[..n], &above[apart..][..n]];
        let [c, d] = [&below[..n], &below[apart..][..n]];
        for i in 0..n {
            let sum = u16::from(a[i]) + u16::from(b[i]) + u16::from(c[i]) + u16::from(d[i]);
            out[i] = ((sum + 2) >> 2) as u8;
        }
    }
}

/// The first of each pair of pixels.
fn first_of_pairs(x: &[u8], channels: usize, out: &mut [u8]) {
    match channels {
        1 => out.iter_mut().zip(x.iter().step_by(2)).for_each(|(out, x)| *out = *x),
        3 => out.as_chunks_mut::<3>().0.iter_mut().zip(x.chunks(6)).for_each(|(out, x)| out.copy_from_slice(&x[..3])),
        _ => out
            .chunks_mut(channels)
            .zip(x.chunks(2 * channels))
            .for_each(|(out, x)| out.copy_from_slice(&x[..channels])),
    }
}

/// Sums of `K` lines of sums times shares, to bytes.
struct BlendedColumns<'a, const K: usize, const BITS: u32> {
    lines: [&'a [i32]; K],
    shares: [i32; K],
    /// elements that are summed in single precision
    whole: usize,
    out: &'a mut [u8],
}

impl<const K: usize, const BITS: u32> Loop for BlendedColumns<'_, K, BITS> {
    #[inline(always)]
    fn run(self) {
        let BlendedColumns { lines, shares, whole, out } = self;
        let n = out.len();
        let lines = lines.map(|line| &line[..n]);
        let parts = shares.map(|share| share as f32 * (1.0 / (2048.0 * 2048.0)));
        for i in 0..whole.min(n) {
            let mut sum = lines[0][i] as f32 * parts[0];
            for k in 1..K {
                sum += lines[k][i] as f32 * parts[k];
            }
            out[i] = sum.round_ties_even() as u8;
        }
        for i in whole..n {
            let mut sum = 1 << (2 * BITS - 1);
            for k in 0..K {
                sum = i32::wrapping_add(sum, lines[k][i].wrapping_mul(shares[k]));
            }
            out[i] = (sum >> (2 * BITS)).clamp(0, 255) as u8;
        }
    }
}
