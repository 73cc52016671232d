use super::*;
use crate::par::Serial;
use crate::testing::{Reverse, Threads, assert_close, random};

/// Runs `f` under every way of splitting and expects the same bits; gives the result.
fn steady(len: usize, f: impl Fn(&dyn Par, &mut [f32])) -> Vec<f32> {
    let mut first = vec![f32::NAN; len];
    f(&Serial, &mut first);
    for par in [&Reverse as &dyn Par, &Threads(3)] {
        let mut again = vec![f32::NAN; len];
        f(par, &mut again);
        assert!(first.iter().zip(&again).all(|(a, b)| a.to_bits() == b.to_bits()));
    }
    first
}

/// `f(column, k)` for every element of `[outer, n, inner]`, `column` being the `n` elements it is
/// normalised with.
fn along(x: &[f32], [outer, n, inner]: [usize; 3], f: impl Fn(&[f64], usize) -> f64) -> Vec<f64> {
    let mut out = vec![0.0; x.len()];
    for o in 0..outer {
        for i in 0..inner {
            let column: Vec<f64> = (0..n).map(|k| x[(o * n + k) * inner + i] as f64).collect();
            (0..n).for_each(|k| out[(o * n + k) * inner + i] = f(&column, k));
        }
    }
    out
}

fn moments(v: &[f64]) -> (f64, f64) {
    let mean = v.iter().sum::<f64>() / v.len() as f64;
    (mean, v.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / v.len() as f64)
}

#[test]
fn batch_norm_uses_the_moving_statistics_of_each_channel() {
    for shape in [[2, 3, 5000], [700, 33, 1], [2, 4, 3]] {
        let [outer, c, inner] = shape;
        let x = random(outer * c * inner, 1);
        let (mean, beta, gamma) = (random(c, 2), random(c, 3), random(c, 4));
        let variance: Vec<f32> = random(c, 5).iter().map(|v| v.abs() + 0.1).collect();
        for gamma in [None, Some(gamma.as_slice())] {
            let params = Channels { mean: &mean, variance: &variance, gamma, beta: &beta, eps: 1e-3 };
            let got = steady(x.len(), |par, out| batch_norm(par, &x, shape, params, out));
            let want: Vec<f64> = (0..x.len())
                .map(|i| {
                    let k = i / inner % c;
                    let g = gamma.map_or(1.0, |g| g[k] as f64);
                    (x[i] as f64 - mean[k] as f64) / (variance[k] as f64 + 1e-3).sqrt() * g + beta[k] as f64
                })
                .collect();
            assert_close(&got, &want, 1e-6);
        }
    }
}

#[test]
fn layer_norm_normalises_along_any_axis() {
    for shape in [[50, 768, 1], [3, 7, 1], [2, 9, 150]] {
        let [outer, n, inner] = shape;
        let x: Vec<f32> = random(outer * n * inner, 6).iter().map(|v| v * 3.0 + 40.0).collect();
        let (gamma, beta) = (random(n, 7), random(n, 8));
        let got = steady(x.len(), |par, out| layer_norm(par, &x, shape, &gamma, &beta, 1e-5, out));
        let want = along(&x, shape, |v, k| {
            let (mean, variance) = moments(v);
            (v[k] - mean) / (variance + 1e-5).sqrt() * gamma[k] as f64 + beta[k] as f64
        });
        assert_close(&got, &want, 5e-6);
        let (mut mean, mut std) = (vec![0f32; outer * inner], vec![0f32; outer * inner]);
        mean_std(&Threads(2), &x, shape, 1e-5, &mut mean, &mut std);
        let all = along(&x, shape, |v, _| moments(v).0);
        let deviations = along(&x, shape, |v, _| (moments(v).1 + 1e-5).sqrt());
        for i in 0..mean.len() {
            let at = i / inner * n * inner + i % inner;
            assert!((mean[i] as f64 - all[at]).abs() < 1e-5);
            assert!((std[i] as f64 - deviations[at]).abs() < 1e-5);
        }
    }
}

#[test]
fn rows_get_the_scale_of_their_channel_or_group() {
    let (rows, n) = (6, 901);
    let x = random(rows * n, 9);
    let (gamma, beta) = ([1.5f32, -2.0, 0.5], [0.0f32, 1.0, 2.0]);
    let got = steady(x.len(), |par, out| row_norm(par, &x, [rows, n], &gamma, &beta, 1e-3, out));
    let mut want = along(&x, [rows, n, 1], |v, k| {
        let (mean, variance) = moments(v);
        (v[k] - mean) / (variance + 1e-3).sqrt()
    });
    for (i, v) in want.iter_mut().enumerate() {
        *v = *v * gamma[i / n % 3] as f64 + beta[i / n % 3] as f64;
    }
    assert_close(&got, &want, 2e-6);
}

#[test]
fn l2_normalization_divides_by_the_norm_of_its_axis() {
    for shape in [[3, 500, 1], [2, 7, 130]] {
        let x = random(shape.iter().product(), 10);
        let got = steady(x.len(), |par, out| l2_normalization(par, &x, shape, 1e-10, out));
        let want = along(&x, shape, |v, k| v[k] / (v.iter().map(|v| v * v).sum::<f64>() + 1e-10).sqrt());
        assert_close(&got, &want, 1e-6);
    }
}

#[test]
fn lrn_looks_at_neighbouring_channels() {
    let shape = [2, 9, 70];
    let x = random(shape.iter().product(), 11);
    for beta in [0.75, 0.5, 1.3] {
        let p = LrnParams { size: 5, alpha: 0.3, beta, knorm: 2.0 };
        let got = steady(x.len(), |par, out| lrn(par, p, &x, shape, out));
        let want = along(&x, shape, |v, k| {
            let window = &v[k.saturating_sub(2)..(k + 3).min(9)];
            let sum: f64 = window.iter().map(|v| v * v).sum();
            v[k] * (2.0 + 0.3 / 5.0 * sum).powf(-beta)
        });
        assert_close(&got, &want, 2e-6);
    }
}
