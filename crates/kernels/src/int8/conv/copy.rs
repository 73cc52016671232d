//! Images in planes that are copied for a convolution.

use super::{Axes, ConvJob};
use crate::int8::RoundTo;
use crate::int8::tile::{GROUP, sign_flip};
use crate::int8::turn::{SIDE, turn};
use crate::par::{Par, par_chunks_mut, par_columns_mut};
use crate::vectorize::vectorized;

/// Bytes of a chunk of copied rows.
const COPIED_CHUNK: usize = 16 << 10;

impl<T: RoundTo> ConvJob<'_, T> {
    /// Copies images channels last, as unsigned numbers.
    pub(super) fn copy(&self, par: &dyn Par, images: &[u8], copied: &mut [u8]) {
        let row_len = self.axes.copied[2] * self.pixel_len;
        if row_len > COPIED_CHUNK {
            let width = (COPIED_CHUNK / self.pixel_len).max(1).next_multiple_of(SIDE) * self.pixel_len;
            let shape = [copied.len() / row_len, 1, row_len];
            par_columns_mut(par, copied, shape, width, 0, |row, start, mut part, _| {
                self.copy_row(self.row(images, row), start / self.pixel_len, part.row(0));
            });
            return;
        }
        let rows = COPIED_CHUNK / row_len;
        par_chunks_mut(par, copied, rows * row_len, |chunk, out| {
            for (i, out) in out.chunks_exact_mut(row_len).enumerate() {
                self.copy_row(self.row(images, chunk * rows + i), 0, out);
            }
        });
    }

    /// The input from a row of the first channel on, by the number of the row in copied images;
    /// none in the padding.
    fn row<'a>(&self, images: &'a [u8], row: usize) -> Option<&'a [u8]> {
        let Axes { input, pad, copied: [depths, heights, _], .. } = self.axes;
        let image = self.conv.channels * input.iter().product::<usize>();
        let (row, number) = (row % (depths * heights), row / (depths * heights));
        let at = [row / heights, row % heights];
        let inside = |axis: usize| at[axis].checked_sub(pad[axis]).filter(|i| *i < input[axis]);
        let place = inside(0).zip(inside(1)).map(|(d, h)| (d * input[1] + h) * input[2])?;
        Some(&images[number * image + place..(number + 1) * image])
    }

    /// Copies pixels of a row of all channels, from the padded row's pixel `start` on.
    fn copy_row(&self, from: Option<&[u8]>, start: usize, out: &mut [u8]) {
        let Axes { input, pad, .. } = self.axes;
        let (flip, pixel) = (sign_flip(self.operands.data.signed), self.pixel_len);
        let Some(from) = from else { return out.fill(flip) };
        let (before, out) = out.split_at_mut((pad[2].saturating_sub(start) * pixel).min(out.len()));
        before.fill(flip);
        let first = start.saturating_sub(pad[2]);
        let width = input[2].saturating_sub(first).min(out.len() / pixel);
        let (out, after) = out.split_at_mut(width * pixel);
        after.fill(flip);
        if width == 0 {
            return;
        }
        let from = &from[first..];
        let plane: usize = input.iter().product();
        let channels = self.conv.channels / self.conv.groups;
        let group_len = self.conv.group_len().unwrap_or(GROUP);
        if self.conv.groups == 1 && channels == 3 {
            // Colours are no matrix that is worth turning.
            return join_colours([0, 1, 2].map(|channel| &from[channel * plane..][..width]), flip, out);
        }
        if channels == group_len || self.conv.groups == 1 {
            turn(from, plane, [self.conv.channels, width], flip, |column, channel, bytes| {
                out[column * pixel + channel..][..bytes.len()].copy_from_slice(bytes);
            });
            return;
        }
        for group in 0..self.conv.groups {
            let from = &from[group * channels * plane..];
            turn(from, plane, [channels, width], flip, |column, channel, bytes| {
                out[column * pixel + group * group_len + channel..][..bytes.len()].copy_from_slice(bytes);
            });
        }
    }
}

vectorized! {
    /// Writes pixels of three colours and a zero.
    fn join_colours[](colours: [&[u8]; 3], flip: u8, out: &mut [u8]) {
        let flip = u32::from_le_bytes([flip, flip, flip, 0]);
        let [a, b, c] = colours;
        for (((out, a), b), c) in out.as_chunks_mut::<GROUP>().0.iter_mut().zip(a).zip(b).zip(c) {
            let pixel = u32::from(*a) | u32::from(*b) << 8 | u32::from(*c) << 16;
            *out = (pixel ^ flip).to_le_bytes();
        }
    }
}
