//! Convolutions whose results are pixels.

use super::{ConvJob, PixelForm};
use crate::blocked::chunks::ChunkGrid;
use crate::int8::RoundTo;
use crate::int8::band::{BAND, Band, BandArgs, LONG_BAND};
use crate::int8::depthwise::ResultRows;
use crate::int8::pixels::{PixelCell, find_pixels};
use crate::int8::tile::{AddedRows, COLUMNS, PANEL, sign_flip, whole_rows};
use crate::int8::winograd::TilePlace;
use crate::par::{Columns, Par, par_cells_mut};
use crate::places::{Places, Runs};
use std::ops::Range;

/// Products of a chunk that is not divided.
const CHUNK_PRODUCTS: usize = 4 << 20;

impl<T: RoundTo> ConvJob<'_, T> {
    /// Multiplies images, of which the first has this number.
    pub(super) fn multiply_to_pixels(&self, par: &dyn Par, first: usize, data: &[u8], out: &mut [T]) {
        let PixelForm { output: shape, .. } = self.conv.pixels.expect("results are pixels");
        let images = out.len() / shape.image_stride;
        let grid = self.grid(shape.h, shape.w, images);
        let cells = PixelCell { shape, zero: sign_flip(T::SIGNED_BYTE == Some(true)), unit: 1 };
        let bounds = cells.bounds(images, grid.bands);
        // Tiles that begin where groups do are not cut.
        let whole = self.has_whole_tiles();
        let columns = if whole { grid.parts.div_ceil(grid.groups) * COLUMNS } else { shape.pixel() };
        assert!(size_of::<T>() == 1, "pixels are bytes");
        let (out, bytes) = (bytemuck::cast_slice_mut::<T, u8>(out), self.conv.band_bytes::<T>());
        par_cells_mut(par, out, shape.pixel(), &bounds, columns, bytes, |piece, column, mut cell, scratch| {
            let (image, rows) = cells.rows(piece, grid.bands);
            cells.fill_halo(&mut cell, &rows);
            let data = &data[image * self.image_len..][..self.image_len];
            let end = (column + cell.width()).min(self.conv.filters);
            if self.multiply_rows(data, &cells, &rows, (&mut cell, column)) {
                return;
            }
            let (mut band, mut pixels) = (Band::of(scratch), PixelBand::new());
            let most = self.most_rows(data, column..end);
            for pixel in (rows.start * shape.w..rows.end * shape.w).step_by(most) {
                let count = most.min(rows.end * shape.w - pixel);
                pixels.find(self, &cells, (first + image, &rows), pixel, count);
                for tile in self.tiles(column..end) {
                    let args = self.band_of(data, pixels.starts.places(), [tile.start, tile.len()]);
                    if tile.start == column || self.conv.groups > 1 {
                        band.prepare(&args);
                    }
                    self.finish_tile(&args, &pixels, &mut band, (&mut cell, column, cells.zero));
                }
            }
        });
    }

    /// Pixels of a band of these filters.
    fn most_rows(&self, data: &[u8], filters: Range<usize>) -> usize {
        let first = self.tiles(filters).next().filter(|_| self.has_whole_tiles());
        first.map_or(BAND, |tile| {
            let args = self.band_of(data, Places::new(&[]), [tile.start, tile.len()]);
            args.in_vectors(0).map_or(BAND, |end| args.most_rows(&end))
        })
    }

    /// Computes whole rows of pixels, if a kernel does so; otherwise nothing.
    fn multiply_rows(
        &self,
        data: &[u8],
        cells: &PixelCell,
        rows: &Range<usize>,
        (cell, column): (&mut Columns<'_, u8>, usize),
    ) -> bool {
        if !self.conv.is_depthwise() || self.operands.addend.is_some() {
            return false;
        }
        let windows = self.window_rows(rows.start, [rows.len(), cells.shape.w]);
        let end = (column + cell.width()).min(self.conv.filters);
        self.tiles(column..end).all(|tile| {
            let args = self.band_of(data, Places::new(&[]), [tile.start, tile.len()]);
            let mut to = ResultRows {
                out: &mut *cell,
                first: [cells.place(rows, rows.start, 0), tile.start - column],
                row_len: cells.row_len(),
            };
            args.run_rows(&windows, cells.zero, &mut to)
        })
    }

    /// Computes some filters of a band of pixels.
    pub(super) fn finish_tile(
        &self,
        args: &BandArgs<'_, T>,
        pixels: &PixelBand,
        band: &mut Band<'_, T>,
        (cell, column, zero): (&mut Columns<'_, u8>, usize, u8),
    ) {
        let tile = args.columns[0]..args.columns[0] + args.columns[1];
        let (at, count) = (tile.start - column, pixels.count);
        if self.has_whole_tiles()
            && let Some(mut end) = args.in_vectors(zero)
        {
            end.added = self.operands.addend.map(|addend| AddedRows {
                bytes: &addend.bytes[tile.start..],
                starts: pixels.added.places().values(),
                flip: sign_flip(addend.signed),
            });
            return band.run_to(args, &end, cell.picked(pixels.places.places()).part(0..pixels.rows, at));
        }
        self.read_added(pixels, &tile, band);
        band.compute(args);
        let results: &[[u8; COLUMNS]] = bytemuck::cast_slice(&*band.results);
        for (place, results) in pixels.places.places().values().iter().zip(results).take(count) {
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
        let row = if conv.is_depthwise() { row * 4 } else { row };
        let grid = ChunkGrid::halves(height, parts, row * conv.filters.div_ceil(parts), least);
        ChunkGrid { bands: grid.bands.min((height * width / BAND).max(1)), ..grid }
    }

    /// Neighbouring filters that are computed together.
    pub(super) fn tiles(&self, filters: Range<usize>) -> impl Iterator<Item = Range<usize>> {
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
    fn read_added(&self, pixels: &PixelBand, tile: &Range<usize>, band: &mut Band<'_, T>) {
        let (Some(addend), Some(form)) = (self.operands.addend, self.conv.pixels) else { return };
        let flip = sign_flip(addend.signed);
        for (start, to) in pixels.added.places().values().iter().zip(&mut *band.addend) {
            let from = &addend.bytes[*start..][..form.addend.pixel()][tile.start..];
            let len = tile.len().next_multiple_of(PANEL).min(from.len());
            flip_to(&mut to[..len], from, flip);
        }
    }
}

/// Neighbouring pixels of an output, and the last of them again in place of those that a tile computes
/// besides.
pub(super) struct PixelBand {
    /// Pixels that are wanted, and pixels.
    pub count: usize,
    rows: usize,
    /// Offsets of the windows.
    pub starts: Runs<LONG_BAND>,
    /// Rows of the pixels in the cell.
    places: Runs<LONG_BAND>,
    /// Offsets of what is added to them, if anything is.
    added: Runs<LONG_BAND>,
}

impl PixelBand {
    /// A band without pixels.
    pub fn new() -> PixelBand {
        PixelBand { count: 0, rows: 0, starts: Runs::new(), places: Runs::new(), added: Runs::new() }
    }

    /// Finds `count` pixels of an image, from this one on, in the piece with these rows.
    fn find<T: RoundTo>(
        &mut self,
        job: &ConvJob<'_, T>,
        cells: &PixelCell,
        (image, rows): (usize, &Range<usize>),
        first: usize,
        count: usize,
    ) {
        (self.count, self.rows) = (count, whole_rows(count));
        [&mut self.starts, &mut self.places, &mut self.added].into_iter().for_each(Runs::clear);
        job.find_starts(first, count, &mut self.starts);
        self.starts.fill(self.rows);
        cells.find(rows, first, count, &mut self.places);
        self.places.fill(self.rows);
        if let (Some(_), Some(form)) = (job.operands.addend, job.conv.pixels) {
            find_pixels(&form.addend, image, first, count, &mut self.added);
            self.added.fill(self.rows);
        }
    }

    /// Finds the pixels of some parts of an image, one after another, in the piece with these rows.
    pub fn find_places<T: RoundTo>(
        &mut self,
        job: &ConvJob<'_, T>,
        cells: &PixelCell,
        (image, rows): (usize, &Range<usize>),
        places: &[TilePlace],
    ) {
        [&mut self.starts, &mut self.places, &mut self.added].into_iter().for_each(Runs::clear);
        self.count = 0;
        let added = job.operands.addend.and(job.conv.pixels).map(|form| form.addend);
        for TilePlace { first: [row, column], count: [height, width] } in places.iter().copied() {
            for row in row..row + height {
                self.places.push(cells.place(rows, row, column), 1, width);
                if let Some(shape) = &added {
                    self.added.push(shape.offset(image, 0, row, column), shape.pixel(), width);
                }
            }
            self.count += height * width;
        }
        // Sums are found without windows.
        self.starts.push(0, 0, self.count);
        self.rows = self.count;
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
