//! Factorisation of general matrices, their determinants and inverses.

use super::triangular::solve_left;
use super::{copy_block, each_matrix, each_matrix2, identity, product, subtract_block};
use crate::element::Float;
use crate::error::{KernelError, check_len};
use crate::gemm_plain::Gemm;
use crate::par::{Par, chunk_by_work, par_chunks_mut};
use crate::scratch::{Scratch, ScratchList};
use crate::vectorize::vectorized;

/// Rows that are factorised before those below them are updated.
const BLOCK: usize = 32;

/// The sign of the determinant and the logarithm of its absolute value, for matrices of order `n`.
///
/// # Panics
/// If the lengths contradict each other.
pub fn determinant<T: Float>(par: &dyn Par, n: usize, a: &[T], sign: &mut [T], logarithm: &mut [T]) {
    check_len("the logarithm", logarithm.len(), sign.len());
    check_len("the matrices", a.len(), sign.len() * n * n);
    let result = each_matrix2(par, (sign, 1), (logarithm, 1), n, |par, i, sign, logarithm| {
        let mut factors = Scratch::copy_of(par, &a[i * n * n..][..n * n]);
        let mut swaps = vec![0; n];
        factorise(par, n, &mut factors, &mut swaps);
        let odd = swaps.iter().enumerate().filter(|(i, to)| *i != **to).count() % 2 == 1;
        let (mut product, mut sum) = (if odd { -1.0 } else { 1.0 }, 0.0);
        for j in 0..n {
            let pivot = factors[j * n + j].to_f64();
            let one = if pivot == 0.0 { 0.0 } else { 1f64.copysign(pivot) };
            product *= if pivot.is_nan() { 0.0 } else { one };
            sum += pivot.abs().ln();
        }
        sign[0] = T::from_f64(product);
        logarithm[0] = T::from_f64(sum);
        Ok(())
    });
    debug_assert!(result.is_ok(), "a determinant has no errors");
}

/// Inverts matrices of order `n`.
///
/// # Errors
/// If a matrix is singular.
///
/// # Panics
/// If the lengths contradict each other.
pub fn inverse<T: Float>(par: &dyn Par, n: usize, a: &[T], out: &mut [T]) -> Result<(), KernelError> {
    check_len("the output", out.len(), a.len());
    each_matrix(par, out, n * n, n, |par, i, out| {
        identity(n, out);
        solve_one(par, n, &a[i * n * n..][..n * n], n, out)
    })
}

/// Solves `A X = B` for matrices `A` of order `n` and `B` of `columns` columns.
///
/// # Errors
/// If a matrix is singular.
///
/// # Panics
/// If the lengths contradict each other.
pub fn solve<T: Float>(
    par: &dyn Par,
    n: usize,
    columns: usize,
    a: &[T],
    b: &[T],
    out: &mut [T],
) -> Result<(), KernelError> {
    check_len("the output", out.len(), b.len());
    if out.is_empty() {
        return Ok(());
    }
    check_len("the matrices", a.len(), out.len() / columns * n);
    let size = n * columns;
    each_matrix(par, out, size, n, |par, i, out| {
        out.copy_from_slice(&b[i * size..][..size]);
        solve_one(par, n, &a[i * n * n..][..n * n], columns, out)
    })
}

/// Replaces `b`, of `columns` columns, by `A^-1 b`.
pub(super) fn solve_one<T: Float>(
    par: &dyn Par,
    n: usize,
    a: &[T],
    columns: usize,
    b: &mut [T],
) -> Result<(), &'static str> {
    let mut factors = Scratch::copy_of(par, a);
    let mut swaps = vec![0; n];
    factorise(par, n, &mut factors, &mut swaps);
    if (0..n).any(|j| factors[j * n + j] == T::ZERO) {
        return Err("is singular and has no inverse");
    }
    solve_left(par, n, true, false, &factors, columns, b);
    solve_left(par, n, false, true, &factors, columns, b);
    for (row, &other) in swaps.iter().enumerate().rev().filter(|(row, other)| row < *other) {
        let (above, below) = b.split_at_mut(other * columns);
        above[row * columns..][..columns].swap_with_slice(&mut below[..columns]);
    }
    Ok(())
}

/// Factorises `A P = L U`, `U` having a diagonal of ones. `swaps[i]` is the column that column `i`
/// was exchanged with, the first one first. Columns are exchanged and not rows, so that all loops
/// run along rows.
fn factorise<T: Float>(par: &dyn Par, n: usize, a: &mut [T], swaps: &mut [usize]) {
    let [mut left, mut right, mut update] = [(); 3].map(|()| ScratchList::new(par));
    for start in (0..n).step_by(BLOCK) {
        let end = (start + BLOCK).min(n);
        let (above, rest) = a.split_at_mut(start * n);
        let (panel, below) = rest.split_at_mut((end - start) * n);
        factorise_panel(panel, n, start, &mut swaps[start..end]);
        let swaps = &swaps[start..end];
        above.chunks_exact_mut(n).for_each(|row| exchange(row, start, swaps));
        let mut upper = [[T::ZERO; BLOCK]; BLOCK];
        for (i, row) in panel.chunks_exact(n).enumerate() {
            upper[i][i + 1..end - start].copy_from_slice(&row[start + i + 1..end]);
        }
        let band = chunk_by_work(BLOCK * BLOCK);
        par_chunks_mut(par, below, band * n, |_, rows| eliminate(&upper, n, start, swaps, rows));
        if end < n {
            copy_block(below, n, 0..n - end, start..end, &mut left);
            copy_block(panel, n, 0..end - start, end..n, &mut right);
            update.resize((n - end) * (n - end), T::ZERO);
            product(par, Gemm::new(n - end, n - end, end - start), &left, &right, &mut update);
            subtract_block(below, n, end..n, &update);
        }
    }
}

vectorized! {
    /// Exchanges the columns of rows below a factorised block, and solves with its upper triangle,
    /// whose diagonal of ones counts as zeros here.
    fn eliminate[T: Float](upper: &[[T; BLOCK]; BLOCK], n: usize, start: usize, swaps: &[usize], rows: &mut [T]) {
        for row in rows.chunks_exact_mut(n) {
            exchange(row, start, swaps);
            let row = &mut row[start..start + swaps.len()];
            let mut x = [T::ZERO; BLOCK];
            x[..row.len()].copy_from_slice(row);
            for j in 0..row.len() {
                let factor = x[j];
                for k in 0..BLOCK {
                    x[k] = x[k] - factor * upper[j][k];
                }
            }
            row.copy_from_slice(&x[..row.len()]);
        }
    }
}

vectorized! {
    /// Factorises some rows, the first of which has its pivot in column `start` or after it.
    fn factorise_panel[T: Float](panel: &mut [T], n: usize, start: usize, swaps: &mut [usize]) {
        for i in 0..swaps.len() {
            let column = start + i;
            let row = &panel[i * n..][..n];
            let mut pivot = column;
            for j in column + 1..n {
                if row[j].abs() > row[pivot].abs() {
                    pivot = j;
                }
            }
            swaps[i] = pivot;
            for row in panel.chunks_exact_mut(n) {
                row.swap(column, pivot);
            }
            let (done, below) = panel.split_at_mut((i + 1) * n);
            let row = &mut done[i * n..];
            let value = row[column];
            if value == T::ZERO {
                // The whole row is zero here: there is nothing to eliminate.
                continue;
            }
            for v in &mut row[column + 1..] {
                *v = *v / value;
            }
            for other in below.chunks_exact_mut(n) {
                let factor = other[column];
                for (v, x) in other[column + 1..].iter_mut().zip(&row[column + 1..]) {
                    *v = *v - factor * *x;
                }
            }
        }
    }
}

/// Exchanges elements of a row as the columns were.
#[inline(always)]
fn exchange<T>(row: &mut [T], start: usize, swaps: &[usize]) {
    for (column, &other) in (start..).zip(swaps) {
        row.swap(column, other);
    }
}
