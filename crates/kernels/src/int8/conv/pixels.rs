//! Convolutions whose results are pixels.

use super::{ConvJob, PixelForm};
use crate::blocked::chunks::ChunkGrid;
use crate::int8::RoundTo;
use crate::int8::band::{BAND, Band};
use crate::int8::pixels::PixelCell;
use crate::int8::tile::{COLUMNS, PANEL, sign_flip};
use crate::par::{Par, par_cells_mut};
use std::ops::Range;

/// Products of a chunk that is not divided.
const CHUNK_PRODUCTS: usize = 4 << 20;

impl<T: RoundTo> ConvJob<'_, T> {
    /// Multiplies images, of which the first has this number.
    pub(super) fn multiply_to_pixels(&self, par: &dyn Par, first: usize, data: &[u8], out: &mut [T]) {
        let PixelForm { output: shape, .. } = self.conv.pixels.expect("results are pixels");
        let images = out.len() / shape.image_stride;
        let grid = self.grid(shape.h, shape.w, images);
        let cells = PixelCell { shape, zero: sign_flip(T::SIGNED_BYTE == Some(true)) };
        let bounds = cells.bounds(images, grid.bands);
        let columns = grid.parts.div_ceil(grid.groups) * COLUMNS;
        let out = bytemuck::cast_slice_mut::<T, u8>(out);
        par_cells_mut(
            par,
            out,
            shape.pixel(),
            &bounds,
            columns,
            Band::<T>::BYTES,
            |piece, column, mut cell, scratch| {
                let (image, rows) = cells.rows(piece, grid.bands);
                cells.fill_halo(&mut cell, &rows);
                let data = &data[image * self.image_len..][..self.image_len];
                let mut band = Band::of(scratch);
                let end = (column + cell.width()).min(self.conv.filters);
                for pixel in (rows.start * shape.w..rows.end * shape.w).step_by(BAND) {
                    let count = BAND.min(rows.end * shape.w - pixel);
                    let starts = &self.starts(pixel, count)[..count];
                    let places = &cells.places(&rows, pixel)[..count];
                    for tile in self.tiles(column..end) {
                        self.read_pixels_added(first + image, pixel, count, &tile, &mut band);
                        self.compute(data, starts, [tile.start, tile.len()], &mut band);
                        let results: &[[u8; COLUMNS]] = bytemuck::cast_slice(&*band.results);
                        for (place, results) in places.iter().zip(results) {
                            flip_to(&mut cell.row(*place)[tile.start - column..][..tile.len()], results, cells.zero);
                        }
                    }
                }
            },
        );
    }

    /// Rows and tiles of filters as chunks. Filters of groups that tiles may not cross stay together.
    fn grid(&self, height: usize, width: usize, images: usize) -> ChunkGrid {
        let conv = self.conv;
        let alone = conv.groups == 1 || conv.is_depthwise();
        let parts = if alone { conv.filters.div_ceil(COLUMNS) } else { 1 };
        let row = width * conv.taps() * (conv.channels / conv.groups);
        let least = if images > 1 { CHUNK_PRODUCTS } else { CHUNK_PRODUCTS / 4 };
        // A tap of a depthwise layer takes as long as some products.
        let row = if conv.is_depthwise() { row * 8 } else { row };
        let grid = ChunkGrid::halves(height, parts, row * conv.filters.div_ceil(parts), least);
        ChunkGrid { bands: grid.bands.min((height * width / BAND).max(1)), ..grid }
    }

    /// Neighbouring filters that are computed together.
    fn tiles(&self, filters: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let conv = self.conv;
        let group = if conv.is_depthwise() { conv.filters } else { conv.filters / conv.groups };
        let mut next = filters.start;
        std::iter::from_fn(move || {
            let start = next;
            next = (start + COLUMNS).min((start / group + 1) * group).min(filters.end);
            (start < next).then_some(start..next)
        })
    }

    /// Reads what is added to some filters of neighbouring pixels.
    fn read_pixels_added(&self, image: usize, pixel: usize, count: usize, tile: &Range<usize>, band: &mut Band<'_, T>) {
        let (Some(addend), Some(form)) = (self.operands.addend, self.conv.pixels) else { return };
        let (shape, flip) = (form.addend, sign_flip(addend.signed));
        let len = tile.len().next_multiple_of(PANEL).min(shape.pixel() - tile.start);
        let mut next = pixel;
        while next < pixel + count {
            let (row, column) = (next / shape.w, next % shape.w);
            let some = (shape.w - column).min(pixel + count - next);
            let begin = shape.offset(image, 0, row, column);
            let from = addend.bytes[begin..].chunks(shape.pixel());
            for (to, from) in band.addend[next - pixel..].iter_mut().zip(from).take(some) {
                flip_to(&mut to[..len], &from[tile.start..], flip);
            }
            next += some;
        }
    }
}

/// Copies bytes, with some bits flipped.
#[inline(always)]
fn flip_to(to: &mut [u8], from: &[u8], flip: u8) {
    // The length of a whole tile is known here, so its loop is a few instructions.
    if let (Some(to), Some(from)) = (to.first_chunk_mut::<COLUMNS>(), from.first_chunk::<COLUMNS>())
        && to.len() == COLUMNS
    {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = from ^ flip);
        return;
    }
    to.iter_mut().zip(from).for_each(|(to, from)| *to = from ^ flip);
}
