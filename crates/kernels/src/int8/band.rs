//! Bands of rows whose sums are computed and finished together.

use super::amx::{Copied, TileUnit};
use super::depthwise::{Depthwise, ResultRows, WindowRows};
use super::finish::{Epilogue, LimitedSums, SumsBlock};
use super::tile::{ByteEnd, COLUMNS, MultiplyArgs, PANEL, ROWS, Sums, TileEnd, Windows, widened_len};
use super::{Level, RoundTo};
use crate::par::{Columns, PickedRows};
use crate::places::Places;

/// Rows of a band.
pub(super) const BAND: usize = 8 * ROWS;
/// Rows of a band whose sums become bytes in registers.
pub(super) const LONG_BAND: usize = 4 * BAND;
/// Bytes of the windows of a long band, which are read again for the next columns.
const NEAR: usize = 64 << 10;

/// The numbers of all rows of a band.
const EACH: [usize; BAND] = {
    let mut each = [0; BAND];
    let mut i = 0;
    while i < BAND {
        each[i] = i;
        i += 1;
    }
    each
};

/// Scratch memory of a band.
pub(super) struct Band<'a, T> {
    sums: &'a mut [Sums],
    /// Results of each row.
    pub results: &'a mut [[T; COLUMNS]],
    /// Bytes that are added to results.
    pub addend: &'a mut [[u8; COLUMNS]],
    unit: TileUnit<'a>,
}

/// Data and weights that are multiplied.
pub(super) enum Products<'a> {
    /// Windows with the panels of some columns, at most those of a tile.
    Windows { level: Level, windows: Windows<'a>, panels: &'a [u8] },
    /// Windows of images with the weights of each channel.
    Depthwise { x: Depthwise<'a>, data: &'a [u8] },
    /// Sums of this number of products that were computed on a level.
    Ready { sums: &'a [Sums], terms: usize, level: Level },
}

impl Products<'_> {
    /// Whether sums can become bytes in registers, with bytes added or without.
    fn in_registers(&self, added: bool) -> bool {
        match self {
            Products::Windows { level: Level::Vnni, .. } => true,
            Products::Windows { level, .. } => level.makes_bytes() && !added,
            Products::Depthwise { x, .. } => x.in_registers() && !added,
            Products::Ready { .. } => false,
        }
    }

    /// The level of what is not made of tiles.
    fn level(&self) -> Level {
        match self {
            Products::Windows { level, .. } => level.without_tiles(),
            Products::Depthwise { x, .. } => x.level,
            Products::Ready { level, .. } => *level,
        }
    }

    /// Products of a sum.
    fn terms(&self) -> usize {
        match self {
            Products::Windows { windows, .. } => windows.len(),
            Products::Depthwise { x, .. } => x.segments.len(),
            Products::Ready { terms, .. } => *terms,
        }
    }

    /// Whether sums can become bytes in vectors, in registers or after them.
    fn in_vectors(&self) -> bool {
        match self {
            Products::Depthwise { x, .. } => x.level == Level::Avx2 || x.in_registers(),
            Products::Windows { .. } | Products::Ready { .. } => self.level().finishes_in_vectors(),
        }
    }
}

/// The operands of a band.
pub(super) struct BandArgs<'a, T> {
    pub products: Products<'a>,
    /// Offsets of the rows, at most [`BAND`].
    pub starts: Places<'a>,
    /// The first column, and how many there are.
    pub columns: [usize; 2],
    pub signed: bool,
    pub epilogue: &'a dyn Epilogue<T>,
    /// The results as limited numbers, if they are such.
    pub limited: Option<LimitedSums<'a>>,
    /// Whether the addend of the band has what is added.
    pub added: bool,
}

impl<T> BandArgs<'_, T> {
    /// The end of sums that become bytes in vectors, if they do.
    pub fn in_vectors(&self, flip: u8) -> Option<ByteEnd<'_>> {
        let sums = self.limited.filter(|_| self.products.in_vectors())?;
        let conversion = sums.conversion(self.products.terms());
        Some(ByteEnd { sums, conversion, first: self.columns[0], flip, added: None })
    }

    /// Whether the sums of an end become bytes in registers, where numbers are limited after they have
    /// become integers.
    fn in_registers(&self, end: &ByteEnd<'_>) -> bool {
        self.products.in_registers(end.sums.addend.is_some()) && end.sums.fit(self.products.terms())
    }

    /// Rows of bands that [`Band::run_to`] computes.
    pub fn most_rows(&self, end: &ByteEnd<'_>) -> usize {
        match &self.products {
            Products::Windows { windows, .. } if self.in_registers(end) => {
                (NEAR / windows.len().max(1) / BAND * BAND).clamp(BAND, LONG_BAND)
            }
            _ => BAND,
        }
    }

    /// Computes bytes of whole rows of windows in registers, if a kernel does so; otherwise nothing.
    pub fn run_rows(&self, windows: &WindowRows, flip: u8, to: &mut ResultRows<'_, '_>) -> bool {
        let Products::Depthwise { x, data } = &self.products else { return false };
        let end = self.in_vectors(flip).filter(|end| self.in_registers(end));
        end.is_some_and(|end| x.run_rows(data, windows, self.columns, self.signed, &end, to))
    }

    /// Computes rows and columns. `end` has a whole band of rows.
    fn run(&self, mut end: TileEnd<'_, '_>, unit: &mut TileUnit<'_>) {
        let BandArgs { starts: rows, columns, signed, .. } = *self;
        match &self.products {
            Products::Windows { level, windows, panels } => {
                windows.multiply(&MultiplyArgs { level: *level, rows, panels, signed }, end, unit);
            }
            Products::Depthwise { x, data } => x.run(data, rows, columns, signed, end.part(0..rows.values().len())),
            Products::Ready { sums, .. } => end.sums()[..sums.len()].copy_from_slice(sums),
        }
    }
}

impl<'a, T: RoundTo> Band<'a, T> {
    /// Bytes of the scratch memory of bands of windows of this length.
    pub fn bytes(level: Level, len: usize) -> usize {
        Self::BYTES + widened_len(level, len)
    }

    /// Bytes of the scratch memory without windows.
    pub const BYTES: usize = size_of::<Copied>() + BAND * (size_of::<Sums>() + size_of::<[T; COLUMNS]>() + COLUMNS);

    /// Divides scratch memory on a 64-byte boundary.
    pub fn of(scratch: &'a mut [u8]) -> Band<'a, T> {
        let (scratch, widened) = scratch.split_at_mut(Self::BYTES);
        let (copied, rest) = scratch.split_at_mut(size_of::<Copied>());
        let (sums, rest) = rest.split_at_mut(BAND * size_of::<Sums>());
        let (results, addend) = rest.split_at_mut(BAND * size_of::<[T; COLUMNS]>());
        Band {
            sums: bytemuck::cast_slice_mut(sums),
            results: bytemuck::cast_slice_mut(results),
            addend: bytemuck::cast_slice_mut(addend),
            unit: TileUnit::new(bytemuck::from_bytes_mut(copied), widened),
        }
    }

    /// Prepares rows whose columns are computed next.
    pub fn prepare(&mut self, x: &BandArgs<'_, T>) {
        if let Products::Windows { level, windows, .. } = &x.products {
            windows.widen(*level, x.starts, &mut self.unit);
        }
    }

    /// Computes the results of some rows, which were [prepared](Self::prepare), and columns.
    pub fn compute(&mut self, x: &BandArgs<'_, T>) {
        if let Some(end) = x.in_vectors(0).filter(|end| end.sums.addend.is_none()) {
            let results: &mut [[u8; COLUMNS]] = bytemuck::cast_slice_mut(&mut *self.results);
            let mut results = Columns::of_arrays(results);
            return run_to(x, &end, self.sums, &mut self.unit, results.picked(Places::new(&EACH)));
        }
        x.run(TileEnd::Sums(self.sums), &mut self.unit);
        self.finish(x.starts.values().len(), x.columns, x.epilogue, x.added);
    }

    /// Computes bytes, row by row, of at most [`BandArgs::most_rows`] rows, which were
    /// [prepared](Self::prepare). `rows` has a place for each of [`whole_rows`].
    pub fn run_to(&mut self, x: &BandArgs<'_, T>, end: &ByteEnd<'_>, rows: PickedRows<'_, u8>) {
        assert!(end.sums.addend.is_some() == end.added.is_some(), "rows and a factor of what is added");
        run_to(x, end, self.sums, &mut self.unit, rows);
    }

    fn finish(&mut self, rows: usize, [first, columns]: [usize; 2], epilogue: &dyn Epilogue<T>, added: bool) {
        let block = SumsBlock {
            first,
            columns: columns.next_multiple_of(PANEL),
            sums: &self.sums[..rows],
            addend: if added { &self.addend[..rows] } else { &[] },
        };
        epilogue.finish(&block, &mut self.results[..rows]);
    }
}

/// Computes bytes, row by row, in registers or from sums.
fn run_to<T>(
    x: &BandArgs<'_, T>,
    end: &ByteEnd<'_>,
    sums: &mut [Sums],
    unit: &mut TileUnit<'_>,
    rows: PickedRows<'_, u8>,
) {
    assert!(rows.width() >= COLUMNS, "rows of {}", rows.width());
    if x.in_registers(end) {
        return x.run(TileEnd::Bytes(*end, rows), unit);
    }
    x.run(TileEnd::Sums(sums), unit);
    finish_in_vectors(x.products.level(), end, end.sums.fit(x.products.terms()), sums, rows);
}

/// Makes bytes of sums in vectors, as the level does.
fn finish_in_vectors(level: Level, end: &ByteEnd<'_>, fit: bool, sums: &[Sums], rows: PickedRows<'_, u8>) {
    #[cfg(target_arch = "x86_64")]
    match level {
        // SAFETY: `Level::or_best` found the instructions.
        Level::Avx2 => unsafe { super::x86::finish_rows_avx2(end, fit, sums, rows) },
        // SAFETY: as above.
        Level::Vnni => unsafe { super::x86::finish_rows(end, fit, sums, rows) },
        other => unreachable!("{other:?} makes no bytes in vectors"),
    }
    #[cfg(target_arch = "aarch64")]
    super::neon::finish_rows(end, sums, rows);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (fit, level);
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let _ = (end, sums, rows);
        unreachable!("no level makes bytes in vectors");
    }
}
