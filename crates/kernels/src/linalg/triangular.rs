//! Products with triangular matrices and their inverses.

use super::{copy_block, each_matrix, transpose};
use crate::element::Float;
use crate::error::check_len;
use crate::gemm_plain::{Gemm, gemm};
use crate::par::Par;
use crate::scratch::{Scratch, ScratchList};
use crate::vectorize::vectorized;
use std::ops::Range;

/// Rows that are computed together, next to a product with all others.
const BLOCK: usize = 64;

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
        let a = &a[rows.start * n..];
        solve_block(a, n, rows.start, rows.len(), lower, unit, columns, &mut b[rows.start * columns..]);
    }
}

/// Replaces `b`, of shape `[n, columns]`, by `A b`.
fn multiply_left<T: Float>(par: &dyn Par, n: usize, lower: bool, a: &[T], columns: usize, b: &mut [T]) {
    let mut left = ScratchList::new(par);
    // Each block of rows needs the old values of those that a solution would have computed earlier.
    for rows in blocks(n, !lower) {
        let block = &a[rows.start * n..];
        multiply_block(block, n, rows.start, rows.len(), lower, columns, &mut b[rows.start * columns..]);
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
    gemm(par, shape, left, right, out);
}

vectorized! {
    /// Solves with the diagonal block of `order` rows, whose columns begin at `start`.
    fn solve_block[T: Float](
        a: &[T],
        n: usize,
        start: usize,
        order: usize,
        lower: bool,
        unit: bool,
        columns: usize,
        b: &mut [T],
    ) {
        for step in 0..order {
            let i = if lower { step } else { order - 1 - step };
            let before = if lower { 0..i } else { i + 1..order };
            for j in before {
                let factor = a[i * n + start + j];
                let (from, to) = two_rows(b, columns, j, i);
                for (v, x) in to.iter_mut().zip(from) {
                    *v = *v - factor * *x;
                }
            }
            if !unit {
                let pivot = a[i * n + start + i];
                b[i * columns..][..columns].iter_mut().for_each(|v| *v = *v / pivot);
            }
        }
    }
}

vectorized! {
    /// Multiplies with the diagonal block of `order` rows, whose columns begin at `start`.
    fn multiply_block[T: Float](
        a: &[T],
        n: usize,
        start: usize,
        order: usize,
        lower: bool,
        columns: usize,
        b: &mut [T],
    ) {
        for step in 0..order {
            let i = if lower { order - 1 - step } else { step };
            let pivot = a[i * n + start + i];
            b[i * columns..][..columns].iter_mut().for_each(|v| *v = pivot * *v);
            let before = if lower { 0..i } else { i + 1..order };
            for j in before {
                let factor = a[i * n + start + j];
                let (from, to) = two_rows(b, columns, j, i);
                for (v, x) in to.iter_mut().zip(from) {
                    *v += factor * *x;
                }
            }
        }
    }
}

/// Two different rows, the second one to be changed.
#[inline(always)]
fn two_rows<T>(b: &mut [T], columns: usize, from: usize, to: usize) -> (&[T], &mut [T]) {
    if from < to {
        let (above, below) = b.split_at_mut(to * columns);
        (&above[from * columns..][..columns], &mut below[..columns])
    } else {
        let (above, below) = b.split_at_mut(from * columns);
        (&below[..columns], &mut above[to * columns..][..columns])
    }
}
