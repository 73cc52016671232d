//! Pseudo-inverses.

use super::lu::solve_one;
use super::svd::factorise;
use super::{each_matrix, identity, product, transpose};
use crate::error::{KernelError, check_len};
use crate::gemm_plain::Gemm;
use crate::par::Par;
use crate::scratch::Scratch;

/// Condition of a matrix, by Frobenius' norm, up to which its inverse has enough digits.
const WELL_CONDITIONED: f64 = 1e8;

/// Pseudo-inverses of matrices of `m` rows of `n` elements, without singular values of at most
/// `limit_of(matrix)` times the largest.
///
/// # Errors
/// If the singular values do not converge.
///
/// # Panics
/// If the lengths contradict each other.
pub fn pseudo_inverse(
    par: &dyn Par,
    [m, n]: [usize; 2],
    a: &[f64],
    limit_of: impl Fn(usize) -> f64 + Sync,
    out: &mut [f64],
) -> Result<(), KernelError> {
    check_len("the output", out.len(), a.len());
    each_matrix(par, out, m * n, m.max(n), |par, i, out| {
        let (a, limit) = (&a[i * m * n..][..m * n], limit_of(i));
        if m == n && is_inverse(par, n, a, limit, out) {
            return Ok(());
        }
        if m <= n {
            return by_singular_values(par, [m, n], a, limit, out);
        }
        let [mut wide, mut made] = [(); 2].map(|()| Scratch::<f64>::new(par, m * n));
        transpose(a, [m, n], &mut wide);
        by_singular_values(par, [n, m], &wide, limit, &mut made)?;
        transpose(&made, [m, n], out);
        Ok(())
    })
}

/// Whether the inverse, which is written, is the pseudo-inverse: no singular value is as small as the
/// limit says.
fn is_inverse(par: &dyn Par, n: usize, a: &[f64], limit: f64, out: &mut [f64]) -> bool {
    identity(n, out);
    let norm = |a: &[f64]| a.iter().map(|v| v * v).sum::<f64>().sqrt();
    // The quotient of the largest and the smallest singular value is at most this product.
    solve_one(par, n, a, n, out).is_ok() && {
        let condition = norm(a) * norm(out);
        condition <= WELL_CONDITIONED && condition * limit < 1.0
    }
}

/// The pseudo-inverse of a matrix with no more rows than columns.
fn by_singular_values(
    par: &dyn Par,
    [m, n]: [usize; 2],
    a: &[f64],
    limit: f64,
    out: &mut [f64],
) -> Result<(), &'static str> {
    let [mut u, mut values, mut v] = [m * m, m, m * n].map(|len| Scratch::<f64>::new(par, len));
    factorise(par, [m, n], a, &mut u, &mut values, &mut v)?;
    let least = limit * values[0];
    for (row, value) in v.chunks_exact_mut(n).zip(&values) {
        row.iter_mut().for_each(|v| *v = if *value > least { *v / value } else { 0.0 });
    }
    product(par, Gemm { transpose_a: true, transpose_b: true, ..Gemm::new(n, m, m) }, &v, &u, out);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;
    use crate::testing::{Threads, random64};

    #[test]
    fn the_inverse_and_singular_values_give_the_same() {
        for n in [1, 2, 7, 40] {
            let mut a = random64(n * n, 3);
            (0..n).for_each(|i| a[i * n + i] += 2.0);
            let [mut direct, mut other] = [(); 2].map(|()| vec![0.0; n * n]);
            pseudo_inverse(&Threads(2), [n, n], &a, |_| 1e-15, &mut direct).unwrap();
            by_singular_values(&Serial, [n, n], &a, 1e-15, &mut other).unwrap();
            let largest = other.iter().fold(0.0, |top: f64, v| top.max(v.abs()));
            assert!(direct.iter().zip(&other).all(|(a, b)| (a - b).abs() <= 1e-11 * largest), "order {n}");
        }
    }

    #[test]
    fn small_singular_values_are_left_out_of_each_matrix() {
        // Of the same matrix three times, with a limit of each; then a tall one of rank 1.
        let a = [4.0, 0.0, 0.0, 1.0].repeat(3);
        let mut out = [0.0; 12];
        pseudo_inverse(&Threads(2), [2, 2], &a, |i| [0.1, 0.25, 0.5][i], &mut out).unwrap();
        assert_eq!(out, [0.25, 0.0, 0.0, 1.0, 0.25, 0.0, 0.0, 0.0, 0.25, 0.0, 0.0, 0.0]);
        pseudo_inverse(&Serial, [3, 2], &[1.0, 1.0, 1.0, 1.0, 1.0, 1.0], |_| 1e-9, &mut out[..6]).unwrap();
        assert!(out[..6].iter().all(|v| (v - 1.0 / 6.0).abs() < 1e-14), "{out:?}");
        pseudo_inverse(&Serial, [2, 2], &[0.0; 4], |_| 1e-15, &mut out[..4]).unwrap();
        assert_eq!(out[..4], [0.0; 4]);
    }
}
