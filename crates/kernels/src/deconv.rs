//! Transposed convolutions in single precision: a product gives what every input pixel adds at each
//! tap, and rows of the output gather it.
//!
//! Along the last axis the outputs of a stride fall into as many phases. Those of one phase are
//! sums of contiguous rows; an output row is its phases, interleaved.

use crate::conv_plain::ConvParams;
use crate::error::check_len;
use crate::gemm::{Epilogue, Matrix, Sgemm};
use crate::isa::Isa;
use crate::par::{Par, Serial, par_chunks_mut, par_chunks_mut_scratch};
use crate::vectorize::vectorized;
use crate::window::three;
use std::ops::Range;

/// Input channels of a group from which on a product pays.
const LEAST_DEPTH: usize = 4;
/// Elements that a chunk multiplies in one step: they should stay in the second-level cache.
const MOST_COLUMNS: usize = 128 << 10;
/// Elements of the phases of an output row.
const MOST_PHASES: usize = 1 << 20;
/// Rows of a product that make reading the input worth it, where they are to be had; and the least.
const ROWS: usize = 32;
const FEW_ROWS: usize = 8;

/// A transposed convolution of images with up to three spatial axes.
#[derive(Clone, Copy, Debug)]
pub struct Deconv {
    kernel: [usize; 3],
    stride: [usize; 3],
    pad: [usize; 3],
    dilate: [usize; 3],
    /// Spatial sizes of the input and of the output.
    from: [usize; 3],
    to: [usize; 3],
    batch: usize,
    groups: usize,
    /// Channels of a group.
    ins: usize,
    outs: usize,
    isa: Isa,
}

impl Deconv {
    /// Makes a kernel for an input and an output of shape (batch, channels, spatial...).
    ///
    /// # Panics
    /// If the groups do not divide the channels.
    pub fn new(p: ConvParams<'_>, shape: &[usize], out_shape: &[usize], isa: Isa) -> Deconv {
        let (channels, out_channels, groups) = (shape[1], out_shape[1], p.groups);
        assert!(
            groups > 0 && channels.is_multiple_of(groups) && out_channels.is_multiple_of(groups),
            "{channels} and {out_channels} channels do not fall into {groups} groups"
        );
        Deconv {
            kernel: three(p.kernel, 1),
            stride: three(p.stride, 1).map(|s| s.max(1)),
            pad: three(p.pad, 0),
            dilate: three(p.dilate, 1).map(|d| d.max(1)),
            from: three(&shape[2..], 1),
            to: three(&out_shape[2..], 1),
            batch: shape[0],
            groups,
            ins: channels / groups,
            outs: out_channels / groups,
            isa: isa.or_best(),
        }
    }

    fn taps(&self) -> usize {
        self.kernel.iter().product()
    }

    fn pixels(&self) -> usize {
        self.from.iter().product()
    }

    fn multiplies(&self) -> bool {
        self.ins >= LEAST_DEPTH
    }

    /// The product of `rows` rows, one for each tap of an output channel.
    fn product(&self, rows: usize) -> Sgemm {
        Sgemm::new(rows, self.pixels(), self.ins, self.isa)
    }

    /// Elements of the weights, packed or not.
    pub fn weight_len(&self) -> usize {
        self.groups * self.ins * self.outs * self.taps()
    }

    /// Turns weights of shape (channels, outputs / groups, kernel...) into (group, output, tap,
    /// channel).
    ///
    /// # Panics
    /// If an operand does not have [`weight_len`](Self::weight_len) elements.
    pub fn pack(&self, par: &dyn Par, weight: &[f32], packed: &mut [f32]) {
        check_len("the weight", weight.len(), self.weight_len());
        check_len("the packed weight", packed.len(), self.weight_len());
        let (ins, rows) = (self.ins, self.outs * self.taps());
        if weight.is_empty() {
            return;
        }
        // Lines of the weight are read whole.
        let band = ROWS.min(rows);
        par_chunks_mut(par, packed, rows * ins, |group, packed| {
            let weight = &weight[group * rows * ins..][..rows * ins];
            for (number, packed) in packed.chunks_mut(band * ins).enumerate() {
                for (channel, weight) in weight.chunks_exact(rows).enumerate() {
                    let weight = &weight[number * band..];
                    packed.iter_mut().skip(channel).step_by(ins).zip(weight).for_each(|(p, w)| *p = *w);
                }
            }
        });
    }

    /// Whether the phases of an output row take little memory; a stride or padding far beyond the
    /// output is for plain code.
    pub fn fits(&self) -> bool {
        let [_, _, width] = self.to;
        width.saturating_add(self.pad[2]).saturating_add(self.stride[2]) <= MOST_PHASES
    }

    /// Elements of memory that [`run`](Self::run) needs for as long as it runs.
    pub fn workspace_len(&self) -> usize {
        if self.multiplies() { self.product(1).packed_len() } else { 0 }
    }

    /// Output channels of a chunk, and taps of a product.
    fn cut(&self) -> (usize, usize) {
        let (taps, pixels) = (self.taps().max(1), self.pixels().max(1));
        let rows = (MOST_COLUMNS / pixels).max(FEW_ROWS);
        if taps >= rows {
            return (1, rows.next_multiple_of(ROWS.min(rows)).min(taps));
        }
        ((ROWS.div_ceil(taps)).min(rows / taps).clamp(1, self.outs.max(1)), taps)
    }

    /// Computes the output of shape (batch, outputs, spatial...); `packed` is what
    /// [`pack`](Self::pack) made of the weights.
    ///
    /// # Panics
    /// If an operand does not have the length that the shapes say.
    pub fn run(
        &self,
        x: &[f32],
        packed: &[f32],
        bias: Option<&[f32]>,
        out: &mut [f32],
        workspace: &mut [f32],
        par: &dyn Par,
    ) {
        self.check(x, packed, bias, out);
        let (pixels, out_pixels) = (self.pixels(), self.to.iter().product::<usize>());
        let workspace = &mut workspace[..self.workspace_len()];
        if out.is_empty() {
            return;
        }
        let ((channels, taps), rows) = (self.cut(), self.outs * self.taps());
        let columns = if self.multiplies() { channels * taps * pixels } else { 0 };
        let scratch = size_of::<f32>() * (columns + self.phase_len() * self.stride[2]);
        for (number, out) in out.chunks_exact_mut(self.outs * out_pixels).enumerate() {
            let group = number % self.groups;
            let x = &x[number * self.ins * pixels..][..self.ins * pixels];
            let packed = &packed[group * rows * self.ins..][..rows * self.ins];
            let bias = bias.map(|b| &b[group * self.outs..][..self.outs]);
            if self.multiplies() {
                self.product(1).pack_in_parallel(par, Matrix::rows(x, pixels), workspace);
            }
            let panels = &*workspace;
            par_chunks_mut_scratch(par, out, channels * out_pixels, scratch, |chunk, out, scratch| {
                let floats = columns + self.phase_len() * self.stride[2];
                let scratch: &mut [f32] = bytemuck::cast_slice_mut(&mut scratch[..floats * size_of::<f32>()]);
                let (columns, phases) = scratch.split_at_mut(columns);
                let first = chunk * channels;
                for (i, out) in out.chunks_exact_mut(out_pixels).enumerate() {
                    out.fill(bias.map_or(0.0, |b| b[first + i]));
                }
                let weights = &packed[first * self.taps() * self.ins..];
                for tap in (0..self.taps()).step_by(taps) {
                    let taps = tap..self.taps().min(tap + taps);
                    self.spread(x, panels, weights, taps, out, columns, phases);
                }
            });
        }
    }

    /// Panics if the lengths contradict each other.
    fn check(&self, x: &[f32], packed: &[f32], bias: Option<&[f32]>, out: &[f32]) {
        let outs = self.groups * self.outs;
        check_len("the input", x.len(), self.batch * self.groups * self.ins * self.pixels());
        check_len("the output", out.len(), self.batch * outs * self.to.iter().product::<usize>());
        check_len("the packed weight", packed.len(), self.weight_len());
        check_len("the bias", bias.map_or(outs, <[f32]>::len), outs);
    }

    /// Adds what some taps make of the input to the planes of a chunk, whose weights come first in
    /// `weights`. A chunk of more than one plane takes all taps at once.
    fn spread(
        &self,
        x: &[f32],
        panels: &[f32],
        weights: &[f32],
        taps: Range<usize>,
        out: &mut [f32],
        columns: &mut [f32],
        phases: &mut [f32],
    ) {
        let (pixels, out_pixels) = (self.pixels(), self.to.iter().product::<usize>());
        let planes = out.len() / out_pixels;
        if self.multiplies() {
            let rows = planes * taps.len();
            let a = Matrix::rows(&weights[taps.start * self.ins..], self.ins);
            let columns = &mut columns[..rows * pixels];
            self.product(rows).run(a, panels, Epilogue::default(), columns, pixels, &mut [], &Serial);
            for (i, out) in out.chunks_exact_mut(out_pixels).enumerate() {
                let columns = &columns[i * taps.len() * pixels..][..taps.len() * pixels];
                self.gather(taps.clone(), out, phases, |tap, row, width, phase| {
                    add_row(&columns[(tap - taps.start) * pixels + row..][..width], phase);
                });
            }
            return;
        }
        for (i, out) in out.chunks_exact_mut(out_pixels).enumerate() {
            let weights = &weights[i * self.taps() * self.ins..];
            self.gather(taps.clone(), out, phases, |tap, row, width, phase| {
                for channel in 0..self.ins {
                    let factor = weights[tap * self.ins + channel];
                    add_scaled_row(factor, &x[channel * pixels + row..][..width], phase);
                }
            });
        }
    }

    /// Elements of one phase of an output row.
    fn phase_len(&self) -> usize {
        (self.to[2] + self.pad[2]).div_ceil(self.stride[2])
    }

    /// Adds to every row of an output plane what `add(tap, first pixel, count, sums)` adds to a
    /// part of a phase, for the input rows that the taps carry there.
    fn gather(
        &self,
        taps: Range<usize>,
        out: &mut [f32],
        phases: &mut [f32],
        add: impl Fn(usize, usize, usize, &mut [f32]),
    ) {
        let ([kd, kh, kw], [_, height, width], len) = (self.kernel, self.from, self.phase_len());
        for (number, out) in out.chunks_exact_mut(self.to[2]).enumerate() {
            let at = [number / self.to[1], number % self.to[1]];
            phases.fill(0.0);
            let mut touched = false;
            for k0 in 0..kd {
                let Some(d) = self.meets(0, k0, at[0]) else { continue };
                for k1 in 0..kh {
                    let Some(h) = self.meets(1, k1, at[1]) else { continue };
                    let first = (k0 * kh + k1) * kw;
                    let row = (d * height + h) * width;
                    for tap in taps.start.max(first)..taps.end.min(first + kw) {
                        let position = (tap - first) * self.dilate[2];
                        let (phase, shift) = (position % self.stride[2], position / self.stride[2]);
                        let count = width.min(len.saturating_sub(shift));
                        if count > 0 {
                            add(tap, row, count, &mut phases[phase * len + shift..][..count]);
                            touched = true;
                        }
                    }
                }
            }
            if touched {
                add_phases(phases, len, self.stride[2], self.pad[2], out);
            }
        }
    }

    /// The input that reaches an output along an axis through a tap.
    fn meets(&self, axis: usize, tap: usize, out: usize) -> Option<usize> {
        let moved = (out + self.pad[axis]).checked_sub(tap * self.dilate[axis])?;
        let from = moved / self.stride[axis];
        (moved.is_multiple_of(self.stride[axis]) && from < self.from[axis]).then_some(from)
    }
}

vectorized! {
    fn add_row[](x: &[f32], sums: &mut [f32]) {
        sums.iter_mut().zip(x).for_each(|(s, &v)| *s += v);
    }
}

vectorized! {
    fn add_scaled_row[](factor: f32, x: &[f32], sums: &mut [f32]) {
        sums.iter_mut().zip(x).for_each(|(s, &v)| *s = factor.mul_add(v, *s));
    }
}

vectorized! {
    fn add_phases[](phases: &[f32], len: usize, stride: usize, pad: usize, out: &mut [f32]) {
        match stride {
            1 => out.iter_mut().zip(&phases[pad..]).for_each(|(o, &v)| *o += v),
            2 => {
                let (even, odd) = phases.split_at(len);
                // The first output of an odd padding is alone.
                let alone = pad % 2;
                if let Some(first) = out.first_mut().filter(|_| alone == 1) {
                    *first += odd[pad / 2];
                }
                let (even, odd) = (&even[pad.div_ceil(2)..], &odd[pad.div_ceil(2)..]);
                let rest = &mut out[alone..];
                let last = rest.len() / 2;
                for ((o, &e), &d) in rest.chunks_exact_mut(2).zip(even).zip(odd) {
                    o[0] += e;
                    o[1] += d;
                }
                if let [o] = rest.chunks_exact_mut(2).into_remainder() {
                    *o += even[last];
                }
            }
            _ => {
                for (phase, sums) in phases.chunks_exact(len).enumerate() {
                    // The first output at or after the padding that belongs to the phase.
                    let first = (phase + stride - pad % stride) % stride;
                    let sums = sums.iter().skip((first + pad) / stride);
                    out.iter_mut().skip(first).step_by(stride).zip(sums).for_each(|(o, &v)| *o += v);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv_plain::deconvolution;
    use crate::testing::{Reverse, Threads, assert_close, random};

    /// Against plain code in double precision, and the same bits for any order of chunks.
    fn check(p: ConvParams<'_>, shape: &[usize], outs: usize, adj: usize) {
        let spatial = p.kernel.len();
        let to = (0..spatial)
            .map(|a| p.stride[a] * (shape[2 + a] - 1) + p.dilate[a] * (p.kernel[a] - 1) + 1 + adj - 2 * p.pad[a]);
        let out_shape: Vec<usize> = [shape[0], outs].into_iter().chain(to).collect();
        let taps: usize = p.kernel.iter().product();
        let x = random(shape.iter().product(), 1);
        let (weight, bias) = (random(shape[1] * outs / p.groups * taps, 2), random(outs, 3));
        let wide = |v: &[f32]| v.iter().map(|&v| f64::from(v)).collect::<Vec<_>>();
        let mut want = vec![0.0; out_shape.iter().product()];
        let (wide_x, wide_w, wide_b) = (wide(&x), wide(&weight), wide(&bias));
        deconvolution(&Serial, p, &wide_x, shape, &wide_w, Some(&wide_b), &mut want, &out_shape);
        let deconv = Deconv::new(p, shape, &out_shape, Isa::detect());
        let mut packed = vec![f32::NAN; weight.len()];
        deconv.pack(&Threads(2), &weight, &mut packed);
        let mut first: Option<Vec<f32>> = None;
        for par in [&Serial as &dyn Par, &Reverse, &Threads(3)] {
            let mut workspace = vec![f32::NAN; deconv.workspace_len()];
            let mut out = vec![f32::NAN; want.len()];
            deconv.run(&x, &packed, Some(&bias), &mut out, &mut workspace, par);
            assert_close(&out, &want, 1e-5);
            let same = |first: &Vec<f32>| first.iter().zip(&out).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(first.as_ref().is_none_or(same));
            first = Some(out);
        }
    }

    #[test]
    fn it_agrees_with_the_plain_one_for_every_geometry() {
        let of = |kernel: &[usize],
                  stride: &[usize],
                  pad: &[usize],
                  dilate: &[usize],
                  groups,
                  shape: &[usize],
                  outs,
                  adj| {
            check(ConvParams { kernel, stride, pad, dilate, groups }, shape, outs, adj);
        };
        of(&[4, 4], &[2, 2], &[1, 1], &[1, 1], 1, &[2, 8, 7, 9], 5, 0);
        of(&[3, 3], &[2, 2], &[0, 2], &[1, 1], 1, &[1, 5, 6, 5], 40, 1);
        of(&[3, 2], &[1, 3], &[1, 0], &[2, 2], 2, &[1, 12, 4, 6], 6, 0);
        of(&[4, 4], &[2, 2], &[1, 1], &[1, 1], 6, &[1, 6, 5, 5], 6, 0);
        of(&[16, 16], &[8, 8], &[4, 4], &[1, 1], 3, &[1, 3, 5, 4], 3, 0);
        of(&[64, 64], &[32, 32], &[16, 16], &[1, 1], 1, &[1, 7, 9, 20], 2, 0);
        of(&[5], &[3], &[2], &[1], 1, &[3, 16, 11], 4, 2);
        of(&[2, 3, 4], &[2, 1, 2], &[0, 1, 1], &[1, 1, 1], 1, &[1, 4, 3, 4, 5], 3, 0);
        of(&[1, 1], &[2, 2], &[0, 0], &[1, 1], 1, &[1, 16, 40, 50], 33, 1);
    }
}
