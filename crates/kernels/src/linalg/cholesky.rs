//! Cholesky factorisation, and the inverse of a factorised matrix.

use super::triangular::solve_left;
use super::{copy_block, each_matrix, identity, product, subtract_block, transpose};
use crate::element::Float;
use crate::error::{KernelError, check_len};
use crate::gemm_plain::Gemm;
use crate::par::{Par, chunk_by_work, par_chunks_mut};
use crate::scratch::{Scratch, ScratchList};
use crate::vectorize::vectorized;

/// Columns that are factorised before the following ones are updated.
const BLOCK: usize = 64;
/// Columns of an update that are computed as one product.
const STRIP: usize = 128;

/// Factorises matrices of order `n` into `L L^T`, or `U^T U` if not `lower`. Reads the one
/// triangle only, and writes zeros into the other.
///
/// # Errors
/// If a matrix is not positive definite.
///
/// # Panics
/// If the lengths contradict each other.
pub fn cholesky<T: Float>(par: &dyn Par, n: usize, lower: bool, a: &[T], out: &mut [T]) -> Result<(), KernelError> {
    check_len("the output", out.len(), a.len());
    each_matrix(par, out, n * n, n, |par, i, out| {
        let a = &a[i * n * n..][..n * n];
        if lower {
            out.copy_from_slice(a);
            return factorise(par, n, out);
        }
        let mut turned = Scratch::<T>::new(par, n * n);
        transpose(a, [n, n], &mut turned);
        factorise(par, n, &mut turned)?;
        transpose(&turned, [n, n], out);
        Ok(())
    })
}

/// Inverts matrices of order `n` that are given by their factor `L`, or `U` if not `lower`, of
/// which only the one triangle is read.
///
/// # Errors
/// If a factor has a zero on its diagonal.
///
/// # Panics
/// If the lengths contradict each other.
pub fn cholesky_inverse<T: Float>(
    par: &dyn Par,
    n: usize,
    lower: bool,
    a: &[T],
    out: &mut [T],
) -> Result<(), KernelError> {
    check_len("the output", out.len(), a.len());
    each_matrix(par, out, n * n, n, |par, i, out| {
        let a = &a[i * n * n..][..n * n];
        if (0..n).any(|j| a[j * n + j] == T::ZERO) {
            return Err("has a zero on its diagonal: it is not a factor that potrf gives");
        }
        let mut factor = Scratch::<T>::new(par, n * n);
        if lower {
            factor.copy_from_slice(a);
        } else {
            transpose(a, [n, n], &mut factor);
        }
        let mut inverse = Scratch::<T>::new(par, n * n);
        identity(n, &mut inverse);
        solve_left(par, n, true, false, &factor, n, &mut inverse);
        product(par, Gemm { transpose_a: true, ..Gemm::new(n, n, n) }, &inverse, &inverse, out);
        Ok(())
    })
}

/// Replaces a matrix by its lower factor.
fn factorise<T: Float>(par: &dyn Par, n: usize, a: &mut [T]) -> Result<(), &'static str> {
    let [mut panel, mut right, mut update] = [(); 3].map(|()| ScratchList::new(par));
    for start in (0..n).step_by(BLOCK) {
        let end = (start + BLOCK).min(n);
        let mut definite = true;
        factorise_block(a, n, start, end, &mut definite);
        if !definite {
            return Err("is not positive definite");
        }
        a[start * n..end * n].chunks_exact_mut(n).zip(start + 1..).for_each(|(row, next)| row[next..].fill(T::ZERO));
        let (above, below) = a.split_at_mut(end * n);
        solve_panel(par, n, start, &above[start * n..], below);
        copy_block(below, n, 0..n - end, start..end, &mut panel);
        for strip in (end..n).step_by(STRIP) {
            let columns = strip..(strip + STRIP).min(n);
            let (k, rows) = (end - start, n - strip);
            right.clear();
            right.extend_from_slice(&panel[(strip - end) * k..(columns.end - end) * k]);
            update.resize(rows * columns.len(), T::ZERO);
            let shape = Gemm { transpose_b: true, ..Gemm::new(rows, columns.len(), k) };
            product(par, shape, &panel[(strip - end) * k..], &right, &mut update);
            subtract_block(&mut below[(strip - end) * n..], n, columns, &update);
        }
    }
    Ok(())
}

/// Solves `X L^T = B` for the rows below a factorised block, whose rows begin at column `start`.
fn solve_panel<T: Float>(par: &dyn Par, n: usize, start: usize, block: &[T], below: &mut [T]) {
    let order = block.len() / n;
    let mut turned = [[T::ZERO; BLOCK]; BLOCK];
    for i in 0..order {
        (0..=i).for_each(|j| turned[j][i] = block[i * n + start + j]);
    }
    let band = chunk_by_work(order * order);
    par_chunks_mut(par, below, band * n, |_, rows| {
        solve_rows(&turned, n, start, order, rows);
    });
}

vectorized! {
    fn solve_rows[T: Float](turned: &[[T; BLOCK]; BLOCK], n: usize, start: usize, order: usize, rows: &mut [T]) {
        for row in rows.chunks_exact_mut(n) {
            let row = &mut row[start..start + order];
            for j in 0..order {
                let value = row[j] / turned[j][j];
                row[j] = value;
                for (v, t) in row[j + 1..].iter_mut().zip(&turned[j][j + 1..order]) {
                    *v = *v - value * *t;
                }
            }
        }
    }
}

vectorized! {
    /// Factorises the block of the diagonal from `start` to `end`.
    fn factorise_block[T: Float](a: &mut [T], n: usize, start: usize, end: usize, definite: &mut bool) {
        let mut column = [T::ZERO; BLOCK];
        for j in start..end {
            // NaN is no reason to stop, as in MXNet.
            if a[j * n + j] <= T::ZERO {
                *definite = false;
                return;
            }
            let root = a[j * n + j].sqrt();
            a[j * n + j] = root;
            for i in j + 1..end {
                a[i * n + j] = a[i * n + j] / root;
                column[i - start] = a[i * n + j];
            }
            for i in j + 1..end {
                let factor = column[i - start];
                let row = &mut a[i * n + j + 1..=i * n + i];
                for (v, c) in row.iter_mut().zip(&column[j + 1 - start..]) {
                    *v = *v - factor * *c;
                }
            }
        }
    }
}
