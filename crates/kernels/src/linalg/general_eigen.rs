//! Eigenvalues and eigenvectors of matrices that need not be symmetric: balancing, reduction to a
//! Hessenberg matrix by reflections, then implicit QR steps with two shifts.

use super::{NOTHING, each_matrix, each_matrix2, identity, product, reflect, reflection, transpose};
use crate::error::{KernelError, check_len};
use crate::gemm_plain::Gemm;
use crate::matrix_vector::dot;
use crate::par::Par;
use crate::scratch::Scratch;
use crate::vectorize::vectorized;

/// QR steps for one eigenvalue, of which two are usual.
const STEPS: usize = 300;
/// Steps without success after which the shifts are changed.
const PATIENCE: usize = 10;

/// Eigenvalues of matrices of order `n`, and eigenvectors of length 1 as columns; with no room for
/// vectors, the values alone. `epsilon` is the relative rounding of the numbers in `a`: imaginary
/// parts that it explains count as 0. A matrix with infinities or NaN has only NaN for a result.
///
/// # Errors
/// If a matrix has complex eigenvalues, or the steps do not converge.
///
/// # Panics
/// If the lengths contradict each other.
pub fn general_eigen(
    par: &dyn Par,
    n: usize,
    epsilon: f64,
    a: &[f64],
    vectors: &mut [f64],
    values: &mut [f64],
) -> Result<(), KernelError> {
    if a.is_empty() {
        return Ok(());
    }
    check_len("the values", values.len(), a.len() / n);
    if vectors.is_empty() {
        return each_matrix(par, values, n, n, |par, i, values| {
            one(par, n, epsilon, &a[i * n * n..][..n * n], &mut [], values)
        });
    }
    check_len("the vectors", vectors.len(), a.len());
    each_matrix2(par, (vectors, n * n), (values, n), n, |par, i, vectors, values| {
        one(par, n, epsilon, &a[i * n * n..][..n * n], vectors, values)
    })
}

fn one(
    par: &dyn Par,
    n: usize,
    epsilon: f64,
    a: &[f64],
    vectors: &mut [f64],
    values: &mut [f64],
) -> Result<(), &'static str> {
    let largest = a.iter().map(|v| v.abs()).fold(0.0, f64::max);
    if !largest.is_finite() || a.iter().any(|v| v.is_nan()) {
        vectors.fill(f64::NAN);
        values.fill(f64::NAN);
        return Ok(());
    }
    // Products of such numbers neither overflow nor vanish.
    let scale = if largest > 0.0 && !(1e-100..1e100).contains(&largest) { largest } else { 1.0 };
    let mut form = SchurForm {
        n,
        t: Scratch::collect(par, n * n, a.iter().map(|v| v / scale)),
        q: Scratch::new(par, vectors.len()),
    };
    if !vectors.is_empty() {
        identity(n, &mut form.q);
    }
    let balance = form.balance();
    form.reduce(&balance);
    form.iterate(&balance, epsilon)?;
    (0..n).for_each(|i| values[i] = form.t[i * n + i] * scale);
    if vectors.is_empty() {
        return Ok(());
    }
    let mut rows = form.vectors(par);
    for row in rows.chunks_exact_mut(n) {
        balance.undo(row);
        let length = row.iter().fold(0.0, |length: f64, v| length.hypot(*v));
        row.iter_mut().for_each(|v| *v /= length);
    }
    transpose(&rows, [n, n], vectors);
    Ok(())
}

/// How a matrix was balanced.
struct Balance {
    /// the rows and columns that are not triangular already
    active: std::ops::Range<usize>,
    /// exchanges of rows and columns, in order
    swaps: Vec<(usize, usize)>,
    /// factor of each column
    factors: Vec<f64>,
}

impl Balance {
    /// Turns a vector of the balanced matrix into that of the matrix.
    fn undo(&self, vector: &mut [f64]) {
        vector.iter_mut().zip(&self.factors).for_each(|(v, factor)| *v *= factor);
        self.swaps.iter().rev().for_each(|(i, j)| vector.swap(*i, *j));
    }
}

/// A matrix `q^T t q` whose factor `t` becomes triangular. Without `q` only the diagonal blocks of `t`
/// are right in the end.
struct SchurForm {
    n: usize,
    t: Scratch<f64>,
    q: Scratch<f64>,
}

vectorized! {
    /// Applies the reflection `I - u u^T` to some rows of `n` elements, from column `first` on.
    fn reflect_rows[](rows: &mut [f64], n: usize, first: usize, u: &[f64], parts: &mut [f64]) {
        let parts = &mut parts[..n - first];
        parts.fill(0.0);
        for (row, u) in rows.chunks_exact(n).zip(u) {
            for (part, v) in parts.iter_mut().zip(&row[first..]) {
                *part += u * v;
            }
        }
        for (row, u) in rows.chunks_exact_mut(n).zip(u) {
            for (v, part) in row[first..].iter_mut().zip(&*parts) {
                *v -= part * u;
            }
        }
    }
}

vectorized! {
    /// Applies the reflection of two or three neighbouring columns to some rows of `n` elements.
    fn reflect_columns[](rows: &mut [f64], n: usize, first: usize, count: usize, u: &[f64; 3]) {
        let [u0, u1, u2] = *u;
        for row in rows.chunks_exact_mut(n) {
            match &mut row[first..first + count] {
                [x, y, z] => {
                    let part = u0 * *x + u1 * *y + u2 * *z;
                    (*x, *y, *z) = (*x - part * u0, *y - part * u1, *z - part * u2);
                }
                [x, y] => {
                    let part = u0 * *x + u1 * *y;
                    (*x, *y) = (*x - part * u0, *y - part * u1);
                }
                _ => {}
            }
        }
    }
}

vectorized! {
    /// Applies the reflection of two or three neighbouring rows of `n` elements to some columns.
    fn reflect_few[](rows: &mut [f64], n: usize, columns: std::ops::Range<usize>, u: &[f64; 3]) {
        let [u0, u1, u2] = *u;
        let (first, rest) = rows.split_at_mut(n);
        let (second, third) = rest.split_at_mut(n);
        let pairs = first[columns.clone()].iter_mut().zip(&mut second[columns.clone()]);
        if third.is_empty() {
            for (x, y) in pairs {
                let part = u0 * *x + u1 * *y;
                (*x, *y) = (*x - part * u0, *y - part * u1);
            }
            return;
        }
        for ((x, y), z) in pairs.zip(&mut third[columns]) {
            let part = u0 * *x + u1 * *y + u2 * *z;
            (*x, *y, *z) = (*x - part * u0, *y - part * u1, *z - part * u2);
        }
    }
}

impl SchurForm {
    fn swap(&mut self, i: usize, j: usize) {
        let n = self.n;
        (0..n).for_each(|k| self.t.swap(k * n + i, k * n + j));
        (0..n).for_each(|k| self.t.swap(i * n + k, j * n + k));
    }

    /// Moves rows with nothing but a diagonal element down and such columns up, and makes the norms
    /// of the remaining rows and columns alike.
    fn balance(&mut self) -> Balance {
        let n = self.n;
        let (mut first, mut end, mut swaps) = (0, n, Vec::new());
        let row_is_alone = |t: &[f64], i: usize, end: usize| (0..end).all(|j| j == i || t[i * n + j] == 0.0);
        while let Some(i) = (0..end).rev().find(|i| row_is_alone(&self.t, *i, end)) {
            end -= 1;
            self.swap(i, end);
            swaps.push((i, end));
            if end == 0 {
                break;
            }
        }
        let column_is_alone = |t: &[f64], j: usize, first: usize| (first..end).all(|i| i == j || t[i * n + j] == 0.0);
        while let Some(j) = (first..end).find(|j| column_is_alone(&self.t, *j, first)) {
            self.swap(j, first);
            swaps.push((j, first));
            first += 1;
        }
        let active = first..end;
        let factors = self.scale_rows(&active);
        Balance { active, swaps, factors }
    }

    /// Multiplies columns by powers of 2, and divides rows by them.
    fn scale_rows(&mut self, active: &std::ops::Range<usize>) -> Vec<f64> {
        let n = self.n;
        let mut factors = vec![1.0; n];
        let mut changed = true;
        while changed {
            changed = false;
            for i in active.clone() {
                let column = active.clone().map(|k| self.t[k * n + i]).fold(0.0, f64::hypot);
                let row = active.clone().map(|k| self.t[i * n + k]).fold(0.0, f64::hypot);
                if column == 0.0 || row == 0.0 {
                    continue;
                }
                // The power of 2 next to the root of their quotient.
                let exponent = ((row / column).log2() / 2.0).round().clamp(-300.0, 300.0);
                let factor = exponent.exp2();
                if (column * factor).hypot(row / factor) >= 0.95 * column.hypot(row) {
                    continue;
                }
                changed = true;
                factors[i] *= factor;
                (0..n).for_each(|k| self.t[i * n + k] /= factor);
                (0..n).for_each(|k| self.t[k * n + i] *= factor);
            }
        }
        factors
    }

    /// Clears what is below the first subdiagonal, by reflections of several rows and columns.
    fn reduce(&mut self, balance: &Balance) {
        let n = self.n;
        let end = balance.active.end;
        let (mut u, mut parts) = (Vec::with_capacity(n), vec![0.0; n]);
        for k in balance.active.start..end.saturating_sub(2) {
            u.clear();
            u.extend((k + 1..end).map(|i| self.t[i * n + k]));
            let head = reflection(&mut u);
            if u.iter().all(|v| *v == 0.0) {
                continue;
            }
            reflect_rows(&mut self.t[(k + 1) * n..end * n], n, k + 1, &u, &mut parts);
            self.t.chunks_exact_mut(n).for_each(|row| reflect(&mut row[k + 1..end], &u));
            if !self.q.is_empty() {
                reflect_rows(&mut self.q[(k + 1) * n..end * n], n, 0, &u, &mut parts);
            }
            self.t[(k + 1) * n + k] = head;
            (k + 2..end).for_each(|i| self.t[i * n + k] = 0.0);
        }
    }

    /// Clears the subdiagonal.
    fn iterate(&mut self, balance: &Balance, epsilon: f64) -> Result<(), &'static str> {
        let n = self.n;
        let first = balance.active.start;
        let norm = self.t.iter().fold(0.0, |norm: f64, v| norm.hypot(*v));
        let rounding = n as f64 * epsilon * norm;
        let (mut end, mut steps) = (balance.active.end, 0);
        while end > first + 1 {
            let last = end - 1;
            let start = (first + 1..end).rev().find(|k| self.is_negligible(*k, norm)).unwrap_or(first);
            if start > first {
                self.t[start * n + start - 1] = 0.0;
            }
            if start == last {
                end -= 1;
            } else if start + 1 == last {
                self.split_pair(start, rounding)?;
                end -= 2;
            } else {
                steps += 1;
                if steps > STEPS {
                    return Err("has eigenvalues that do not converge");
                }
                self.step(start, end, steps);
                continue;
            }
            steps = 0;
        }
        Ok(())
    }

    /// Whether the element to the left of diagonal element `k` is nothing but rounding.
    fn is_negligible(&self, k: usize, norm: f64) -> bool {
        let n = self.n;
        let near = self.t[(k - 1) * n + k - 1].abs() + self.t[k * n + k].abs();
        let beside = self.t[k * n + k - 1].abs();
        beside <= f64::EPSILON * if near == 0.0 { norm } else { near } || beside <= NOTHING * norm
    }

    /// Makes a block of two rows triangular. Imaginary parts up to `rounding` count as 0; the change
    /// of the matrix that this stands for is no larger.
    fn split_pair(&mut self, k: usize, rounding: f64) -> Result<(), &'static str> {
        let n = self.n;
        let [a, b, c, d] = [0, 1, n, n + 1].map(|at| self.t[k * n + k + at]);
        if c == 0.0 {
            return Ok(());
        }
        let half = (a - d) / 2.0;
        let mut square = half * half + b * c;
        if square < 0.0 {
            if (-square).sqrt() > rounding {
                return Err("has complex eigenvalues, which arrays of real numbers cannot hold");
            }
            if c.abs() <= rounding {
                self.t[(k + 1) * n + k] = 0.0;
                return Ok(());
            }
            square = 0.0;
        }
        let z = half + square.sqrt().copysign(half);
        let length = c.hypot(z);
        let (cosine, sine) = (z / length, c / length);
        let turn = |x: &mut f64, y: &mut f64| (*x, *y) = (cosine * *x + sine * *y, cosine * *y - sine * *x);
        let turn_rows = |matrix: &mut [f64]| {
            let (above, below) = matrix.split_at_mut((k + 1) * n);
            above[k * n..].iter_mut().zip(&mut below[..n]).for_each(|(x, y)| turn(x, y));
        };
        turn_rows(&mut self.t);
        for row in self.t.chunks_exact_mut(n).take(k + 2) {
            let (x, y) = row.split_at_mut(k + 1);
            turn(&mut x[k], &mut y[0]);
        }
        if !self.q.is_empty() {
            turn_rows(&mut self.q);
        }
        self.t[(k + 1) * n + k] = 0.0;
        Ok(())
    }

    /// The sum and the product of the shifts: the eigenvalues of the last two rows, or occasionally
    /// others.
    fn shifts(&self, last: usize, number: usize) -> (f64, f64) {
        let at = |i: usize, j: usize| self.t[i * self.n + j];
        if number.is_multiple_of(PATIENCE) {
            let away = at(last, last - 1).abs() + at(last - 1, last - 2).abs();
            let center = at(last, last) + 0.75 * away;
            return (2.0 * center, center * center + 0.4375 * away * away);
        }
        (
            at(last - 1, last - 1) + at(last, last),
            at(last - 1, last - 1) * at(last, last) - at(last - 1, last) * at(last, last - 1),
        )
    }

    /// One QR step with two shifts for the rows `start..end`, of which there are three at least.
    fn step(&mut self, start: usize, end: usize, number: usize) {
        let n = self.n;
        let at = |i: usize, j: usize| self.t[i * n + j];
        let last = end - 1;
        let (sum, product) = self.shifts(last, number);
        let mut head = [
            at(start, start) * (at(start, start) - sum) + at(start, start + 1) * at(start + 1, start) + product,
            at(start + 1, start) * (at(start, start) + at(start + 1, start + 1) - sum),
            at(start + 1, start) * at(start + 2, start + 1),
        ];
        for k in start..last {
            let rows = 3.min(end - k);
            if k > start {
                head = [0, 1, 2].map(|i| if i < rows { self.t[(k + i) * n + k - 1] } else { 0.0 });
            }
            let mut u = head;
            let value = reflection(&mut u[..rows]);
            if k > start {
                self.t[k * n + k - 1] = value;
                (1..rows).for_each(|i| self.t[(k + i) * n + k - 1] = 0.0);
            }
            // Without vectors nothing outside of these rows and columns counts.
            let (top, width) = if self.q.is_empty() { (start, end) } else { (0, n) };
            reflect_few(&mut self.t[k * n..(k + rows) * n], n, k..width, &u);
            reflect_columns(&mut self.t[top * n..(k + 4).min(end) * n], n, k, rows, &u);
            if !self.q.is_empty() {
                reflect_few(&mut self.q[k * n..(k + rows) * n], n, 0..n, &u);
            }
        }
    }

    /// Eigenvectors of the matrix, as rows.
    fn vectors(&self, par: &dyn Par) -> Scratch<f64> {
        let n = self.n;
        let norm = self.t.iter().map(|v| v.abs()).fold(f64::MIN_POSITIVE, f64::max);
        let mut of_t = Scratch::filled(par, n * n, 0.0);
        for (k, x) in of_t.chunks_exact_mut(n).enumerate() {
            let value = self.t[k * n + k];
            x[k] = 1.0;
            for i in (0..k).rev() {
                let mut sum = 0.0;
                dot(&self.t[i * n + i + 1..=i * n + k], &x[i + 1..=k], &mut sum);
                let difference = self.t[i * n + i] - value;
                // Equal eigenvalues: a slightly different one.
                let least = f64::EPSILON * norm;
                x[i] = -sum / if difference.abs() < least { least } else { difference };
                if x[i].abs() > 1e100 {
                    let size = x[i].abs();
                    x[i..=k].iter_mut().for_each(|v| *v /= size);
                }
            }
        }
        let mut vectors = Scratch::<f64>::new(par, n * n);
        product(par, Gemm::new(n, n, n), &of_t, &self.q, &mut vectors);
        vectors
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;

    fn eigen(n: usize, a: &[f64]) -> Result<(Vec<f64>, Vec<f64>), KernelError> {
        let (mut vectors, mut values) = (vec![0.0; a.len()], vec![0.0; a.len() / n]);
        general_eigen(&Serial, n, f64::EPSILON, a, &mut vectors, &mut values).map(|()| (vectors, values))
    }

    #[test]
    fn a_matrix_times_its_vectors_is_the_vectors_times_the_values() {
        for n in [1, 2, 3, 8, 20] {
            // A similar matrix of one with known eigenvalues 1..=n.
            let mut a: Vec<f64> =
                (0..n * n).map(|i| if i / n < i % n { ((i * 7) % 5) as f64 - 2.0 } else { 0.0 }).collect();
            (0..n).for_each(|i| a[i * n + i] = (i + 1) as f64);
            for p in 1..n {
                (0..n).for_each(|j| a[p * n + j] += 0.5 * a[(p - 1) * n + j]);
                (0..n).for_each(|i| a[i * n + p - 1] -= 0.5 * a[i * n + p]);
            }
            let (v, w) = eigen(n, &a).expect("real eigenvalues");
            let mut alone = vec![0.0; n];
            general_eigen(&Serial, n, f64::EPSILON, &a, &mut [], &mut alone).expect("real eigenvalues");
            assert_eq!(alone, w, "values without vectors are the same");
            let mut sorted = w.clone();
            sorted.sort_by(f64::total_cmp);
            for (i, value) in sorted.iter().enumerate() {
                assert!((value - (i + 1) as f64).abs() < 1e-6, "{n}: {sorted:?}");
            }
            for i in 0..n {
                for j in 0..n {
                    let product: f64 = (0..n).map(|k| a[i * n + k] * v[k * n + j]).sum();
                    assert!((product - v[i * n + j] * w[j]).abs() < 1e-8, "{n}: {i} {j}");
                }
            }
        }
    }

    #[test]
    fn complex_eigenvalues_are_an_error_and_nan_is_a_result() {
        let error = eigen(2, &[0.0, -1.0, 1.0, 0.0]).expect_err("a rotation has complex eigenvalues");
        assert!(error.to_string().contains("complex"), "{error}");
        assert!(eigen(2, &[1.0, f64::NAN, 0.0, 1.0]).expect("a result").1[0].is_nan());
        assert_eq!(eigen(2, &[1.0, 0.0, 2.0, 3.0]).expect("a triangle").1, [3.0, 1.0]);
    }
}
