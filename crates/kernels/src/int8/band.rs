//! Bands of rows whose sums are computed and finished together.

use super::amx::{Copied, TileUnit};
use super::depthwise::Depthwise;
use super::finish::{Epilogue, SumsBlock};
use super::tile::{ByteEnd, COLUMNS, MultiplyArgs, PANEL, ROWS, Sums, TileEnd, Windows};
use super::{Level, RoundTo};

/// Rows of a band.
pub(super) const BAND: usize = 8 * ROWS;

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
}

impl Products<'_> {
    /// Whether sums can become bytes in registers.
    fn in_registers(&self) -> bool {
        match self {
            Products::Windows { level, .. } => level.makes_bytes(),
            Products::Depthwise { x, .. } => x.in_registers(),
        }
    }

    /// Products of a sum.
    fn terms(&self) -> usize {
        match self {
            Products::Windows { windows, .. } => windows.len(),
            Products::Depthwise { x, .. } => x.segments.len(),
        }
    }

    /// Whether sums can become bytes in vectors, in registers or after them.
    fn in_vectors(&self) -> bool {
        match self {
            Products::Windows { level, .. } => level.without_tiles().makes_bytes(),
            Products::Depthwise { x, .. } => x.in_registers(),
        }
    }
}

/// The operands of a band.
pub(super) struct BandArgs<'a, T> {
    pub products: Products<'a>,
    /// Offsets at which rows begin, at most [`BAND`].
    pub starts: &'a [usize],
    /// The first column, and how many there are.
    pub columns: [usize; 2],
    pub signed: bool,
    pub epilogue: &'a dyn Epilogue<T>,
    /// Whether the addend of the band has what is added.
    pub added: bool,
}

impl<T> BandArgs<'_, T> {
    /// The end of sums that become bytes in vectors, if they do.
    pub fn in_vectors(&self, flip: u8) -> Option<ByteEnd<'_>> {
        let sums = self.products.in_vectors().then(|| self.epilogue.limited())??;
        Some(ByteEnd { sums, first: self.columns[0], flip })
    }

    /// Computes rows and columns. `end` has a whole band of rows.
    fn run(&self, mut end: TileEnd<'_, '_>, unit: &mut TileUnit<'_>) {
        let BandArgs { starts: rows, columns, signed, .. } = *self;
        match &self.products {
            Products::Windows { level, windows, panels } => {
                windows.multiply(&MultiplyArgs { level: *level, rows, panels, signed }, end, unit);
            }
            Products::Depthwise { x, data } => x.run(data, rows, columns, signed, end.part(0..rows.len())),
        }
    }
}

impl<'a, T: RoundTo> Band<'a, T> {
    /// Bytes of the scratch memory.
    pub const BYTES: usize = size_of::<Copied>() + BAND * (size_of::<Sums>() + size_of::<[T; COLUMNS]>() + COLUMNS);

    /// Divides scratch memory on a 64-byte boundary.
    pub fn of(scratch: &'a mut [u8]) -> Band<'a, T> {
        let (copied, rest) = scratch[..Self::BYTES].split_at_mut(size_of::<Copied>());
        let (sums, rest) = rest.split_at_mut(BAND * size_of::<Sums>());
        let (results, addend) = rest.split_at_mut(BAND * size_of::<[T; COLUMNS]>());
        Band {
            sums: bytemuck::cast_slice_mut(sums),
            results: bytemuck::cast_slice_mut(results),
            addend: bytemuck::cast_slice_mut(addend),
            unit: TileUnit::new(bytemuck::from_bytes_mut(copied)),
        }
    }

    /// Computes the results of some rows and columns.
    pub fn compute(&mut self, x: &BandArgs<'_, T>) {
        if let Some(end) = x.in_vectors(0).filter(|end| end.sums.addend.is_none()) {
            let results: &mut [[u8; COLUMNS]] = bytemuck::cast_slice_mut(&mut *self.results);
            let results: &mut [[u8; COLUMNS]; BAND] = results.first_chunk_mut().expect("a band of results");
            return run_to(x, &end, self.sums, &mut self.unit, &mut results.each_mut());
        }
        x.run(TileEnd::Sums(self.sums), &mut self.unit);
        self.finish(x.starts.len(), x.columns, x.epilogue, x.added);
    }

    /// Computes bytes of a whole band, row by row.
    pub fn run_to(&mut self, x: &BandArgs<'_, T>, end: &ByteEnd<'_>, rows: &mut [&mut [u8; COLUMNS]; BAND]) {
        run_to(x, end, self.sums, &mut self.unit, rows);
    }

    /// Computes bytes of a whole band, with rows that are added to them, all bytes of which have
    /// bits flipped.
    pub fn run_added(
        &mut self,
        x: &BandArgs<'_, T>,
        end: &ByteEnd<'_>,
        (addend, flip): (&[&[u8; COLUMNS]; BAND], u8),
        rows: &mut [&mut [u8; COLUMNS]; BAND],
    ) {
        assert!(end.sums.addend.is_some(), "no factor for what is added");
        x.run(TileEnd::Sums(self.sums), &mut self.unit);
        finish_in_vectors(end, self.sums, Some((addend, flip)), rows);
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
    rows: &mut [&mut [u8; COLUMNS]],
) {
    // In registers, numbers are limited after they have become integers.
    if x.products.in_registers() && end.sums.fit(x.products.terms()) {
        return x.run(TileEnd::Bytes(*end, rows), unit);
    }
    x.run(TileEnd::Sums(sums), unit);
    finish_in_vectors(end, sums, None, rows);
}

/// Makes bytes of sums in vectors, with rows that are added, all bytes of which have bits flipped.
fn finish_in_vectors(
    end: &ByteEnd<'_>,
    sums: &[Sums],
    added: Option<(&[&[u8; COLUMNS]], u8)>,
    rows: &mut [&mut [u8; COLUMNS]],
) {
    // SAFETY: only levels with AVX-512 make bytes in vectors.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        super::x86::finish_rows(end, sums, added, rows);
    }
    #[cfg(target_arch = "aarch64")]
    super::neon::finish_rows(end, sums, added, rows);
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let _ = (end, sums, added, rows);
        unreachable!("no level makes bytes in vectors");
    }
}
