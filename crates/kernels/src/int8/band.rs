//! Bands of rows whose sums are computed and finished together.

use super::depthwise::Depthwise;
use super::finish::{Epilogue, SumsBlock};
use super::tile::{ByteEnd, COLUMNS, PANEL, ROWS, Sums, TileEnd, Windows};
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
            Products::Windows { level, .. } => *level == Level::Vnni,
            Products::Depthwise { x, .. } => x.in_registers(),
        }
    }

    /// Computes rows, at most [`BAND`], and columns: the first, and their number. `end` has as many
    /// rows, in whole tiles.
    pub fn run(&self, starts: &[usize], columns: [usize; 2], signed: bool, mut end: TileEnd<'_, '_>) {
        match self {
            Products::Windows { level, windows, panels } => {
                windows.multiply(*level, starts, panels, signed, end);
            }
            Products::Depthwise { x, data } => x.run(data, starts, columns, signed, end.part(0..starts.len())),
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
        let sums = self.products.in_registers().then(|| self.epilogue.limited())??;
        Some(ByteEnd { sums, first: self.columns[0], flip })
    }

    /// Computes bytes in registers, row by row.
    pub fn run_to(&self, end: ByteEnd<'_>, rows: &mut [&mut [u8; COLUMNS]]) {
        self.products.run(self.starts, self.columns, self.signed, TileEnd::Bytes(end, rows));
    }
}

impl<'a, T: RoundTo> Band<'a, T> {
    /// Bytes of the scratch memory.
    pub const BYTES: usize = BAND * (size_of::<Sums>() + size_of::<[T; COLUMNS]>() + COLUMNS);

    /// Divides scratch memory on a 64-byte boundary.
    pub fn of(scratch: &'a mut [u8]) -> Band<'a, T> {
        let (sums, rest) = scratch[..Self::BYTES].split_at_mut(BAND * size_of::<Sums>());
        let (results, addend) = rest.split_at_mut(BAND * size_of::<[T; COLUMNS]>());
        Band {
            sums: bytemuck::cast_slice_mut(sums),
            results: bytemuck::cast_slice_mut(results),
            addend: bytemuck::cast_slice_mut(addend),
        }
    }

    /// Computes the results of some rows and columns.
    pub fn compute(&mut self, x: &BandArgs<'_, T>) {
        if let Some(end) = x.in_vectors(0).filter(|end| end.sums.addend.is_none()) {
            let results: &mut [[u8; COLUMNS]] = bytemuck::cast_slice_mut(&mut *self.results);
            let results: &mut [[u8; COLUMNS]; BAND] = results.first_chunk_mut().expect("a band of results");
            return x.run_to(end, &mut results.each_mut());
        }
        x.products.run(x.starts, x.columns, x.signed, TileEnd::Sums(self.sums));
        self.finish(x.starts.len(), x.columns, x.epilogue, x.added);
    }

    /// Computes bytes of a whole band, with rows that are added to them, all bytes of which have
    /// bits flipped.
    #[cfg(target_arch = "x86_64")]
    pub fn run_added(
        &mut self,
        x: &BandArgs<'_, T>,
        end: &ByteEnd<'_>,
        (addend, flip): (&[&[u8; COLUMNS]; BAND], u8),
        rows: &mut [&mut [u8; COLUMNS]; BAND],
    ) {
        assert!(x.products.in_registers() && end.sums.addend.is_some(), "no bytes of sums and an addend");
        x.products.run(x.starts, x.columns, x.signed, TileEnd::Sums(self.sums));
        // SAFETY: only levels with AVX-512 make bytes in vectors.
        unsafe { super::x86::finish_added(end, self.sums, addend, flip, rows) }
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub fn run_added(
        &mut self,
        _: &BandArgs<'_, T>,
        _: &ByteEnd<'_>,
        _: (&[&[u8; COLUMNS]; BAND], u8),
        _: &mut [&mut [u8; COLUMNS]; BAND],
    ) {
        unreachable!("no level has bytes in registers");
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
