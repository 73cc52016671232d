//! Weights rounded to fewer bytes than float32: bf16, or a byte each with a factor for each column
//! of B (a row of a layer's weights). Rows of A and sums stay float32.
//!
//! The packed form has a factor for each column, then panels as those of float32 with fewer bytes a
//! number. Where few rows meet the weights, reading these is what takes the time: numbers are
//! expanded in registers where they are multiplied. Where many rows do, every chunk expands a panel
//! once and multiplies it as one of float32. Either way factors are applied to the finished sums, so
//! both multiply the same numbers.

use super::few_rows::{Bytes, Code, Expand, ExpandArgs, FEW_ROWS, FewRowsArgs, Halves, few_rows};
use super::job::{GemmCut, Job, Right, scratch_bytes};
use super::output::GemmOutput;
use super::tile::Split;
use super::{Matrix, Sgemm};
use crate::par::{Par, chunk_rows, par_chunks_mut2};
use crate::simd::{Dst, LANES, Src, entry};

/// Most rows whose products expand weights in registers, for a few rows together.
const SOME_ROWS: usize = 48;
/// Elements of A that stay in the second-level cache while panels pass by.
const NEAR: usize = 64 << 10;
/// Multiply-adds that a chunk of few rows should have at least.
const CHUNK_WORK: usize = 128 << 10;
/// Fewer rows than this wait for their weights.
const WAITING_ROWS: usize = 16;
/// Largest whole number of a weight in a byte, of either sign.
const LEVELS: f32 = 127.0;

/// A form of weights in fewer bytes than float32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SmallWeights {
    /// The nearest bf16, half to even: an error of at most 2^-9 of a weight.
    Bf16,
    /// Whole numbers from -127 to 127, half to even, times a 127th of the largest magnitude of the
    /// row of a layer's weights: an error of at most a 254th of that magnitude. A row with a weight
    /// that is not finite has NaN for its results.
    Int8,
}

impl SmallWeights {
    /// The name in plans and in keys of packed weights.
    pub fn name(self) -> &'static str {
        match self {
            SmallWeights::Bf16 => "bf16 weights",
            SmallWeights::Int8 => "w8",
        }
    }

    /// Whether a product of that many rows takes no longer than its weights take to arrive.
    pub fn suits_rows(rows: usize) -> bool {
        rows < WAITING_ROWS
    }

    /// Elements of 16 numbers.
    fn block(self) -> usize {
        match self {
            SmallWeights::Bf16 => Halves::BLOCK,
            SmallWeights::Int8 => Bytes::BLOCK,
        }
    }

    /// Elements of a panel.
    fn panel_len(self, gemm: &Sgemm) -> usize {
        gemm.panel() / LANES * self.block() * gemm.k
    }

    /// Elements of the factors in front of the panels.
    fn factors_len(gemm: &Sgemm) -> usize {
        gemm.n.next_multiple_of(gemm.panel())
    }

    pub(super) fn packed_len(self, gemm: &Sgemm) -> usize {
        Self::factors_len(gemm) + gemm.n.div_ceil(gemm.panel()) * self.panel_len(gemm)
    }

    /// Rounds and packs B, with panels as the chunks of a loop.
    pub(super) fn pack(self, gemm: &Sgemm, par: &dyn Par, b: Matrix<'_>, out: &mut [f32]) {
        let (width, len) = (gemm.panel(), self.panel_len(gemm));
        let (factors, panels) = out.split_at_mut(Self::factors_len(gemm));
        if len == 0 {
            return factors.fill(0.0);
        }
        let together = chunk_rows::<f32>(width * gemm.k);
        par_chunks_mut2(par, factors, together * width, panels, together * len, |chunk, factors, panels| {
            let each = factors.chunks_exact_mut(width).zip(panels.chunks_exact_mut(len));
            for (i, (factors, panel)) in each.enumerate() {
                let first = (chunk * together + i) * width;
                let b = Matrix { data: &b.data[first * b.col_stride..], ..b };
                self.pack_panel(gemm.k, b, width.min(gemm.n - first), factors, panel);
            }
        });
    }

    /// Rounds and packs the first `columns` of B; missing ones are zero.
    fn pack_panel(self, k: usize, b: Matrix<'_>, columns: usize, factors: &mut [f32], panel: &mut [f32]) {
        let width = factors.len();
        panel.fill(0.0);
        factors.fill(0.0);
        for (column, factor) in factors.iter_mut().enumerate().take(columns) {
            let numbers = (0..k).map(|step| b.data[column * b.col_stride + step * b.row_stride]);
            match self {
                SmallWeights::Bf16 => {
                    *factor = 1.0;
                    let halves: &mut [u16] = bytemuck::cast_slice_mut(panel);
                    let place = Halves::place(column);
                    let to = halves.chunks_exact_mut(width).zip(numbers);
                    to.for_each(|(step, number)| step[place] = half::bf16::from_f32(number).to_bits());
                }
                SmallWeights::Int8 => {
                    *factor = factor_of(numbers.clone());
                    let bytes: &mut [i8] = bytemuck::cast_slice_mut(panel);
                    let to = bytes.chunks_exact_mut(width).zip(numbers);
                    to.for_each(|(step, number)| step[column] = (number / *factor).round_ties_even() as i8);
                }
            }
        }
    }

    /// The factors of the columns of a panel, and its numbers.
    pub(super) fn panel_of<'a>(self, gemm: &Sgemm, packed: &'a [f32], panel: usize) -> (&'a [f32], &'a [f32]) {
        let ((factors, panels), len) = (packed.split_at(Self::factors_len(gemm)), self.panel_len(gemm));
        (&factors[panel * gemm.panel()..][..gemm.panel()], &panels[panel * len..][..len])
    }

    /// The product whose output is checked, on B as [`pack`](Self::pack) left it.
    pub(super) fn run(self, a: Matrix<'_>, packed: &[f32], output: GemmOutput<'_>, par: &dyn Par) {
        let gemm = output.gemm;
        let (factors, panels) = packed.split_at(Self::factors_len(&gemm));
        let (b, output) = (SmallView { form: self, gemm, panels }, GemmOutput { factors: Some(factors), ..output });
        if gemm.m <= SOME_ROWS || gemm.m * gemm.k <= NEAR {
            return b.multiply_some(a, &output, par);
        }
        let cut = GemmCut::of(&gemm);
        let job = Job { gemm, cut, a, b: Right::Small(b), output };
        par.run(cut.chunks(), scratch_bytes(&gemm, &cut, true), &|chunk, scratch| job.chunk(chunk, scratch));
    }
}

/// The factor of a column: a 127th of its largest magnitude, 0 if it is zero, NaN if one of its
/// numbers is not finite.
fn factor_of(numbers: impl Iterator<Item = f32>) -> f32 {
    // Infinity times 0 is NaN, which a sum keeps.
    let (largest, odd) = numbers.fold((0.0f32, 0.0), |(largest, odd), x| (largest.max(x.abs()), odd + x * 0.0));
    // A 127th below the normal numbers would not have all digits.
    let factor = if largest == 0.0 { 0.0 } else { (largest / LEVELS).max(f32::MIN_POSITIVE) };
    factor + odd
}

/// Packed weights in fewer bytes.
#[derive(Clone, Copy)]
pub(super) struct SmallView<'a> {
    form: SmallWeights,
    gemm: Sgemm,
    panels: &'a [f32],
}

impl SmallView<'_> {
    fn panel(&self, panel: usize) -> &[f32] {
        let len = self.form.panel_len(&self.gemm);
        &self.panels[panel * len..][..len]
    }

    /// The numbers of a panel without their factors, as a panel of float32.
    pub(super) fn expand(&self, panel: usize, out: &mut [f32]) {
        let blocks = self.gemm.panel() / LANES * self.gemm.k;
        let args = ExpandArgs { from: Src::new(self.panel(panel)), blocks, to: Dst::new(&mut out[..blocks * LANES]) };
        let expand = match self.form {
            SmallWeights::Bf16 => entry::<Expand<Halves>>(self.gemm.isa),
            SmallWeights::Int8 => entry::<Expand<Bytes>>(self.gemm.isa),
        };
        // SAFETY: the panel has these blocks and `to` room for them.
        unsafe { expand(&args) }
    }

    /// Multiplies [`FEW_ROWS`] rows together.
    fn multiply_some(&self, a: Matrix<'_>, output: &GemmOutput<'_>, par: &dyn Par) {
        assert!(a.col_stride == 1, "rows of A must be contiguous, but their values are {} apart", a.col_stride);
        let Sgemm { m, n, k, .. } = self.gemm;
        let (width, panels) = (self.gemm.panel(), n.div_ceil(self.gemm.panel()));
        let group = CHUNK_WORK.div_ceil((m * width * k).max(1));
        let rows = Split::new(m, FEW_ROWS);
        par.run(panels.div_ceil(group), 0, &|chunk, _| {
            for panel in chunk * group..panels.min((chunk + 1) * group) {
                for part in 0..rows.parts {
                    let (first, count) = (rows.start(part), rows.rows(part));
                    let mut sums = [0.0; FEW_ROWS * 2 * LANES];
                    let args = FewRowsArgs {
                        a: Src::new(a.data).add(first * a.row_stride),
                        row: a.row_stride,
                        k,
                        b: Src::new(self.panel(panel)),
                        sums: Dst::new(&mut sums),
                    };
                    let multiply = few_rows(&self.gemm, count).expect("these weights are in panels");
                    // SAFETY: `Sgemm::run` has checked that A has m rows of k; the panel has k steps,
                    // and `sums` room for these rows of its columns. No other chunk has this panel.
                    unsafe {
                        multiply(&args);
                        output.store(first, count, panel, Src::new(&sums), width);
                    }
                }
            }
        });
    }
}

#[cfg(test)]
mod tests;
