//! Convolutions whose results are pixels.

use super::{ConvJob, PixelForm};
use crate::blocked::chunks::ChunkGrid;
use crate::int8::RoundTo;
use crate::int8::band::{BAND, Band};
use crate::int8::pixels::PixelCell;
use crate::int8::tile::{AddedRows, COLUMNS, PANEL, Starts, sign_flip};
use crate::par::{Columns, Par, par_cells_mut};
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
        // Tiles that begin where groups do are not cut.
        let whole = self.has_whole_tiles();
        let columns = if whole { grid.parts.div_ceil(grid.groups) * COLUMNS } else { shape.pixel() };
        assert!(size_of::<T>() == 1, "pixels are bytes");
        let (out, bytes) = (bytemuck::cast_slice_mut::<T, u8>(out), Band::<T>::BYTES);
        par_cells_mut(par, out, shape.pixel(), &bounds, columns, bytes, |piece, column, mut cell, scratch| {
            let (image, rows) = cells.rows(piece, grid.bands);
            cells.fill_halo(&mut cell, &rows);
            let data = &data[image * self.image_len..][..self.image_len];
            let end = (column + cell.width()).min(self.conv.filters);
            let mut band = Band::of(scratch);
            let (mut starts, mut places) = ([0; BAND], [0; BAND]);
            for pixel in (rows.start * shape.w..rows.end * shape.w).step_by(BAND) {
                let count = BAND.min(rows.end * shape.w - pixel);
                let starts = &mut starts[..count];
                self.find_starts(pixel, starts);
                cells.find(&rows, pixel, &mut places);
                let starts = Starts::new(starts);
                let pixels = PixelBand { image: first + image, first: pixel, count, starts, places: &places };
                for tile in self.tiles(column..end) {
                    self.multiply_tile(data, &pixels, tile, &mut band, (&mut cell, column, cells.zero));
                }
            }
        });
    }

    /// Computes some filters of a band of pixels.
    fn multiply_tile(
        &self,
        data: &[u8],
        pixels: &PixelBand<'_>,
        tile: Range<usize>,
        band: &mut Band<'_, T>,
        (cell, column, zero): (&mut Columns<'_, u8>, usize, u8),
    ) {
        let (at, count) = (tile.start - column, pixels.count);
        let args = self.band_of(data, pixels.starts, [tile.start, tile.len()]);
        if self.has_whole_tiles()
            && count == BAND
            && let Some(mut end) = args.in_vectors(zero)
        {
            let mut from;
            if let Some(addend) = self.operands.addend {
                from = [&[0; COLUMNS]; BAND];
                self.each_added(pixels, |i, pixel| {
                    from[i] = pixel[tile.start..].first_chunk().expect("pixels are whole tiles");
                });
                end.added = Some(AddedRows { rows: &from, flip: sign_flip(addend.signed) });
            }
            return band.run_to(&args, &end, cell.picked(pixels.places).part(0..BAND, at));
        }
        self.read_added(pixels, &tile, band);
        band.compute(&args);
        let results: &[[u8; COLUMNS]] = bytemuck::cast_slice(&*band.results);
        for (place, results) in pixels.places.iter().zip(results).take(count) {
            flip_to(&mut cell.row(*place)[at..][..tile.len()], results, zero);
        }
    }

    /// Whether tiles begin at multiples of their columns, and not where a group does.
    fn has_whole_tiles(&self) -> bool {
        self.conv.groups == 1 || self.conv.is_depthwise()
    }

    /// Rows and tiles of filters as chunks. Other tiles than whole ones stay together.
    fn grid(&self, height: usize, width: usize, images: usize) -> ChunkGrid {
        let conv = self.conv;
        let parts = if self.has_whole_tiles() { conv.filters.div_ceil(COLUMNS) } else { 1 };
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

    /// Copies what is added to some filters of a band of pixels.
    fn read_added(&self, pixels: &PixelBand<'_>, tile: &Range<usize>, band: &mut Band<'_, T>) {
        let flip = sign_flip(self.operands.addend.is_some_and(|addend| addend.signed));
        self.each_added(pixels, |i, pixel| {
            let from = &pixel[tile.start..];
            let len = tile.len().next_multiple_of(PANEL).min(from.len());
            flip_to(&mut band.addend[i][..len], from, flip);
        });
    }

    /// Calls `body` with each of the pixels that are added to a band.
    fn each_added<'b>(&'b self, pixels: &PixelBand<'_>, mut body: impl FnMut(usize, &'b [u8])) {
        let (Some(addend), Some(form)) = (self.operands.addend, self.conv.pixels) else { return };
        let shape = form.addend;
        let (mut row, mut column) = (pixels.first / shape.w, pixels.first % shape.w);
        let mut next = 0;
        while next < pixels.count {
            let some = (shape.w - column).min(pixels.count - next);
            let from = addend.bytes[shape.offset(pixels.image, 0, row, column)..].chunks_exact(shape.pixel());
            from.take(some).enumerate().for_each(|(i, pixel)| body(next + i, pixel));
            (next, row, column) = (next + some, row + 1, 0);
        }
    }
}

/// Neighbouring pixels of an output.
struct PixelBand<'a> {
    image: usize,
    /// The number of the first pixel.
    first: usize,
    count: usize,
    /// Offsets of the windows.
    starts: Starts<'a>,
    /// Rows of the pixels in the cell.
    places: &'a [usize; BAND],
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
