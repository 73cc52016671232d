//! Products with triangular matrices and their inverses.

use super::{copy_block, each_matrix, product, transpose};
use crate::element::Float;
use crate::error::check_len;
use crate::gemm_plain::Gemm;
use crate::par::{Columns, Par, par_columns_mut};
use crate::scratch::{Scratch, ScratchList};
use crate::vectorize::vectorized;
use std::ops::Range;

/// Rows that are computed together, next to a product with all others.
const BLOCK: usize = 32;
/// Columns of a chunk, and those whose sums are in registers.
const BAND: usize = 128;
const STRIP: usize = 32;

/// The matrix to multiply with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriangularKind {
    /// The triangular matrix.
    Matrix,
    /// The inverse.
    Inverse,
}

/// `alpha * op(A) B`, or `alpha * B op(A)`, of triangular matrices `A` of order `n`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TriangularProduct {
    /// Whether `op` inverts.
    pub kind: TriangularKind,
    /// Order of `A`.
    pub n: usize,
    /// The other extent of `B`: columns, or rows if `A` is on the right.
    pub other: usize,
    /// Whether `A` is on the right.
    pub rightside: bool,
    /// Whether the lower triangle of `A` is read.
    pub lower: bool,
    /// Whether `op` transposes.
    pub transpose: bool,
    /// Scale of the result.
    pub alpha: f64,
}

impl TriangularProduct {
    /// Computes the product for all matrices of a batch. A zero on the diagonal makes an inverse
    /// infinite.
    ///
    /// # Panics
    /// If the lengths contradict each other.
    pub fn run<T: Float>(&self, par: &dyn Par, a: &[T], b: &[T], out: &mut [T]) {
        let (order, size) = (self.n * self.n, self.n * self.other);
        check_len("b", b.len(), out.len());
        if out.is_empty() {
            return;
        }
        check_len("a", a.len(), out.len() / size * order);
        let result = each_matrix(par, out, size, self.n.max(self.other), |par, i, out| {
            self.one(par, &a[i * order..][..order], &b[i * size..][..size], out);
            Ok(())
        });
        debug_assert!(result.is_ok(), "a product has no errors");
    }

    fn one<T: Float>(&self, par: &dyn Par, a: &[T], b: &[T], out: &mut [T]) {
        // B op(A) is the transpose of op(A)^T B^T.
        let turned = self.transpose != self.rightside;
        let copy = turned.then(|| {
            let mut copy = Scratch::new(par, a.len());
            transpose(a, [self.n, self.n], &mut copy);
            copy
        });
        let a = copy.as_deref().unwrap_or(a);
        let lower = self.lower != turned;
        let columns = if self.rightside {
            let mut columns = Scratch::new(par, b.len());
            transpose(b, [self.other, self.n], &mut columns);
            self.apply(par, lower, a, &mut columns);
            return transpose(&columns, [self.n, self.other], out);
        } else {
            out.copy_from_slice(b);
            out
        };
        self.apply(par, lower, a, columns);
    }

    fn apply<T: Float>(&self, par: &dyn Par, lower: bool, a: &[T], b: &mut [T]) {
        if self.alpha != 1.0 {
            let alpha = T::from_f64(self.alpha);
            b.iter_mut().for_each(|v| *v = alpha * *v);
        }
        match self.kind {
            TriangularKind::Inverse => solve_left(par, self.n, lower, false, a, self.other, b),
            TriangularKind::Matrix => multiply_left(par, self.n, lower, a, self.other, b),
        }
    }
}

/// Replaces `b`, of shape `[n, columns]`, by `A^-1 b`; with `unit` the diagonal of `A` counts as 1.
pub(super) fn solve_left<T: Float>(
    par: &dyn Par,
    n: usize,
    lower: bool,
    unit: bool,
    a: &[T],
    columns: usize,
    b: &mut [T],
) {
    let mut left = ScratchList::new(par);
    for rows in blocks(n, lower) {
        add_product(par, n, lower, -1.0, a, columns, &rows, b, &mut left);
        DiagonalBlock { kind: TriangularKind::Inverse, lower, unit, a, n, rows }.apply(par, columns, b);
    }
}

/// Replaces `b`, of shape `[n, columns]`, by `A b`.
fn multiply_left<T: Float>(par: &dyn Par, n: usize, lower: bool, a: &[T], columns: usize, b: &mut [T]) {
    let mut left = ScratchList::new(par);
    // Each block of rows needs the old values of those that a solution would have computed earlier.
    for rows in blocks(n, !lower) {
        let block = rows.clone();
        DiagonalBlock { kind: TriangularKind::Matrix, lower, unit: false, a, n, rows: block }.apply(par, columns, b);
        add_product(par, n, lower, 1.0, a, columns, &rows, b, &mut left);
    }
}

/// The blocks of rows, from the first to the last or the other way round.
fn blocks(n: usize, forward: bool) -> impl Iterator<Item = Range<usize>> {
    let count = n.div_ceil(BLOCK);
    (0..count).map(move |i| {
        let block = if forward { i } else { count - 1 - i };
        block * BLOCK..(block * BLOCK + BLOCK).min(n)
    })
}

/// Adds the product of the numbers next to the diagonal block to its rows of `b`.
fn add_product<T: Float>(
    par: &dyn Par,
    n: usize,
    lower: bool,
    alpha: f64,
    a: &[T],
    columns: usize,
    rows: &Range<usize>,
    b: &mut [T],
    left: &mut ScratchList<'_, T>,
) {
    let beside = if lower { 0..rows.start } else { rows.end..n };
    if beside.is_empty() || columns == 0 {
        return;
    }
    copy_block(a, n, rows.clone(), beside.clone(), left);
    let (above, from) = b.split_at_mut(if lower { rows.start } else { rows.end } * columns);
    let (right, out): (&[T], &mut [T]) =
        if lower { (above, &mut from[..rows.len() * columns]) } else { (from, &mut above[rows.start * columns..]) };
    let shape = Gemm { alpha, beta: 1.0, ..Gemm::new(rows.len(), columns, beside.len()) };
    product(par, shape, left, right, out);
}

/// A block of the diagonal of a triangular matrix of order `n`.
struct DiagonalBlock<'a, T> {
    kind: TriangularKind,
    lower: bool,
    /// whether the diagonal counts as 1
    unit: bool,
    a: &'a [T],
    n: usize,
    rows: Range<usize>,
}

impl<T: Float> DiagonalBlock<'_, T> {
    /// Replaces the rows of `b` by the block, or its inverse, times them.
    fn apply(&self, par: &dyn Par, columns: usize, b: &mut [T]) {
        let rows = &mut b[self.rows.start * columns..self.rows.end * columns];
        par_columns_mut(par, rows, [1, self.rows.len(), columns], BAND, 0, |_, _, mut band, _| {
            combine(self, &mut band);
        });
    }
}

vectorized! {
    fn combine[T: Float](block: &DiagonalBlock<'_, T>, band: &mut Columns<'_, T>) {
        let (order, lower, solves) = (block.rows.len(), block.lower, block.kind == TriangularKind::Inverse);
        for strip in (0..band.width()).step_by(STRIP) {
            let width = STRIP.min(band.width() - strip);
            for step in 0..order {
                // The sums of a solution take rows that are done, those of a product rows that are not.
                let i = if lower == solves { step } else { order - 1 - step };
                let factors = &block.a[(block.rows.start + i) * block.n + block.rows.start..][..order];
                let mut sums = [T::ZERO; STRIP];
                sums[..width].copy_from_slice(&band.row(i)[strip..][..width]);
                if !solves {
                    for sum in &mut sums {
                        *sum = factors[i] * *sum;
                    }
                }
                for j in if lower { 0..i } else { i + 1..order } {
                    let factor = if solves { -factors[j] } else { factors[j] };
                    add_multiple(&mut sums, factor, &band.row(j)[strip..]);
                }
                if solves && !block.unit {
                    for sum in &mut sums {
                        *sum = *sum / factors[i];
                    }
                }
                band.row(i)[strip..][..width].copy_from_slice(&sums[..width]);
            }
        }
    }
}

/// Adds a multiple of some numbers, as many as there are.
#[inline(always)]
fn add_multiple<T: Float>(sums: &mut [T; STRIP], factor: T, x: &[T]) {
    if let Some(x) = x.first_chunk::<STRIP>() {
        for i in 0..STRIP {
            sums[i] += factor * x[i];
        }
        return;
    }
    for (sum, x) in sums.iter_mut().zip(x) {
        *sum += factor * *x;
    }
}
