//! Register tiles: sums of some rows of bytes with up to 64 columns of packed weights.

use super::Level;
use super::amx::TileUnit;
use super::finish::{Conversion, LimitedSums};
use super::pack::{CORRECTIONS, panel_len};
use crate::par::PickedRows;
use crate::places::Places;
use std::ops::Range;

/// Columns that a panel of packed weights holds.
pub(super) const PANEL: usize = 16;
/// Products that one sum takes together.
pub(super) const GROUP: usize = 4;
/// Panels of a tile.
pub(super) const PANELS: usize = 4;
/// Columns of a tile.
pub const COLUMNS: usize = PANELS * PANEL;
/// Rows of a tile.
pub(super) const ROWS: usize = 6;

/// Sums of a row of a tile.
pub type Sums = [i32; COLUMNS];

/// Destination of sums, row by row.
pub(super) enum TileEnd<'a, 'b> {
    /// Stores the sums.
    Sums(&'a mut [Sums]),
    /// Makes bytes of them, on levels that do so.
    Bytes(ByteEnd<'a>, PickedRows<'b, u8>),
}

/// The end of sums that become bytes.
#[derive(Clone, Copy)]
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    expect(dead_code, reason = "no level makes bytes")
)]
pub(super) struct ByteEnd<'a> {
    pub sums: LimitedSums<'a>,
    /// The way in which sums in registers become numbers.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "other kernels have one way"))]
    pub conversion: Conversion,
    /// The first column.
    pub first: usize,
    /// Bits of each byte that are flipped.
    pub flip: u8,
    /// Rows that are added to results, if there is an addend.
    pub added: Option<AddedRows<'a>>,
}

/// Rows of bytes that are added to results.
#[derive(Clone, Copy)]
pub(super) struct AddedRows<'a> {
    pub bytes: &'a [u8],
    /// Offset of the pixel of each row.
    pub starts: &'a [usize],
    /// Bits of each byte that are flipped.
    pub flip: u8,
}

impl<'a> AddedRows<'a> {
    /// The bytes of the columns of a row.
    ///
    /// # Panics
    /// If there are none.
    #[inline]
    pub fn row(&self, row: usize) -> &'a [u8; COLUMNS] {
        self.bytes[self.starts[row]..].first_chunk().expect("pixels are whole tiles")
    }
}

impl ByteEnd<'_> {
    /// The end of some of the rows.
    fn part(&self, rows: Range<usize>) -> Self {
        ByteEnd { added: self.added.map(|added| AddedRows { starts: &added.starts[rows], ..added }), ..*self }
    }

    /// Whether results may be negative. Others are the same bytes in either type.
    #[cfg(target_arch = "x86_64")]
    pub fn signed(&self) -> bool {
        self.sums.limits[0] < 0.0
    }
}

impl<'a> TileEnd<'a, '_> {
    /// Some of the rows.
    pub fn part(&mut self, rows: Range<usize>) -> TileEnd<'_, '_> {
        match self {
            TileEnd::Sums(sums) => TileEnd::Sums(&mut sums[rows]),
            TileEnd::Bytes(end, results) => TileEnd::Bytes(end.part(rows.clone()), results.part(rows, 0)),
        }
    }

    /// Rows that are written.
    pub fn rows(&self) -> usize {
        match self {
            TileEnd::Sums(sums) => sums.len(),
            TileEnd::Bytes(_, results) => results.len(),
        }
    }

    /// The sums.
    ///
    /// # Panics
    /// If they become bytes.
    pub fn sums(self) -> &'a mut [Sums] {
        match self {
            TileEnd::Sums(sums) => sums,
            TileEnd::Bytes(..) => panic!("this level has no bytes in registers"),
        }
    }
}

/// Rows that are computed for some that are wanted: a tile computes all of its rows, unless one is left.
pub(super) fn whole_rows(wanted: usize) -> usize {
    if wanted % ROWS == 1 { wanted } else { wanted.next_multiple_of(ROWS) }
}

/// Places of unsigned bytes that are multiplied with packed weights. A row begins at an offset of
/// its own; its segments begin at the same distances from there in every row.
#[derive(Clone, Copy)]
pub(super) struct Windows<'a> {
    data: &'a [u8],
    segments: &'a [usize],
    /// Groups of four bytes in a segment.
    groups: usize,
    /// Bytes from the beginning of a row to the end of its last segment.
    reach: usize,
}

impl<'a> Windows<'a> {
    pub fn new(data: &'a [u8], segments: &'a [usize], groups: usize) -> Windows<'a> {
        let reach = segments.iter().max().map_or(0, |last| last + groups * GROUP);
        Windows { data, segments, groups, reach }
    }

    /// Bytes of a row in all its segments.
    pub fn len(&self) -> usize {
        self.segments.len() * self.groups * GROUP
    }

    /// The offsets of rows, which are in the data.
    fn checked<'b>(&self, rows: Places<'b>) -> &'b [usize] {
        let most = rows.most();
        let end_of_rows = most.checked_add(self.reach).filter(|end| *end <= self.data.len());
        assert!(end_of_rows.is_some(), "a row at {most} ends after {} bytes", self.data.len());
        rows.values()
    }

    /// Prepares rows that are multiplied next, once for any number of panels, if the level does so.
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "no other level does so"))]
    pub fn widen(&self, level: Level, rows: Places<'_>, unit: &mut TileUnit<'_>) {
        #[cfg(target_arch = "x86_64")]
        if level.without_tiles() == Level::Avx2 && rows.values().len() > 1 {
            let starts = self.checked(rows);
            let rows = TileArgs { starts, windows: self, panels: &[], panel_len: 0, count: 0, signed: false };
            // SAFETY: rows were checked, and `Level::or_best` found the instructions.
            unsafe { super::x86::widen(&rows, unit.widened) }
        }
    }

    /// Multiplies rows, which begin at these offsets and were [prepared](Self::widen), with the
    /// panels, at most [`PANELS`]. `end` has the sums or results of row after row, and room for
    /// [`whole_rows`] of them.
    ///
    /// # Panics
    /// If a row ends after the data, or there are no or too many panels.
    pub fn multiply(&self, x: &MultiplyArgs<'_>, mut end: TileEnd<'_, '_>, unit: &mut TileUnit<'_>) {
        let MultiplyArgs { level, rows, panels, signed } = *x;
        let len = panel_len(self.len());
        let count = panels.len() / len;
        assert!((1..=PANELS).contains(&count), "{count} panels");
        let rows = self.checked(rows);
        let all = TileArgs { starts: rows, windows: self, panels, panel_len: len, count, signed };
        match level {
            Level::Tiles if rows.len() > ROWS => return unit.multiply(&all, end.sums()),
            #[cfg(test)]
            Level::Modelled if rows.len() > ROWS => return unit.model(&all, end.sums()),
            _ => {}
        }
        // A few rows would leave most of a tile empty.
        let level = level.without_tiles();
        #[cfg(target_arch = "x86_64")]
        if level == Level::Avx2 && rows.len() > 1 {
            // SAFETY: rows and panels were checked, and `Level::or_best` found the instructions.
            return unsafe { super::x86::avx2(&all, unit.widened, end.sums()) };
        }
        let run = |starts: &[usize], end: TileEnd<'_, '_>| {
            let tiles = TileArgs { starts, ..all };
            match level {
                // SAFETY: rows and panels were checked, and `Level::or_best` found the
                // instructions.
                #[cfg(target_arch = "x86_64")]
                Level::Vnni => unsafe { super::x86::vnni(&tiles, end) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                Level::Avx2 => unsafe { super::x86::avx2_row(&tiles, &mut end.sums()[0]) },
                // SAFETY: as above.
                #[cfg(target_arch = "aarch64")]
                Level::I8mm => unsafe { super::neon::i8mm(&tiles, end) },
                // SAFETY: as above.
                #[cfg(target_arch = "aarch64")]
                Level::DotProd => unsafe { super::neon::dotprod(&tiles, end) },
                _ => portable(&tiles, end.sums()),
            }
        };
        let whole = rows.len() / ROWS * ROWS;
        let (tiles, rest) = rows.split_at(whole);
        if !tiles.is_empty() {
            run(tiles, end.part(0..whole));
        }
        match rest {
            [] => {}
            [_] => run(rest, end.part(whole..whole + 1)),
            [.., last] => {
                let starts: [usize; ROWS] = std::array::from_fn(|r| *rest.get(r).unwrap_or(last));
                run(&starts, end.part(whole..whole + ROWS));
            }
        }
    }
}

/// Bytes that rows of this length take once they are prepared.
pub(super) fn widened_len(level: Level, len: usize) -> usize {
    #[cfg(target_arch = "x86_64")]
    if level.without_tiles() == Level::Avx2 {
        return super::x86::widened_len(len.div_ceil(GROUP));
    }
    let _ = (level, len);
    0
}

/// Rows by panels.
#[derive(Clone, Copy)]
pub(super) struct MultiplyArgs<'a> {
    pub level: Level,
    pub rows: Places<'a>,
    pub panels: &'a [u8],
    /// Whether the data were signed.
    pub signed: bool,
}

/// The operands of whole tiles, or of one row; they are as long as they have to be.
#[derive(Clone, Copy)]
pub(super) struct TileArgs<'a> {
    /// Offsets of the rows.
    pub starts: &'a [usize],
    windows: &'a Windows<'a>,
    panels: &'a [u8],
    panel_len: usize,
    /// Panels.
    pub count: usize,
    /// Whether sums begin with the corrections of their columns.
    pub signed: bool,
}

impl<'a> TileArgs<'a> {
    /// Chooses some of the rows; the other operands stay.
    #[cfg(target_arch = "x86_64")]
    pub fn with_starts(&self, starts: &'a [usize]) -> TileArgs<'a> {
        TileArgs { starts, ..*self }
    }

    pub fn segments(&self) -> &[usize] {
        self.windows.segments
    }

    /// Groups of a segment.
    pub fn groups(&self) -> usize {
        self.windows.groups
    }

    /// Address of the data.
    pub fn data(&self) -> *const u8 {
        self.windows.data.as_ptr()
    }

    /// Address of a row.
    #[cfg(target_arch = "x86_64")]
    pub fn row(&self, row: usize) -> *const u8 {
        self.data().wrapping_add(self.starts[row])
    }

    /// The numbers that sums of a panel begin with.
    pub fn first_sums(&self, panel: usize) -> [i32; PANEL] {
        let corrections = self.panels[(panel + 1) * self.panel_len - CORRECTIONS..].as_chunks::<4>().0;
        std::array::from_fn(|i| if self.signed { i32::from_ne_bytes(corrections[i]) } else { 0 })
    }

    /// Address of the weights of a panel: 64 bytes for each group of each segment, then
    /// corrections.
    pub fn panel(&self, panel: usize) -> *const u8 {
        self.panels.as_ptr().wrapping_add(panel * self.panel_len)
    }

    /// Bytes from the beginning of a panel to the end of the last one.
    pub fn bytes_from(&self, panel: usize) -> usize {
        self.panels.len() - panel * self.panel_len
    }
}

/// Bits that turn a byte into an unsigned number.
pub(super) fn sign_flip(signed: bool) -> u8 {
    if signed { 0x80 } else { 0 }
}

fn portable(x: &TileArgs<'_>, sums: &mut [Sums]) {
    let len = x.groups() * GROUP;
    for (p, panel) in x.panels.chunks_exact(x.panel_len).take(x.count).enumerate() {
        for (start, row) in x.starts.iter().zip(&mut *sums) {
            row[p * PANEL..][..PANEL].copy_from_slice(&x.first_sums(p));
            let segments = panel.chunks_exact((len * PANEL).max(1)).zip(x.segments());
            for (weights, segment) in segments {
                let data = x.windows.data[start + segment..][..len].as_chunks::<GROUP>().0;
                for (data, weights) in data.iter().zip(weights.chunks_exact(GROUP * PANEL)) {
                    for (sum, weights) in row[p * PANEL..].iter_mut().zip(weights.as_chunks::<GROUP>().0) {
                        let products = data.iter().zip(weights).map(|(a, w)| i32::from(*a) * i32::from(*w as i8));
                        *sum = sum.wrapping_add(products.sum());
                    }
                }
            }
        }
    }
}
