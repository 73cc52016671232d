//! Dense layers on tiles: rows of A are split into lines once, then every core multiplies its share
//! of the columns.

use super::parts::{PARTS, sum_of};
use super::tiles::{LINE, LINE_NUMBERS, ROWS, Rows, SIDE, Soon, TILE, Tiles, halves, register_tile};
use crate::conv::Precision;
use crate::gemm::output::{Output, Scale, check_output};
use crate::gemm::{Epilogue, Matrix, Sgemm};
use crate::isa::Isa;
use crate::par::{Par, par_chunks_mut};
use crate::simd::{Dst, Src};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Fewest rows, columns and products of a sum for which float32 gains from tiles: fewer rows leave
/// a tile empty, and less work does not pay for splitting A.
const LEAST: [usize; 3] = [56, 32, 64];
/// Bytes of A that stay in the second-level cache while panels of B pass by.
const NEAR: usize = 1 << 20;
/// Panels of rows that make reading B worth its time.
const ROW_PANELS: usize = 4;
/// Panels of columns whose sums are kept where the lines along k take several turns.
const TURN_COLUMNS: usize = 16;
/// Bytes of the sums of a register tile.
const SUMS: usize = SIDE * SIDE * size_of::<f32>();
/// Elements before the packed weights; the first says which form they have.
const HEADER: usize = LINE / size_of::<f32>();
const IN_PARTS: u32 = 1;
const PLAIN: u32 = 2;

/// The number of row k and of a column in a panel of 32 columns, as
/// [`pack_panel`](AmxGemm::pack_panel) left it in float32.
pub(crate) fn number_in_parts(panel: &[u8], k: usize, column: usize) -> f32 {
    let (step, k) = (k / LINE_NUMBERS, k % LINE_NUMBERS);
    sum_of(std::array::from_fn(|part| {
        let tile = ((step * PARTS + part) * 2 + column / ROWS) * TILE;
        let at = tile + k / 2 * LINE + column % ROWS * 4 + k % 2 * 2;
        u16::from_le_bytes([panel[at], panel[at + 1]])
    }))
}

/// Calls a method on the tiles of the processor.
macro_rules! on_tiles {
    ($this:ident.$method:ident($($arg:expr),*)) => {{
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        $this.$method::<super::hardware::Hardware>($($arg),*);
        #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
        {
            let _ = ($this, $($arg),*);
            unreachable!("there is no product on tiles where the processor has none");
        }
    }};
}

/// `C = A * B` of an m x k matrix with weights, on the tiles of AMX: in float32 put together from
/// bf16, or in bf16.
#[derive(Clone, Copy, Debug)]
pub struct AmxGemm {
    m: usize,
    n: usize,
    k: usize,
    /// Parts of each number: three for float32, one for bf16.
    parts: usize,
    /// The product of weights that have no parts.
    plain: Sgemm,
}

/// How the loops over the lines of A are cut.
#[derive(Clone, Copy)]
struct Blocks {
    /// Panels of rows that pass by each panel of columns.
    rows: usize,
    /// Lines along k of a turn.
    depth: usize,
    turns: usize,
}

impl AmxGemm {
    /// A product of `[m, k]` by `[k, n]`; none where it gains nothing from tiles, or the system
    /// permits none.
    pub fn new(m: usize, n: usize, k: usize, precision: Precision) -> Option<AmxGemm> {
        let gains = match precision {
            Precision::Single => m >= LEAST[0] && n >= LEAST[1] && k >= LEAST[2],
            Precision::Bf16 => n >= LEAST[1] && k >= LINE_NUMBERS,
        };
        (gains && super::is_permitted()).then(|| AmxGemm::of(m, n, k, precision))
    }

    pub(crate) fn of(m: usize, n: usize, k: usize, precision: Precision) -> AmxGemm {
        let parts = match precision {
            Precision::Single => PARTS,
            Precision::Bf16 => 1,
        };
        AmxGemm { m, n, k, parts, plain: Sgemm::new(m, n, k, Isa::detect()) }
    }

    /// The form of the numbers while they are multiplied.
    pub fn precision(&self) -> Precision {
        if self.parts == PARTS { Precision::Single } else { Precision::Bf16 }
    }

    /// Lines along k.
    fn steps(&self) -> usize {
        self.k.div_ceil(LINE_NUMBERS)
    }

    fn row_panels(&self) -> usize {
        self.m.div_ceil(SIDE)
    }

    fn columns(&self) -> usize {
        self.n.div_ceil(SIDE)
    }

    /// Bytes of one step of 32 rows of A, or columns of B.
    fn step_bytes(&self) -> usize {
        self.parts * 2 * TILE
    }

    /// Elements of a panel of 32 columns of packed B.
    fn panel_len(&self) -> usize {
        self.steps() * self.step_bytes() / size_of::<f32>()
    }

    /// Elements of 32 rows of A in lines, and a line that says which of them have parts.
    fn rows_len(&self) -> usize {
        self.panel_len() + HEADER
    }

    /// Elements that [`pack`](Self::pack) writes; independent of m.
    pub fn packed_len(&self) -> usize {
        let plain = if self.parts == PARTS { self.plain.packed_len() } else { 0 };
        HEADER + plain.max(self.columns() * self.panel_len())
    }

    /// Elements of memory that [`run`](Self::run) needs for as long as it runs.
    pub fn workspace_len(&self) -> usize {
        self.row_panels() * self.rows_len()
    }

    fn blocks(&self) -> Blocks {
        let (line, steps, panels) = (self.step_bytes(), self.steps().max(1), self.row_panels().max(1));
        let rows = (NEAR / (line * steps)).max(ROW_PANELS).min(panels);
        let rows = panels.div_ceil(panels.div_ceil(rows));
        let turns = steps.div_ceil((NEAR / (line * rows)).max(1));
        Blocks { rows, depth: steps.div_ceil(turns), turns }
    }

    /// Packs B, `[k, n]`, with panels of columns as the chunks of a loop. In float32, weights of
    /// which one has no parts are packed for a product without tiles.
    ///
    /// # Panics
    /// If B is smaller than k x n or `out` than [`packed_len`](Self::packed_len).
    pub fn pack(&self, par: &dyn Par, b: Matrix<'_>, out: &mut [f32]) {
        on_tiles!(self.pack_on(par, b, out));
    }

    fn pack_on<T: Tiles>(&self, par: &dyn Par, b: Matrix<'_>, out: &mut [f32]) {
        let (needed, given) = (self.packed_len(), out.len());
        assert!(given >= needed, "packing B needs {needed} elements, got {given}");
        let (header, body) = out[..needed].split_at_mut(HEADER);
        let all_have_parts = AtomicBool::new(true);
        let panels = &mut body[..self.columns() * self.panel_len()];
        par_chunks_mut(par, panels, self.panel_len().max(1), |panel, out| {
            if !self.pack_panel(&mut T::configure(), panel, b, bytemuck::cast_slice_mut(out)) {
                all_have_parts.store(false, Ordering::Relaxed);
            }
        });
        let in_parts = self.parts < PARTS || all_have_parts.into_inner();
        if !in_parts {
            self.plain.pack_in_parallel(par, b, body);
        }
        header.fill(0.0);
        header[0] = f32::from_bits(if in_parts { IN_PARTS } else { PLAIN });
    }

    /// Packs 32 columns as `[step][part][2 tiles]`; whether all their numbers have parts.
    pub(crate) fn pack_panel<T: Tiles>(&self, t: &mut T, panel: usize, b: Matrix<'_>, out: &mut [u8]) -> bool {
        let mut all = true;
        let mut lines = [[[0u8; LINE]; ROWS]; PARTS];
        for (step, out) in out.chunks_exact_mut(self.step_bytes()).enumerate() {
            let ks = step * LINE_NUMBERS..((step + 1) * LINE_NUMBERS).min(self.k);
            for half in 0..2 {
                for column in 0..ROWS {
                    let mut numbers = [0.0; LINE_NUMBERS];
                    let at = panel * SIDE + half * ROWS + column;
                    if at < self.n {
                        let from = &b.data[at * b.col_stride + ks.start * b.row_stride..];
                        let from = from.iter().step_by(b.row_stride.max(1)).take(ks.len());
                        numbers.iter_mut().zip(from).for_each(|(number, x)| *number = *x);
                    }
                    let apart = ROWS * LINE;
                    // SAFETY: `lines` has a line of each part for this column.
                    all &= unsafe {
                        t.split(halves(&numbers), self.parts, (&raw mut lines).cast::<u8>().add(column * LINE), apart)
                    };
                }
                // Row r of a tile has the r-th pair of every column.
                for (part, lines) in lines.iter().enumerate().take(self.parts) {
                    let tile = &mut out[(part * 2 + half) * TILE..][..TILE];
                    for (r, row) in tile.chunks_exact_mut(LINE).enumerate() {
                        for (pair, line) in row.chunks_exact_mut(4).zip(lines) {
                            pair.copy_from_slice(&line[r * 4..r * 4 + 4]);
                        }
                    }
                }
            }
        }
        all
    }

    /// Undoes [`pack`](Self::pack) of a product in float32 for some columns of B, one after another.
    /// Numbers below 2^-103 come back without their last digits.
    ///
    /// # Panics
    /// If the product is in bf16, or `packed` or `out` is too small.
    pub fn unpack(&self, packed: &[f32], columns: Range<usize>, out: &mut [f32]) {
        assert_eq!(self.parts, PARTS, "weights in bf16 have lost digits");
        let (header, body) = packed[..self.packed_len()].split_at(HEADER);
        if header[0].to_bits() == PLAIN {
            return self.plain.unpack(body, columns, out);
        }
        for (column, out) in columns.zip(out.chunks_exact_mut(self.k.max(1))) {
            let panel = bytemuck::cast_slice(&body[column / SIDE * self.panel_len()..][..self.panel_len()]);
            out.iter_mut().enumerate().for_each(|(k, number)| *number = number_in_parts(panel, k, column % SIDE));
        }
    }

    /// `c = a * b` with the epilogue applied; `packed` is B as [`pack`](Self::pack) left it, row i
    /// of C starts at `i * c_stride`. Rows of A with numbers that have no parts (from 2^127 on,
    /// infinities, NaN) are multiplied in float32.
    ///
    /// # Panics
    /// If an operand is smaller than the shape says, or `workspace` than
    /// [`workspace_len`](Self::workspace_len).
    #[allow(clippy::too_many_arguments)]
    pub fn run(
        &self,
        a: &[f32],
        packed: &[f32],
        epilogue: Epilogue<'_>,
        c: &mut [f32],
        c_stride: usize,
        workspace: &mut [f32],
        par: &dyn Par,
    ) {
        on_tiles!(self.run_on(a, packed, epilogue, c, c_stride, workspace, par));
    }

    #[allow(clippy::too_many_arguments)]
    fn run_on<T: Tiles>(
        &self,
        a: &[f32],
        packed: &[f32],
        epilogue: Epilogue<'_>,
        c: &mut [f32],
        c_stride: usize,
        workspace: &mut [f32],
        par: &dyn Par,
    ) {
        if self.m == 0 || self.n == 0 {
            return;
        }
        let (needed, given) = (self.m * self.k, a.len());
        assert!(given >= needed, "A needs {needed} elements, got {given}");
        let (needed, given) = (self.packed_len(), packed.len());
        assert!(given >= needed, "packed B needs {needed} elements, got {given}");
        let (needed, given) = (self.workspace_len(), workspace.len());
        assert!(given >= needed, "the workspace needs {needed} elements, got {given}");
        let (header, body) = packed.split_at(HEADER);
        if header[0].to_bits() == PLAIN {
            return self.plain.run(Matrix::rows(a, self.k), body, epilogue, c, c_stride, &mut [], par);
        }
        check_output(self.m, self.n, c, c_stride, &epilogue);
        let lines = &mut workspace[..needed];
        par_chunks_mut(par, lines, self.rows_len(), |panel, out| {
            self.split_rows(&mut T::configure(), a, panel, bytemuck::cast_slice_mut(out));
        });
        let output = Output { gemm: self.plain, epilogue, scale: Scale::default(), c: Dst::new(c), c_stride };
        let job = Job { gemm: *self, blocks: self.blocks(), rows: a, a: lines, b: body, output };
        let [rows, columns] = [self.row_panels(), self.columns()];
        // How panels are shared changes no order of additions.
        if columns >= rows {
            par.run_static(columns, job.scratch_bytes(), &|part, scratch| job.run::<T>(0..rows, part, scratch));
        } else {
            par.run_static(rows, job.scratch_bytes(), &|part, scratch| job.run::<T>(part, 0..columns, scratch));
        }
    }

    /// The sums of a row with 32 columns, without tiles.
    fn multiply_row(&self, row: &[f32], panel: &[u8], sums: &mut [f32]) {
        sums.fill(0.0);
        for (k, x) in row.iter().enumerate() {
            let (step, pair, odd) = (k / LINE_NUMBERS, k % LINE_NUMBERS / 2, k % 2);
            for (column, sum) in sums.iter_mut().enumerate() {
                let parts = std::array::from_fn(|part| {
                    let tile = step * self.step_bytes() + (part * 2 + column / ROWS) * TILE;
                    let at = tile + pair * LINE + column % ROWS * 4 + odd * 2;
                    u16::from_le_bytes([panel[at], panel[at + 1]])
                });
                *sum = x.mul_add(sum_of(parts), *sum);
            }
        }
    }

    /// Splits 32 rows of A into lines, `[step][part][32 rows]`, and notes after them which rows
    /// have numbers without parts. Of rows after the last one nothing is written.
    fn split_rows<T: Tiles>(&self, t: &mut T, a: &[f32], panel: usize, out: &mut [u8]) {
        let (lines, notes) = out.split_at_mut(self.panel_len() * size_of::<f32>());
        notes.fill(0);
        let rows = panel * SIDE..((panel + 1) * SIDE).min(self.m);
        for (step, lines) in lines.chunks_exact_mut(self.step_bytes()).enumerate() {
            let ks = step * LINE_NUMBERS..((step + 1) * LINE_NUMBERS).min(self.k);
            for (r, row) in rows.clone().enumerate() {
                let from = &a[row * self.k..][ks.clone()];
                let mut last = [0.0; LINE_NUMBERS];
                let numbers = match from.first_chunk::<LINE_NUMBERS>() {
                    Some(numbers) => numbers,
                    None => {
                        last[..from.len()].copy_from_slice(from);
                        &last
                    }
                };
                // SAFETY: a step has `parts` times 32 lines, of which row r < 32 has one each.
                let right = unsafe { t.split(halves(numbers), self.parts, lines[r * LINE..].as_mut_ptr(), 2 * TILE) };
                notes[r] |= u8::from(!right && self.parts == PARTS);
            }
        }
    }
}

/// A running product.
struct Job<'a> {
    gemm: AmxGemm,
    blocks: Blocks,
    /// The rows.
    rows: &'a [f32],
    /// The rows in lines.
    a: &'a [f32],
    /// B in panels.
    b: &'a [f32],
    output: Output<'a>,
}

impl Job<'_> {
    fn scratch_bytes(&self) -> usize {
        SUMS * if self.blocks.turns > 1 { self.blocks.rows * TURN_COLUMNS } else { 1 }
    }

    /// Multiplies some panels of rows with some panels of columns.
    fn run<T: Tiles>(&self, rows: Range<usize>, columns: Range<usize>, scratch: &mut [u8]) {
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

    /// One turn along k of the register tiles of these rows and columns.
    fn turn<T: Tiles>(&self, t: &mut T, turn: usize, rows: Range<usize>, columns: Range<usize>, scratch: &mut [u8]) {
        let gemm = &self.gemm;
        let first = turn * self.blocks.depth;
        let steps = self.blocks.depth.min(gemm.steps() - first);
        let (at, last) = (first * gemm.step_bytes(), turn + 1 == self.blocks.turns);
        for column in columns.clone() {
            let panel: &[u8] = bytemuck::cast_slice(&self.b[column * gemm.panel_len()..][..gemm.panel_len()]);
            let b = panel[at..].as_ptr();
            // Requests of what the next panel holds are spread over the rows of this one.
            let lines = (gemm.step_bytes() / LINE).div_ceil(rows.len());
            let mut soon = Soon { at: b.wrapping_add(panel.len()), lines };
            for row in rows.clone() {
                let a: &[u8] = bytemuck::cast_slice(&self.a[row * gemm.rows_len()..][..gemm.panel_len()]);
                let place = match self.blocks.turns {
                    1 => 0,
                    _ => (row - rows.start) * TURN_COLUMNS + column - columns.start,
                };
                let sums = &mut scratch[place * SUMS..][..SUMS];
                let (first, to, fresh) = (a[at..].as_ptr(), sums.as_mut_ptr(), turn == 0);
                let a = Rows { at: |step| first.wrapping_add(step * gemm.step_bytes()), part: 2 * TILE };
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
                    self.finish(row, column, panel, bytemuck::cast_slice_mut(sums));
                }
            }
        }
    }

    /// Writes the sums of a register tile to C. Rows with numbers that have no parts are computed
    /// again.
    fn finish(&self, row: usize, column: usize, panel: &[u8], sums: &mut [f32]) {
        let lines = &self.a[row * self.gemm.rows_len()..][..self.gemm.rows_len()];
        let notes: &[u8] = bytemuck::cast_slice(&lines[self.gemm.panel_len()..]);
        let rows = SIDE.min(self.gemm.m - row * SIDE);
        if notes.contains(&1) {
            for r in (0..rows).filter(|r| notes[*r] == 1) {
                let whole = &self.rows[(row * SIDE + r) * self.gemm.k..][..self.gemm.k];
                self.gemm.multiply_row(whole, panel, &mut sums[r * SIDE..][..SIDE]);
            }
        }
        // SAFETY: no other part has these rows and columns; the sums are 32 rows of 32.
        unsafe {
            self.output.store_columns(row * SIDE, rows, column * SIDE, SIDE, Src::new(sums), SIDE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activation::Activation;
    use crate::amx::model::Modelled;
    use crate::gemm::Function;
    use crate::gemm::tests::values;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads};
    use proptest::prelude::*;

    /// The product on the tiles `T`.
    fn product<T: Tiles>(gemm: AmxGemm, a: &[f32], b: Matrix<'_>, epilogue: Epilogue<'_>, par: &dyn Par) -> Vec<f32> {
        let mut packed = crate::aligned::AlignedVec::zeroed(gemm.packed_len());
        packed.fill(f32::NAN);
        gemm.pack_on::<T>(par, b, &mut packed);
        let mut workspace = vec![f32::NAN; gemm.workspace_len()];
        let mut c = vec![7.0; gemm.m * (gemm.n + 1)];
        gemm.run_on::<T>(a, &packed, epilogue, &mut c, gemm.n + 1, &mut workspace, par);
        c
    }

    fn bits(c: &[f32]) -> Vec<u32> {
        c.iter().map(|x| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() }).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        #[test]
        fn a_product_on_tiles_equals_its_float64_reference_and_the_model_of_tiles(
            m in 1usize..70, n in 1usize..80, k in 1usize..100, turned: bool, relu: bool, single: bool, seed: u64,
        ) {
            let (a, data) = (values(seed, m * k), values(seed ^ 1, k * n));
            let b = if turned { Matrix::rows(&data, k).transposed() } else { Matrix::rows(&data, n) };
            let bias = values(seed ^ 2, n);
            let (residual, activation) = (values(seed ^ 3, m * n), if relu { Activation::Relu } else { Activation::None });
            let double = |x: &mut [f32]| x.iter_mut().for_each(|x| *x *= 2.0);
            let function = turned.then_some(Function(&double));
            let epilogue = Epilogue { bias: Some(&bias), residual: Some(&residual), activation, function };
            let gemm = AmxGemm::of(m, n, k, if single { Precision::Single } else { Precision::Bf16 });
            let c = product::<Modelled>(gemm, &a, b, epilogue, &Serial);
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let terms = (0..k).map(|l| f64::from(a[i * k + l]) * f64::from(data[l * b.row_stride + j * b.col_stride]));
                let added = [f64::from(bias[j]), f64::from(residual[i * n + j])];
                let start = (added[0] + added[1], added[0].abs() + added[1].abs());
                let (sum, scale) = terms.fold(start, |(sum, all), t| (sum + t, all + t.abs()));
                let factor = if turned { 2.0 } else { 1.0 };
                let (want, got) = (if relu { sum.max(0.0) } else { sum } * factor, f64::from(c[i * (n + 1) + j]));
                let tolerance = factor * if single { 2e-7 } else { 2.02 / 256.0 };
                prop_assert!((got - want).abs() <= tolerance * scale, "({i}, {j}): {got}, expected {want}");
            }
            prop_assert!((0..m).all(|i| c[i * (n + 1) + n] == 7.0), "wrote beyond a row of C");
            for par in [&Reverse as &dyn Par, &Threads(3)] {
                prop_assert_eq!(bits(&product::<Modelled>(gemm, &a, b, epilogue, par)), bits(&c));
            }
            #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
            if crate::amx::is_permitted() {
                let got = product::<crate::amx::hardware::Hardware>(gemm, &a, b, epilogue, &Threads(2));
                prop_assert_eq!(bits(&got), bits(&c));
            }
        }
    }

    #[test]
    fn weights_come_back_bit_for_bit_from_the_least_number_with_all_parts_on() {
        let (m, n, k) = (30, 70, 45);
        let gemm = AmxGemm::of(m, n, k, Precision::Single);
        let least = 2f32.powi(-103);
        let mut weights = values(3, n * k);
        weights[..5].copy_from_slice(&[-0.0, least, -1.9999999 * least, 1.7e38 / 1.01, 0.0]);
        let mut with_infinity = weights.clone();
        with_infinity[n * k / 2] = f32::INFINITY;
        for weights in [weights, with_infinity] {
            let mut packed = vec![f32::NAN; gemm.packed_len()];
            gemm.pack_on::<Modelled>(&Serial, Matrix::rows(&weights, k).transposed(), &mut packed);
            for rows in [0..n, 3..4, 31..65] {
                let mut back = vec![f32::NAN; rows.len() * k];
                gemm.unpack(&packed, rows.clone(), &mut back);
                assert_eq!(bits(&back), bits(&weights[rows.start * k..rows.end * k]), "{rows:?}");
            }
        }
    }

    #[test]
    fn rows_with_numbers_that_have_no_parts_are_those_of_a_product_in_float32() {
        let (m, n, k) = (40, 33, 70);
        let (mut a, b) = (values(1, m * k), values(2, k * n));
        (a[3 * k + 5], a[20 * k], a[39 * k + 69]) = (f32::INFINITY, f32::NAN, 3e38);
        let gemm = AmxGemm::of(m, n, k, Precision::Single);
        let c = product::<Modelled>(gemm, &a, Matrix::rows(&b, n), Epilogue::default(), &Serial);
        for j in 0..n {
            assert_eq!(c[3 * (n + 1) + j], f32::INFINITY * b[5 * n + j].signum(), "column {j}");
            assert!(c[20 * (n + 1) + j].is_nan());
            let want = f64::from(3e38f32) * f64::from(b[69 * n + j]);
            assert!((f64::from(c[39 * (n + 1) + j]) / want - 1.0).abs() < 1e-5, "column {j}");
            assert!(c[4 * (n + 1) + j].abs() < 100.0);
        }
    }

    #[test]
    fn weights_that_have_no_parts_are_multiplied_without_tiles() {
        let (m, n, k) = (30, 40, 64);
        for weight in [f32::NEG_INFINITY, f32::NAN, 2f32.powi(127)] {
            let (a, mut b) = (values(3, m * k), values(4, k * n));
            b[7 * n + 9] = weight;
            let gemm = AmxGemm::of(m, n, k, Precision::Single);
            let c = product::<Modelled>(gemm, &a, Matrix::rows(&b, n), Epilogue::default(), &Serial);
            let mut packed = vec![0.0; gemm.plain.packed_len()];
            gemm.plain.pack(Matrix::rows(&b, n), &mut packed);
            let mut want = vec![7.0; m * (n + 1)];
            let (rows, epilogue) = (Matrix::rows(&a, k), Epilogue::default());
            gemm.plain.run(rows, &packed, epilogue, &mut want, n + 1, &mut [], &Serial);
            assert_eq!(bits(&c), bits(&want), "{weight}");
        }
    }

    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    #[test]
    fn sums_over_several_turns_have_the_bits_of_one() {
        use crate::amx::hardware::Hardware;
        let (m, n, k) = (130, 40, 3000);
        let (a, b) = (values(5, m * k), values(6, k * n));
        let gemm = AmxGemm::of(m, n, k, Precision::Single);
        let few = AmxGemm::of(20, n, k, Precision::Single);
        assert!(gemm.blocks().turns > 1 && few.blocks().turns < gemm.blocks().turns);
        if crate::amx::is_permitted() {
            let all = product::<Hardware>(gemm, &a, Matrix::rows(&b, n), Epilogue::default(), &Threads(2));
            let some = product::<Hardware>(few, &a[..20 * k], Matrix::rows(&b, n), Epilogue::default(), &Serial);
            assert_eq!(bits(&all[..20 * (n + 1)]), bits(&some));
        }
    }
}
