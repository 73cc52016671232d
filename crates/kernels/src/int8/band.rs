//! Bands of rows whose sums are computed and finished together.

use super::finish::{Epilogue, SumsBlock};
use super::tile::{COLUMNS, PANEL, ROWS, Sums, Windows};
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

/// The operands of a band.
pub(super) struct BandArgs<'a, T> {
    pub level: Level,
    pub windows: &'a Windows<'a>,
    /// Offsets at which rows begin, at most [`BAND`].
    pub starts: &'a [usize],
    /// Panels of the columns, at most those of a tile.
    pub panels: &'a [u8],
    /// The first column, and how many there are.
    pub columns: [usize; 2],
    pub signed: bool,
    pub epilogue: &'a dyn Epilogue<T>,
    /// Whether the addend of the band has what is added.
    pub added: bool,
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
        for (starts, sums) in x.starts.chunks(ROWS).zip(self.sums.chunks_exact_mut(ROWS)) {
            x.windows.multiply(x.level, starts, x.panels, x.signed, sums);
        }
        self.finish(x.starts.len(), x.columns, x.epilogue, x.added);
    }

    /// Computes the results of rows whose sums `fill` writes.
    pub fn finish_filled(
        &mut self,
        rows: usize,
        columns: [usize; 2],
        epilogue: &dyn Epilogue<T>,
        added: bool,
        fill: impl FnOnce(&mut [Sums]),
    ) {
        fill(&mut self.sums[..rows]);
        self.finish(rows, columns, epilogue, added);
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
