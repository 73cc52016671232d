//! Convolutions of pixels by transforms.

use super::pixels::PixelBand;
use super::{ConvJob, PixelForm};
use crate::int8::RoundTo;
use crate::int8::band::{BAND, Band, Products};
use crate::int8::pixels::PixelCell;
use crate::int8::tile::{COLUMNS, PANEL, sign_flip};
use crate::int8::winograd::{Group, Inputs, MOST_TILES, TilePlace, Winograd};
use crate::par::{Columns, Par, par_cells_mut};
use std::ops::Range;

/// Tiles of a chunk, if there are as many.
const CHUNK: usize = 24;

impl<T: RoundTo> ConvJob<'_, T> {
    /// Computes images of pixels by transforms.
    pub(super) fn multiply_transformed(&self, x: &Winograd, par: &dyn Par, data: &[u8], out: &mut [T]) {
        let PixelForm { output: shape, .. } = self.conv.pixels.expect("results are pixels");
        let (images, side) = (out.len() / shape.image_stride, x.scheme.outputs());
        let cells = PixelCell { shape, zero: sign_flip(T::SIGNED_BYTE == Some(true)), unit: side };
        let bands = (shape.h.div_ceil(side) / CHUNK.div_ceil(shape.w.div_ceil(side))).max(1);
        let bounds = cells.bounds(images, bands);
        // The filters of a few tiles are divided, though each part transforms all inputs.
        let columns = if bands > 1 { shape.pixel() } else { shape.pixel().div_ceil(2).next_multiple_of(COLUMNS) };
        assert!(size_of::<T>() == 1, "pixels are bytes");
        let (out, own) = (bytemuck::cast_slice_mut::<T, u8>(out), x.scratch_len());
        let bytes = own + Band::<T>::BYTES;
        par_cells_mut(par, out, shape.pixel(), &bounds, columns, bytes, |piece, column, mut cell, scratch| {
            let (image, rows) = cells.rows(piece, bands);
            cells.fill_halo(&mut cell, &rows);
            let data = &data[image * self.image_len..][..self.image_len];
            let (own, scratch) = scratch.split_at_mut(own);
            let (mut group, mut band) = (Group::of(x, own), Band::of(scratch));
            for first in (0..x.tiles(&rows)).step_by(x.group()) {
                let places: [TilePlace; MOST_TILES] = std::array::from_fn(|tile| x.place(&rows, first + tile));
                let places = &places[..x.group().min(x.tiles(&rows) - first)];
                group.transform(&Inputs { data, steps: self.window_steps() }, places);
                self.multiply_group(&mut group, places, &mut band, (&cells, image, &rows), (&mut cell, column));
            }
        });
    }

    /// Computes the filters of a chunk for a group of tiles that was transformed.
    fn multiply_group(
        &self,
        group: &mut Group<'_>,
        places: &[TilePlace],
        band: &mut Band<'_, T>,
        (cells, image, rows): (&PixelCell, usize, &Range<usize>),
        (cell, column): (&mut Columns<'_, u8>, usize),
    ) {
        let (conv, x) = (self.conv, self.operands);
        let mut pixels = PixelBand::new();
        let end = (column + cell.width()).min(conv.filters);
        for filters in self.tiles(column..end) {
            let panels = filters.start / PANEL..filters.end.div_ceil(PANEL);
            group.multiply(x.packed, panels, x.data.signed, places);
            let mut sums = &*group.sums;
            for places in places.chunks(BAND / group.outputs()) {
                pixels.find_places(self, cells, (image, rows), places);
                let (these, rest) = sums.split_at(pixels.count);
                let products = Products::Ready { sums: these, terms: 9 * conv.channels, level: conv.level() };
                let args = self.args(products, pixels.starts.places(), [filters.start, filters.len()]);
                self.finish_tile(&args, &pixels, band, (&mut *cell, column, cells.zero));
                sums = rest;
            }
        }
    }
}
