//! Products of a few packed rows, in the scratch memory of one chunk, whose sums can be the packed
//! rows of another product: attention.

use super::job::{DEPTH, RowTaps, pack_rows};
use super::output::{Epilogue, GemmOutput, Scale};
use super::tile::{ProductArgs, Split, SumsAt, Tap, product, tile_size};
use super::{Matrix, Sgemm};
use crate::isa::Isa;
use crate::short_rows::{TOGETHER, VectorRows};
use crate::simd::{Dst, LANES, Src};

/// Rows in tiles, one after the other, each `[columns / 16][rows][16]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowTiles {
    split: Split,
    rows: usize,
    /// Times 16 columns.
    blocks: usize,
}

/// A tile of rows.
#[derive(Clone, Copy, Debug)]
struct RowTile {
    /// The first row.
    first: usize,
    rows: usize,
    /// The first element.
    start: usize,
}

impl RowTiles {
    fn new(rows: usize, columns: usize, isa: Isa) -> RowTiles {
        RowTiles { split: Split::tiles(rows, isa), rows, blocks: columns.div_ceil(LANES) }
    }

    /// Elements of all tiles.
    pub fn len(&self) -> usize {
        self.rows * self.blocks * LANES
    }

    fn tiles(self) -> impl Iterator<Item = RowTile> {
        (0..self.split.parts).map(move |i| self.tile(i))
    }

    /// Rows that a softmax takes together, with the number of the first one.
    pub fn groups(self) -> impl Iterator<Item = (usize, VectorRows)> {
        let (mut next, mut row) = (0, 0);
        std::iter::from_fn(move || {
            let first = (next < self.split.parts).then(|| self.tile(next))?;
            let mut group = VectorRows { starts: [0; TOGETHER], count: 0, step: first.step() };
            let number = first.first + row;
            while next < self.split.parts && self.tile(next).rows == first.rows && group.count < TOGETHER {
                group.starts[group.count] = self.tile(next).row(row);
                group.count += 1;
                row += 1;
                if row == first.rows {
                    (next, row) = (next + 1, 0);
                }
            }
            Some((number, group))
        })
    }

    #[inline]
    fn tile(&self, i: usize) -> RowTile {
        let first = self.split.start(i);
        RowTile { first, rows: self.split.rows(i), start: first * self.blocks * LANES }
    }
}

impl RowTile {
    /// The first element of a row. The next 16 columns follow [`step`](Self::step) elements later.
    fn row(&self, row: usize) -> usize {
        self.start + row * LANES
    }

    /// Elements from 16 columns to the next.
    fn step(&self) -> usize {
        self.rows * LANES
    }
}

/// A product of packed rows by a packed B.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowsProduct {
    gemm: Sgemm,
}

impl RowsProduct {
    /// The product of `[m, k]` by `[k, n]`.
    pub fn new([m, n, k]: [usize; 3], isa: Isa) -> RowsProduct {
        RowsProduct { gemm: Sgemm::new(m, n, k, isa) }
    }

    /// The product of the first rows.
    pub fn of_rows(&self, m: usize) -> RowsProduct {
        RowsProduct { gemm: Sgemm { m, ..self.gemm } }
    }

    /// Elements of packed B.
    pub fn packed_len(&self) -> usize {
        self.gemm.packed_len()
    }

    /// Packs B.
    ///
    /// # Panics
    /// If B or `to` is smaller than the product says.
    pub fn pack(&self, b: Matrix<'_>, to: &mut [f32]) {
        self.gemm.pack(b, to);
    }

    /// The rows of A.
    pub fn left(&self) -> RowTiles {
        RowTiles::new(self.gemm.m, self.gemm.k, self.gemm.isa)
    }

    /// Packs the rows of A.
    pub fn pack_left(&self, a: Matrix<'_>, to: &mut [f32]) {
        for RowTile { first, rows, start } in self.left().tiles() {
            pack_rows(a, first, rows, self.gemm.k, &mut to[start..]);
        }
    }

    /// The sums as the rows of another product, with columns up to the end of the last panel.
    pub fn sums(&self) -> RowTiles {
        RowTiles::new(self.gemm.m, self.gemm.n.next_multiple_of(self.gemm.panel()), self.gemm.isa)
    }

    /// Taps that a product needs.
    pub fn taps_len(&self) -> usize {
        self.gemm.k.div_ceil(LANES)
    }

    /// Elements of the sums of a panel.
    pub fn panel_sums_len(&self) -> usize {
        self.gemm.m * self.gemm.panel()
    }

    /// Computes [`sums`](Self::sums) of rows in the tiles of [`left`](Self::left).
    ///
    /// # Panics
    /// If an operand is too short.
    pub fn run_to_rows(&self, a: &[f32], packed: &[f32], to: &mut [f32], taps: &mut [Tap]) {
        let sums = self.sums();
        assert!(to.len() >= sums.len(), "{} sums need {} elements", to.len(), sums.len());
        let blocks = tile_size(self.gemm.isa).blocks;
        let to = Dst::new(&mut to[..sums.len()]);
        for panel in 0..self.panels() {
            self.panel((a, self.left()), packed, panel, taps, |i| {
                let tile = sums.tile(i);
                let at = SumsAt { row: LANES, block: tile.step() };
                (to.add(tile.start + panel * blocks * tile.step()), at)
            });
        }
    }

    /// Computes the product of rows in tiles that may have more columns, and writes it to rows of C
    /// that are `c_stride` apart. `sums` is scratch memory for those of a panel.
    ///
    /// # Safety
    /// C has as many rows and columns, which no other thread may touch.
    ///
    /// # Panics
    /// If an operand is too short.
    pub unsafe fn run(
        &self,
        a: (&[f32], RowTiles),
        packed: &[f32],
        (c, c_stride): (Dst, usize),
        sums: &mut [f32],
        taps: &mut [Tap],
    ) {
        let gemm = self.gemm;
        let (epilogue, scale) = (Epilogue::default(), Scale::default());
        let output = GemmOutput { gemm, epilogue, scale, factors: None, c, c_stride };
        let (width, split) = (gemm.panel(), a.1.split);
        let sums = Dst::new(&mut sums[..self.panel_sums_len()]);
        for panel in 0..self.panels() {
            let place = |i| (sums.add(split.start(i) * width), SumsAt::rows(width));
            self.panel(a, packed, panel, taps, place);
            // SAFETY: promised by the caller; `sums` holds all rows of the panel.
            unsafe { output.store(0, gemm.m, panel, sums.as_src(), width) }
        }
    }

    fn panels(&self) -> usize {
        self.gemm.n.div_ceil(self.gemm.panel())
    }

    /// Computes the sums of a panel, those of each tile of rows at its place.
    fn panel(
        &self,
        (a, left): (&[f32], RowTiles),
        packed: &[f32],
        panel: usize,
        taps: &mut [Tap],
        place: impl Fn(usize) -> (Dst, SumsAt),
    ) {
        let Sgemm { m, k, isa, elements, .. } = self.gemm;
        let (width, blocks) = (self.gemm.panel(), tile_size(isa).blocks);
        assert!(left.rows == m && left.blocks * LANES >= k && a.len() >= left.len(), "A ends too early");
        let b = &packed[panel * width * k..][..width * k];
        let entries = left.split.entries(|rows| product(isa, elements, rows, blocks));
        // Without products, sums are zero: one visit of no steps.
        let (steps, visits) = (if left.split.parts > 1 { DEPTH } else { k.max(1) }, k.max(1));
        for k0 in (0..visits).step_by(steps) {
            let b = Src::new(&b[k0 * width..]);
            let mut taps = RowTaps::new(taps, k0..k.min(k0 + steps));
            for i in 0..left.split.parts {
                let (tile, (c, c_at)) = (left.tile(i), place(i));
                let taps = taps.of(tile.rows);
                let args = ProductArgs {
                    a: Src::new(&a[tile.start..]),
                    taps: taps.as_ptr(),
                    taps_len: taps.len(),
                    b,
                    c,
                    c_at,
                    add: k0 > 0,
                };
                // SAFETY: A has this tile of rows, as was asserted; the taps cover its steps from
                // k0, as many as `b` has; there is a place for the sums of every tile.
                unsafe { entries.of(&left.split, i)(&args) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_hold_every_row_once_and_rows_of_tiles_of_one_size() {
        for (isa, rows) in Isa::ALL.into_iter().flat_map(|isa| (1..70).map(move |rows| (isa, rows))) {
            let tiles = RowTiles::new(rows, 40, isa);
            let places: Vec<_> = tiles.tiles().flat_map(|t| (0..t.rows).map(move |r| (t.row(r), t.step()))).collect();
            let mut next = 0;
            for (first, group) in tiles.groups() {
                assert!(first == next && (1..=TOGETHER).contains(&group.count), "{isa} {rows}");
                let these = group.starts[..group.count].iter().map(|start| (*start, group.step));
                assert!(these.eq(places[next..next + group.count].iter().copied()), "{isa} {rows}");
                next += group.count;
            }
            assert_eq!(next, rows, "{isa}");
        }
    }
}
