//! Products with a packed B whose rows of A are packed once, for all chunks. Chunks that pack for
//! themselves do it again for every few panels, which takes up to a twentieth of the time.

use super::job::{DEPTH, RowTaps, pack_rows};
use super::output::{FinishedSums, GemmOutput, MOST_COLUMNS};
use super::tile::{ProductArgs, Split, SplitEntries, SumsAt, Tap, product, tile_size};
use super::{Matrix, Sgemm};
use crate::cache_class::CacheClass;
use crate::par::{Par, par_chunks_mut, range_of};
use crate::scratch::Scratch;
use crate::simd::{Dst, LANES, Src};
use crate::vector_units::VectorUnits;
use std::ops::Range;

/// Fewest tiles of rows that share the visit of a panel, where there are as many.
const LEAST_TILES: usize = 6;
/// Elements of A that are packed together.
const PACKED: usize = 1 << 20;

/// How a product is cut; sums have the same order however it is.
struct Cut {
    rows: Split,
    /// Tiles of rows of a band, which take half of the second-level cache.
    band: usize,
    /// Tiles that are packed together: whole bands.
    together: usize,
    /// Elements of a packed tile.
    tile: usize,
    panels: usize,
    groups: usize,
    /// Steps of k between two visits of the sums.
    depth: usize,
}

impl Cut {
    fn of(gemm: &Sgemm) -> Cut {
        let Sgemm { m, n, k, isa, .. } = *gemm;
        let rows = Split::tiles(m, isa);
        let tile = tile_size(isa).rows * k.next_multiple_of(LANES);
        let fit = CacheClass::detect().bytes() / 2 / (size_of::<f32>() * tile.max(1));
        let bands = rows.parts.div_ceil(fit.max(LEAST_TILES));
        let band = rows.parts.div_ceil(bands);
        let together = band * (PACKED / (band * tile).max(1)).clamp(1, bands);
        let panels = n.div_ceil(gemm.panel());
        let groups = panels.div_ceil(MOST_COLUMNS / gemm.panel());
        // Units that take halves of vectors wait less for a panel from the second-level cache than
        // for their sums.
        let halves = VectorUnits::detect(isa) == VectorUnits::Halves;
        let depth = if halves { k.next_multiple_of(LANES).max(LANES) } else { DEPTH };
        Cut { rows, band, together, tile, panels, groups, depth }
    }

    /// Bytes of scratch of a chunk: sums, and the taps of a visit.
    fn scratch_bytes(&self, gemm: &Sgemm) -> usize {
        let columns = self.panels.div_ceil(self.groups) * gemm.panel();
        size_of::<f32>() * self.band * tile_size(gemm.isa).rows * columns + size_of::<Tap>() * self.depth / LANES
    }
}

/// Computes a product of several tiles of rows.
pub(super) fn multiply(a: Matrix<'_>, b: &[f32], output: GemmOutput<'_>, par: &dyn Par) {
    let gemm = output.gemm;
    let cut = Cut::of(&gemm);
    let entries = cut.rows.entries(|rows| product(gemm.isa, gemm.elements, rows, tile_size(gemm.isa).blocks));
    let parts = cut.rows.parts;
    let mut packed = Scratch::new(par, cut.together.min(parts) * cut.tile);
    for first in (0..parts).step_by(cut.together) {
        let tiles = first..parts.min(first + cut.together);
        par_chunks_mut(par, &mut packed[..tiles.len() * cut.tile], cut.tile, |tile, out| {
            let t = first + tile;
            pack_rows(a, cut.rows.start(t), cut.rows.rows(t), gemm.k, out);
        });
        let product = SharedProduct { cut: &cut, entries: &entries, first, packed: &packed, b, output: &output };
        // A core takes panels one after the other, and keeps the rows of a band.
        par.run(tiles.len().div_ceil(cut.band) * cut.groups, cut.scratch_bytes(&gemm), &|chunk, scratch| {
            let (band, group) = (first + chunk / cut.groups * cut.band, chunk % cut.groups);
            let band = band..tiles.end.min(band + cut.band);
            product.chunk(band, range_of(group, cut.groups, cut.panels), scratch);
        });
    }
}

/// The product of the rows that are packed.
struct SharedProduct<'a> {
    cut: &'a Cut,
    entries: &'a SplitEntries<ProductArgs>,
    /// The first tile that is packed.
    first: usize,
    packed: &'a [f32],
    b: &'a [f32],
    output: &'a GemmOutput<'a>,
}

impl SharedProduct<'_> {
    /// Some tiles of rows times some panels.
    fn chunk(&self, tiles: Range<usize>, panels: Range<usize>, scratch: &mut [u8]) {
        let (cut, gemm) = (self.cut, self.output.gemm);
        let (last, width) = (tiles.end - 1, gemm.panel());
        let first = cut.rows.start(tiles.start);
        let rows = cut.rows.start(last) + cut.rows.rows(last) - first;
        let (sums, taps) = scratch.split_at_mut(size_of::<f32>() * rows * width * panels.len());
        let sums: &mut [f32] = bytemuck::cast_slice_mut(sums);
        let taps = bytemuck::cast_slice_mut(&mut taps[..size_of::<Tap>() * cut.depth / LANES]);
        if gemm.k == 0 {
            sums.fill(0.0);
        }
        let sums = Dst::new(sums);
        for panel in panels.clone() {
            self.panel(tiles.clone(), panel, sums.add((panel - panels.start) * rows * width), taps);
        }
        let sums = FinishedSums { at: sums.as_src(), row: width, panel: rows * width };
        // SAFETY: no other chunk has these rows and panels, of which `sums` holds all.
        unsafe { self.output.store_panels(first, rows, panels, sums) }
    }

    /// The sums of some tiles of rows and a panel.
    fn panel(&self, tiles: Range<usize>, panel: usize, sums: Dst, taps: &mut [Tap]) {
        let (cut, Sgemm { k, .. }) = (self.cut, self.output.gemm);
        let (first, width) = (cut.rows.start(tiles.start), self.output.gemm.panel());
        for k0 in (0..k).step_by(cut.depth) {
            let steps = cut.depth.min(k - k0);
            let b = Src::new(&self.b[(panel * k + k0) * width..][..steps * width]);
            let mut taps = RowTaps::new(taps, k0..k0 + steps);
            for t in tiles.clone() {
                let (at, rows) = (cut.rows.start(t) - first, cut.rows.rows(t));
                let taps = taps.of(rows);
                let args = ProductArgs {
                    a: Src::new(&self.packed[(t - self.first) * cut.tile..][..cut.tile]),
                    taps: taps.as_ptr(),
                    taps_len: taps.len(),
                    b,
                    c: sums.add(at * width),
                    c_at: SumsAt::rows(width),
                    add: k0 > 0,
                };
                // SAFETY: tile t was packed with `rows` rows; the taps cover its steps from k0, as
                // many as `b` has; the sums have `width` columns for every row of the band.
                unsafe { self.entries.of(&cut.rows, t)(&args) }
            }
        }
    }
}
