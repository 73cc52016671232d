//! Products of reflections, applied to many rows together by matrix products.
//!
//! The product of the reflections `I - u u^T` of the rows `u` of `V`, the first one on the left, is
//! `I - V^T T V` with an upper triangular `T` (C. Bischof, C. Van Loan, "The WY representation for
//! products of Householder matrices", 1987).

use super::{copy_block, product, subtract_block};
use crate::element::Float;
use crate::gemm_plain::Gemm;
use crate::matrix_vector::dot;
use crate::par::Par;
use crate::scratch::{Scratch, ScratchList};
use std::ops::Range;

/// Reflections that are applied together.
pub(super) const BLOCK: usize = 32;

/// Some reflections that follow each other.
pub(super) struct Reflections<T: Copy> {
    /// the columns that they change
    columns: Range<usize>,
    /// the vectors, as rows of these columns
    v: Scratch<T>,
    t: Scratch<T>,
    count: usize,
}

impl<T: Float> Reflections<T> {
    /// The reflections `which`. Row `k` of `vectors`, of `width` elements, holds the vector of number
    /// `k` from column `k + offset` on.
    pub fn new(par: &dyn Par, vectors: &[T], width: usize, offset: usize, which: Range<usize>) -> Self {
        let columns = which.start + offset..width;
        let (n, count) = (columns.len(), which.len());
        let mut v = Scratch::filled(par, count * n, T::ZERO);
        for ((i, row), k) in v.chunks_exact_mut(n).enumerate().zip(which) {
            row[i..].copy_from_slice(&vectors[k * width..][k + offset..width]);
        }
        let mut t = Scratch::filled(par, count * count, T::ZERO);
        let mut overlaps = [T::ZERO; BLOCK];
        for i in 0..count {
            for (j, overlap) in overlaps[..i].iter_mut().enumerate() {
                dot(&v[j * n + i..(j + 1) * n], &v[i * n + i..(i + 1) * n], overlap);
            }
            for row in 0..i {
                let sum = (row..i).fold(T::ZERO, |sum, j| sum + t[row * count + j] * overlaps[j]);
                t[row * count + i] = -sum;
            }
            t[i * count + i] = T::ONE;
        }
        Reflections { columns, v, t, count }
    }

    /// Applies them to rows of `width` elements, the first reflection first or the last one.
    pub fn apply(&self, par: &dyn Par, rows: &mut [T], width: usize, first_first: bool) {
        let (many, n, count) = (rows.len() / width, self.columns.len(), self.count);
        let mut given = ScratchList::new(par);
        copy_block(rows, width, 0..many, self.columns.clone(), &mut given);
        let [mut parts, mut turned] = [(); 2].map(|()| Scratch::<T>::new(par, many * count));
        product(par, Gemm { transpose_b: true, ..Gemm::new(many, count, n) }, &given, &self.v, &mut parts);
        product(par, Gemm { transpose_b: !first_first, ..Gemm::new(many, count, count) }, &parts, &self.t, &mut turned);
        product(par, Gemm::new(many, n, count), &turned, &self.v, &mut given);
        subtract_block(rows, width, self.columns.clone(), &given);
    }
}

/// Writes the rows into which `count` reflections, the last one first, turn the first unit vectors of
/// `width` elements. The vectors are as in [`Reflections::new`].
pub(super) fn turned_units<T: Float>(
    par: &dyn Par,
    vectors: &[T],
    width: usize,
    offset: usize,
    count: usize,
    out: &mut [T],
) {
    out.fill(T::ZERO);
    out.chunks_exact_mut(width).enumerate().for_each(|(i, row)| row[i] = T::ONE);
    for start in (0..count).step_by(BLOCK).rev() {
        let block = Reflections::new(par, vectors, width, offset, start..(start + BLOCK).min(count));
        // Those before are zero where these reflections act.
        block.apply(par, &mut out[(start + offset) * width..], width, false);
    }
}
