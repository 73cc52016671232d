//! Matrices whose rows are in lines of 32 bf16, as tiles read them: what one step of a plan leaves
//! for the products after it.
//!
//! A panel has 32 rows: `[line along the columns][part][32 rows]`. In float32 a note for each row
//! of each line follows, which is 1 where a number has no parts: the line then holds the numbers
//! themselves, their upper halves in the first part and their lower ones in the second.

use super::parts::{PARTS, sum_of};
use super::tiles::{LINE, LINE_NUMBERS, SIDE, TILE, Tiles, halves};
use crate::conv::Precision;
use crate::par::{CHUNK_BYTES, Par};

/// The form of a matrix in lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    rows: usize,
    columns: usize,
    /// Parts of each number: three for float32, one for bf16.
    parts: usize,
}

impl Lines {
    /// The form of `[rows, columns]`.
    pub fn new(rows: usize, columns: usize, precision: Precision) -> Lines {
        let parts = match precision {
            Precision::Single | Precision::W8 => PARTS,
            Precision::Bf16 => 1,
        };
        Lines { rows, columns, parts }
    }

    /// The form of the numbers.
    pub fn precision(&self) -> Precision {
        if self.parts == PARTS { Precision::Single } else { Precision::Bf16 }
    }

    /// Panels of 32 rows.
    pub fn panels(&self) -> usize {
        self.rows.div_ceil(SIDE)
    }

    /// Bytes of a panel.
    pub fn panel_bytes(&self) -> usize {
        let notes = if self.parts == PARTS { self.steps() * SIDE } else { 0 };
        (self.steps() * self.step_bytes() + notes).next_multiple_of(LINE)
    }

    /// Bytes of the matrix.
    pub fn bytes(&self) -> usize {
        self.panels() * self.panel_bytes()
    }

    /// Lines of a row.
    pub(super) fn steps(&self) -> usize {
        self.columns.div_ceil(LINE_NUMBERS)
    }

    /// Bytes of one line of all rows of a panel.
    pub(super) fn step_bytes(&self) -> usize {
        self.parts * 2 * TILE
    }

    /// Writes rows of float32, one after another, in lines.
    ///
    /// # Panics
    /// If `rows` or `out` is smaller than the form says, or the system permits no tiles.
    pub fn write(&self, par: &dyn Par, rows: &[f32], out: &mut [u8]) {
        on_tiles!(self.write_on(par, rows, out));
    }

    pub(super) fn write_on<T: Split>(&self, par: &dyn Par, rows: &[f32], out: &mut [u8]) {
        let (needed, given) = (self.rows * self.columns, rows.len());
        assert!(given >= needed, "a matrix needs {needed} elements, got {given}");
        let target = self.target(out);
        // Chunks are lines of a panel: matrices may have few panels.
        let each = (CHUNK_BYTES / self.step_bytes()).max(1);
        let chunks = self.steps().div_ceil(each);
        par.run(self.panels() * chunks, 0, &|chunk, _| {
            let (first, step) = (chunk / chunks * SIDE, chunk % chunks * each);
            let (column, end) = (step * LINE_NUMBERS, ((step + each) * LINE_NUMBERS).min(self.columns));
            let from = rows[first * self.columns + column..].as_ptr();
            let place = WrittenBlock { row: first, rows: SIDE.min(self.rows - first), column, columns: end - column };
            // SAFETY: these rows and columns are inside the matrix, and this chunk's alone.
            unsafe { target.put(&mut T::configure(), from, self.columns, place) }
        });
    }

    /// Memory to which threads write.
    ///
    /// # Panics
    /// If it is smaller than the form says.
    pub(crate) fn target(self, out: &mut [u8]) -> LinesMut {
        let (needed, given) = (self.bytes(), out.len());
        assert!(given >= needed, "a matrix in lines needs {needed} bytes, got {given}");
        LinesMut { lines: self, to: out.as_mut_ptr() }
    }

    /// The rows of a panel that have numbers without parts, one bit each.
    pub(super) fn without_parts(&self, panel: &[u8]) -> u32 {
        if self.parts < PARTS {
            return 0;
        }
        let notes = &panel[self.steps() * self.step_bytes()..][..self.steps() * SIDE];
        let mut any = [0u8; SIDE];
        for line in notes.chunks_exact(SIDE) {
            any.iter_mut().zip(line).for_each(|(any, note)| *any |= note);
        }
        any.iter().enumerate().fold(0, |bits, (row, note)| bits | u32::from(*note) << row)
    }

    /// A row of a panel in float32. Numbers below 2^-103 come without their last digits.
    pub(super) fn read_row(&self, panel: &[u8], row: usize, out: &mut [f32]) {
        let notes = self.steps() * self.step_bytes();
        for (step, out) in out[..self.columns].chunks_mut(LINE_NUMBERS).enumerate() {
            let whole = self.parts == PARTS && panel[notes + step * SIDE + row] == 1;
            for (i, number) in out.iter_mut().enumerate() {
                let part = |part: usize| {
                    let at = step * self.step_bytes() + part * 2 * TILE + row * LINE + i * 2;
                    u16::from_le_bytes([panel[at], panel[at + 1]])
                };
                *number = match (whole, self.parts) {
                    (true, _) => f32::from_bits(u32::from(part(0)) << 16 | u32::from(part(1))),
                    (false, PARTS) => sum_of([part(0), part(1), part(2)]),
                    (false, _) => sum_of([part(0), 0, 0]),
                };
            }
        }
    }
}

/// Rows and columns that are written together; the first column is a multiple of 32, and the number
/// of columns, too, unless the last one is that of the matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrittenBlock {
    pub row: usize,
    pub rows: usize,
    pub column: usize,
    pub columns: usize,
}

/// A matrix in lines that several threads write, each its own rows and columns.
#[derive(Clone, Copy)]
pub(crate) struct LinesMut {
    lines: Lines,
    to: *mut u8,
}

// SAFETY: an address of memory that is borrowed for as long as threads write; whoever writes
// answers for the absence of races.
unsafe impl Send for LinesMut {}
// SAFETY: as above.
unsafe impl Sync for LinesMut {}

impl LinesMut {
    /// Writes numbers whose rows are `from_row` apart.
    ///
    /// # Safety
    /// The place must be inside the matrix, no other thread may touch it, and `from` must hold it.
    #[inline]
    pub unsafe fn put<T: Split>(&self, t: &mut T, from: *const f32, from_row: usize, place: WrittenBlock) {
        let WrittenBlock { row, rows, column, columns } = place;
        let end = row + rows;
        let mut first = row;
        while first < end {
            let (panel, within) = (first / SIDE, first % SIDE);
            let rows = (SIDE - within).min(end - first);
            // SAFETY: promised by the caller; the panel is inside the matrix.
            unsafe {
                let panel = self.to.add(panel * self.lines.panel_bytes());
                let from = from.add((first - row) * from_row);
                for at in (0..columns).step_by(LINE_NUMBERS) {
                    let (step, given) = ((column + at) / LINE_NUMBERS, LINE_NUMBERS.min(columns - at));
                    let place = [step, within, rows];
                    if given == LINE_NUMBERS {
                        self.put_step(t, from.add(at), from_row, panel, place);
                    } else {
                        self.put_last(t, from.add(at), from_row, given, panel, place);
                    }
                }
            }
            first += rows;
        }
    }

    /// Writes fewer than 32 numbers of some rows, and zeros after them.
    ///
    /// # Safety
    /// The caller promises what [`put`](Self::put) asks for.
    #[inline(never)]
    unsafe fn put_last<T: Split>(
        &self,
        t: &mut T,
        from: *const f32,
        from_row: usize,
        given: usize,
        panel: *mut u8,
        place: [usize; 3],
    ) {
        let mut whole = [[0.0; LINE_NUMBERS]; SIDE];
        // SAFETY: promised by the caller; the copy has 32 rows of 32.
        unsafe {
            for (row, whole) in whole.iter_mut().enumerate().take(place[2]) {
                std::ptr::copy_nonoverlapping(from.add(row * from_row), whole.as_mut_ptr(), given);
            }
            self.put_step(t, whole.as_ptr().cast(), LINE_NUMBERS, panel, place);
        }
    }

    /// Writes a line of some rows of a panel.
    ///
    /// # Safety
    /// The caller promises what [`put`](Self::put) asks for.
    #[inline]
    unsafe fn put_step<T: Split>(
        &self,
        t: &mut T,
        from: *const f32,
        from_row: usize,
        panel: *mut u8,
        [step, within, rows]: [usize; 3],
    ) {
        let parts = self.lines.parts;
        // SAFETY: promised by the caller.
        unsafe {
            let to = panel.add(step * self.lines.step_bytes() + within * LINE);
            let wrong = t.split_rows(from, from_row, rows, parts, to, 2 * TILE);
            if parts == PARTS {
                let notes = panel.add(self.lines.steps() * self.lines.step_bytes() + step * SIDE + within);
                notes.write_bytes(0, rows);
                for row in (0..rows).filter(|row| wrong >> row & 1 == 1) {
                    notes.add(row).write(1);
                    let numbers = from.add(row * from_row);
                    for i in 0..LINE_NUMBERS {
                        let bits = (*numbers.add(i)).to_bits();
                        let at = to.add(row * LINE + i * 2).cast::<[u8; 2]>();
                        at.write(((bits >> 16) as u16).to_le_bytes());
                        at.byte_add(2 * TILE).write((bits as u16).to_le_bytes());
                    }
                }
            }
        }
    }
}

/// Tiles with which rows are split.
pub(crate) trait Split: Tiles {
    /// Splits 32 numbers of each of up to 32 rows, `from_row` apart, into lines that follow one
    /// another, those of the next part `apart` bytes on. A bit for each row where a number has no
    /// parts.
    ///
    /// # Safety
    /// The caller promises what [`Tiles::split`] asks for.
    #[inline(always)]
    unsafe fn split_rows(
        &mut self,
        from: *const f32,
        from_row: usize,
        rows: usize,
        count: usize,
        to: *mut u8,
        apart: usize,
    ) -> u32 {
        let mut wrong = 0;
        for row in 0..rows {
            // SAFETY: promised by the caller.
            let right = unsafe {
                let numbers = &*from.add(row * from_row).cast::<[f32; LINE_NUMBERS]>();
                self.split(halves(numbers), count, to.add(row * LINE), apart)
            };
            wrong |= u32::from(!right) << row;
        }
        wrong
    }
}

#[cfg(test)]
impl Split for super::model::Modelled {}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
impl Split for super::hardware::Hardware {
    #[inline(always)]
    unsafe fn split_rows(
        &mut self,
        from: *const f32,
        from_row: usize,
        rows: usize,
        count: usize,
        to: *mut u8,
        apart: usize,
    ) -> u32 {
        /// # Safety
        /// The caller promises what [`Tiles::split`] asks for.
        #[target_feature(enable = "avx512f,avx512bf16")]
        unsafe fn split_all<const COUNT: usize>(
            from: *const f32,
            from_row: usize,
            rows: usize,
            to: *mut u8,
            apart: usize,
        ) -> u32 {
            let mut wrong = 0;
            for row in 0..rows {
                // SAFETY: promised by the caller.
                let right = unsafe {
                    let numbers = &*from.add(row * from_row).cast::<[f32; LINE_NUMBERS]>();
                    super::hardware::split(halves(numbers), COUNT, to.add(row * LINE), apart)
                };
                wrong |= u32::from(!right) << row;
            }
            wrong
        }
        // SAFETY: `is_permitted` asked for AVX512-BF16; the caller promised the memory.
        unsafe {
            match count {
                PARTS => split_all::<PARTS>(from, from_row, rows, to, apart),
                _ => split_all::<1>(from, from_row, rows, to, apart),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amx::model::Modelled;
    use crate::gemm::tests::values;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads};

    fn back(lines: Lines, bytes: &[u8]) -> Vec<f32> {
        let mut rows = vec![f32::NAN; lines.rows * lines.columns];
        for (row, out) in rows.chunks_exact_mut(lines.columns).enumerate() {
            let panel = &bytes[row / SIDE * lines.panel_bytes()..][..lines.panel_bytes()];
            lines.read_row(panel, row % SIDE, out);
        }
        rows
    }

    #[test]
    fn rows_in_lines_come_back_and_those_without_parts_bit_for_bit() {
        for (rows, columns) in [(1, 1), (32, 64), (45, 70), (70, 33)] {
            let mut x = values(rows as u64, rows * columns);
            (x[0], x[columns / 2], x[rows * columns - 1]) = (f32::INFINITY, -3.1e38, f32::NEG_INFINITY);
            let single = Lines::new(rows, columns, Precision::Single);
            let bf16 = Lines::new(rows, columns, Precision::Bf16);
            let run = |lines: Lines, par: &dyn Par| {
                let mut out = vec![0xff; lines.bytes()];
                lines.write_on::<Modelled>(par, &x, &mut out);
                out
            };
            let out = run(single, &Serial);
            assert_eq!(back(single, &out), x, "{rows} x {columns}");
            let rounded: Vec<f32> = x.iter().map(|x| half::bf16::from_f32(*x).to_f32()).collect();
            assert_eq!(back(bf16, &run(bf16, &Serial)), rounded, "{rows} x {columns}");
            for par in [&Reverse as &dyn Par, &Threads(3)] {
                assert_eq!(back(single, &run(single, par)), x);
            }
            #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
            if crate::amx::is_permitted() {
                let mut hardware = vec![0xff; single.bytes()];
                single.write(&Threads(2), &x, &mut hardware);
                assert_eq!(back(single, &hardware), back(single, &out), "{rows} x {columns}");
            }
        }
    }

    #[test]
    fn columns_after_the_last_one_are_zero_in_the_last_line() {
        let lines = Lines::new(3, 40, Precision::Bf16);
        let mut out = vec![0xff; lines.bytes()];
        lines.write_on::<Modelled>(&Serial, &values(1, 120), &mut out);
        for row in 0..3 {
            let line = &out[lines.step_bytes() + row * LINE..][..LINE];
            assert!(line[16..].iter().all(|byte| *byte == 0), "row {row}: {line:?}");
        }
    }
}
