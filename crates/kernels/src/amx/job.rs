//! A running product on tiles: panels of rows in lines times panels of packed columns.

use super::AmxGemm;
use super::finish::TileOutput;
use super::lines::{Lines, Split};
use super::parts::{PARTS, sum_of};
use super::tiles::{LINE, LINE_NUMBERS, ROWS, SIDE, Soon, TILE, TileRows, register_tile};
use std::ops::Range;

/// Panels of columns whose sums are kept where the lines along k take several turns.
const TURN_COLUMNS: usize = 16;
/// Bytes of the sums of a register tile.
pub(super) const SUMS: usize = SIDE * SIDE * size_of::<f32>();

/// How the loops over the lines of A are cut.
#[derive(Clone, Copy)]
pub(super) struct Blocks {
    /// Panels of rows that pass by each panel of columns.
    pub rows: usize,
    /// Lines along k of a turn.
    pub depth: usize,
    pub turns: usize,
}

/// A running product.
pub(super) struct Job<'a> {
    pub gemm: AmxGemm,
    /// The form of A.
    pub lines: Lines,
    pub blocks: Blocks,
    pub a: &'a [u8],
    /// B in panels.
    pub b: &'a [u8],
    pub output: TileOutput<'a>,
}

impl Job<'_> {
    pub fn scratch_bytes(&self) -> usize {
        SUMS * if self.blocks.turns > 1 { self.blocks.rows * TURN_COLUMNS } else { 1 }
    }

    /// Multiplies some panels of rows with some panels of columns.
    pub fn run<T: Split>(&self, rows: Range<usize>, columns: Range<usize>, scratch: &mut [u8]) {
        let mut t = T::configure();
        let group = if self.blocks.turns > 1 { TURN_COLUMNS } else { columns.len().max(1) };
        for block in rows.clone().step_by(self.blocks.rows) {
            let rows = block..(block + self.blocks.rows).min(rows.end);
            for first in columns.clone().step_by(group) {
                let columns = first..(first + group).min(columns.end);
                for turn in 0..self.blocks.turns {
                    self.turn(&mut t, turn, rows.clone(), columns.clone(), scratch);
                }
            }
        }
    }

    /// A panel of rows.
    fn rows(&self, panel: usize) -> &[u8] {
        &self.a[panel * self.lines.panel_bytes()..][..self.lines.panel_bytes()]
    }

    /// One turn along k of the register tiles of these rows and columns.
    fn turn<T: Split>(&self, t: &mut T, turn: usize, rows: Range<usize>, columns: Range<usize>, scratch: &mut [u8]) {
        let gemm = &self.gemm;
        let (first, panel_bytes) = (turn * self.blocks.depth, gemm.steps() * gemm.step_bytes());
        let steps = self.blocks.depth.min(gemm.steps() - first);
        let (at, last) = (first * gemm.step_bytes(), turn + 1 == self.blocks.turns);
        for column in columns.clone() {
            let panel = &self.b[column * panel_bytes..][..panel_bytes];
            let b = panel[at..].as_ptr();
            // Requests of what the next panel holds are spread over the rows of this one.
            let lines = (gemm.step_bytes() / LINE).div_ceil(rows.len());
            let mut soon = Soon { at: b.wrapping_add(panel.len()), lines };
            for row in rows.clone() {
                let place = match self.blocks.turns {
                    1 => 0,
                    _ => (row - rows.start) * TURN_COLUMNS + column - columns.start,
                };
                let sums = &mut scratch[place * SUMS..][..SUMS];
                let (first, to, fresh) = (self.rows(row)[at..].as_ptr(), sums.as_mut_ptr(), turn == 0);
                let a = TileRows { at: |step| first.wrapping_add(step * gemm.step_bytes()), part: 2 * TILE };
                // SAFETY: `t` are configured tiles; A and B have `steps` steps from `at` on, and
                // the sums have 32 x 32 numbers.
                unsafe {
                    match gemm.parts {
                        PARTS => register_tile::<T, PARTS>(t, steps, a, b, to, fresh, soon),
                        _ => register_tile::<T, 1>(t, steps, a, b, to, fresh, soon),
                    }
                }
                soon.at = soon.at.wrapping_add(steps * lines * LINE);
                if last {
                    self.finish(t, row, column, panel, bytemuck::cast_slice_mut(sums));
                }
            }
        }
    }

    /// Writes the sums of a register tile to C. Rows with numbers that have no parts are computed
    /// again.
    fn finish<T: Split>(&self, t: &mut T, row: usize, column: usize, panel: &[u8], sums: &mut [f32]) {
        let lines = self.rows(row);
        let again = self.lines.without_parts(lines);
        let rows = SIDE.min(self.gemm.m - row * SIDE);
        if again != 0 {
            let mut numbers = vec![0.0; self.gemm.k];
            for r in (0..rows).filter(|r| again >> r & 1 == 1) {
                self.lines.read_row(lines, r, &mut numbers);
                self.multiply_row(&numbers, panel, &mut sums[r * SIDE..][..SIDE]);
            }
        }
        // SAFETY: no other part has these rows and columns.
        unsafe { self.output.store(t, [row * SIDE, rows], column * SIDE, sums) }
    }

    /// The sums of a row with 32 columns, without tiles.
    fn multiply_row(&self, row: &[f32], panel: &[u8], sums: &mut [f32]) {
        sums.fill(0.0);
        for (k, x) in row.iter().enumerate() {
            let (step, pair, odd) = (k / LINE_NUMBERS, k % LINE_NUMBERS / 2, k % 2);
            for (column, sum) in sums.iter_mut().enumerate() {
                let parts = std::array::from_fn(|part| {
                    let tile = step * self.gemm.step_bytes() + (part * 2 + column / ROWS) * TILE;
                    let at = tile + pair * LINE + column % ROWS * 4 + odd * 2;
                    u16::from_le_bytes([panel[at], panel[at + 1]])
                });
                *sum = x.mul_add(sum_of(parts), *sum);
            }
        }
    }
}
