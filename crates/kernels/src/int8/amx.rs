//! Sums of rows of bytes on tiles of AMX: an instruction adds 64 products to each of 16 x 16 sums.

use super::tile::{COLUMNS, GROUP, PANEL, Sums, TileArgs};
use crate::amx::tiles::{LINE, ROWS, TILE, TileBytes, Tiles};

/// Groups of bytes that a tile has of each row.
const GROUPS: usize = LINE / GROUP;
/// Tiles of rows that are multiplied together.
const HEIGHT: usize = 3;
/// Panels that are multiplied together.
const WIDTH: usize = 2;
/// Bytes from one row of sums to the next.
const SUMS_ROW: usize = size_of::<Sums>();

/// Rows and columns that are copied for a step.
pub(super) type Copied = [TileBytes; HEIGHT + WIDTH];

/// The tiles of this thread, configured when they are first used and released with this value; and
/// memory for what is copied for these or other instructions.
pub(super) struct TileUnit<'a> {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    hardware: Option<crate::amx::hardware::Hardware>,
    #[cfg(test)]
    model: Option<Box<crate::amx::model::Modelled>>,
    copied: &'a mut Copied,
    /// Rows that were prepared for several products.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "no level prepares rows"))]
    pub widened: &'a mut [u8],
}

impl<'a> TileUnit<'a> {
    pub fn new(copied: &'a mut Copied, widened: &'a mut [u8]) -> TileUnit<'a> {
        TileUnit {
            #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
            hardware: None,
            #[cfg(test)]
            model: None,
            copied,
            widened,
        }
    }

    /// Computes sums on the processor's tiles, as [`multiply`] does.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub fn multiply(&mut self, x: &TileArgs<'_>, sums: &mut [Sums]) {
        multiply(self.hardware.get_or_insert_with(Tiles::configure), x, self.copied, sums);
    }

    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    pub fn multiply(&mut self, _: &TileArgs<'_>, _: &mut [Sums]) {
        unreachable!("there is no product on tiles where the processor has none");
    }

    /// Computes sums by the model of tiles.
    #[cfg(test)]
    pub fn model(&mut self, x: &TileArgs<'_>, sums: &mut [Sums]) {
        multiply(&mut **self.model.get_or_insert_with(|| Box::new(Tiles::configure())), x, self.copied, sums);
    }
}

/// Computes the sums of all rows, which have room for whole tiles.
///
/// # Panics
/// If there is less room.
fn multiply<T: Tiles>(t: &mut T, x: &TileArgs<'_>, copied: &mut Copied, sums: &mut [Sums]) {
    let blocks = x.starts.chunks(HEIGHT * ROWS).zip(sums.chunks_mut(HEIGHT * ROWS));
    for (starts, sums) in blocks {
        let rows = RowTiles::new(x, starts);
        assert!(sums.len() >= rows.count * ROWS, "{} rows have room for {} sums", starts.len(), sums.len());
        for panel in (0..x.count).step_by(WIDTH) {
            let to = sums.as_mut_ptr().cast::<u8>().wrapping_add(panel * PANEL * size_of::<i32>());
            // SAFETY: rows and panels were checked where `TileArgs` was made, there is room for
            // whole tiles of sums, and tiles are configured.
            unsafe {
                match (rows.count, x.count - panel) {
                    (1, 1) => register_tile::<T, 1, 1>(t, x, &rows, panel, copied, to),
                    (2, 1) => register_tile::<T, 2, 1>(t, x, &rows, panel, copied, to),
                    (_, 1) => register_tile::<T, HEIGHT, 1>(t, x, &rows, panel, copied, to),
                    (1, _) => register_tile::<T, 1, WIDTH>(t, x, &rows, panel, copied, to),
                    (2, _) => register_tile::<T, 2, WIDTH>(t, x, &rows, panel, copied, to),
                    (..) => register_tile::<T, HEIGHT, WIDTH>(t, x, &rows, panel, copied, to),
                }
            }
        }
    }
}

/// Rows in tiles. Rows after the last are the last one again.
struct RowTiles {
    /// Tiles.
    count: usize,
    rows: [[*const u8; ROWS]; HEIGHT],
    /// Bytes from one row of a tile to the next, if they are the same for all.
    strides: [Option<usize>; HEIGHT],
}

impl RowTiles {
    fn new(x: &TileArgs<'_>, starts: &[usize]) -> RowTiles {
        let last = starts.len() - 1;
        let of = |row: usize| starts[row.min(last)];
        let stride = |tile: usize| {
            let [first, second] = [0, 1].map(|row| of(tile * ROWS + row));
            let stride = second.checked_sub(first)?;
            let even = |row: usize| of(tile * ROWS + row).checked_sub(of(tile * ROWS + row - 1)) == Some(stride);
            (1..ROWS).all(even).then_some(stride)
        };
        RowTiles {
            count: starts.len().div_ceil(ROWS),
            rows: std::array::from_fn(|tile| std::array::from_fn(|row| x.data().wrapping_add(of(tile * ROWS + row)))),
            strides: std::array::from_fn(stride),
        }
    }

    /// Bytes from one row of a tile to the next, if `len` bytes of each are loaded where they are.
    fn in_place(&self, tile: usize, len: usize) -> Option<usize> {
        self.strides[tile].filter(|_| len == LINE)
    }

    /// Loads bytes of the rows of a tile from `offset` on, `len` of them and zeros, as tile 6.
    ///
    /// # Safety
    /// The rows have these bytes, and tiles are configured.
    unsafe fn load<T: Tiles>(&self, t: &mut T, tile: usize, offset: usize, len: usize, copied: &mut Copied) {
        // SAFETY: promised by the caller.
        unsafe {
            if self.in_place(tile, len).is_none() {
                let rows = self.rows[tile].map(|row| row.wrapping_add(offset));
                t.gather(&rows, len, &mut copied[tile]);
            }
            self.load_again(t, tile, offset, len, copied);
        }
    }

    /// Loads what [`load`](Self::load) left in memory, or found in place, once more.
    ///
    /// # Safety
    /// [`load`](Self::load) was called with these arguments, and tiles are configured.
    unsafe fn load_again<T: Tiles>(&self, t: &mut T, tile: usize, offset: usize, len: usize, copied: &Copied) {
        // SAFETY: promised by the caller; what was copied is a tile.
        unsafe {
            match self.in_place(tile, len) {
                Some(stride) => t.load::<6>(self.rows[tile][0].wrapping_add(offset), stride),
                None => t.load::<6>(copied[tile].as_ptr().cast(), LINE),
            }
        }
    }
}

/// Computes R tiles of rows by P panels, from `panel` on. Tiles 0 to 5 are sums (row * 2 + panel), 6
/// is of rows and 7 of weights.
///
/// # Safety
/// Rows and panels are as long as [`TileArgs`] says, there are R tiles and P panels, `sums` has room
/// for R whole tiles of rows, and tiles are configured.
#[inline(always)]
unsafe fn register_tile<T: Tiles, const R: usize, const P: usize>(
    t: &mut T,
    x: &TileArgs<'_>,
    rows: &RowTiles,
    panel: usize,
    copied: &mut Copied,
    sums: *mut u8,
) {
    let groups = x.groups();
    let first = |p: usize| x.panel(panel + p).wrapping_add(x.segments().len() * groups * LINE);
    // SAFETY: promised by the caller.
    unsafe {
        begin::<T, 0>(t, x.signed, first(0));
        if P > 1 {
            begin::<T, 1>(t, x.signed, first(1));
        }
        if R > 1 {
            begin::<T, 2>(t, x.signed, first(0));
        }
        if R > 1 && P > 1 {
            begin::<T, 3>(t, x.signed, first(1));
        }
        if R > 2 {
            begin::<T, 4>(t, x.signed, first(0));
        }
        if R > 2 && P > 1 {
            begin::<T, 5>(t, x.signed, first(1));
        }
        for (s, segment) in x.segments().iter().enumerate() {
            for group in (0..groups).step_by(GROUPS) {
                let (offset, len) = (segment + group * GROUP, LINE.min((groups - group) * GROUP));
                let line = s * groups + group;
                columns(t, x, [panel, line], len, &mut copied[HEIGHT]);
                rows.load(t, 0, offset, len, copied);
                t.multiply_bytes::<0, 6, 7>();
                if R > 1 {
                    rows.load(t, 1, offset, len, copied);
                    t.multiply_bytes::<2, 6, 7>();
                }
                if R > 2 {
                    rows.load(t, 2, offset, len, copied);
                    t.multiply_bytes::<4, 6, 7>();
                }
                if P == 1 {
                    continue;
                }
                // The last tile of rows is still there.
                columns(t, x, [panel + 1, line], len, &mut copied[HEIGHT + 1]);
                if R > 2 {
                    t.multiply_bytes::<5, 6, 7>();
                    rows.load_again(t, 1, offset, len, copied);
                }
                if R > 1 {
                    t.multiply_bytes::<3, 6, 7>();
                    rows.load_again(t, 0, offset, len, copied);
                }
                t.multiply_bytes::<1, 6, 7>();
            }
        }
        let place =
            |tile: usize, panel: usize| sums.wrapping_add(tile * ROWS * SUMS_ROW + panel * PANEL * size_of::<i32>());
        t.store::<0>(place(0, 0), SUMS_ROW);
        if P > 1 {
            t.store::<1>(place(0, 1), SUMS_ROW);
        }
        if R > 1 {
            t.store::<2>(place(1, 0), SUMS_ROW);
        }
        if R > 1 && P > 1 {
            t.store::<3>(place(1, 1), SUMS_ROW);
        }
        if R > 2 {
            t.store::<4>(place(2, 0), SUMS_ROW);
        }
        if R > 2 && P > 1 {
            t.store::<5>(place(2, 1), SUMS_ROW);
        }
    }
}

/// Begins sums with the corrections of their columns, or with zero.
///
/// # Safety
/// `corrections` has 64 bytes, and tiles are configured.
#[inline(always)]
unsafe fn begin<T: Tiles, const C: usize>(t: &mut T, signed: bool, corrections: *const u8) {
    // SAFETY: promised by the caller; all rows are the same.
    unsafe { if signed { t.load::<C>(corrections, 0) } else { t.zero::<C>() } }
}

/// Loads lines of a panel as tile 7. Those after the first `len` bytes of each column may be any.
///
/// # Safety
/// The panel has these lines, and tiles are configured.
#[inline(always)]
unsafe fn columns<T: Tiles>(
    t: &mut T,
    x: &TileArgs<'_>,
    [panel, line]: [usize; 2],
    len: usize,
    copied: &mut TileBytes,
) {
    let from = x.panel(panel).wrapping_add(line * LINE);
    // SAFETY: promised by the caller, and the bytes up to the end of the panels were counted.
    unsafe {
        if x.bytes_from(panel) >= line * LINE + TILE {
            return t.load::<7>(from, LINE);
        }
        let lines = len / GROUP;
        for (i, to) in copied.iter_mut().enumerate().take(lines) {
            *to = *from.add(i * LINE).cast();
        }
        copied[lines..].fill([0; LINE]);
        t.load::<7>(copied.as_ptr().cast(), LINE);
    }
}

const _: () = assert!(COLUMNS == 2 * WIDTH * PANEL && LINE == PANEL * GROUP && ROWS == PANEL);
