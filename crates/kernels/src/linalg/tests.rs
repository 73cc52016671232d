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
        let b = random64(2 * n * 3, 5);
        let solved = steady(|par| {
            let mut out = vec![0.0; b.len()];
            solve(par, n, 3, &a, &b, &mut out).unwrap();
            out
        });
        assert_near(&product(n, n, 3, &a[n * n..], &solved[n * 3..]), &b[n * 3..], 1e-9);
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
    // NaN next to zeros has no length that grows.
    for row in [[0.0, f64::NAN], [f64::NAN, 0.0], [f64::NAN, f64::NAN], [f64::NAN, 5e-324]] {
        lq(&Serial, [1, 2], &row, &mut q[..2], &mut l[..1]);
        assert!(l[0].is_nan(), "{row:?}: {l:?}");
    }
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
            let mut alone = vec![0.0; n];
            symmetric_eigen(&Serial, n, &scaled, &mut [], &mut alone).unwrap();
            assert_eq!(alone, values, "values without vectors are the same");
            let mut one = vec![0.0; n * n];
            identity(n, &mut one);
            assert_near(&product(n, n, n, vectors, &turned(vectors, [n, n])), &one, 1e-12);
            let weighted: Vec<f64> = vectors.iter().enumerate().map(|(i, v)| v * (values[i / n] / scale)).collect();
            assert_near(&product(n, n, n, &turned(vectors, [n, n]), &weighted), &a, 1e-11);
        }
    }
    // Elements of few digits are reflected by vectors of all digits.
    for least in [1.0, 3.0, 1e10].map(|v| v * 5e-324) {
        let mut a: Vec<f64> = (0..5).map(|i| least * f64::from(i + 1)).collect();
        reflection(&mut a);
        assert_near(&[frobenius(&a)], &[std::f64::consts::SQRT_2], 1e-15);
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

/// Square matrices of order `n` without full rank: constants, products of a column and a row, blocks
/// of equal elements, counts, and masks of 0 and 1.
fn deficient(n: usize) -> Vec<Vec<f64>> {
    let of = |f: &dyn Fn(usize, usize) -> usize| -> Vec<f64> { (0..n * n).map(|k| f(k / n, k % n) as f64).collect() };
    vec![
        of(&|_, _| 0),
        of(&|_, _| 1),
        of(&|_, _| 3),
        of(&|i, j| i * j),
        of(&|i, j| (i + 1) * (j + 2)),
        of(&|i, j| (i % 3 + 1) * (j % 4 + 1)),
        of(&|i, j| i * n + j),
        of(&|i, j| i + j),
        of(&|i, j| (i / 2 + 1) * (j / 2 + 1)),
        of(&|i, j| i / 3 + j / 3),
        of(&|i, j| usize::from(i / 2 == j / 2)),
        of(&|i, j| usize::from(i % 2 == j % 2)),
        of(&|i, j| usize::from(i.max(j) >= n / 2)),
    ]
}

/// The sum of the squares' root.
fn frobenius(a: &[f64]) -> f64 {
    a.iter().fold(0.0, |norm: f64, v| norm.hypot(*v))
}

#[test]
fn singular_values_of_matrices_without_full_rank_converge() {
    for n in (1..14).chain([33, 64]) {
        for (kind, a) in deficient(n).into_iter().enumerate() {
            for (rows, epsilon) in [(n, f64::EPSILON), (n.div_ceil(2), f64::EPSILON), (n, f64::from(f32::EPSILON))] {
                // In float32 a fraction leaves the rounding of that type in place of zeros.
                let single = epsilon > f64::EPSILON;
                let a: Vec<f64> =
                    a[..rows * n].iter().map(|v| if single { f64::from((v / 3.0) as f32) } else { *v }).collect();
                let (mut u, mut values, mut v) = (vec![0.0; rows * rows], vec![0.0; rows], vec![0.0; rows * n]);
                let made = singular_values(&Serial, [rows, n], &a, &mut u, &mut values, &mut v);
                made.unwrap_or_else(|e| panic!("{rows} x {n}, matrix {kind}: {e}"));
                let mut one = vec![0.0; rows * rows];
                identity(rows, &mut one);
                assert_near(&product(rows, rows, rows, &u, &turned(&u, [rows, rows])), &one, 1e-12);
                assert_near(&product(rows, n, rows, &v, &turned(&v, [rows, n])), &one, 1e-12);
                let weighted: Vec<f64> = u.iter().enumerate().map(|(i, u)| u * values[i % rows]).collect();
                let again = product(rows, rows, n, &weighted, &v);
                assert_near(&again, &a, 1e-13 * frobenius(&a).max(1.0));
                assert_near(&[frobenius(&values)], &[frobenius(&a)], 1e-12 * frobenius(&a));
            }
        }
    }
}

fn check_symmetric<T: crate::element::Float>(n: usize, a: &[f64], tolerance: f64) {
    let given: Vec<T> = a.iter().map(|v| T::from_f64(*v)).collect();
    let (mut vectors, mut values) = (vec![T::ZERO; n * n], vec![T::ZERO; n]);
    symmetric_eigen(&Serial, n, &given, &mut vectors, &mut values)
        .unwrap_or_else(|e| panic!("order {n}, {}: {e}; {a:?}", std::any::type_name::<T>()));
    let [vectors, values] = [vectors, values].map(|all| all.iter().map(|v| v.to_f64()).collect::<Vec<f64>>());
    let weighted: Vec<f64> = vectors.iter().enumerate().map(|(i, v)| v * values[i / n]).collect();
    assert_near(&product(n, n, n, &turned(&vectors, [n, n]), &weighted), a, tolerance * frobenius(a).max(1.0));
    let mut one = vec![0.0; n * n];
    identity(n, &mut one);
    assert_near(&product(n, n, n, &vectors, &turned(&vectors, [n, n])), &one, 10.0 * tolerance);
}

#[test]
fn eigenvalues_of_symmetric_matrices_without_full_rank_converge() {
    for n in (1..14).chain([33, 64]) {
        for a in deficient(n) {
            let both = turned(&a, [n, n]);
            let symmetric: Vec<f64> = a.iter().zip(both).map(|(a, b)| a + b).collect();
            check_symmetric::<f64>(n, &symmetric, 1e-13);
            check_symmetric::<f32>(n, &symmetric, 1e-5);
        }
    }
}

#[test]
fn real_eigenvalues_of_matrices_without_full_rank_are_found() {
    for n in (1..14).chain([33, 50]) {
        for (kind, a) in deficient(n).into_iter().enumerate() {
            for epsilon in [f64::EPSILON, f64::from(f32::EPSILON)] {
                let single = epsilon > f64::EPSILON;
                let a: Vec<f64> = a.iter().map(|v| if single { f64::from((v / 3.0) as f32) } else { *v }).collect();
                let (mut vectors, mut values) = (vec![0.0; n * n], vec![0.0; n]);
                let made = general_eigen(&Serial, n, epsilon, &a, &mut vectors, &mut values);
                made.unwrap_or_else(|e| panic!("order {n}, matrix {kind}: {e}"));
                let weighted: Vec<f64> = vectors.iter().enumerate().map(|(i, v)| v * values[i % n]).collect();
                let tolerance = 10.0 * n as f64 * epsilon * frobenius(&a);
                assert_near(&product(n, n, n, &a, &vectors), &weighted, tolerance);
            }
        }
    }
}

#[test]
fn complex_eigenvalues_are_an_error_at_every_scale() {
    for n in [2, 3, 8] {
        for angle in [1.0, 1e-3, 1e-8, 1e-11] {
            for scale in [1.0, 1e-30, 1e150] {
                let mut a = vec![0.0; n * n];
                (0..n).for_each(|i| a[i * n + i] = scale * f64::max(1.0, i as f64));
                (a[1], a[n]) = (-angle * scale, angle * scale);
                let (mut vectors, mut values) = (vec![0.0; n * n], vec![0.0; n]);
                let made = general_eigen(&Serial, n, f64::EPSILON, &a, &mut vectors, &mut values);
                assert!(made.is_err(), "order {n}, angle {angle}, scale {scale}: {values:?}");
            }
        }
    }
}
