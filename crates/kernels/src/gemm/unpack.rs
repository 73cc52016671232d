//! Packed weights of a layer as they were before.

use super::{PackedForm, Sgemm, compact};
use std::ops::Range;

/// Steps that are unpacked together.
const STEPS: usize = 64;

impl Sgemm {
    /// Some columns of B, each as k elements one after another, bit for bit as [`pack`](Self::pack)
    /// got them.
    ///
    /// # Panics
    /// If packing rounds ([`small_weights`](Self::small_weights)).
    /// If `packed` is shorter than [`packed_len`](Self::packed_len), `out` than the columns, or
    /// there are no such columns.
    pub fn unpack(&self, packed: &[f32], columns: Range<usize>, out: &mut [f32]) {
        assert!(columns.end <= self.n, "columns {columns:?} of {}", self.n);
        if columns.is_empty() || self.k == 0 {
            return;
        }
        assert!(!matches!(self.form, PackedForm::Small(_)), "rounded weights cannot be restored");
        let width = self.panel();
        let mut steps = vec![0.0; STEPS * width];
        let view = self.is_compact().then(|| compact::View::of(self, packed));
        for panel in columns.start / width..columns.end.div_ceil(width) {
            let here = columns.start.max(panel * width)..columns.end.min((panel + 1) * width);
            let out = &mut out[(here.start - columns.start) * self.k..][..here.len() * self.k];
            let lanes = here.start - panel * width..here.end - panel * width;
            for first in (0..self.k).step_by(STEPS) {
                let count = STEPS.min(self.k - first);
                let from = (panel * self.k + first) * width;
                let rows = match &view {
                    Some(Ok(view)) => {
                        view.unpack(panel, first..first + count, &mut steps);
                        &steps[..]
                    }
                    Some(Err(plain)) => &plain[from..],
                    None => &packed[from..],
                };
                for (column, lane) in out.chunks_exact_mut(self.k).zip(lanes.clone()) {
                    let column = &mut column[first..first + count];
                    column.iter_mut().zip(rows.chunks_exact(width)).for_each(|(value, row)| *value = row[lane]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Matrix;
    use super::super::tests::values;
    use super::*;
    use crate::isa::Isa;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn columns_come_back_from_either_form(n in 1usize..100, k in 0usize..400, cut in 0usize..100, seed: u64) {
            let weights = values(seed, n * k);
            let cut = cut.min(n);
            for isa in Isa::ALL {
                let gemm = Sgemm::new(1, n, k, isa);
                let compact = compact::fits(k, gemm.isa()).then_some(Sgemm { form: PackedForm::Compact, ..gemm });
                for gemm in [Some(gemm), compact].into_iter().flatten() {
                    let mut packed = vec![f32::NAN; gemm.packed_len()];
                    gemm.pack(Matrix::rows(&weights, k).transposed(), &mut packed);
                    let mut out = vec![f32::NAN; n * k];
                    let (first, second) = out.split_at_mut(cut * k);
                    gemm.unpack(&packed, 0..cut, first);
                    gemm.unpack(&packed, cut..n, second);
                    prop_assert_eq!(&out, &weights);
                }
            }
        }
    }
}
