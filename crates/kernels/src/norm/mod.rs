//! Normalisations at inference. Statistics are taken in the type of sums: single precision for
//! `f32` and `f16`.

use crate::element::{Element, Float};
use crate::error::check_len;
use crate::par::{
    Par, chunk_by_work, chunk_elems, par_chunks_mut, par_chunks_mut_scratch, par_chunks_mut2, par_columns_mut,
};
use crate::reduce::{moments_of_row, sum_squares_of_row};
use crate::vectorize::vectorized;

/// Columns that are computed side by side when the normalised axis is not the last.
const WIDTH: usize = 64;

/// The data of batch normalisation for every channel. All have one element per channel.
#[derive(Clone, Copy, Debug)]
pub struct Channels<'a, A> {
    /// The moving mean.
    pub mean: &'a [A],
    /// The moving variance.
    pub variance: &'a [A],
    /// The scale; `None` counts as 1 (`fix_gamma`).
    pub gamma: Option<&'a [A]>,
    /// The offset.
    pub beta: &'a [A],
    /// Added to the variance.
    pub eps: f64,
}

impl<A: Float> Channels<'_, A> {
    /// The factor of a channel after its mean is subtracted.
    fn scale(&self, c: usize) -> A {
        let inverse = A::ONE / (self.variance[c] + A::from_f64(self.eps)).sqrt();
        self.gamma.map_or(inverse, |g| inverse * g[c])
    }
}

/// Batch normalisation with moving statistics over `x` of shape `[outer, channels, inner]`:
/// `(x - mean) * scale + beta`.
pub fn batch_norm<T: Element>(
    par: &dyn Par,
    x: &[T],
    [outer, channels, inner]: [usize; 3],
    params: Channels<'_, T::Acc>,
    out: &mut [T],
) {
    check_len("the input", x.len(), outer * channels * inner);
    check_len("the output", out.len(), x.len());
    for (what, values) in [("the mean", params.mean), ("the variance", params.variance), ("beta", params.beta)] {
        check_len(what, values.len(), channels);
    }
    check_len("gamma", params.gamma.map_or(channels, <[_]>::len), channels);
    if inner == 1 {
        let bytes = channels * size_of::<T::Acc>();
        let rows = (chunk_elems::<T>() / channels.max(1)).max(1);
        return par_chunks_mut_scratch(par, out, rows * channels, bytes, |i, out, scratch| {
            let scales: &mut [T::Acc] = bytemuck::cast_slice_mut(&mut scratch[..bytes]);
            scales.iter_mut().enumerate().for_each(|(c, s)| *s = params.scale(c));
            for (j, out) in out.chunks_mut(channels).enumerate() {
                let x = &x[(i * rows + j) * channels..][..channels];
                normalise_across(x, params.mean, scales, params.beta, out);
            }
        });
    }
    let chunk = chunk_elems::<T>();
    par_chunks_mut(par, out, chunk, |i, out| {
        let (start, mut done) = (i * chunk, 0);
        while done < out.len() {
            let (row, column) = ((start + done) / inner, (start + done) % inner);
            let n = (inner - column).min(out.len() - done);
            let c = row % channels;
            let x = &x[start + done..][..n];
            normalise_row(x, params.mean[c], params.scale(c), params.beta[c], &mut out[done..][..n]);
            done += n;
        }
    });
}

vectorized! {
    fn normalise_row[T: Element](x: &[T], mean: T::Acc, scale: T::Acc, offset: T::Acc, out: &mut [T]) {
        for (out, x) in out.iter_mut().zip(x) {
            *out = T::from_acc((x.acc() - mean) * scale + offset);
        }
    }
}

vectorized! {
    fn normalise_across[T: Element](
        x: &[T],
        mean: &[T::Acc],
        scale: &[T::Acc],
        offset: &[T::Acc],
        out: &mut [T],
    ) {
        for ((((out, x), &mean), &scale), &offset) in out.iter_mut().zip(x).zip(mean).zip(scale).zip(offset) {
            *out = T::from_acc((x.acc() - mean) * scale + offset);
        }
    }
}

vectorized! {
    fn affine_row[T: Element](
        x: &[T],
        mean: T::Acc,
        scale: T::Acc,
        gamma: &[T],
        beta: &[T],
        out: &mut [T],
    ) {
        for (((out, x), gamma), beta) in out.iter_mut().zip(x).zip(gamma).zip(beta) {
            *out = T::from_acc((x.acc() - mean) * scale * gamma.acc() + beta.acc());
        }
    }
}

/// Layer normalisation of the sum of two arrays along their last axis, in one pass; `gamma` and
/// `beta` have the length of that axis. The same bits as of an addition and [`layer_norm`].
pub fn layer_norm_of_sum<T: Element>(
    par: &dyn Par,
    [x, residual]: [&[T]; 2],
    gamma: &[T],
    beta: &[T],
    eps: f64,
    out: &mut [T],
) {
    let n = gamma.len();
    check_len("the residual", residual.len(), x.len());
    check_len("the output", out.len(), x.len());
    check_len("beta", beta.len(), n);
    if x.is_empty() {
        return;
    }
    check_len("the input", x.len() % n.max(1), 0);
    let (eps, rows, bytes) = (T::Acc::from_f64(eps), chunk_by_work(5 * n), size_of_val(gamma));
    par_chunks_mut_scratch(par, out, rows * n, bytes, |i, out, scratch| {
        let sum: &mut [T] = bytemuck::cast_slice_mut(&mut scratch[..bytes]);
        for (j, out) in out.chunks_mut(n).enumerate() {
            let at = (i * rows + j) * n;
            add_rows(&x[at..][..n], &residual[at..][..n], sum);
            let (mean, variance) = moments_of_row(sum);
            affine_row(sum, mean, <T::Acc as Element>::ONE / (variance + eps).sqrt(), gamma, beta, out);
        }
    });
}

vectorized! {
    fn add_rows[T: Element](a: &[T], b: &[T], sum: &mut [T]) {
        for ((sum, a), b) in sum.iter_mut().zip(a).zip(b) {
            *sum = T::from_acc(a.acc() + b.acc());
        }
    }
}

/// Layer normalisation along the middle axis of `x`, of shape `[outer, n, inner]`; `gamma` and
/// `beta` have `n` elements.
pub fn layer_norm<T: Element>(
    par: &dyn Par,
    x: &[T],
    shape: [usize; 3],
    gamma: &[T],
    beta: &[T],
    eps: f64,
    out: &mut [T],
) {
    let [outer, n, inner] = shape;
    check_len("the input", x.len(), outer * n * inner);
    check_len("the output", out.len(), x.len());
    check_len("gamma", gamma.len(), n);
    check_len("beta", beta.len(), n);
    if x.is_empty() {
        return;
    }
    let eps = T::Acc::from_f64(eps);
    let one = <T::Acc as Element>::ONE;
    if inner == 1 {
        let rows = chunk_by_work(4 * n);
        return par_chunks_mut(par, out, rows * n, |i, out| {
            for (j, out) in out.chunks_mut(n).enumerate() {
                let x = &x[(i * rows + j) * n..][..n];
                let (mean, variance) = moments_of_row(x);
                affine_row(x, mean, one / (variance + eps).sqrt(), gamma, beta, out);
            }
        });
    }
    layer_norm_columns(par, x, shape, gamma, beta, eps, out);
}

/// Normalizes along an axis that is not the last.
fn layer_norm_columns<T: Element>(
    par: &dyn Par,
    x: &[T],
    shape: [usize; 3],
    gamma: &[T],
    beta: &[T],
    eps: T::Acc,
    out: &mut [T],
) {
    let ([_, n, inner], one) = (shape, <T::Acc as Element>::ONE);
    par_columns_mut(par, out, shape, WIDTH, 0, |o, start, mut band, _| {
        let x = &x[o * n * inner + start..];
        let width = band.width();
        let (mean, variance) = column_moments(x, n, inner, width);
        for k in 0..n {
            let (gamma, beta, row) = (gamma[k].acc(), beta[k].acc(), &x[k * inner..][..width]);
            for (i, (out, x)) in band.row(k).iter_mut().zip(row).enumerate() {
                let scale = one / (variance[i] + eps).sqrt();
                *out = T::from_acc((x.acc() - mean[i]) * scale * gamma + beta);
            }
        }
    });
}

/// Mean and variance of neighbouring columns with `n` rows.
fn column_moments<T: Element>(x: &[T], n: usize, inner: usize, width: usize) -> ([T::Acc; WIDTH], [T::Acc; WIDTH]) {
    let mut sums = [0.0f64; WIDTH];
    for k in 0..n {
        sums.iter_mut().zip(&x[k * inner..][..width]).for_each(|(s, v)| *s += v.to_f64());
    }
    let mean = sums.map(|s| T::Acc::from_f64(s / n as f64));
    let mut squares = [0.0f64; WIDTH];
    for k in 0..n {
        for ((s, v), mean) in squares.iter_mut().zip(&x[k * inner..][..width]).zip(&mean) {
            let d = (v.acc() - *mean).to_f64();
            *s += d * d;
        }
    }
    (mean, squares.map(|s| T::Acc::from_f64(s / n as f64)))
}

/// The means and standard deviations (the root of variance + eps) along the middle axis of `x`, of
/// shape `[outer, n, inner]`: the other outputs of layer, group and instance normalisation. Both
/// have `outer * inner` elements.
pub fn mean_std<T: Element>(
    par: &dyn Par,
    x: &[T],
    [outer, n, inner]: [usize; 3],
    eps: f64,
    mean: &mut [T],
    std: &mut [T],
) {
    check_len("the input", x.len(), outer * n * inner);
    check_len("the means", mean.len(), outer * inner);
    check_len("the deviations", std.len(), outer * inner);
    if x.is_empty() {
        return;
    }
    let eps = T::Acc::from_f64(eps);
    let chunk = chunk_by_work(4 * n);
    par_chunks_mut2(par, mean, chunk, std, chunk, |i, means, stds| {
        for (j, (m, s)) in means.iter_mut().zip(stds).enumerate() {
            let at = i * chunk + j;
            let x = &x[at / inner * n * inner + at % inner..];
            let (mean, variance) = if inner == 1 {
                moments_of_row(&x[..n])
            } else {
                let (mean, variance) = column_moments(x, n, inner, 1);
                (mean[0], variance[0])
            };
            (*m, *s) = (T::from_acc(mean), T::from_acc((variance + eps).sqrt()));
        }
    });
}

/// Instance or group normalisation: every row of `x`, of shape `[rows, n]`, is normalised and gets
/// the scale and offset `gamma[row % gamma.len()]`, `beta[...]`.
///
/// Instance normalisation has one row for every instance and channel, group normalisation one for
/// every instance and group (MXNet 1.9.1 has one gamma a *group*).
pub fn row_norm<T: Element>(
    par: &dyn Par,
    x: &[T],
    [rows, n]: [usize; 2],
    gamma: &[T],
    beta: &[T],
    eps: f64,
    out: &mut [T],
) {
    check_len("the input", x.len(), rows * n);
    check_len("the output", out.len(), x.len());
    check_len("beta", beta.len(), gamma.len());
    if x.is_empty() {
        return;
    }
    assert!(!gamma.is_empty(), "gamma is empty");
    let eps = T::Acc::from_f64(eps);
    let one = <T::Acc as Element>::ONE;
    let per_chunk = chunk_by_work(4 * n);
    par_chunks_mut(par, out, per_chunk * n, |i, out| {
        for (j, out) in out.chunks_mut(n).enumerate() {
            let row = i * per_chunk + j;
            let x = &x[row * n..][..n];
            let (mean, variance) = moments_of_row(x);
            let scale = one / (variance + eps).sqrt() * gamma[row % gamma.len()].acc();
            normalise_row(x, mean, scale, beta[row % gamma.len()].acc(), out);
        }
    });
}

/// Divides by the root of the sum of squares plus `eps` along the middle axis of `x`, of shape
/// `[outer, n, inner]`.
///
/// MXNet's modes: instance is `[batch, rest, 1]`, channel `[batch, channels, rest]`, spatial
/// `[batch * channels, rest, 1]`.
pub fn l2_normalization<T: Element>(par: &dyn Par, x: &[T], shape: [usize; 3], eps: f64, out: &mut [T]) {
    let [outer, n, inner] = shape;
    check_len("the input", x.len(), outer * n * inner);
    check_len("the output", out.len(), x.len());
    if x.is_empty() {
        return;
    }
    if inner == 1 {
        let rows = chunk_by_work(2 * n);
        return par_chunks_mut(par, out, rows * n, |i, out| {
            for (j, out) in out.chunks_mut(n).enumerate() {
                let x = &x[(i * rows + j) * n..][..n];
                let norm = T::Acc::from_f64((sum_squares_of_row(x) + eps).sqrt());
                out.iter_mut().zip(x).for_each(|(out, x)| *out = T::from_acc(x.acc() / norm));
            }
        });
    }
    par_columns_mut(par, out, shape, WIDTH, 0, |o, start, mut band, _| {
        let x = &x[o * n * inner + start..];
        let width = band.width();
        let mut squares = [0.0f64; WIDTH];
        for k in 0..n {
            squares.iter_mut().zip(&x[k * inner..][..width]).for_each(|(s, v)| *s += v.to_f64() * v.to_f64());
        }
        let norm = squares.map(|s| T::Acc::from_f64((s + eps).sqrt()));
        for k in 0..n {
            for ((out, x), norm) in band.row(k).iter_mut().zip(&x[k * inner..]).zip(norm) {
                *out = T::from_acc(x.acc() / norm);
            }
        }
    });
}

/// The parameters of local response normalisation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LrnParams {
    /// The window, in channels; odd.
    pub size: usize,
    /// Scales the mean square of the window.
    pub alpha: f64,
    /// The exponent.
    pub beta: f64,
    /// Added to the scaled mean square.
    pub knorm: f64,
}

/// Local response normalisation across the channels of `x`, of shape `[batch, channels, inner]`:
/// `x * (knorm + alpha / size * (sum of squares of the window)) ^ -beta`.
pub fn lrn<T: Element>(par: &dyn Par, params: LrnParams, x: &[T], shape: [usize; 3], out: &mut [T]) {
    let [outer, n, inner] = shape;
    check_len("the input", x.len(), outer * n * inner);
    let scale = T::Acc::from_f64(params.alpha / params.size as f64);
    let (beta, knorm) = (T::Acc::from_f64(-params.beta), T::Acc::from_f64(params.knorm));
    let reach = params.size / 2;
    par_columns_mut(par, out, shape, WIDTH, 0, |o, start, mut band, _| {
        let x = &x[o * n * inner + start..];
        for c in 0..n {
            let row = band.row(c);
            let mut sums = [<T::Acc as Element>::ZERO; WIDTH];
            for k in c.saturating_sub(reach)..(c + reach + 1).min(n) {
                add_squares(&x[k * inner..][..row.len()], &mut sums);
            }
            let (x, sums) = (&x[c * inner..][..row.len()], &sums[..row.len()]);
            if params.beta == 0.75 {
                divide_by_roots(x, sums, scale, knorm, row);
                continue;
            }
            for ((out, x), sum) in row.iter_mut().zip(x).zip(sums) {
                *out = T::from_acc(x.acc() * (*sum * scale + knorm).powf(beta));
            }
        }
    });
}

vectorized! {
    fn add_squares[T: Element](x: &[T], sums: &mut [T::Acc]) {
        for (sum, x) in sums.iter_mut().zip(x) {
            let x = x.acc();
            *sum += x * x;
        }
    }
}

vectorized! {
    // The exponent that nearly every network has, 3/4, without a power: that takes ten times as
    // long.
    fn divide_by_roots[T: Element](x: &[T], sums: &[T::Acc], scale: T::Acc, knorm: T::Acc, out: &mut [T]) {
        for ((out, x), &sum) in out.iter_mut().zip(x).zip(sums) {
            let root = (sum * scale + knorm).sqrt();
            *out = T::from_acc(x.acc() / (root * root.sqrt()));
        }
    }
}

#[cfg(test)]
mod tests;
