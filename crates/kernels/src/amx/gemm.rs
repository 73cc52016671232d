//! Dense layers on tiles: rows of A are split into lines once, then every core multiplies its share
//! of the columns.

use super::finish::{Target, TileEpilogue, TileOutput};
use super::job::{Blocks, Job};
use super::lines::{Lines, Split};
use super::parts::{PARTS, sum_of};
use super::tiles::{LINE, LINE_NUMBERS, ROWS, SIDE, TILE, Tiles, halves};
use crate::conv::Precision;
use crate::gemm::{Matrix, Sgemm};
use crate::isa::Isa;
use crate::par::{Par, par_chunks_mut};
use crate::scratch::Scratch;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Fewest rows, columns and products of a sum for which float32 gains from tiles: fewer rows leave
/// a tile empty, and less work does not pay for splitting A.
const LEAST: [usize; 3] = [56, 32, 64];
/// Bytes of A that stay in the second-level cache while panels of B pass by.
const NEAR: usize = 1 << 20;
/// Panels of rows that make reading B worth its time.
const ROW_PANELS: usize = 4;
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

/// `C = A * B` of an m x k matrix with weights, on the tiles of AMX: in float32 put together from
/// bf16, or in bf16.
#[derive(Clone, Copy, Debug)]
pub struct AmxGemm {
    pub(super) m: usize,
    n: usize,
    pub(super) k: usize,
    /// Parts of each number: three for float32, one for bf16.
    pub(super) parts: usize,
    /// The product of weights that have no parts.
    plain: Sgemm,
}

impl AmxGemm {
    /// A product of `[m, k]` by `[k, n]`; none where it gains nothing from tiles, or the system
    /// permits none.
    pub fn new(m: usize, n: usize, k: usize, precision: Precision) -> Option<AmxGemm> {
        let gains = match precision {
            Precision::Single | Precision::W8 => m >= LEAST[0] && n >= LEAST[1] && k >= LEAST[2],
            Precision::Bf16 => n >= LEAST[1] && k >= LINE_NUMBERS,
        };
        (gains && super::is_permitted()).then(|| AmxGemm::of(m, n, k, precision))
    }

    pub(crate) fn of(m: usize, n: usize, k: usize, precision: Precision) -> AmxGemm {
        let parts = match precision {
            Precision::Single | Precision::W8 => PARTS,
            Precision::Bf16 => 1,
        };
        AmxGemm { m, n, k, parts, plain: Sgemm::new(m, n, k, Isa::detect()) }
    }

    /// The form of the numbers while they are multiplied.
    pub fn precision(&self) -> Precision {
        if self.parts == PARTS { Precision::Single } else { Precision::Bf16 }
    }

    /// Lines along k.
    pub(super) fn steps(&self) -> usize {
        self.k.div_ceil(LINE_NUMBERS)
    }

    /// The form of A.
    pub fn lines(&self) -> Lines {
        Lines::new(self.m, self.k, self.precision())
    }

    /// The form of C where the next product reads it in lines.
    pub fn result_lines(&self) -> Lines {
        Lines::new(self.m, self.n, self.precision())
    }

    fn columns(&self) -> usize {
        self.n.div_ceil(SIDE)
    }

    /// Bytes of one step of 32 rows of A, or columns of B.
    pub(super) fn step_bytes(&self) -> usize {
        self.parts * 2 * TILE
    }

    /// Elements of a panel of 32 columns of packed B.
    fn panel_len(&self) -> usize {
        self.steps() * self.step_bytes() / size_of::<f32>()
    }

    /// Elements that [`pack`](Self::pack) writes; independent of m.
    pub fn packed_len(&self) -> usize {
        let plain = if self.parts == PARTS { self.plain.packed_len() } else { 0 };
        HEADER + plain.max(self.columns() * self.panel_len())
    }

    /// Elements of memory, from a 64-byte boundary on, that [`run`](Self::run) needs for as long as it
    /// runs.
    pub fn workspace_len(&self) -> usize {
        self.lines().bytes() / size_of::<f32>()
    }

    fn blocks(&self) -> Blocks {
        let (line, steps, panels) = (self.step_bytes(), self.steps().max(1), self.lines().panels().max(1));
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

    /// `c = a * b` with the epilogue applied; `packed` is B as [`pack`](Self::pack) left it. Rows of
    /// A with numbers that have no parts (from 2^127 on, infinities, NaN) are multiplied in float32.
    ///
    /// # Panics
    /// If an operand is smaller than the shape says, or `workspace` than
    /// [`workspace_len`](Self::workspace_len).
    pub fn run(
        &self,
        a: &[f32],
        packed: &[f32],
        epilogue: TileEpilogue<'_>,
        target: Target<'_>,
        workspace: &mut [f32],
        par: &dyn Par,
    ) {
        on_tiles!(self.run_on(a, packed, epilogue, target, workspace, par));
    }

    fn run_on<T: Split>(
        &self,
        a: &[f32],
        packed: &[f32],
        epilogue: TileEpilogue<'_>,
        target: Target<'_>,
        workspace: &mut [f32],
        par: &dyn Par,
    ) {
        if self.m == 0 || self.n == 0 {
            return;
        }
        let (needed, given) = (self.m * self.k, a.len());
        assert!(given >= needed, "A needs {needed} elements, got {given}");
        let (needed, given) = (self.workspace_len(), workspace.len());
        assert!(given >= needed, "the workspace needs {needed} elements, got {given}");
        if let Some(plain) = self.without_parts(packed) {
            return self.run_plain::<T>(a, plain, epilogue, target, par);
        }
        let lines = bytemuck::cast_slice_mut(workspace);
        self.lines().write_on::<T>(par, a, lines);
        self.multiply::<T>(lines, packed, epilogue, target, par);
    }

    /// Multiplies as [`run`](Self::run) does, with A in [`lines`](Self::lines).
    ///
    /// # Panics
    /// If an operand is smaller than the shape says.
    pub fn run_lines(&self, a: &[u8], packed: &[f32], epilogue: TileEpilogue<'_>, target: Target<'_>, par: &dyn Par) {
        on_tiles!(self.run_lines_on(a, packed, epilogue, target, par));
    }

    fn run_lines_on<T: Split>(
        &self,
        a: &[u8],
        packed: &[f32],
        epilogue: TileEpilogue<'_>,
        target: Target<'_>,
        par: &dyn Par,
    ) {
        if self.m == 0 || self.n == 0 {
            return;
        }
        let lines = self.lines();
        let (needed, given) = (lines.bytes(), a.len());
        assert!(given >= needed, "A in lines needs {needed} bytes, got {given}");
        let Some(plain) = self.without_parts(packed) else {
            return self.multiply::<T>(a, packed, epilogue, target, par);
        };
        // No one trains weights of infinities: these products need not be fast.
        let mut rows = Scratch::<f32>::new(par, self.m * self.k);
        for (row, out) in rows.chunks_exact_mut(self.k.max(1)).enumerate() {
            lines.read_row(&a[row / SIDE * lines.panel_bytes()..][..lines.panel_bytes()], row % SIDE, out);
        }
        self.run_plain::<T>(&rows, plain, epilogue, target, par);
    }

    /// B packed for a product without tiles, if it is.
    fn without_parts<'a>(&self, packed: &'a [f32]) -> Option<&'a [f32]> {
        let (needed, given) = (self.packed_len(), packed.len());
        assert!(given >= needed, "packed B needs {needed} elements, got {given}");
        (packed[0].to_bits() == PLAIN).then_some(&packed[HEADER..])
    }

    /// The product without tiles.
    fn run_plain<T: Split>(
        &self,
        a: &[f32],
        plain: &[f32],
        epilogue: TileEpilogue<'_>,
        target: Target<'_>,
        par: &dyn Par,
    ) {
        let run = |c: &mut [f32], stride: usize| {
            self.plain.run(Matrix::rows(a, self.k), plain, epilogue.exact(), c, stride, &mut [], par);
        };
        match target {
            Target::Rows { c, stride } => run(c, stride),
            Target::Lines(out) => {
                let mut c = Scratch::<f32>::new(par, self.m * self.n);
                run(&mut c, self.n);
                self.result_lines().write_on::<T>(par, &c, out);
            }
        }
    }

    fn multiply<T: Split>(
        &self,
        a: &[u8],
        packed: &[f32],
        epilogue: TileEpilogue<'_>,
        target: Target<'_>,
        par: &dyn Par,
    ) {
        let output = TileOutput::new([self.m, self.n], self.result_lines(), epilogue, target);
        let b = bytemuck::cast_slice(&packed[HEADER..]);
        let job = Job { gemm: *self, lines: self.lines(), blocks: self.blocks(), a, b, output };
        let [rows, columns] = [self.lines().panels(), self.columns()];
        // How panels are shared changes no order of additions.
        if columns >= rows {
            par.run_static(columns, job.scratch_bytes(), &|part, scratch| job.run::<T>(0..rows, part, scratch));
        } else {
            par.run_static(rows, job.scratch_bytes(), &|part, scratch| job.run::<T>(part, 0..columns, scratch));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activation::Activation;
    use crate::amx::model::Modelled;
    use crate::gemm::tests::values;
    use crate::gemm::{ElementFunction, Epilogue};
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads};
    use proptest::prelude::*;

    /// The product on the tiles `T`.
    fn product<T: Split>(gemm: AmxGemm, a: &[f32], b: Matrix<'_>, epilogue: Epilogue<'_>, par: &dyn Par) -> Vec<f32> {
        let mut packed = crate::aligned::AlignedVec::zeroed(gemm.packed_len());
        packed.fill(f32::NAN);
        gemm.pack_on::<T>(par, b, &mut packed);
        let mut workspace = vec![f32::NAN; gemm.workspace_len()];
        let mut c = vec![7.0; gemm.m * (gemm.n + 1)];
        let target = Target::Rows { c: &mut c, stride: gemm.n + 1 };
        gemm.run_on::<T>(a, &packed, epilogue.into(), target, &mut workspace, par);
        // Lines in and out have the same numbers.
        let (lines, results) = (gemm.lines(), gemm.result_lines());
        let (mut given, mut got) = (vec![0xff; lines.bytes()], vec![0xff; results.bytes()]);
        lines.write_on::<T>(par, a, &mut given);
        let mut again = c.clone();
        again.fill(7.0);
        let target = Target::Rows { c: &mut again, stride: gemm.n + 1 };
        gemm.run_lines_on::<T>(&given, &packed, epilogue.into(), target, par);
        if b.data.iter().all(|x| x.abs() < 1e38) {
            assert_eq!(bits(&again), bits(&c), "A in lines");
        }
        gemm.run_lines_on::<T>(&given, &packed, epilogue.into(), Target::Lines(&mut got), par);
        let mut row = vec![0.0; gemm.n];
        for (i, want) in again.chunks_exact(gemm.n + 1).enumerate() {
            results.read_row(&got[i / SIDE * results.panel_bytes()..][..results.panel_bytes()], i % SIDE, &mut row);
            let round = |x: &f32| if gemm.parts < PARTS { half::bf16::from_f32(*x).to_f32() } else { *x };
            let want: Vec<f32> = want[..gemm.n].iter().map(round).collect();
            assert_eq!(bits(&row), bits(&want), "C in lines, row {i}");
        }
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
            let function = turned.then_some(ElementFunction(&double));
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
