//! Singular values and vectors, by rotations of pairs of rows (Hestenes' one-sided Jacobi method). It
//! begins with rows that the eigenvectors of `A A^T` have made almost orthogonal.

use super::{each_matrix2, eigen, product};
use crate::error::{KernelError, check_len};
use crate::gemm_plain::Gemm;
use crate::matrix_vector;
use crate::par::Par;
use crate::scratch::Scratch;
use crate::vectorize::vectorized;

/// Rounds over all pairs of rows, of which about ten are usual.
const ROUNDS: usize = 80;

/// Factorises `A = U diag(values) V` for matrices of `rows` rows of `columns` elements, no more rows
/// than columns. `U` is square, `V` has orthonormal rows and the shape of `A`, values descend. The
/// element of largest magnitude of a row of `V`, the first of equal ones, is positive. A matrix with
/// infinities or NaN has only NaN for a result.
///
/// # Errors
/// If the rotations do not converge.
///
/// # Panics
/// If the lengths contradict each other, or there are more rows than columns.
pub fn singular_values(
    par: &dyn Par,
    [rows, columns]: [usize; 2],
    a: &[f64],
    u: &mut [f64],
    values: &mut [f64],
    v: &mut [f64],
) -> Result<(), KernelError> {
    assert!(rows <= columns, "{rows} rows of {columns} elements cannot be orthonormal");
    check_len("v", v.len(), a.len());
    if a.is_empty() {
        return Ok(());
    }
    let (size, square) = (rows * columns, rows * rows);
    let count = a.len() / size;
    check_len("u", u.len(), count * square);
    check_len("the values", values.len(), count * rows);
    // Vectors and values of a matrix next to each other, so that one call writes both.
    let mut both = Scratch::<f64>::new(par, count * (square + rows));
    each_matrix2(par, (v, size), (&mut both, square + rows), columns, |par, i, v, both| {
        let (u, values) = both.split_at_mut(square);
        factorise(par, [rows, columns], &a[i * size..][..size], u, values, v)
    })?;
    let outputs = u.chunks_exact_mut(square).zip(values.chunks_exact_mut(rows));
    for ((u, values), both) in outputs.zip(both.chunks_exact(square + rows)) {
        u.copy_from_slice(&both[..square]);
        values.copy_from_slice(&both[square..]);
    }
    Ok(())
}

/// Loss of sums of products of rows of `n` numbers, relative to their magnitude.
fn rounding(n: usize) -> f64 {
    (n as f64 * f64::EPSILON).max(1e-15)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sum = 0.0;
    matrix_vector::dot(a, b, &mut sum);
    sum
}

vectorized! {
    /// Turns two rows into each other by an angle.
    fn turn[](rows: &mut [f64], width: usize, pair: [usize; 2], cosine: f64, sine: f64) {
        let [p, q] = pair;
        let (above, below) = rows.split_at_mut(q * width);
        for (x, y) in above[p * width..][..width].iter_mut().zip(&mut below[..width]) {
            (*x, *y) = (cosine * *x - sine * *y, sine * *x + cosine * *y);
        }
    }
}

/// Factorises one matrix.
pub(super) fn factorise(
    par: &dyn Par,
    [m, n]: [usize; 2],
    a: &[f64],
    u: &mut [f64],
    values: &mut [f64],
    v: &mut [f64],
) -> Result<(), &'static str> {
    let largest = a.iter().map(|v| v.abs()).fold(0.0, f64::max);
    if !largest.is_finite() || a.iter().any(|v| v.is_nan()) {
        [u, values, v].into_iter().for_each(|out| out.fill(f64::NAN));
        return Ok(());
    }
    // Products of such numbers neither overflow nor vanish.
    let scale = if largest > 0.0 { largest } else { 1.0 };
    let mut work = Scratch::collect(par, a.len(), a.iter().map(|v| v / scale));
    // The rows of the transposed left factor.
    let mut left = Scratch::<f64>::new(par, m * m);
    turn_to_eigenvectors(par, [m, n], &mut work, &mut left)?;
    make_orthogonal([m, n], &mut work, &mut left)?;
    write_factors(par, [m, n], [&work, &left], [u, values, v]);
    values.iter_mut().for_each(|value| *value *= scale);
    Ok(())
}

/// Multiplies the matrix with the eigenvectors of its product with its transpose, those of the largest
/// values first; they go to the rows of `left`.
fn turn_to_eigenvectors(
    par: &dyn Par,
    [m, n]: [usize; 2],
    work: &mut [f64],
    left: &mut [f64],
) -> Result<(), &'static str> {
    let (mut square, mut values) = (Scratch::<f64>::new(par, m * m), Scratch::<f64>::new(par, m));
    product(par, Gemm { transpose_b: true, ..Gemm::new(m, m, n) }, work, work, &mut square);
    eigen::factorise(par, m, &square, left, &mut values)?;
    for i in 0..m / 2 {
        let (above, below) = left.split_at_mut((m - 1 - i) * m);
        above[i * m..][..m].swap_with_slice(&mut below[..m]);
    }
    let given = Scratch::copy_of(par, work);
    product(par, Gemm::new(m, n, m), left, &given, work);
    Ok(())
}

/// Writes the factors of a matrix: the orthogonal rows of `work`, the longest first, their lengths,
/// and the rows of `left` that made them.
fn write_factors(par: &dyn Par, [m, n]: [usize; 2], [work, left]: [&[f64]; 2], [u, values, v]: [&mut [f64]; 3]) {
    let lengths = Scratch::collect(par, m, work.chunks_exact(n).map(|row| dot(row, row).sqrt()));
    let mut order = Scratch::collect(par, m, 0..m);
    order.sort_by(|i, j| lengths[*j].total_cmp(&lengths[*i]));
    // Shorter rows are nothing but rounding.
    let least = lengths[order[0]] * rounding(n);
    for (k, from) in order.iter().copied().enumerate() {
        let length = lengths[from];
        values[k] = length;
        let (done, rest) = v.split_at_mut(k * n);
        let row = &mut rest[..n];
        if length > least {
            row.iter_mut().zip(&work[from * n..]).for_each(|(v, w)| *v = w / length);
        } else {
            complete(done, row);
        }
        let sign = sign_of_largest(row);
        row.iter_mut().for_each(|v| *v *= sign);
        (0..m).for_each(|i| u[i * m + k] = sign * left[from * m + i]);
    }
}

/// Turns pairs of rows until all are orthogonal, and the rows of `left` with them. Rows that are
/// nothing but rounding stay unchanged: no turn makes noise orthogonal.
fn make_orthogonal([m, n]: [usize; 2], work: &mut [f64], left: &mut [f64]) -> Result<(), &'static str> {
    let tolerance = rounding(n);
    let square = |row: &[f64]| dot(row, row);
    let mut squares: Vec<f64> = work.chunks_exact(n).map(square).collect();
    let mut turned = m > 1;
    let mut rounds = 0;
    while turned {
        turned = false;
        // Turns never make the longest row shorter.
        let longest = squares.iter().copied().fold(0.0, f64::max);
        let least = tolerance * tolerance * longest;
        rounds += 1;
        if rounds > ROUNDS {
            return Err("has singular values that do not converge");
        }
        for p in 0..m {
            for q in p + 1..m {
                let (x, y) = (&work[p * n..(p + 1) * n], &work[q * n..(q + 1) * n]);
                let (alpha, beta, gamma) = (squares[p], squares[q], dot(x, y));
                if alpha.min(beta) <= least || gamma.abs() <= tolerance * (alpha * beta).sqrt() {
                    continue;
                }
                turned = true;
                let zeta = (beta - alpha) / (2.0 * gamma);
                let tangent = zeta.signum() / (zeta.abs() + zeta.hypot(1.0));
                let cosine = 1.0 / tangent.hypot(1.0);
                turn(work, n, [p, q], cosine, cosine * tangent);
                turn(left, m, [p, q], cosine, cosine * tangent);
                [p, q].into_iter().for_each(|i| squares[i] = square(&work[i * n..][..n]));
            }
        }
    }
    Ok(())
}

/// The sign of the number with the largest magnitude.
fn sign_of_largest(row: &[f64]) -> f64 {
    let mut top = 0;
    for j in 1..row.len() {
        if row[j].abs() > row[top].abs() {
            top = j;
        }
    }
    if row[top] < 0.0 { -1.0 } else { 1.0 }
}

/// A row of length 1 that is orthogonal to the rows before it.
fn complete(done: &[f64], row: &mut [f64]) {
    let n = row.len();
    for start in 0..n {
        row.fill(0.0);
        row[start] = 1.0;
        // Twice, for what rounding leaves.
        for other in done.chunks_exact(n).chain(done.chunks_exact(n)) {
            let part = dot(other, row);
            row.iter_mut().zip(other).for_each(|(v, o)| *v -= part * o);
        }
        let length = dot(row, row).sqrt();
        if length > 0.5 / n as f64 {
            row.iter_mut().for_each(|v| *v /= length);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;

    fn factors(shape: [usize; 2], a: &[f64]) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
        let [m, n] = shape;
        let count = a.len() / (m * n);
        let (mut u, mut l, mut v) = (vec![0.0; count * m * m], vec![0.0; count * m], vec![0.0; a.len()]);
        singular_values(&Serial, shape, a, &mut u, &mut l, &mut v).expect("it converges");
        (u, l, v)
    }

    #[test]
    fn the_product_of_the_factors_is_the_matrix() {
        for (m, n) in [(1, 1), (2, 3), (5, 5), (4, 9)] {
            let a: Vec<f64> = (0..2 * m * n).map(|i| ((i * 37) % 19) as f64 - 9.0).collect();
            let (u, l, v) = factors([m, n], &a);
            for (k, a) in a.iter().enumerate() {
                let (block, i, j) = (k / (m * n), k % (m * n) / n, k % n);
                let made: f64 =
                    (0..m).map(|r| u[(block * m + i) * m + r] * l[block * m + r] * v[(block * m + r) * n + j]).sum();
                assert!((made - a).abs() < 1e-12, "{m} x {n}: {made}, expected {a}");
            }
            assert!(l.chunks(m).all(|l| l.windows(2).all(|pair| pair[0] >= pair[1])));
        }
    }

    #[test]
    fn a_matrix_without_full_rank_has_orthonormal_rows_nevertheless() {
        let (_, l, v) = factors([3, 3], &[1.0, 1.0, 0.0, 2.0, 2.0, 0.0, 0.0, 0.0, 0.0]);
        assert!((l[0] - 10f64.sqrt()).abs() < 1e-12 && l[1] < 1e-12 && l[2] < 1e-12, "{l:?}");
        for i in 0..3 {
            for j in 0..3 {
                let product = dot(&v[i * 3..][..3], &v[j * 3..][..3]);
                assert!((product - f64::from(u8::from(i == j))).abs() < 1e-12, "{i} {j} {product}");
            }
        }
        assert!(factors([1, 2], &[1.0, f64::NAN]).1[0].is_nan());
    }
}
