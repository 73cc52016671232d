//! Eigenvalues and eigenvectors of symmetric matrices: reduction to a tridiagonal matrix by
//! reflections, then implicit QL steps, whose rotations are applied to all vectors together.

use super::reflections::turned_units;
use super::{NOTHING, each_matrix, each_matrix2, reflection};
use crate::element::Float;
use crate::error::{KernelError, check_len};
use crate::par::{Par, chunk_by_work, par_chunks_mut, par_chunks_mut2};
use crate::scratch::Scratch;
use crate::vectorize::vectorized;

/// Numbers of a vector that are rotated together.
const WIDTH: usize = 32;
/// Rotations that are collected before they are applied.
const PENDING: usize = 1 << 15;
/// QL steps for one eigenvalue, of which two are usual.
const STEPS: usize = 80;

/// Eigenvectors, as rows, and eigenvalues in ascending order of matrices of order `n`, of which
/// only the lower triangle is read; with no room for vectors, the values alone. The element of
/// largest magnitude of a vector, the first of equal ones, is positive. A matrix with infinities or
/// NaN has only NaN for a result.
///
/// # Errors
/// If the steps do not converge.
///
/// # Panics
/// If the lengths contradict each other.
pub fn symmetric_eigen<T: Float>(
    par: &dyn Par,
    n: usize,
    a: &[T],
    vectors: &mut [T],
    values: &mut [T],
) -> Result<(), KernelError> {
    if a.is_empty() {
        return Ok(());
    }
    check_len("the values", values.len(), a.len() / n);
    if vectors.is_empty() {
        return each_matrix(par, values, n, n, |par, i, values| {
            factorise(par, n, &a[i * n * n..][..n * n], &mut [], values)
        });
    }
    check_len("the vectors", vectors.len(), a.len());
    each_matrix2(par, (vectors, n * n), (values, n), n, |par, i, vectors, values| {
        factorise(par, n, &a[i * n * n..][..n * n], vectors, values)
    })
}

/// Eigenvectors, as rows, and eigenvalues of one matrix; with no room for vectors, the values alone.
pub(super) fn factorise<T: Float>(
    par: &dyn Par,
    n: usize,
    a: &[T],
    vectors: &mut [T],
    values: &mut [T],
) -> Result<(), &'static str> {
    let lower = || (0..n).flat_map(|i| &a[i * n..=i * n + i]);
    let largest = lower().map(|v| v.abs().to_f64()).fold(0.0, f64::max);
    if largest == f64::INFINITY || lower().any(|v| v.nan()) {
        vectors.fill(T::from_f64(f64::NAN));
        values.fill(T::from_f64(f64::NAN));
        return Ok(());
    }
    // Sums of products of such numbers neither overflow nor vanish.
    let scale = if largest > 0.0 && !(1e-15..1e15).contains(&largest) { largest } else { 1.0 };
    let mut work = Scratch::<T>::new(par, n * n);
    for i in 0..n {
        for j in 0..=i {
            let v = if scale == 1.0 { a[i * n + j] } else { T::from_f64(a[i * n + j].to_f64() / scale) };
            (work[i * n + j], work[j * n + i]) = (v, v);
        }
    }
    let (mut diagonal, mut beside) = tridiagonalise(par, n, &mut work);
    let mut strips = (!vectors.is_empty()).then(|| Strips::new(par, n, &work));
    steps(&mut diagonal, &mut beside, |sweep| {
        if let Some(strips) = &mut strips {
            strips.push(par, sweep);
        }
    })?;
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|i, j| diagonal[*i].total_cmp(&diagonal[*j]));
    values.iter_mut().zip(&order).for_each(|(value, from)| *value = T::from_f64(diagonal[*from] * scale));
    let Some(mut strips) = strips else { return Ok(()) };
    strips.apply(par);
    for (row, &from) in vectors.chunks_exact_mut(n).zip(&order) {
        strips.read(from, row);
        let mut largest = 0;
        for j in 1..n {
            if row[j].abs() > row[largest].abs() {
                largest = j;
            }
        }
        if row[largest] < T::ZERO {
            row.iter_mut().for_each(|v| *v = -*v);
        }
    }
    Ok(())
}

/// Reduces a symmetric matrix to its diagonal and the numbers next to it. Row `k` of `a` holds the
/// vector of reflection `k` from column `k + 1` on afterwards.
fn tridiagonalise<T: Float>(par: &dyn Par, n: usize, a: &mut [T]) -> (Vec<f64>, Vec<f64>) {
    let (mut diagonal, mut beside) = (vec![0.0; n], vec![0.0; n]);
    // What the reflection before has still to take from the rows: u q^T + q u^T.
    let (mut u, mut q, mut product) = (vec![T::ZERO; n], vec![T::ZERO; n], vec![T::ZERO; n]);
    for k in 0..n {
        let (done, below) = a.split_at_mut((k + 1) * n);
        let row = &mut done[k * n + k..];
        subtract_two(row, u[k], &q[k..], q[k], &u[k..]);
        diagonal[k] = row[0].to_f64();
        let rest = &mut row[1..];
        if rest.len() <= 1 {
            beside[k] = rest.first().map_or(0.0, |v| v.to_f64());
            rest.fill(T::ZERO);
        } else {
            beside[k] = reflection(rest);
        }
        let next: &[T] = rest;
        let (old, old_q): (&[T], &[T]) = (&u, &q);
        let band = chunk_by_work(6 * next.len());
        par_chunks_mut2(par, below, band * n, &mut product[k + 1..], band, |chunk, rows, products| {
            for (i, (row, product)) in rows.chunks_exact_mut(n).zip(products).enumerate() {
                let at = k + 1 + chunk * band + i;
                subtract_two(&mut row[k + 1..], old[at], &old_q[k + 1..], old_q[at], &old[k + 1..]);
                crate::matrix_vector::dot(&row[k + 1..], next, product);
            }
        });
        u[k + 1..].copy_from_slice(next);
        let mut half = T::ZERO;
        crate::matrix_vector::dot(&product[k + 1..], &u[k + 1..], &mut half);
        let half = half * T::from_f64(0.5);
        for ((q, p), u) in q[k + 1..].iter_mut().zip(&product[k + 1..]).zip(&u[k + 1..]) {
            *q = *p - half * *u;
        }
    }
    (diagonal, beside)
}

vectorized! {
    /// `row -= a * x + b * y`.
    fn subtract_two[T: Float](row: &mut [T], a: T, x: &[T], b: T, y: &[T]) {
        for ((v, x), y) in row.iter_mut().zip(x).zip(y) {
            *v = *v - (a * *x + b * *y);
        }
    }
}

/// Some rotations of neighbouring vectors, from vector `first` and the one before it downwards.
struct Sweep {
    first: usize,
    rotations: Vec<[f64; 2]>,
}

/// The vectors, cut into strips of [`WIDTH`] of their elements.
struct Strips<T: Copy> {
    n: usize,
    strips: Scratch<[T; WIDTH]>,
    pending: Vec<Sweep>,
    count: usize,
}

impl<T: Float> Strips<T> {
    /// The vectors into which reflections turn the unit vectors.
    fn new(par: &dyn Par, n: usize, reflections: &[T]) -> Self {
        let mut rows = Scratch::<T>::new(par, n * n);
        turned_units(par, reflections, n, 1, n.saturating_sub(2), &mut rows);
        let mut strips = Scratch::filled(par, n * n.div_ceil(WIDTH), [T::ZERO; WIDTH]);
        for (i, strip) in strips.iter_mut().enumerate() {
            let (row, column) = (i % n, i / n * WIDTH);
            let part = &rows[row * n..][..n][column..(column + WIDTH).min(n)];
            strip[..part.len()].copy_from_slice(part);
        }
        Strips { n, strips, pending: Vec::new(), count: 0 }
    }

    fn push(&mut self, par: &dyn Par, sweep: Sweep) {
        self.count += sweep.rotations.len();
        self.pending.push(sweep);
        if self.count >= PENDING {
            self.apply(par);
        }
    }

    fn apply(&mut self, par: &dyn Par) {
        let pending = std::mem::take(&mut self.pending);
        par_chunks_mut(par, &mut self.strips, self.n, |_, strip| rotate(strip, &pending));
        self.count = 0;
    }

    fn read(&self, vector: usize, out: &mut [T]) {
        for (column, out) in out.chunks_mut(WIDTH).enumerate() {
            out.copy_from_slice(&self.strips[column * self.n + vector][..out.len()]);
        }
    }
}

vectorized! {
    fn rotate[T: Float](strip: &mut [[T; WIDTH]], sweeps: &[Sweep]) {
        for sweep in sweeps {
            let mut high = strip[sweep.first];
            let mut at = sweep.first;
            for [c, s] in &sweep.rotations {
                let (c, s) = (T::from_f64(*c), T::from_f64(*s));
                let low = strip[at - 1];
                let mut turned = [T::ZERO; WIDTH];
                for i in 0..WIDTH {
                    turned[i] = s * low[i] + c * high[i];
                    high[i] = c * low[i] - s * high[i];
                }
                strip[at] = turned;
                at -= 1;
            }
            strip[at] = high;
        }
    }
}

/// Makes the numbers next to the diagonal vanish. `beside[i]` stands between `i` and `i + 1`. The
/// vectors take part through `rotate`.
fn steps(diagonal: &mut [f64], beside: &mut [f64], mut rotate: impl FnMut(Sweep)) -> Result<(), &'static str> {
    let n = diagonal.len();
    let largest = diagonal.iter().chain(&*beside).map(|v| v.abs()).fold(0.0, f64::max);
    // Where the rank is not full, the diagonal is rounding too: nothing would be small next to it.
    let least = (NOTHING * largest).max(f64::MIN_POSITIVE);
    for low in 0..n {
        let mut count = 0;
        loop {
            let negligible = |i: &usize| {
                let size = diagonal[*i].abs() + diagonal[*i + 1].abs();
                beside[*i].abs() <= f64::EPSILON * size || beside[*i].abs() < least
            };
            let high = (low..n - 1).find(negligible).unwrap_or(n - 1);
            if high == low {
                break;
            }
            count += 1;
            if count > STEPS {
                return Err("has eigenvalues that did not converge");
            }
            rotate(step(diagonal, beside, low, high));
        }
    }
    Ok(())
}

/// One QL step on the rows from `low` to `high`, shifted by an estimate of the eigenvalue at `low`.
fn step(d: &mut [f64], e: &mut [f64], low: usize, high: usize) -> Sweep {
    let mut sweep = Sweep { first: high, rotations: Vec::with_capacity(high - low) };
    let half = (d[low + 1] - d[low]) / (2.0 * e[low]);
    let root = half.hypot(1.0);
    let mut g = d[high] - d[low] + e[low] / (half + root.copysign(half));
    let (mut s, mut c, mut shift) = (1.0, 1.0, 0.0);
    for i in (low..high).rev() {
        let (f, b) = (s * e[i], c * e[i]);
        let r = f.hypot(g);
        e[i + 1] = r;
        if r == 0.0 {
            // The matrix falls apart here.
            d[i + 1] -= shift;
            e[high] = 0.0;
            return sweep;
        }
        (s, c) = (f / r, g / r);
        g = d[i + 1] - shift;
        let t = (d[i] - g) * s + 2.0 * c * b;
        shift = s * t;
        d[i + 1] = g + shift;
        g = c * t - b;
        sweep.rotations.push([c, s]);
    }
    d[low] -= shift;
    e[low] = g;
    e[high] = 0.0;
    sweep
}
