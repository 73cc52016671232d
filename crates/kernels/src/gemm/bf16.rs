//! Products of values rounded to bf16, for AVX512-BF16: rows of A and of the weights are rounded to
//! pairs of neighbouring values, each of which takes the place of one `f32`. Sums, bias and
//! activation are `f32`.

use super::tile::{Elements, tile_size};
use super::{Epilogue, Matrix, Sgemm};
use crate::isa::{Isa, has_bf16};
use crate::par::{Par, chunk_rows, par_chunks_mut};
use crate::simd::{Dst, LANES, Src, round_to_pairs};

/// `C = A * Wᵀ` of an m x k matrix with the n x k weights of a dense layer.
#[derive(Clone, Copy, Debug)]
pub struct Bf16Gemm {
    /// The product of pairs.
    pairs: Sgemm,
    m: usize,
    k: usize,
}

impl Bf16Gemm {
    /// A product of `[m, k]` by `[n, k]`; none where the instruction set has no bf16.
    pub fn new(m: usize, n: usize, k: usize, isa: Isa) -> Option<Bf16Gemm> {
        let pairs = Sgemm { elements: Elements::Pairs, ..Sgemm::new(m, n, k.div_ceil(2), isa) };
        (pairs.isa() == Isa::Avx512 && has_bf16()).then_some(Bf16Gemm { pairs, m, k })
    }

    /// Elements that [`pack`](Self::pack) writes.
    pub fn packed_len(&self) -> usize {
        self.pairs.packed_len()
    }

    /// Elements of scratch that [`run`](Self::run) needs, with any content.
    pub fn scratch_len(&self) -> usize {
        self.m * self.row_len()
    }

    /// Elements from one rounded row to the next.
    fn row_len(&self) -> usize {
        self.k.div_ceil(2).next_multiple_of(LANES)
    }

    /// Rounds and packs the rows of W, `[n, k]`.
    ///
    /// # Panics
    /// If W is smaller than n x k or `out` than [`packed_len`](Self::packed_len).
    pub fn pack(&self, w: &[f32], out: &mut [f32]) {
        let Sgemm { n, k: pairs, .. } = self.pairs;
        assert!(w.len() >= n * self.k, "W of {n} x {} needs {} elements, got {}", self.k, n * self.k, w.len());
        let width = tile_size(self.pairs.isa).blocks * LANES;
        if n == 0 || pairs == 0 {
            return;
        }
        let row = self.row_len();
        let mut rounded = vec![0.0; width * row];
        for (p, panel) in out[..self.packed_len()].chunks_exact_mut(width * pairs).enumerate() {
            let rows = width.min(n - p * width);
            for r in 0..rows {
                self.round_row(&w[(p * width + r) * self.k..][..self.k], &mut rounded[r * row..][..row]);
            }
            Sgemm { n: rows, ..self.pairs }.pack(Matrix::rows(&rounded, row).transposed(), panel);
        }
    }

    /// `c = a * wᵀ` with the epilogue applied; `a` holds m rows of k, row i of C starts at
    /// `i * c_stride`.
    ///
    /// # Panics
    /// If an operand is smaller than the shape says.
    pub fn run(
        &self,
        a: &[f32],
        packed: &[f32],
        epilogue: Epilogue<'_>,
        c: &mut [f32],
        c_stride: usize,
        scratch: &mut [f32],
        par: &dyn Par,
    ) {
        let (need, row) = (self.scratch_len(), self.row_len());
        assert!(a.len() >= self.m * self.k, "A needs {} elements, got {}", self.m * self.k, a.len());
        assert!(scratch.len() >= need, "a product of bf16 needs {need} elements of scratch, got {}", scratch.len());
        let rounded = &mut scratch[..need];
        if self.k > 0 {
            let rows = chunk_rows::<f32>(row);
            par_chunks_mut(par, rounded, rows * row, |chunk, out| {
                let a = a[chunk * rows * self.k..].chunks_exact(self.k);
                out.chunks_exact_mut(row).zip(a).for_each(|(out, a)| self.round_row(a, out));
            });
        }
        self.pairs.run(Matrix::rows(rounded, row.max(1)), packed, epilogue, c, c_stride, &mut [], par);
    }

    /// Rounds one row of k values.
    fn round_row(&self, from: &[f32], to: &mut [f32]) {
        for (values, pairs) in from.chunks(2 * LANES).zip(to.chunks_exact_mut(LANES)) {
            let mask = u32::MAX >> (2 * LANES - values.len());
            let low = Src::new(values);
            let high = low.add(LANES.min(values.len()));
            // SAFETY: `new` asked for the instructions; `mask` has a bit for every value there is,
            // `pairs` has 16 elements.
            unsafe { round_to_pairs(low, high, 1, mask, Dst::new(pairs)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activation::Activation;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads};
    use proptest::prelude::*;

    /// Values that bf16 represents, or others.
    fn values(seed: u64, n: usize, exact: bool) -> Vec<f32> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        };
        (0..n).map(|_| if exact { half::bf16::from_f32(next()).to_f32() } else { next() }).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(80))]

        #[test]
        fn a_product_of_bf16_equals_its_float64_reference(
            m in 0usize..40, n in 0usize..80, k in 0usize..200, with_bias: bool, pad in 0usize..3, relu: bool, exact: bool,
            seed: u64,
        ) {
            let (a, w) = (values(seed, m * k, exact), values(seed ^ 1, n * k, exact));
            let bias = values(seed ^ 2, n, false);
            let bias = with_bias.then_some(&bias[..]);
            let activation = if relu { Activation::Relu } else { Activation::None };
            let Some(gemm) = Bf16Gemm::new(m, n, k, Isa::detect()) else { return Ok(()) };
            let mut packed = vec![f32::NAN; gemm.packed_len()];
            gemm.pack(&w, &mut packed);
            for par in [&Reverse as &dyn Par, &Threads(2)] {
                let (mut c, mut scratch) = (vec![7.0; m * (n + pad)], vec![f32::NAN; gemm.scratch_len()]);
                let epilogue = Epilogue { bias, activation, ..Epilogue::default() };
                gemm.run(&a, &packed, epilogue, &mut c, n + pad, &mut scratch, par);
                for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                    let terms = (0..k).map(|l| f64::from(a[i * k + l]) * f64::from(w[j * k + l]));
                    let bias = bias.map_or(0.0, |b| f64::from(b[j]));
                    let (sum, scale) = terms.fold((bias, bias.abs() + 1e-30), |(s, a), t| (s + t, a + t.abs()));
                    let (want, got) = (if relu { sum.max(0.0) } else { sum }, f64::from(c[i * (n + pad) + j]));
                    // Each factor is rounded to 8 bits: by at most 2^-8 of it.
                    let tolerance = if exact { 1e-6 } else { 2.02 / 256.0 };
                    prop_assert!((got - want).abs() <= tolerance * scale, "({i}, {j}): {got}, expected {want}");
                }
            }
        }
    }

    #[test]
    fn a_product_of_bf16_has_the_same_bits_whoever_runs_its_chunks() {
        for (m, n, k) in [(1, 1000, 512), (130, 300, 515)] {
            let Some(gemm) = Bf16Gemm::new(m, n, k, Isa::detect()) else { return };
            let (a, mut packed) = (values(1, m * k, false), vec![0.0; gemm.packed_len()]);
            gemm.pack(&values(2, n * k, false), &mut packed);
            let run = |par: &dyn Par| {
                let (mut c, mut scratch) = (vec![0.0; m * n], vec![0.0; gemm.scratch_len()]);
                gemm.run(&a, &packed, Epilogue::default(), &mut c, n, &mut scratch, par);
                c.iter().map(|v| v.to_bits()).collect::<Vec<_>>()
            };
            assert_eq!(run(&Serial), run(&Threads(3)));
            assert_eq!(run(&Serial), run(&Reverse));
        }
    }

    #[test]
    fn an_instruction_set_without_bf16_has_no_such_product() {
        assert!(Bf16Gemm::new(1, 1, 1, Isa::Avx2).is_none() && Bf16Gemm::new(1, 1, 1, Isa::Portable).is_none());
        assert_eq!(Bf16Gemm::new(1, 1, 1, Isa::Avx512).is_some(), has_bf16());
    }
}
