//! A running product: chunks of rows and panels, and what each of them packs.

use super::output::GemmOutput;
use super::small::SmallView;
use super::tile::{ProductArgs, Split, SumsAt, Tap, product, tile_size};
use super::{Matrix, Sgemm};
use crate::simd::{Dst, LANES, Src, entry};
use crate::squares::{Turn, TurnArgs};
use std::ops::Range;

/// Steps of k between two visits of C if there are several tiles of rows: a panel of this depth
/// stays in the first-level cache while they pass by.
pub(super) const DEPTH: usize = 256;
/// Register tiles of rows that a chunk packs together.
const ROW_TILES: usize = 8;
/// Multiply-adds that a chunk should have at least; and where rows are so few that reading B takes
/// the time.
pub(super) const CHUNK_WORK: usize = 1 << 20;
const FEW_ROWS_WORK: usize = 128 << 10;
/// Bytes of packed rows that stay in the second-level cache while all panels pass by.
const WHOLE_ROWS: usize = 192 << 10;
/// Panels that are packed side by side.
pub(super) const PACKED_AT_ONCE: usize = 8;

/// How a product is cut into chunks; a function of its shape and instruction set alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct GemmCut {
    rows: Split,
    row_tiles: usize,
    panels: usize,
    bands: usize,
    panel_groups: usize,
}

impl GemmCut {
    pub fn of(gemm: &Sgemm) -> GemmCut {
        let size = tile_size(gemm.isa);
        let rows = Split::tiles(gemm.m, gemm.isa);
        let panels = gemm.n.div_ceil(gemm.panel());
        let bands = rows.parts.div_ceil(ROW_TILES);
        let row_tiles = rows.parts.div_ceil(bands);
        // Panels that make a chunk worth its start, and at least eight so that repacking A stays
        // small beside its use.
        let band_work = (row_tiles * size.rows).min(gemm.m.max(1)) * gemm.panel() * gemm.k.max(1);
        let least = if rows.parts == 1 { FEW_ROWS_WORK } else { CHUNK_WORK };
        let group = least.div_ceil(band_work).max(8);
        GemmCut { rows, row_tiles, panels, bands, panel_groups: panels.div_ceil(group).max(1) }
    }

    /// A product of which every chunk packs all rows of A, where these stay in the second-level
    /// cache: so a chunk packs its panels for all rows at once.
    pub fn of_whole_rows(gemm: &Sgemm) -> Option<GemmCut> {
        let cut = GemmCut { bands: 1, ..GemmCut::of(gemm) };
        let bytes = size_of::<f32>() * gemm.m * gemm.k.next_multiple_of(LANES);
        (bytes <= WHOLE_ROWS).then_some(GemmCut { row_tiles: cut.rows.parts, ..cut })
    }

    pub fn chunks(&self) -> usize {
        self.bands * self.panel_groups
    }

    /// Whether several chunks need the same panel of B.
    pub fn shares_panels(&self) -> bool {
        self.bands > 1
    }
}

/// The right operand of a product.
#[derive(Clone, Copy)]
pub(super) enum Right<'a> {
    /// Panels, as [`Sgemm::pack`] leaves them.
    Packed(&'a [f32]),
    /// A matrix whose panels every chunk packs for itself.
    Plain(Matrix<'a>),
    /// Weights in fewer bytes, whose panels every chunk expands for itself.
    Small(SmallView<'a>),
}

/// A running product: what every chunk needs to know.
pub(super) struct Job<'a> {
    pub gemm: Sgemm,
    pub cut: GemmCut,
    pub a: Matrix<'a>,
    pub b: Right<'a>,
    pub output: GemmOutput<'a>,
}

/// Bytes of scratch that a chunk needs.
pub(super) fn scratch_bytes(gemm: &Sgemm, cut: &GemmCut, packs_panels: bool) -> usize {
    let rows = cut.row_tiles * tile_size(gemm.isa).rows;
    let panel = if packs_panels { gemm.panel() * gemm.k } else { 0 };
    let floats = rows * (gemm.k.next_multiple_of(LANES) + gemm.panel()) + panel;
    size_of::<f32>() * floats + size_of::<Tap>() * gemm.k.div_ceil(LANES)
}

impl Job<'_> {
    /// Rows of the largest band.
    fn band_rows(&self) -> usize {
        self.cut.row_tiles * tile_size(self.gemm.isa).rows
    }

    /// One band of rows times one group of panels.
    pub fn chunk(&self, chunk: usize, scratch: &mut [u8]) {
        let Sgemm { k, isa, elements, .. } = self.gemm;
        let (tiles, panels) = self.part(chunk);
        let (width, blocks) = (self.gemm.panel(), tile_size(isa).blocks);

        let depth = k.next_multiple_of(LANES);
        let (a_bytes, rest) = scratch.split_at_mut(size_of::<f32>() * self.band_rows() * depth);
        let (c_bytes, rest) = rest.split_at_mut(size_of::<f32>() * self.band_rows() * width);
        let own_panel = if matches!(self.b, Right::Packed(_)) { 0 } else { width * k };
        let (b_bytes, tap_bytes) = rest.split_at_mut(size_of::<f32>() * own_panel);
        let packed_a: &mut [f32] = bytemuck::cast_slice_mut(a_bytes);
        let sums: &mut [f32] = bytemuck::cast_slice_mut(c_bytes);
        let packed_b: &mut [f32] = bytemuck::cast_slice_mut(b_bytes);
        let taps: &mut [Tap] = bytemuck::cast_slice_mut(&mut tap_bytes[..size_of::<Tap>() * k.div_ceil(LANES)]);

        let first = self.cut.rows.start(tiles.start);
        for t in tiles.clone() {
            let (start, rows) = (self.cut.rows.start(t), self.cut.rows.rows(t));
            pack_rows(self.a, start, rows, k, &mut packed_a[(start - first) * depth..]);
        }
        let entries = self.cut.rows.entries(|rows| product(isa, elements, rows, blocks));
        let (a, c) = (Src::new(packed_a), Dst::new(sums));
        // Sums are the same however rows are divided into bands.
        let steps = if self.cut.rows.parts > 1 { DEPTH } else { k.max(1) };
        for panel in panels {
            let b = match self.b {
                Right::Packed(b) => &b[panel * width * k..][..width * k],
                Right::Plain(b) => {
                    self.gemm.pack_panels(panel, b, packed_b);
                    &*packed_b
                }
                Right::Small(weights) => {
                    weights.expand(panel, packed_b);
                    &*packed_b
                }
            };
            for k0 in (0..k).step_by(steps) {
                let b = Src::new(b).add(k0 * width);
                let mut taps = RowTaps::new(taps, k0..k.min(k0 + steps));
                for t in tiles.clone() {
                    let (at, rows) = (self.cut.rows.start(t) - first, self.cut.rows.rows(t));
                    let taps = taps.of(rows);
                    let args = ProductArgs {
                        a: a.add(at * depth),
                        taps: taps.as_ptr(),
                        taps_len: taps.len(),
                        b,
                        c: c.add(at * width),
                        c_at: SumsAt::rows(width),
                        add: k0 > 0,
                    };
                    // SAFETY: tile t was packed above with `rows` rows at `at * depth`; the taps
                    // cover its `steps` from k0, as many as `b` has; `sums` has `width` columns for
                    // every row of the band.
                    unsafe { entries.of(&self.cut.rows, t)(&args) }
                }
            }
            if k == 0 {
                // SAFETY: `sums` is this chunk's own.
                unsafe { c.zero(0, self.band_rows() * width) }
            }
            let rows = self.cut.rows.start(tiles.end - 1) + self.cut.rows.rows(tiles.end - 1) - first;
            // SAFETY: no other chunk has this band and panel.
            unsafe { self.output.store(first, rows, panel, c.as_src(), width) }
        }
    }

    /// The tiles of rows and the panels of a chunk.
    fn part(&self, chunk: usize) -> (Range<usize>, Range<usize>) {
        let GemmCut { rows, row_tiles, panels, bands, panel_groups, .. } = self.cut;
        let (band, group) = (chunk % bands, chunk / bands);
        let tiles = band * row_tiles..((band + 1) * row_tiles).min(rows.parts);
        (tiles, group * panels / panel_groups..(group + 1) * panels / panel_groups)
    }
}

/// Packs `rows` rows of A from `first` as `[k / 16][rows][16]`, zero beyond k.
pub(super) fn pack_rows(a: Matrix<'_>, first: usize, rows: usize, k: usize, out: &mut [f32]) {
    for (block, out) in out.chunks_exact_mut(rows * LANES).take(k.div_ceil(LANES)).enumerate() {
        let k0 = block * LANES;
        let count = LANES.min(k - k0);
        for (r, out) in out.chunks_exact_mut(LANES).enumerate() {
            let row = &a.data[(first + r) * a.row_stride + k0 * a.col_stride..];
            let whole = out.first_chunk_mut::<LANES>();
            if let (1, Some(row), Some(out)) = (a.col_stride, row.first_chunk::<LANES>(), whole) {
                // A whole vector, also where only `count` are ours: the rest is overwritten below.
                // An array is copied in place, a slice by a call.
                *out = *row;
            } else {
                out[..count].iter_mut().enumerate().for_each(|(j, o)| *o = row[j * a.col_stride]);
            }
            out[count..].fill(0.0);
        }
    }
}

/// The taps of some steps in tiles of packed rows.
pub(super) struct RowTaps<'a> {
    taps: &'a mut [Tap],
    steps: Range<usize>,
    /// The rows of the tile that they are for.
    rows: usize,
}

impl<'a> RowTaps<'a> {
    /// The taps of steps that begin with a vector, in memory for at least as many.
    pub fn new(memory: &'a mut [Tap], steps: Range<usize>) -> RowTaps<'a> {
        let blocks = steps.start / LANES..steps.end.div_ceil(LANES);
        RowTaps { taps: &mut memory[..blocks.len()], steps, rows: 0 }
    }

    /// The taps in a tile of `rows` packed rows, one at least. Tiles of the same size have the same.
    #[inline]
    pub fn of(&mut self, rows: usize) -> &[Tap] {
        if rows != self.rows {
            self.rows = rows;
            for (i, tap) in self.taps.iter_mut().enumerate() {
                let block = self.steps.start / LANES + i;
                let count = LANES.min(self.steps.end - block * LANES);
                *tap = Tap { offset: (block * rows * LANES) as u32, count: count as u32 };
            }
        }
        self.taps
    }
}

impl Sgemm {
    /// Packs panels from number `first` on, as many as `out` has room for.
    pub(super) fn pack_panels(&self, first: usize, b: Matrix<'_>, out: &mut [f32]) {
        let len = self.panel() * self.k;
        if len == 0 {
            return;
        }
        if b.col_stride == 1 {
            for (group, panels) in out.chunks_mut(PACKED_AT_ONCE * len).enumerate() {
                self.pack_contiguous(first + group * PACKED_AT_ONCE, b, panels);
            }
            return;
        }
        for (p, panel) in out.chunks_exact_mut(len).enumerate() {
            let first = (first + p) * self.panel();
            self.pack_columns(b, first, self.panel().min(self.n - first), panel);
        }
    }

    /// Packs a few panels of a B with contiguous rows: row by row, so that reads run along them.
    fn pack_contiguous(&self, first: usize, b: Matrix<'_>, panels: &mut [f32]) {
        let (width, len) = (self.panel(), self.panel() * self.k);
        for i in 0..self.k {
            let row = &b.data[i * b.row_stride..];
            for (p, panel) in panels.chunks_exact_mut(len).enumerate() {
                let start = (first + p) * width;
                let cols = width.min(self.n - start);
                let to = &mut panel[i * width..][..width];
                let from = row[start..].first_chunk::<LANES>();
                if let (true, Some(from), Some(to)) = (cols == LANES, from, to.first_chunk_mut::<LANES>()) {
                    *to = *from;
                } else {
                    to[..cols].copy_from_slice(&row[start..][..cols]);
                    to[cols..].fill(0.0);
                }
            }
        }
    }

    /// Packs one panel of a B whose columns are not contiguous, in blocks of 16 rows so that reads
    /// stay in the lines they opened; whole squares of 16 contiguous columns are turned in registers.
    fn pack_columns(&self, b: Matrix<'_>, first: usize, cols: usize, panel: &mut [f32]) {
        let width = self.panel();
        let whole = if b.row_stride == 1 { cols / LANES * LANES } else { 0 };
        let turn = entry::<Turn<false>>(self.isa);
        for (block, rows) in panel.chunks_mut(LANES * width).enumerate() {
            let i0 = block * LANES;
            let turned = if rows.len() == LANES * width { whole } else { 0 };
            if turned > 0 {
                let (from, distance) = (&b.data[first * b.col_stride + i0..], b.col_stride);
                assert!(from.len() >= (turned - 1) * distance + LANES, "a square of B ends outside of it");
                let (from, to) = (Src::new(from), Dst::new(rows));
                // SAFETY: `from` has a run of 16 for each of these columns, as just asserted, and
                // `rows` 16 rows of `width`.
                unsafe {
                    turn(&TurnArgs {
                        from,
                        distance: distance as isize,
                        to,
                        width: width as isize,
                        squares: turned / LANES,
                        next: [(LANES * distance) as isize, LANES as isize],
                        soon: LANES as isize,
                    })
                }
            }
            for j in turned..cols {
                let column = &b.data[(first + j) * b.col_stride + i0 * b.row_stride..];
                for (i, row) in rows.chunks_exact_mut(width).enumerate() {
                    row[j] = column[i * b.row_stride];
                }
            }
            rows.chunks_exact_mut(width).for_each(|row| row[cols..].fill(0.0));
        }
    }
}
