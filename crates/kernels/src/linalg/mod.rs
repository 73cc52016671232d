//! Dense factorisations of batches of square or wide matrices, in single and double precision.
//!
//! Large matrices are divided into blocks, whose updates are matrix products. Matrices of a batch
//! are computed concurrently; the products of a single matrix are split. Bits depend on neither.

mod cholesky;
mod eigen;
mod general_eigen;
mod lq;
mod lu;
mod pseudo_inverse;
mod reflections;
mod svd;
mod triangular;

pub use cholesky::{cholesky, cholesky_inverse};
pub use eigen::symmetric_eigen;
pub use general_eigen::general_eigen;
pub use lq::lq;
pub use lu::{determinant, inverse, solve};
pub use pseudo_inverse::pseudo_inverse;
pub use svd::singular_values;
pub use triangular::{TriangularKind, TriangularProduct};

use crate::element::Float;
use crate::error::KernelError;
use crate::gemm_plain::{Gemm, gemm};
use crate::par::{Par, Within, chunk_by_work, par_chunks_mut, par_chunks_mut2};
use crate::scratch::ScratchList;
use crate::vectorize::{Width, vectorized};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// A part of the largest number of a matrix that is far below its rounding.
const NOTHING: f64 = f64::EPSILON / 256.0;

/// The first of the errors of a batch, in its order.
#[derive(Default)]
struct FirstError(Mutex<Option<(usize, KernelError)>>);

impl FirstError {
    fn note(&self, matrix: usize, result: Result<(), &'static str>) {
        let Err(reason) = result else { return };
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if first.as_ref().is_none_or(|(earlier, _)| matrix < *earlier) {
            *first = Some((matrix, KernelError::Matrix { matrix, reason }));
        }
    }

    fn result(self) -> Result<(), KernelError> {
        let first = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        first.map_or(Ok(()), |(_, error)| Err(error))
    }
}

/// How many matrices of this order a chunk has.
fn matrices_per_chunk(order: usize) -> usize {
    chunk_by_work(order.saturating_pow(3))
}

/// Runs `f(par, index, matrix)` for every matrix of a batch whose outputs have `size` elements and
/// which are of this order.
fn each_matrix<T: Send>(
    par: &dyn Par,
    out: &mut [T],
    size: usize,
    order: usize,
    f: impl Fn(&dyn Par, usize, &mut [T]) -> Result<(), &'static str> + Sync,
) -> Result<(), KernelError> {
    let errors = FirstError::default();
    if out.is_empty() {
        return Ok(());
    }
    if out.len() == size {
        errors.note(0, f(par, 0, out));
        return errors.result();
    }
    let many = matrices_per_chunk(order);
    par_chunks_mut(par, out, many * size, |chunk, out| {
        let serial = Within::new(par);
        for (i, out) in out.chunks_exact_mut(size).enumerate() {
            errors.note(chunk * many + i, f(&serial, chunk * many + i, out));
        }
    });
    errors.result()
}

/// Runs a function on each matrix with two outputs.
fn each_matrix2<T: Send, U: Send>(
    par: &dyn Par,
    (first, first_size): (&mut [T], usize),
    (second, second_size): (&mut [U], usize),
    order: usize,
    f: impl Fn(&dyn Par, usize, &mut [T], &mut [U]) -> Result<(), &'static str> + Sync,
) -> Result<(), KernelError> {
    let errors = FirstError::default();
    if first.is_empty() {
        return Ok(());
    }
    if first.len() == first_size {
        errors.note(0, f(par, 0, first, second));
        return errors.result();
    }
    let many = matrices_per_chunk(order);
    par_chunks_mut2(par, first, many * first_size, second, many * second_size, |chunk, first, second| {
        let serial = Within::new(par);
        let pairs = first.chunks_exact_mut(first_size).zip(second.chunks_exact_mut(second_size));
        for (i, (first, second)) in pairs.enumerate() {
            errors.note(chunk * many + i, f(&serial, chunk * many + i, first, second));
        }
    });
    errors.result()
}

/// Computes a product in the register tiles of this processor.
fn product<T: Float>(par: &dyn Par, shape: Gemm, a: &[T], b: &[T], c: &mut [T]) {
    gemm(par, shape.on(Width::widest().isa()), a, b, c);
}

/// Copies a block of a matrix with rows of `width` elements.
fn copy_block<T: Copy>(a: &[T], width: usize, rows: Range<usize>, columns: Range<usize>, out: &mut ScratchList<'_, T>) {
    out.clear();
    rows.for_each(|row| out.extend_from_slice(&a[row * width..][columns.clone()]));
}

/// Takes a product from a block of a matrix with rows of `width` elements.
fn subtract_block<T: Float>(a: &mut [T], width: usize, columns: Range<usize>, product: &[T]) {
    for (row, product) in a.chunks_exact_mut(width).zip(product.chunks_exact(columns.len())) {
        row[columns.clone()].iter_mut().zip(product).for_each(|(v, p)| *v = *v - *p);
    }
}

/// `[rows, columns]` to `[columns, rows]`.
fn transpose<T: Copy>(x: &[T], [rows, columns]: [usize; 2], out: &mut [T]) {
    const TILE: usize = 16;
    for row in (0..rows).step_by(TILE) {
        for column in (0..columns).step_by(TILE) {
            for i in row..(row + TILE).min(rows) {
                for j in column..(column + TILE).min(columns) {
                    out[j * rows + i] = x[i * columns + j];
                }
            }
        }
    }
}

/// Writes the identity matrix.
fn identity<T: Float>(n: usize, out: &mut [T]) {
    out.fill(T::ZERO);
    (0..n).for_each(|i| out[i * n + i] = T::ONE);
}

vectorized! {
    /// `y -= factor * x`.
    fn subtract_multiple[T: Float](y: &mut [T], factor: T, x: &[T]) {
        for (y, x) in y.iter_mut().zip(x) {
            *y = *y - factor * *x;
        }
    }
}

/// The reflection `I - u u^T` that turns `x` into a multiple of the first unit vector; `u` replaces
/// `x`. Returns the multiple. Where only the first element is not zero, nothing is reflected and
/// `u` is zero.
fn reflection<T: Float>(x: &mut [T]) -> f64 {
    let Some((first, rest)) = x.split_first() else { return 0.0 };
    let alpha = first.to_f64();
    let largest = rest.iter().map(|v| v.abs().to_f64()).fold(0.0, f64::max);
    if largest == 0.0 && rest.iter().all(|v| *v == T::ZERO) {
        x.fill(T::ZERO);
        return alpha;
    }
    // Scaled, so that no square overflows.
    let scale = largest.max(alpha.abs());
    // NaN alone has no length.
    if scale > 0.0 && scale < f64::MIN_POSITIVE / f64::EPSILON {
        // A length this small has few digits.
        const UP: f64 = (1u128 << 100) as f64;
        x.iter_mut().for_each(|v| *v = T::from_f64(v.to_f64() * UP));
        return reflection(x) / UP;
    }
    let square = |v: f64| (v / scale) * (v / scale);
    let tail: f64 = rest.iter().map(|v| square(v.to_f64())).sum();
    let norm = scale * (square(alpha) + tail).sqrt();
    let beta = if alpha > 0.0 || (alpha == 0.0 && alpha.is_sign_positive()) { -norm } else { norm };
    let length = scale * (square(alpha - beta) + tail).sqrt();
    let factor = std::f64::consts::SQRT_2;
    for (i, v) in x.iter_mut().enumerate() {
        let v0 = if i == 0 { alpha - beta } else { v.to_f64() };
        *v = T::from_f64(v0 / length * factor);
    }
    beta
}

/// Applies one reflection to a vector.
fn reflect<T: Float>(x: &mut [T], u: &[T]) {
    let mut product = T::ZERO;
    crate::matrix_vector::dot(x, u, &mut product);
    subtract_multiple(x, product, u);
}

#[cfg(test)]
mod tests;
