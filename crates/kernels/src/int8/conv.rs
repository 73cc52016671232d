//! Convolutions of bytes, as products of copied windows with packed weights.

use super::gemm::{Int8Gemm, TILE, sign_flip};
use super::{Level, Rows};
use crate::isa::Isa;
use crate::par::{Par, par_columns_mut};

/// A convolution over three spatial axes (fewer have extents of 1), channels first.
#[derive(Clone, Debug)]
pub struct Int8Conv {
    /// images
    pub batch: usize,
    /// channels of the input
    pub channels: usize,
    /// channels of the output
    pub filters: usize,
    /// groups of channels that do not see each other
    pub groups: usize,
    /// spatial extents of the input
    pub input: [usize; 3],
    /// spatial extents of the output
    pub output: [usize; 3],
    /// extents of the filters
    pub kernel: [usize; 3],
    /// distances between windows
    pub stride: [usize; 3],
    /// zeros before the input
    pub pad: [usize; 3],
    /// distances between taps
    pub dilate: [usize; 3],
    /// instruction set
    pub isa: Isa,
}

/// Output pixels that are computed together.
const PIXELS: usize = 4 * TILE;

impl Int8Conv {
    /// The product of windows with the filters of a group.
    fn gemm(&self) -> Int8Gemm {
        let taps: usize = self.kernel.iter().product();
        Int8Gemm::new(self.filters / self.groups, self.channels / self.groups * taps, self.isa)
    }

    /// The level it runs on.
    pub fn level(&self) -> Level {
        self.gemm().level()
    }

    /// Bytes that [`pack`](Self::pack) writes; `None` where they cannot be counted.
    pub fn packed_len(&self) -> Option<usize> {
        self.gemm().packed_len()?.checked_mul(self.groups)
    }

    /// Packs the filters, `[filters, channels / groups, kernel...]`.
    ///
    /// # Panics
    /// If a slice is smaller than the shape says.
    pub fn pack(&self, weights: &[i8], packed: &mut [u8]) {
        let gemm = self.gemm();
        let (from, to) = (weights.len() / self.groups, packed.len() / self.groups);
        if from == 0 || to == 0 {
            return;
        }
        for (weights, packed) in weights.chunks_exact(from).zip(packed.chunks_exact_mut(to)) {
            gemm.pack(weights, packed);
        }
    }

    /// Computes `out[at] = epilogue(at, filter, sum)` for every element of the output.
    ///
    /// # Panics
    /// If a slice is smaller than the shape says.
    pub fn run<T, E>(&self, par: &dyn Par, data: Rows<'_>, packed: &[u8], epilogue: &E, out: &mut [T])
    where
        T: Send,
        E: Fn(usize, usize, i32) -> T + Sync,
    {
        let gemm = self.gemm();
        let pixels: usize = self.output.iter().product();
        let filters = self.filters / self.groups;
        let image = self.channels / self.groups * self.input.iter().product::<usize>();
        let (row, panels) = (gemm.row_len(), packed.len() / self.groups);
        let outer = self.batch * self.groups;
        par_columns_mut(par, out, [outer, filters, pixels], PIXELS, PIXELS * row, |o, start, mut band, scratch| {
            let image = Rows { bytes: &data.bytes[o * image..][..image], signed: data.signed };
            let group = o % self.groups;
            for (i, window) in scratch.chunks_exact_mut(row.max(1)).take(band.width()).enumerate() {
                self.copy_window(image, start + i, window);
            }
            let packed = &packed[group * panels..][..panels];
            for first in (0..band.width()).step_by(TILE) {
                let (count, copied) = (TILE.min(band.width() - first), &scratch[first * row..]);
                gemm.for_sums(copied, count, 0..filters, packed, data.signed, |pixel, filter, sum| {
                    let at = (o * filters + filter) * pixels + start + first + pixel;
                    band.row(filter)[first + pixel] = epilogue(at, group * filters + filter, sum);
                });
            }
        });
    }

    /// Copies the window of an output pixel of a group as unsigned numbers.
    fn copy_window(&self, image: Rows<'_>, pixel: usize, window: &mut [u8]) {
        let flip = sign_flip(image.signed);
        let [_, height, width] = self.output;
        let at = [pixel / (height * width), pixel / width % height, pixel % width];
        let starts: [usize; 3] = std::array::from_fn(|axis| at[axis] * self.stride[axis]);
        // Where a tap of an axis reads, if inside.
        let place = |axis: usize, tap: usize| {
            (starts[axis] + tap * self.dilate[axis]).checked_sub(self.pad[axis]).filter(|i| *i < self.input[axis])
        };
        let plane: usize = self.input.iter().product();
        let mut to = window.iter_mut();
        for channel in image.bytes.chunks_exact(plane.max(1)) {
            for depth in 0..self.kernel[0] {
                for row in 0..self.kernel[1] {
                    let line = place(0, depth).zip(place(1, row)).map(|(d, r)| (d * self.input[1] + r) * self.input[2]);
                    for column in 0..self.kernel[2] {
                        let byte = line.zip(place(2, column)).map_or(0, |(line, c)| channel[line + c]);
                        if let Some(to) = to.next() {
                            *to = byte ^ flip;
                        }
                    }
                }
            }
        }
        to.for_each(|rest| *rest = 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads};

    fn reference(conv: &Int8Conv, data: &[i32], weights: &[i8]) -> Vec<i32> {
        let [channels, filters] = [conv.channels, conv.filters].map(|n| n / conv.groups);
        let mut out = Vec::new();
        for n in 0..conv.batch {
            for f in 0..conv.filters {
                for y in 0..conv.output[1] {
                    for x in 0..conv.output[2] {
                        let mut sum = 0;
                        for c in 0..channels {
                            for i in 0..conv.kernel[1] {
                                for j in 0..conv.kernel[2] {
                                    let [h, w] = [conv.input[1] as isize, conv.input[2] as isize];
                                    let at = |axis: usize, out: usize, tap: usize| {
                                        (out * conv.stride[axis] + tap * conv.dilate[axis]) as isize
                                            - conv.pad[axis] as isize
                                    };
                                    let (r, s) = (at(1, y, i), at(2, x, j));
                                    if (0..h).contains(&r) && (0..w).contains(&s) {
                                        let c_in = f / filters * channels + c;
                                        let d =
                                            data[((n * conv.channels + c_in) as isize * h * w + r * w + s) as usize];
                                        let k = ((f * channels + c) * conv.kernel[1] + i) * conv.kernel[2] + j;
                                        sum += d * i32::from(weights[k]);
                                    }
                                }
                            }
                        }
                        out.push(sum);
                    }
                }
            }
        }
        out
    }

    #[test]
    fn windows_groups_padding_and_dilation_agree_with_the_definition_on_every_set() {
        for (groups, stride, pad, dilate, signed) in
            [(1, 1, 1, 1, false), (2, 2, 0, 1, true), (4, 1, 2, 2, true), (1, 3, 1, 1, true)]
        {
            let (size, kernel) = (9, 3);
            let outputs = (size + 2 * pad - dilate * (kernel - 1) - 1) / stride + 1;
            for isa in Isa::ALL {
                let conv = Int8Conv {
                    batch: 2,
                    channels: 4,
                    filters: 20,
                    groups,
                    input: [1, size, size],
                    output: [1, outputs, outputs],
                    kernel: [1, kernel, kernel],
                    stride: [1, stride, stride],
                    pad: [0, pad, pad],
                    dilate: [1, dilate, dilate],
                    isa,
                };
                let data: Vec<u8> = (0..2 * 4 * size * size).map(|i| (i * 37 % 251) as u8).collect();
                let weights: Vec<i8> = (0..20 * 4 / groups * 9).map(|i| (i * 53 % 255) as u8 as i8).collect();
                let wide = data.iter().map(|b| if signed { i32::from(*b as i8) } else { i32::from(*b) });
                let want = reference(&conv, &wide.collect::<Vec<_>>(), &weights);
                let mut packed = vec![0; conv.packed_len().unwrap()];
                conv.pack(&weights, &mut packed);
                for par in [&Serial as &dyn Par, &Reverse, &Threads(3)] {
                    let mut out = vec![i32::MIN; want.len()];
                    conv.run(par, Rows { bytes: &data, signed }, &packed, &|_, _, sum| sum, &mut out);
                    assert_eq!(out, want, "{isa} {groups} {stride} {pad} {dilate}");
                    // The epilogue is told where it stores, and of which filter.
                    conv.run(par, Rows { bytes: &data, signed }, &packed, &|at, _, _| at as i32, &mut out);
                    assert!(out.iter().enumerate().all(|(i, at)| i as i32 == *at));
                    conv.run(par, Rows { bytes: &data, signed }, &packed, &|_, f, _| f as i32, &mut out);
                    assert!(out.iter().enumerate().all(|(i, f)| (i / (outputs * outputs) % 20) as i32 == *f));
                }
            }
        }
    }
}
