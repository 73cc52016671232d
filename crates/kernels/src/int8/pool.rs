//! Pooling of pixels.

use super::pixels::PixelCell;
use super::tile::sign_flip;
use super::{RoundTo, Rows};
use crate::blocked::{BlockedShape, PIXEL, Pool2dParams, PoolKind};
use crate::par::{Par, par_cells_mut};
use crate::vectorize::vectorized;
use std::ops::Range;

/// Taps of a chunk, of 64 channels each.
const CHUNK_TAPS: usize = 4096;

/// Pools pixels: the largest, or the mean rounded half to even, as floats.
///
/// # Panics
/// If a slice is smaller than its shape says, or for sums.
pub fn pool_pixels(
    par: &dyn Par,
    (kind, params): (PoolKind, Pool2dParams),
    (x, input): (Rows<'_>, BlockedShape),
    output: BlockedShape,
    y: &mut [u8],
) {
    assert!(kind != PoolKind::Sum, "sums of bytes are no bytes");
    let cells = PixelCell { shape: output, zero: sign_flip(x.signed), unit: 1 };
    let taps = params.kernel[0].min(input.h) * params.kernel[1].min(input.w);
    let blocks = output.pixel() / PIXEL;
    let bands = (taps * blocks * output.h * output.w / CHUNK_TAPS).clamp(1, output.h);
    // A few rows of many channels are divided by channels.
    let parts = (taps * blocks * output.w / CHUNK_TAPS).clamp(1, blocks);
    let bounds = cells.bounds(output.n, bands);
    let width = blocks.div_ceil(parts) * PIXEL;
    par_cells_mut(par, y, output.pixel(), &bounds, width, 0, |piece, channel, mut cell, _| {
        let (image, rows) = cells.rows(piece, bands);
        cells.fill_halo(&mut cell, &rows);
        for row in rows.clone() {
            for column in 0..output.w {
                let window = PoolWindow {
                    data: x,
                    shape: input,
                    image,
                    channel,
                    rows: inside(row, 0, &params, input.h),
                    columns: inside(column, 1, &params, input.w),
                };
                let out = cell.row(cells.place(&rows, row, column));
                match kind {
                    PoolKind::Average { count_pad } => {
                        let sizes = [(row, 0, input.h), (column, 1, input.w)];
                        let padded = sizes.map(|(o, axis, size)| reach(o, axis, &params, size)).iter().product();
                        let count = if count_pad { padded } else { window.rows.len() * window.columns.len() };
                        means(&window, count.max(1) as f32, out);
                    }
                    _ => largest(&window, out),
                }
            }
        }
    });
}

/// The part of a window inside of an axis.
fn inside(o: usize, axis: usize, params: &Pool2dParams, size: usize) -> Range<usize> {
    let start = o * params.stride[axis];
    let end = (start + params.kernel[axis]).saturating_sub(params.pad[axis]).min(size);
    start.saturating_sub(params.pad[axis]).min(end)..end
}

/// Elements of an axis, with its padding, that a window has.
fn reach(o: usize, axis: usize, params: &Pool2dParams, size: usize) -> usize {
    let start = o * params.stride[axis];
    (start + params.kernel[axis]).min(size + 2 * params.pad[axis]).saturating_sub(start)
}

/// A window of some channels.
struct PoolWindow<'a> {
    data: Rows<'a>,
    shape: BlockedShape,
    image: usize,
    channel: usize,
    rows: Range<usize>,
    columns: Range<usize>,
}

impl PoolWindow<'_> {
    /// Calls `body` with 64 channels of each pixel, from channel `at` of the window on.
    #[inline(always)]
    fn each(&self, at: usize, mut body: impl FnMut(&[u8; PIXEL])) {
        if self.columns.is_empty() {
            return;
        }
        for row in self.rows.clone() {
            let begin = self.shape.offset(self.image, 0, row, self.columns.start) + self.channel + at;
            for pixel in self.data.bytes[begin..].chunks(self.shape.pixel()).take(self.columns.len()) {
                body(pixel.first_chunk().expect("pixels are whole lines"));
            }
        }
    }
}

vectorized! {
    fn largest[](window: &PoolWindow<'_>, out: &mut [u8]) {
        for (i, out) in out.as_chunks_mut::<PIXEL>().0.iter_mut().enumerate() {
            let mut most = [0u8; PIXEL];
            window.each(i * PIXEL, |pixel| {
                most.iter_mut().zip(pixel).for_each(|(most, byte)| *most = (*most).max(*byte));
            });
            *out = most;
        }
    }
}

vectorized! {
    fn means[](window: &PoolWindow<'_>, count: f32, out: &mut [u8]) {
        let (flip, taps) = (sign_flip(window.data.signed), window.rows.len() * window.columns.len());
        let shift = i32::from(flip) * taps as i32;
        for (i, out) in out.as_chunks_mut::<PIXEL>().0.iter_mut().enumerate() {
            let mut sums = [0i32; PIXEL];
            window.each(i * PIXEL, |pixel| {
                sums.iter_mut().zip(pixel).for_each(|(sum, byte)| *sum += i32::from(*byte));
            });
            let means = sums.map(|sum| (sum - shift) as f32 / count);
            if window.data.signed {
                out.iter_mut().zip(means).for_each(|(out, mean)| *out = i8::round_to(mean) as u8 ^ flip);
            } else {
                out.iter_mut().zip(means).for_each(|(out, mean)| *out = u8::round_to(mean));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocked::Halo;
    use crate::int8::{from_pixels, to_pixels};
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads};
    use crate::vectorize::Width;

    /// The largest or the mean of a window of a plane.
    fn expected(
        plane: &[i32],
        [h, w]: [usize; 2],
        kind: PoolKind,
        p: &Pool2dParams,
        [row, column]: [usize; 2],
        lowest: i32,
    ) -> f32 {
        let at = |o: usize, tap: usize, axis: usize| (o * p.stride[axis] + tap) as isize - p.pad[axis] as isize;
        let (mut most, mut sum, mut within, mut padded) = (lowest, 0, 0, 0);
        for i in 0..p.kernel[0] {
            for j in 0..p.kernel[1] {
                let (r, c) = (at(row, i, 0), at(column, j, 1));
                let in_padding = |at: isize, size: usize, axis: usize| at < (size + p.pad[axis]) as isize;
                padded += usize::from(in_padding(r, h, 0) && in_padding(c, w, 1));
                if (0..h as isize).contains(&r) && (0..w as isize).contains(&c) {
                    let v = plane[r as usize * w + c as usize];
                    (most, sum, within) = (most.max(v), sum + v, within + 1);
                }
            }
        }
        match kind {
            PoolKind::Average { count_pad } => sum as f32 / if count_pad { padded } else { within }.max(1) as f32,
            _ => most as f32,
        }
    }

    #[test]
    fn windows_agree_with_the_definition() {
        let (n, c) = (2, 70);
        for (size, kernel, stride, pad, out) in [
            ([9usize, 11usize], [3usize, 3usize], [2usize, 2usize], [1usize, 1usize], [5usize, 6usize]),
            ([7, 7], [7, 7], [1, 1], [0, 0], [1, 1]),
            // The last windows reach over the padding.
            ([8, 6], [3, 2], [2, 3], [0, 1], [4, 3]),
            // The last ones are outside of the image.
            ([5, 4], [1, 1], [2, 2], [0, 0], [3, 3]),
        ] {
            let params = Pool2dParams { kernel, stride, pad };
            let halo = |some| Halo { top: some, left: 2, bottom: 1, right: some };
            let input =
                BlockedShape::pixels(n, c, size[0], size[1], if pad == [0, 0] { Halo::default() } else { halo(1) });
            let output = BlockedShape::pixels(n, c, out[0], out[1], halo(2));
            let planes: Vec<u8> = (0..n * c * size[0] * size[1]).map(|i| (i * 7919 % 253) as u8).collect();
            for kind in [PoolKind::Max, PoolKind::Average { count_pad: true }, PoolKind::Average { count_pad: false }] {
                for (signed, par) in [(false, &Serial as &dyn Par), (true, &Reverse), (true, &Threads(3))] {
                    let number = |b: &u8| if signed { i32::from(*b as i8) } else { i32::from(*b) };
                    let numbers: Vec<i32> = planes.iter().map(number).collect();
                    let mut x = vec![0xa5; input.len()];
                    to_pixels(par, Rows { bytes: &planes, signed }, input, &mut x);
                    for width in Width::all() {
                        let mut y = vec![0xa5; output.len()];
                        let x = Rows { bytes: &x, signed };
                        width.limit(|| pool_pixels(&Serial, (kind, params), (x, input), output, &mut y));
                        let mut got = vec![0; n * c * out[0] * out[1]];
                        from_pixels(par, Rows { bytes: &y, signed }, output, &mut got);
                        let plane = size[0] * size[1];
                        for (i, byte) in got.iter().enumerate() {
                            let (map, at) = (i / (out[0] * out[1]), i % (out[0] * out[1]));
                            let from = &numbers[map * plane..][..plane];
                            let lowest = if signed { -128 } else { 0 };
                            let want = expected(from, size, kind, &params, [at / out[1], at % out[1]], lowest);
                            assert_eq!(number(byte), want.round_ties_even() as i32, "{size:?} {kind:?} {i} {width:?}");
                        }
                    }
                }
            }
        }
    }
}
