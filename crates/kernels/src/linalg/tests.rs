use super::*;
use crate::gemm_plain::{Gemm, gemm};
use crate::par::Serial;
use crate::testing::{Reverse, Threads, random64};

/// `a b`, all of order `n` except for the columns of `b`.
fn product(n: usize, k: usize, m: usize, a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut c = vec![0.0; n * m];
    gemm(&Serial, Gemm::new(n, m, k), a, b, &mut c);
    c
}

fn turned(x: &[f64], shape: [usize; 2]) -> Vec<f64> {
    let mut out = vec![0.0; x.len()];
    transpose(x, shape, &mut out);
    out
}

#[track_caller]
fn assert_near(got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len());
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).abs() <= tolerance, "element {i}: {g}, expected {w}");
    }
}

/// Checks that the bits are the same however the work is split.
fn steady(f: impl Fn(&dyn Par) -> Vec<f64>) -> Vec<f64> {
    let first = f(&Serial);
    for par in [&Reverse as &dyn Par, &Threads(3)] {
        assert!(first.iter().zip(&f(par)).all(|(a, b)| a.to_bits() == b.to_bits()));
    }
    first
}

/// A symmetric, positive definite matrix.
fn definite(n: usize, seed: u64) -> Vec<f64> {
    let x = random64(n * n, seed);
    let mut a = product(n, n, n, &x, &turned(&x, [n, n]));
    (0..n).for_each(|i| a[i * n + i] += 1.0);
    a
}

const ORDERS: [usize; 7] = [1, 2, 3, 31, 64, 65, 200];

#[test]
fn a_cholesky_factor_times_its_transpose_is_the_matrix() {
    for n in ORDERS {
        let a = definite(n, 1);
        for lower in [true, false] {
            // Only one triangle is read.
            let mut given = a.clone();
            for i in 0..n {
                (i + 1..n).for_each(|j| given[if lower { i * n + j } else { j * n + i }] = f64::NAN);
            }
            let factor = steady(|par| {
                let mut out = vec![7.0; n * n];
                cholesky(par, n, lower, &given, &mut out).unwrap();
                out
            });
            let other = turned(&factor, [n, n]);
            let again = if lower { product(n, n, n, &factor, &other) } else { product(n, n, n, &other, &factor) };
            assert_near(&again, &a, 1e-10);
            assert_eq!(factor[if lower { n - 1 } else { (n - 1) * n }], if n == 1 { factor[0] } else { 0.0 });
            let mut inverse = vec![0.0; n * n];
            cholesky_inverse(&Serial, n, lower, &factor, &mut inverse).unwrap();
            let mut one = vec![0.0; n * n];
            identity(n, &mut one);
            assert_near(&product(n, n, n, &a, &inverse), &one, 1e-8);
        }
    }
}

#[test]
fn matrices_that_cannot_be_factorised_are_named() {
    let matrices = [4.0, 0.0, 2.0, 5.0, 1.0, 2.0, 2.0, 1.0, 0.0, 1.0, 1.0, 1.0];
    let mut out = [0.0; 12];
    let reason = "is not positive definite";
    assert_eq!(cholesky(&Threads(2), 2, true, &matrices, &mut out), Err(KernelError::Matrix { matrix: 1, reason }));
    let singular = [1.0, 2.0, 2.0, 4.0];
    assert!(inverse(&Serial, 2, &singular, &mut out[..4]).is_err());
    assert!(cholesky_inverse(&Serial, 2, true, &[0.0, 0.0, 1.0, 1.0], &mut out[..4]).is_err());
    // NaN goes through.
    cholesky(&Serial, 2, true, &[f64::NAN, 0.0, 1.0, 1.0], &mut out[..4]).unwrap();
    assert!(out[0].is_nan());
    inverse(&Serial, 2, &[f64::NAN, 0.0, 1.0, 1.0], &mut out[..4]).unwrap();
}

#[test]
fn triangular_products_and_solutions_are_those_of_the_full_matrix() {
    for n in [1, 5, 64, 130] {
        let other = 33;
        let mut a = random64(n * n, 2);
        (0..n).for_each(|i| a[i * n + i] = 9.0 + i as f64);
        let b = random64(n * other, 3);
        for flags in 0..8 {
            let [rightside, lower, transpose] = [1, 2, 4].map(|flag| flags & flag != 0);
            let kind = TriangularKind::Matrix;
            let p = TriangularProduct { kind, n, other, rightside, lower, transpose, alpha: 1.5 };
            let mut full = a.clone();
            for i in 0..n {
                (i + 1..n).for_each(|j| full[if lower { i * n + j } else { j * n + i }] = 0.0);
            }
            let full = if transpose { turned(&full, [n, n]) } else { full };
            let want = if rightside { product(other, n, n, &b, &full) } else { product(n, n, other, &full, &b) };
            let want: Vec<f64> = want.iter().map(|v| v * 1.5).collect();
            let got = steady(|par| {
                let mut out = vec![0.0; n * other];
                p.run(par, &a, &b, &mut out);
                out
            });
            assert_near(&got, &want, 1e-11);
            let inverse = TriangularProduct { kind: TriangularKind::Inverse, alpha: 1.0 / 1.5, ..p };
            let mut out = vec![0.0; n * other];
            inverse.run(&Serial, &a, &got, &mut out);
            assert_near(&out, &b, 1e-10);
        }
    }
}

#[test]
fn determinants_and_inverses_belong_to_the_matrix() {
    let (mut sign, mut logarithm) = ([0.0; 3], [0.0; 3]);
    determinant(
        &Threads(2),
        2,
        &[1.0, 2.0, 3.0, 4.0, 0.0, 1.0, 1.0, 0.0, 1.0, 2.0, 2.0, 4.0],
        &mut sign,
        &mut logarithm,
    );
    assert_eq!(sign, [-1.0, -1.0, 0.0]);
    assert_near(&logarithm[..2], &[2f64.ln(), 0.0], 1e-15);
    assert_eq!(logarithm[2], f64::NEG_INFINITY);
    for n in ORDERS {
        let a = random64(2 * n * n, 4);
        let inverted = steady(|par| {
            let mut out = vec![0.0; 2 * n * n];
            inverse(par, n, &a, &mut out).unwrap();
            out
        });
        let alone = steady(|par| {
            let mut out = vec![0.0; n * n];
            inverse(par, n, &a[..n * n], &mut out).unwrap();
            out
        });
        assert_eq!(alone, inverted[..n * n]);
        let mut one = vec![0.0; n * n];
        identity(n, &mut one);
        assert_near(&product(n, n, n, &a[n * n..], &inverted[n * n..]), &one, 1e-8);
    }
}

#[test]
fn rows_become_orthonormal() {
    for [rows, columns] in [[1, 1], [1, 4], [3, 3], [40, 70], [130, 130]] {
        let a = random64(rows * columns, 5);
        let both = steady(|par| {
            let (mut q, mut l) = (vec![0.0; rows * columns], vec![0.0; rows * rows]);
            lq(par, [rows, columns], &a, &mut q, &mut l);
            [q, l].concat()
        });
        let (q, l) = both.split_at(rows * columns);
        let mut one = vec![0.0; rows * rows];
        identity(rows, &mut one);
        assert_near(&product(rows, columns, rows, q, &turned(q, [rows, columns])), &one, 1e-12);
        assert_near(&product(rows, rows, columns, l, q), &a, 1e-12);
        assert!((0..rows).all(|i| l[i * rows + i + 1..(i + 1) * rows].iter().all(|v| *v == 0.0)));
    }
    // What is triangular already stays as it is.
    let (mut q, mut l) = ([0.0; 4], [0.0; 4]);
    lq(&Serial, [2, 2], &[3.0, 0.0, 1.0, -2.0], &mut q, &mut l);
    assert_eq!((q, l), ([1.0, 0.0, 0.0, 1.0], [3.0, 0.0, 1.0, -2.0]));
}

#[test]
fn eigenvectors_rebuild_the_matrix() {
    for n in ORDERS {
        let mut a = random64(n * n, 6);
        for i in 0..n {
            (0..i).for_each(|j| a[j * n + i] = a[i * n + j]);
        }
        for scale in [1.0, 1e-200, 1e200] {
            let scaled: Vec<f64> = a.iter().map(|v| v * scale).collect();
            let both = steady(|par| {
                let (mut vectors, mut values) = (vec![0.0; n * n], vec![0.0; n]);
                symmetric_eigen(par, n, &scaled, &mut vectors, &mut values).unwrap();
                [vectors, values].concat()
            });
            let (vectors, values) = both.split_at(n * n);
            assert!(values.is_sorted());
            let mut one = vec![0.0; n * n];
            identity(n, &mut one);
            assert_near(&product(n, n, n, vectors, &turned(vectors, [n, n])), &one, 1e-12);
            let weighted: Vec<f64> = vectors.iter().enumerate().map(|(i, v)| v * (values[i / n] / scale)).collect();
            assert_near(&product(n, n, n, &turned(vectors, [n, n]), &weighted), &a, 1e-11);
        }
    }
    // Equal eigenvalues, and a matrix that is diagonal already.
    let (mut vectors, mut values) = ([0.0; 9], [0.0; 3]);
    symmetric_eigen(&Serial, 3, &[2.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 2.0], &mut vectors, &mut values).unwrap();
    assert_eq!(values, [1.0, 2.0, 2.0]);
    assert_eq!(vectors[..3], [0.0, 1.0, 0.0]);
    symmetric_eigen(&Serial, 3, &[f64::NAN; 9], &mut vectors, &mut values).unwrap();
    assert!(values.iter().chain(&vectors).all(|v| v.is_nan()));
}

#[test]
fn empty_batches_and_matrices_are_nothing() {
    let mut none: [f64; 0] = [];
    cholesky(&Serial, 0, true, &[], &mut none).unwrap();
    inverse(&Serial, 3, &[], &mut none).unwrap();
    lq(&Serial, [0, 3], &[], &mut none, &mut []);
    symmetric_eigen(&Serial, 0, &[], &mut none, &mut []).unwrap();
    let (mut sign, mut logarithm) = ([0.0], [1.0]);
    determinant(&Serial, 0, &[], &mut sign, &mut logarithm);
    assert_eq!((sign, logarithm), ([1.0], [0.0]));
}
