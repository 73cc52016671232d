//! Pixels of bytes: images channels last, see [`BlockedShape::pixels`].

use super::Rows;
use super::tile::sign_flip;
use super::turn::turn;
use crate::blocked::{BlockedShape, Halo};
use crate::par::{Columns, Par, par_cells_mut, par_columns_mut};
use crate::places::Runs;
use std::ops::Range;

/// Bytes of a chunk of copied pixels.
const CHUNK: usize = 32 << 10;

/// Pixels that are written, in chunks of some rows of an image and some channels.
pub(super) struct PixelCell {
    pub shape: BlockedShape,
    /// The byte that stands for zero.
    pub zero: u8,
    /// Rows that are not divided.
    pub unit: usize,
}

impl PixelCell {
    /// Pixels in memory from one row of an image to the next.
    pub fn row_len(&self) -> usize {
        let Halo { left, right, .. } = self.shape.halo;
        left + self.shape.w + right
    }

    /// Rows of an image in memory.
    fn rows_len(&self) -> usize {
        let Halo { top, bottom, .. } = self.shape.halo;
        top + self.shape.h + bottom
    }

    /// Bounds of the pieces, in pixels of memory: `bands` for each image, the first and the last
    /// with the halo.
    pub fn bounds(&self, images: usize, bands: usize) -> Vec<usize> {
        let start = |piece: usize| match (piece / bands, piece % bands) {
            (image, 0) => image * self.rows_len(),
            (image, band) => image * self.rows_len() + self.shape.halo.top + self.row_of(band, bands),
        };
        (0..=images * bands).map(|piece| start(piece) * self.row_len()).collect()
    }

    /// The image and the rows of a piece.
    pub fn rows(&self, piece: usize, bands: usize) -> (usize, Range<usize>) {
        let (image, band) = (piece / bands, piece % bands);
        (image, self.row_of(band, bands)..self.row_of(band + 1, bands))
    }

    /// The first row of a band.
    fn row_of(&self, band: usize, bands: usize) -> usize {
        (band * self.shape.h.div_ceil(self.unit) / bands * self.unit).min(self.shape.h)
    }

    /// Rows of the halo above the first row of a piece.
    fn above(&self, rows: &Range<usize>) -> usize {
        if rows.start == 0 { self.shape.halo.top } else { 0 }
    }

    /// The place of a pixel in the cell of its piece.
    pub fn place(&self, rows: &Range<usize>, row: usize, column: usize) -> usize {
        (self.above(rows) + row - rows.start) * self.row_len() + self.shape.halo.left + column
    }

    /// Finds the places of `count` neighbouring pixels in the cell of a piece, from this one on.
    pub fn find<const N: usize>(&self, rows: &Range<usize>, first: usize, count: usize, places: &mut Runs<N>) {
        each_row(self.shape.w, first, count, |row, column, count| {
            places.push(self.place(rows, row, column), 1, count);
        });
    }

    /// Writes the halo of a piece.
    pub fn fill_halo(&self, cell: &mut Columns<'_, u8>, rows: &Range<usize>) {
        let Halo { top, left, bottom, right } = self.shape.halo;
        if [top, left, bottom, right] == [0; 4] {
            return;
        }
        let mut fill = |places: Range<usize>| places.for_each(|place| cell.row(place).fill(self.zero));
        let start = self.above(rows) * self.row_len();
        fill(0..start);
        for row in rows.clone() {
            let place = self.place(rows, row, 0);
            fill(place - left..place);
            fill(place + self.shape.w..place + self.shape.w + right);
        }
        if rows.end == self.shape.h {
            let end = start + rows.len() * self.row_len();
            fill(end..end + bottom * self.row_len());
        }
    }
}

/// Finds the offsets of `count` neighbouring pixels of an image, from this one on.
pub(super) fn find_pixels<const N: usize>(
    shape: &BlockedShape,
    image: usize,
    first: usize,
    count: usize,
    offsets: &mut Runs<N>,
) {
    each_row(shape.w, first, count, |row, column, count| {
        offsets.push(shape.offset(image, 0, row, column), shape.pixel(), count);
    });
}

/// Calls `body` with the row, the first column and the number of those of `count` neighbouring pixels,
/// from this one on, that are in a row of this width.
fn each_row(width: usize, first: usize, count: usize, mut body: impl FnMut(usize, usize, usize)) {
    let (mut row, mut column) = (first / width, first % width);
    let mut rest = count;
    while rest > 0 {
        let some = (width - column).min(rest);
        body(row, column, some);
        (rest, row, column) = (rest - some, row + 1, 0);
    }
}

/// Bands of the rows of images that are copied.
fn bands(shape: &BlockedShape) -> usize {
    (shape.image_stride / CHUNK).clamp(1, shape.h)
}

/// Copies planes of bytes to pixels.
///
/// # Panics
/// If a slice is smaller than the shape says.
pub fn to_pixels(par: &dyn Par, from: Rows<'_>, shape: BlockedShape, to: &mut [u8]) {
    let cells = PixelCell { shape, zero: sign_flip(from.signed), unit: 1 };
    let (bands, plane) = (bands(&shape), shape.h * shape.w);
    let bounds = cells.bounds(shape.n, bands);
    par_cells_mut(par, to, shape.pixel(), &bounds, shape.pixel(), 0, |piece, _, mut cell, _| {
        let (image, rows) = cells.rows(piece, bands);
        cells.fill_halo(&mut cell, &rows);
        for row in rows.clone() {
            let first = cells.place(&rows, row, 0);
            let from = &from.bytes[image * shape.c * plane + row * shape.w..];
            turn(from, plane, [shape.c, shape.w], cells.zero, |column, channel, bytes| {
                cell.row(first + column)[channel..][..bytes.len()].copy_from_slice(bytes);
            });
        }
    });
}

/// Copies pixels to planes of bytes.
///
/// # Panics
/// If a slice is smaller than the shape says.
pub fn from_pixels(par: &dyn Par, from: Rows<'_>, shape: BlockedShape, to: &mut [u8]) {
    let flip = sign_flip(from.signed);
    let rows = (CHUNK / (shape.w * shape.pixel())).max(1);
    let plane = shape.h * shape.w;
    par_columns_mut(par, to, [shape.n, shape.c, plane], rows * shape.w, 0, |image, start, mut planes, _| {
        for at in (0..planes.width()).step_by(shape.w) {
            let begin = shape.offset(image, 0, (start + at) / shape.w, 0);
            turn(&from.bytes[begin..], shape.pixel(), [shape.w, shape.c], flip, |channel, column, bytes| {
                planes.row(channel)[at + column..][..bytes.len()].copy_from_slice(bytes);
            });
        }
    });
}
