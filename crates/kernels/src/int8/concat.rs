//! Pixels joined along their channels.

use super::pixels::PixelCell;
use super::tile::sign_flip;
use super::{RoundTo, Rows};
use crate::blocked::BlockedShape;
use crate::element::Element;
use crate::par::{Par, par_cells_mut};
use crate::vectorize::vectorized;

/// Bytes of a chunk.
const CHUNK: usize = 32 << 10;

/// Pixels whose channels follow those of the operand before them.
#[derive(Clone, Copy)]
pub struct JoinedPixels<'a> {
    /// The bytes.
    pub rows: Rows<'a>,
    /// Layout of the bytes.
    pub shape: BlockedShape,
    /// Steps of the results for one step of the bytes.
    pub factor: f32,
}

/// Joins pixels along the channels. Numbers times their factor are rounded half to even.
///
/// # Panics
/// If a slice is smaller than its shape says, or the channels of all are not those of the output.
pub fn join_pixels<T: RoundTo>(par: &dyn Par, parts: &[JoinedPixels<'_>], output: BlockedShape, to: &mut [u8]) {
    let channels: usize = parts.iter().map(|part| part.shape.c).sum();
    assert_eq!(channels, output.c, "the channels of the operands are not those of the output");
    let cells = PixelCell { shape: output, zero: sign_flip(T::SIGNED_BYTE == Some(true)), unit: 1 };
    let bands = (output.image_stride / CHUNK).clamp(1, output.h);
    let bounds = cells.bounds(output.n, bands);
    par_cells_mut(par, to, output.pixel(), &bounds, output.pixel(), 0, |piece, _, mut cell, _| {
        let (image, rows) = cells.rows(piece, bands);
        cells.fill_halo(&mut cell, &rows);
        for row in rows.clone() {
            for column in 0..output.w {
                let out = cell.row(cells.place(&rows, row, column));
                let mut first = 0;
                for part in parts {
                    let from = &part.rows.bytes[part.shape.offset(image, 0, row, column)..][..part.shape.c];
                    let to = &mut out[first..first + part.shape.c];
                    if part.factor == 1.0 && T::SIGNED_BYTE == Some(part.rows.signed) {
                        to.copy_from_slice(from);
                    } else {
                        scale_pixel::<T>(Rows { bytes: from, ..part.rows }, part.factor, to);
                    }
                    first += part.shape.c;
                }
            }
        }
    });
}

vectorized! {
    fn scale_pixel[T: RoundTo](from: Rows<'_>, factor: f32, to: &mut [u8]) {
        let shift = i32::from(sign_flip(from.signed));
        let flip = sign_flip(T::SIGNED_BYTE == Some(true));
        for (to, byte) in to.iter_mut().zip(from.bytes) {
            let result = T::round_to((i32::from(*byte) - shift) as f32 * factor);
            *to = bytemuck::bytes_of(&result)[0] ^ flip;
        }
    }
}

vectorized! {
    /// Numbers times a factor, rounded half to even.
    pub fn scale_numbers[S: Element, T: RoundTo](from: &[S], factor: f32, to: &mut [T]) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = T::round_to(from.to_f64() as f32 * factor);
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

    fn check<T: RoundTo>(par: &dyn Par, width: Width) {
        let (n, h, w) = (2, 3, 5);
        let halo = |some| Halo { top: some, left: 1, bottom: 0, right: some };
        let kinds = [(3usize, true, 0.75f32), (70, false, 1.0), (9, true, 1.0)];
        let plane = |c: usize, seed: usize| -> Vec<u8> {
            (0..n * c * h * w).map(|i| ((i + seed) * 7919 % 251) as u8).collect()
        };
        let planes: Vec<Vec<u8>> = kinds.iter().enumerate().map(|(i, (c, ..))| plane(*c, i)).collect();
        let shapes = kinds.map(|(c, ..)| BlockedShape::pixels(n, c, h, w, halo(c % 3)));
        let pixels: Vec<Vec<u8>> = (0..3)
            .map(|i| {
                let mut pixels = vec![0xa5; shapes[i].len()];
                to_pixels(par, Rows { bytes: &planes[i], signed: kinds[i].1 }, shapes[i], &mut pixels);
                pixels
            })
            .collect();
        let part = |i: usize| JoinedPixels {
            rows: Rows { bytes: &pixels[i], signed: kinds[i].1 },
            shape: shapes[i],
            factor: kinds[i].2,
        };
        let output = BlockedShape::pixels(n, 82, h, w, halo(2));
        let mut joined = vec![0xa5; output.len()];
        width.limit(|| join_pixels::<T>(&Serial, &[part(0), part(1), part(2)], output, &mut joined));
        let mut got = vec![0; n * 82 * h * w];
        from_pixels(par, Rows { bytes: &joined, signed: T::SIGNED_BYTE == Some(true) }, output, &mut got);
        let mut want = Vec::new();
        for image in 0..n {
            for (planes, (c, signed, factor)) in planes.iter().zip(kinds) {
                for byte in &planes[image * c * h * w..][..c * h * w] {
                    let number = if signed { f32::from(*byte as i8) } else { f32::from(*byte) };
                    want.push(bytemuck::bytes_of(&T::round_to(number * factor))[0]);
                }
            }
        }
        assert!(got == want, "{width:?}");
    }

    #[test]
    fn channels_follow_each_other_in_the_steps_and_the_type_of_the_output() {
        for width in Width::all() {
            for par in [&Serial as &dyn Par, &Reverse, &Threads(3)] {
                check::<i8>(par, width);
                check::<u8>(par, width);
            }
        }
    }
}
