//! The layout of tile values between transforms and products.

use super::scheme::{NeededPoints, PointGroup, Scheme};

/// Kinds of tiles: large ones, those with a column less, with a row less, with both.
pub(super) const KINDS: usize = 4;
/// Most points along one side, and groups of points.
pub(super) const POINTS: usize = 9;
const GROUPS: usize = 36;

/// The offsets of all points.
pub(super) type PointOffsets = [u32; POINTS * POINTS];

/// Rows of 16 or 32 channels, one for each point that each tile needs: `[group of points][input
/// block][point][tile]`.
///
/// Points of a group share filter values, so that their rows go through one product. Partial tiles
/// have no rows for points that only missing outputs need; these all use the same spare rows, which
/// no product reads.
#[derive(Clone, Debug)]
pub(super) struct PointLayout {
    /// The first row of a group, and its rows in each block.
    groups: [(usize, usize); GROUPS],
    /// Points of a tile, and those in a row.
    points: usize,
    cols: usize,
    /// Rows of all tiles of a kind, and the position of those of the first one in the first block.
    tiles: [usize; KINDS],
    first: [PointOffsets; KINDS],
    /// Rows from one block to the next.
    step: [PointOffsets; KINDS],
}

impl PointLayout {
    /// A layout of `blocks` input blocks (one for products) with this number of tiles of every
    /// kind; `sizes` are rows, then columns of outputs of large and of small ones.
    pub(super) fn new(scheme: Scheme, sizes: [[usize; 2]; 2], tiles: [usize; KINDS], blocks: usize) -> PointLayout {
        let none = [[0; POINTS * POINTS]; KINDS];
        let [rows, cols] = scheme.points();
        let mut layout =
            PointLayout { groups: [(0, 0); GROUPS], points: rows * cols, cols, tiles, first: none, step: none };
        let needed = [0, 1, 2, 3].map(|kind| {
            let [tall, wide] = [sizes[0][kind >> 1], sizes[1][kind & 1]];
            [scheme.rows.needed(tall), scheme.cols.needed(wide)]
        });
        let full = |kind: usize| needed[kind][0].among(&(0..rows)) == rows && needed[kind][1].among(&(0..cols)) == cols;
        let spare = (0..KINDS).filter(|kind| !full(*kind)).map(|kind| tiles[kind]).max().unwrap_or(0);
        let mut start = blocks * spare;
        for group in scheme.groups() {
            let rows = layout.place(&group, &needed, start, spare);
            layout.groups[group.filter] = (start, rows);
            start += odd(blocks * rows);
        }
        layout
    }

    /// Places the points of a group that starts at row `start`; how many rows they take.
    fn place(&mut self, group: &PointGroup, needed: &[[NeededPoints; 2]; KINDS], start: usize, spare: usize) -> usize {
        let rows_of = |kind: usize| {
            let [rows, cols] = needed[kind];
            self.tiles[kind] * rows.among(&group.rows) * cols.among(&group.cols)
        };
        let total: usize = (0..KINDS).map(rows_of).sum();
        let mut next = start;
        for kind in (0..KINDS).filter(|kind| self.tiles[*kind] > 0) {
            let [rows, cols] = needed[kind];
            for row in group.rows.clone() {
                for col in group.cols.clone() {
                    let used = rows.has(row) && cols.has(col);
                    let point = row * self.cols + col;
                    self.first[kind][point] = if used { next as u32 } else { 0 };
                    self.step[kind][point] = if used { total } else { spare } as u32;
                    next += if used { self.tiles[kind] } else { 0 };
                }
            }
        }
        total
    }

    /// Rows of `tiles` tiles of any kind, at most.
    pub(super) fn most_rows(scheme: Scheme, tiles: usize, blocks: usize) -> usize {
        let rows = |group: PointGroup| odd(blocks * group.rows.len() * group.cols.len() * tiles);
        blocks * tiles + scheme.groups().map(rows).sum::<usize>()
    }

    /// The first row of a group of points, and its rows in each block.
    pub(super) fn group(&self, filter: usize) -> (usize, usize) {
        self.groups[filter]
    }

    /// Offsets of the rows of the first tile of every kind in a block, for rows of `width`
    /// elements.
    pub(super) fn places(&self, block: usize, width: usize, places: &mut [PointOffsets; KINDS]) {
        for kind in (0..KINDS).filter(|kind| self.tiles[*kind] > 0) {
            let points = places[kind][..self.points].iter_mut();
            for ((place, first), step) in points.zip(&self.first[kind]).zip(&self.step[kind]) {
                *place = (first + step * block as u32) * width as u32;
            }
        }
    }
}

/// An odd number of rows: at a power of two, the streams of all points share a few sets of the
/// first-level cache.
fn odd(rows: usize) -> usize {
    rows | 1
}
