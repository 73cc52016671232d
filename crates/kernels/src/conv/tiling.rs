//! The division of rows of output pixels into register tiles, and the positions of these.

use crate::conv::register_tiles::{ConvTileArgs, conv_tile, two_row_tile, wrapping_tile};
use crate::gemm::tile::{Elements, Split, SplitEntries, tile_size};
use crate::isa::Isa;
use crate::simd::Entry;

/// A kind of register tiles: `blocks` blocks of outputs, `pixel` elements between the inputs of
/// neighbouring outputs.
#[derive(Clone, Copy)]
pub(super) struct TileShape {
    pub isa: Isa,
    pub elements: Elements,
    pub blocks: usize,
    pub pixel: usize,
}

impl TileShape {
    /// The tile for `pixels` pixels of one row.
    fn row(&self, pixels: usize) -> Entry<ConvTileArgs> {
        conv_tile(self.isa, self.elements, pixels, self.blocks, self.pixel)
    }

    /// Two whole rows of `cols` pixels, if there is such a tile.
    fn two_rows(&self, cols: usize) -> Option<Entry<ConvTileArgs>> {
        two_row_tile(self.isa, self.elements, cols, self.blocks, self.pixel)
    }

    /// The largest tile of which the first `wrap` pixels end a row and the others begin the next,
    /// where there is one.
    fn wrapping(&self, wrap: usize) -> Option<Entry<ConvTileArgs>> {
        wrapping_tile(self.isa, wrap, self.pixel)
    }
}

/// The register tiles of some rows.
pub(super) struct RowTiling {
    /// Cuts a row, or all of them.
    split: Split,
    entries: SplitEntries<ConvTileArgs>,
    cols: usize,
    wraps: RowWraps,
}

/// Most pixels of a wrapping tile before its wrap.
const MOST_WRAP: usize = 5;

/// Whether tiles continue in the next row.
enum RowWraps {
    /// Every row is cut for itself.
    Never,
    /// Two rows of a narrow image make one tile.
    TwoRows(Entry<ConvTileArgs>),
    /// All rows are cut as one line of pixels; tiles by the pixels before the wrap.
    Line([Option<Entry<ConvTileArgs>>; MOST_WRAP]),
}

/// The beginning of a tile, and its code.
pub(super) struct TilePlace {
    pub row: usize,
    pub col: usize,
    pub entry: Entry<ConvTileArgs>,
}

impl RowTiling {
    /// Tiles for `rows` rows of `cols` pixels.
    pub(super) fn new(cols: usize, rows: usize, shape: TileShape) -> RowTiling {
        let along = |total: usize, wraps: RowWraps| {
            let split = Split::tiles(total, shape.isa);
            RowTiling { split, entries: split.entries(|m| shape.row(m)), cols, wraps }
        };
        if let Some(two_rows) = shape.two_rows(cols) {
            return along(cols, RowWraps::TwoRows(two_rows));
        }
        // A line of all pixels, unless rows divide into whole tiles or are so short that a tile
        // could hold two ends. What is left over at the end of the line lies in the last row.
        let most = tile_size(shape.isa).rows;
        let wrapping = std::array::from_fn(|i| shape.wrapping(i + 1));
        let wraps = wrapping[0].is_some() && cols + 1 >= most && !cols.is_multiple_of(most) && rows > 1;
        if wraps { along(cols * rows, RowWraps::Line(wrapping)) } else { along(cols, RowWraps::Never) }
    }

    /// Number of tiles of `rows` rows.
    pub(super) fn count(&self, rows: usize) -> usize {
        match self.wraps {
            RowWraps::Never => rows * self.split.parts,
            RowWraps::TwoRows(_) => rows.div_ceil(2),
            RowWraps::Line(_) => self.split.parts,
        }
    }

    /// The positions of tiles, counted from the first row.
    pub(super) fn places(&self, rows: usize) -> impl Iterator<Item = TilePlace> + '_ {
        // The next tile, and its number in the row or line that is cut. Divisions would take as
        // long as a short tile's epilogue.
        let (mut row, mut col, mut part) = (0, 0, 0);
        (0..self.count(rows)).map(move |_| {
            let entry = self.entries.of(&self.split, part);
            let mut place = TilePlace { row, col, entry };
            if let RowWraps::TwoRows(pair) = &self.wraps {
                place.entry = if row + 1 < rows { *pair } else { entry };
                row += 2;
                return place;
            }
            let pixels = self.split.rows(part);
            if let RowWraps::Line(wrapping) = &self.wraps {
                let before = self.cols - col;
                let wrapped = wrapping.get(before - 1).copied().flatten().filter(|_| before < pixels);
                place.entry = wrapped.unwrap_or(entry);
            }
            (col, part) = (col + pixels, part + 1);
            while col >= self.cols {
                (row, col) = (row + 1, col - self.cols);
                if matches!(self.wraps, RowWraps::Never) {
                    part = 0;
                }
            }
            place
        })
    }
}
