//! Products of matrices that no one packs beforehand: `batch_dot`, attention, `linalg_gemm`.

use super::job::{CHUNK_WORK, GemmCut, Job, PACKED_AT_ONCE, Right, scratch_bytes};
use super::output::{Epilogue, GemmOutput, Scale};
use super::{Matrix, Sgemm, shared};
use crate::aligned::AlignedVec;
use crate::isa::Isa;
use crate::par::{Par, par_chunks_mut};
use crate::simd::Dst;

/// Chunks of a batch from which on all threads have work although none shares a matrix's rows.
const WHOLE_CHUNKS: usize = 16;

/// Matrices of one array: number (i, j) begins at `first + i * batch[0] + j * batch[1]`.
#[derive(Clone, Copy, Debug)]
pub struct Matrices<'a> {
    /// The elements of all.
    pub data: &'a [f32],
    /// Places of the matrices.
    pub at: Places,
}

/// Matrices that are written.
#[derive(Debug)]
pub struct MatricesMut<'a> {
    /// The elements of all.
    pub data: &'a mut [f32],
    /// Places of the matrices; rows must be contiguous.
    pub at: Places,
}

/// Places of matrices within an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// First element of the first matrix.
    pub first: usize,
    /// Distances between matrices along both axes of the batch.
    pub batch: [usize; 2],
    /// Distance between rows.
    pub row: usize,
    /// Distance between columns.
    pub column: usize,
}

impl Places {
    /// Matrices of `rows` x `columns`, one after another.
    pub fn contiguous(batch: [usize; 2], rows: usize, columns: usize) -> Places {
        Places { first: 0, batch: [batch[1] * rows * columns, rows * columns], row: columns, column: 1 }
    }

    /// The transposes of these matrices.
    pub fn transposed(self) -> Places {
        Places { row: self.column, column: self.row, ..self }
    }

    /// First element of a matrix.
    pub(crate) fn of(&self, [i, j]: [usize; 2]) -> usize {
        self.first + i * self.batch[0] + j * self.batch[1]
    }

    /// Elements up to the last one, or none if there are more than a number can hold.
    fn len(&self, batch: [usize; 2], rows: usize, columns: usize) -> Option<usize> {
        let axes = [(batch[0], self.batch[0]), (batch[1], self.batch[1]), (rows, self.row), (columns, self.column)];
        let last = axes.iter().try_fold(self.first, |last, (n, step)| last.checked_add((n - 1).checked_mul(*step)?))?;
        last.checked_add(1)
    }

    /// Whether no element belongs to two matrices or rows.
    fn is_disjoint(&self, batch: [usize; 2], rows: usize, columns: usize) -> bool {
        let mut axes = [(self.batch[0], batch[0]), (self.batch[1], batch[1]), (self.row, rows), (self.column, columns)];
        axes.sort_unstable();
        let mut reach = 0;
        axes.iter().filter(|(_, n)| *n > 1).all(|(step, n)| {
            let apart = *step > reach;
            reach += step * (n - 1);
            apart
        })
    }
}

/// `c = alpha * a * b + beta * c` for each matrix of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchProduct {
    /// Matrices along both axes of the batch.
    batch: [usize; 2],
    scale: Scale,
    gemm: Sgemm,
}

impl BatchProduct {
    /// Products of `[m, k]` by `[k, n]`.
    pub fn new(batch: [usize; 2], [m, n, k]: [usize; 3], isa: Isa) -> BatchProduct {
        BatchProduct { batch, scale: Scale::default(), gemm: Sgemm::new(m, n, k, isa) }
    }

    /// The products times `alpha`, plus what C holds times `beta`; with 0 it is not read.
    pub fn scaled(self, alpha: f32, beta: f32) -> BatchProduct {
        BatchProduct { scale: Scale { alpha, beta }, ..self }
    }

    /// Computes all products. An element is summed over k in an order that follows from the shape
    /// of its matrix and the instruction set.
    ///
    /// # Panics
    /// If an operand ends before its last matrix, or elements of C belong to two of its rows.
    pub fn run(&self, par: &dyn Par, a: Matrices<'_>, b: Matrices<'_>, c: MatricesMut<'_>) {
        let Sgemm { m, n, k, .. } = self.gemm;
        let count = self.batch[0] * self.batch[1];
        if count == 0 || m == 0 || n == 0 {
            return;
        }
        a.check("A", self.batch, m, k);
        b.check("B", self.batch, k, n);
        c.check("C", self.batch, m, n);

        let (cut, target) = (GemmCut::of(&self.gemm), Dst::new(c.data));
        let whole = GemmCut::of_whole_rows(&self.gemm).filter(|cut| cut.chunks() * count >= WHOLE_CHUNKS);
        match whole {
            _ if !cut.shares_panels() => self.run_items(par, cut, a, b, target, c.at),
            Some(whole) => self.run_items(par, whole, a, b, target, c.at),
            None => match AlignedVec::try_zeroed(self.gemm.packed_len()) {
                Some(packed) => self.run_packed(par, packed, a, b, target, c.at),
                None => self.run_items(par, cut, a, b, target, c.at),
            },
        }
    }

    /// Computes all products, in chunks that pack for themselves.
    fn run_items(&self, par: &dyn Par, cut: GemmCut, a: Matrices<'_>, b: Matrices<'_>, target: Dst, at: Places) {
        let Sgemm { m, n, k, .. } = self.gemm;
        let count = self.batch[0] * self.batch[1];
        // Small matrices go several to a chunk, which must be worth its start.
        let per_chunk = if cut.chunks() > 1 { 1 } else { CHUNK_WORK.div_ceil((m * n * k).max(1)).min(count) };
        par.run(count.div_ceil(per_chunk) * cut.chunks(), scratch_bytes(&self.gemm, &cut, true), &|chunk, scratch| {
            let (group, chunk) = (chunk / cut.chunks(), chunk % cut.chunks());
            for item in group * per_chunk..((group + 1) * per_chunk).min(count) {
                let item = self.item(item);
                let (a, b, output) = (a.of(item), Right::Plain(b.of(item)), self.output(target.add(at.of(item)), at));
                Job { gemm: self.gemm, cut, a, b, output }.chunk(chunk, scratch);
            }
        });
    }

    /// Computes one product after another, each with a B that is packed once for all chunks.
    fn run_packed(
        &self,
        par: &dyn Par,
        mut packed: AlignedVec,
        a: Matrices<'_>,
        b: Matrices<'_>,
        target: Dst,
        at: Places,
    ) {
        for item in (0..self.batch[0] * self.batch[1]).map(|item| self.item(item)) {
            par_chunks_mut(par, &mut packed, PACKED_AT_ONCE * self.gemm.panel() * self.gemm.k, |group, panels| {
                self.gemm.pack_panels(group * PACKED_AT_ONCE, b.of(item), panels);
            });
            shared::multiply(a.of(item), &packed, self.output(target.add(at.of(item)), at), par);
        }
    }

    /// The position of a product along both axes of the batch.
    fn item(&self, number: usize) -> [usize; 2] {
        [number / self.batch[1], number % self.batch[1]]
    }

    fn output(&self, c: Dst, at: Places) -> GemmOutput<'static> {
        GemmOutput {
            gemm: self.gemm,
            epilogue: Epilogue::default(),
            scale: self.scale,
            factors: None,
            c,
            c_stride: at.row,
        }
    }
}

impl<'a> Matrices<'a> {
    /// One matrix; an empty one where it would begin after the last element.
    pub(crate) fn of(&self, item: [usize; 2]) -> Matrix<'a> {
        self.rows_from(item, 0)
    }

    /// The rows of one matrix from `first` on.
    pub(crate) fn rows_from(&self, item: [usize; 2], first: usize) -> Matrix<'a> {
        let data = self.data.get(self.at.of(item) + first * self.at.row..).unwrap_or_default();
        Matrix { data, row_stride: self.at.row, col_stride: self.at.column }
    }

    /// # Panics
    /// If the array ends before the last matrix.
    pub(crate) fn check(&self, name: &str, batch: [usize; 2], rows: usize, columns: usize) {
        if rows > 0 && columns > 0 {
            check(name, self.at.len(batch, rows, columns), self.data.len());
        }
    }
}

impl MatricesMut<'_> {
    /// # Panics
    /// If the array ends before the last matrix, or elements belong to two rows.
    pub(crate) fn check(&self, name: &str, batch: [usize; 2], rows: usize, columns: usize) {
        check(name, self.at.len(batch, rows, columns), self.data.len());
        let contiguous = self.at.column == 1 || columns == 1;
        let separate = contiguous && self.at.is_disjoint(batch, rows, columns);
        assert!(separate, "rows of {name} must be contiguous and apart from each other, but are at {:?}", self.at);
    }
}

fn check(name: &str, needed: Option<usize>, given: usize) {
    assert!(needed.is_some_and(|needed| needed <= given), "{name} needs {needed:?} elements, got {given}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::tests::values;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads};
    use proptest::prelude::*;

    /// Matrices whose rows (or columns) have `pad` elements of something else after them.
    fn places(batch: [usize; 2], rows: usize, columns: usize, pad: usize, transposed: bool) -> Places {
        if transposed {
            return places(batch, columns, rows, pad, false).transposed();
        }
        let row = columns + pad;
        Places { first: pad, batch: [batch[1] * rows * row, rows * row], row, column: 1 }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn products_of_a_batch_equal_their_float64_reference_on_every_instruction_set(
            outer in 0usize..3, inner in 1usize..4, m in 0usize..40, n in 0usize..70, k in 0usize..80,
            turned: [bool; 2], pad in 0usize..3, scaled: bool, seed: u64,
        ) {
            let batch = [outer, inner];
            let (a_at, b_at) = (places(batch, m, k, pad, turned[0]), places(batch, k, n, pad, turned[1]));
            let c_at = places(batch, m, n, pad, false);
            let len = |rows: usize, columns: usize| pad + outer * inner * (rows + pad) * (columns + pad) + 1;
            let (a, b) = (values(seed, len(m, k)), values(seed ^ 1, len(k, n)));
            let old = values(seed ^ 2, len(m, n));
            let (alpha, beta) = if scaled { (0.125, -0.5) } else { (1.0, 0.0) };
            for isa in Isa::ALL {
                let product = BatchProduct::new(batch, [m, n, k], isa).scaled(alpha, beta);
                let run = |par: &dyn Par| {
                    let mut c = if scaled { old.clone() } else { vec![7.0; old.len()] };
                    let (left, right) = (Matrices { data: &a, at: a_at }, Matrices { data: &b, at: b_at });
                    product.run(par, left, right, MatricesMut { data: &mut c, at: c_at });
                    c
                };
                let c = run(&Serial);
                let mut written = vec![false; c.len()];
                for (o, i) in (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))) {
                    let [a0, b0, c0] = [a_at, b_at, c_at].map(|at| at.of([o, i]));
                    for (r, j) in (0..m).flat_map(|r| (0..n).map(move |j| (r, j))) {
                        let terms = (0..k).map(|l| {
                            f64::from(a[a0 + r * a_at.row + l * a_at.column]) * f64::from(b[b0 + l * b_at.row + j * b_at.column])
                        });
                        let at = c0 + r * c_at.row + j;
                        let before = if scaled { f64::from(beta) * f64::from(old[at]) } else { 0.0 };
                        let (sum, scale) = terms.fold((0.0, 1e-30), |(sum, all), t| (sum + t, all + t.abs()));
                        let (want, got) = (f64::from(alpha) * sum + before, f64::from(c[at]));
                        prop_assert!((got - want).abs() <= 1e-6 * (scale + before.abs()), "{isa} {got}, expected {want}");
                        written[at] = true;
                    }
                }
                for (at, value) in c.iter().enumerate().filter(|(at, _)| !written[*at]) {
                    prop_assert!(*value == if scaled { old[at] } else { 7.0 }, "wrote beyond a matrix, at {at}");
                }
                for par in [&Reverse as &dyn Par, &Threads(3)] {
                    prop_assert!(run(par).iter().zip(&c).all(|(x, y)| x.to_bits() == y.to_bits()));
                }
            }
        }
    }

    #[test]
    fn one_matrix_has_the_bits_it_has_in_a_batch() {
        let (a, b) = (values(1, 3 * 50 * 70), values(2, 3 * 70 * 90));
        let run = |count: usize, from: usize| {
            let mut c = vec![0.0; count * 50 * 90];
            let left = Matrices { data: &a[from * 3500..], at: Places::contiguous([1, count], 50, 70) };
            let right = Matrices { data: &b[from * 6300..], at: Places::contiguous([1, count], 70, 90) };
            let target = MatricesMut { data: &mut c, at: Places::contiguous([1, count], 50, 90) };
            BatchProduct::new([1, count], [50, 90, 70], Isa::detect()).run(&Serial, left, right, target);
            c
        };
        let all = run(3, 0);
        assert_eq!(all[2 * 4500..], run(1, 2));
    }

    #[test]
    #[should_panic(expected = "apart from each other")]
    fn matrices_of_c_that_overlap_are_refused() {
        let (a, b, mut c) = (values(1, 8), values(2, 8), [0.0; 8]);
        let at = Places::contiguous([1, 2], 2, 2);
        let target = MatricesMut { data: &mut c, at: Places { batch: [0, 3], ..at } };
        let (left, right) = (Matrices { data: &a, at }, Matrices { data: &b, at });
        BatchProduct::new([1, 2], [2, 2, 2], Isa::detect()).run(&Serial, left, right, target);
    }
}
