//! Bands of rows whose sums are computed and finished together.

use super::depthwise::Depthwise;
use super::finish::{Epilogue, LimitedSums, SumsBlock};
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

/// The operands of a band of depthwise windows; see [`BandArgs`].
pub(super) struct DepthwiseBand<'a, T> {
    pub starts: &'a [usize],
    pub columns: [usize; 2],
    pub signed: bool,
    pub epilogue: &'a dyn Epilogue<T>,
    pub added: bool,
}

/// The results that sums become while they are in registers.
fn in_registers<T>(level: Level, epilogue: &dyn Epilogue<T>) -> Option<LimitedSums<'_>> {
    if level == Level::Vnni { epilogue.limited() } else { None }
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
        if let Some(sums) = in_registers(x.level, x.epilogue) {
            let results: &mut [[u8; COLUMNS]] = bytemuck::cast_slice_mut(&mut *self.results);
            for (starts, results) in x.starts.chunks(ROWS).zip(results.chunks_exact_mut(ROWS)) {
                let end = TileEnd::Bytes(ByteEnd { sums, first: x.columns[0] }, results);
                x.windows.multiply(x.level, starts, x.panels, x.signed, end);
            }
            return;
        }
        for (starts, sums) in x.starts.chunks(ROWS).zip(self.sums.chunks_exact_mut(ROWS)) {
            x.windows.multiply(x.level, starts, x.panels, x.signed, TileEnd::Sums(sums));
        }
        self.finish(x.starts.len(), x.columns, x.epilogue, x.added);
    }

    /// Computes the results of some channels of depthwise windows.
    pub fn compute_depthwise(&mut self, x: &Depthwise<'_>, data: &[u8], args: &DepthwiseBand<'_, T>) {
        let DepthwiseBand { starts, columns, signed, epilogue, added } = *args;
        if let Some(sums) = in_registers(x.level, epilogue).filter(|_| x.in_registers()) {
            let end = ByteEnd { sums, first: columns[0] };
            let results: &mut [[u8; COLUMNS]] = bytemuck::cast_slice_mut(&mut *self.results);
            return x.run(data, starts, columns, signed, TileEnd::Bytes(end, &mut results[..starts.len()]));
        }
        x.run(data, starts, columns, signed, TileEnd::Sums(&mut self.sums[..starts.len()]));
        self.finish(starts.len(), columns, epilogue, added);
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
