//! The error function and GELU in vectors written out. Operations of one element wait for each
//! other much longer than they take, so that several vectors have to be in progress at once.

use crate::exponentials::exp;
use crate::math::{ERF, erf_f32, gelu_f32};
use crate::simd::{Body, Dst, LANES, Simd, Src, entry};
use crate::vectorize::Width;
use std::f32::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

/// Computes the error function of every element; the same bits as [`erf_f32`].
pub(crate) fn erf(x: &[f32], out: &mut [f32]) {
    run::<false>(x, out, erf_f32);
}

/// Computes GELU of every element; the same bits as [`gelu_f32`].
pub(crate) fn gelu(x: &[f32], out: &mut [f32]) {
    run::<true>(x, out, gelu_f32);
}

fn run<const GELU: bool>(x: &[f32], out: &mut [f32], last: impl Fn(f32) -> f32) {
    assert_eq!(x.len(), out.len(), "the input and the output differ in length");
    let whole = x.len() / LANES * LANES;
    let body = entry::<Erf<GELU>>(Width::widest().isa());
    // SAFETY: both hold `n` elements.
    unsafe { body(&ErfArgs { x: Src::new(x), out: Dst::new(out), n: whole }) }
    out[whole..].iter_mut().zip(&x[whole..]).for_each(|(out, x)| *out = last(*x));
}

/// Whole vectors.
struct ErfArgs {
    x: Src,
    out: Dst,
    n: usize,
}

struct Erf<const GELU: bool>;

impl<const GELU: bool> Body for Erf<GELU> {
    type Args = ErfArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &ErfArgs) {
        // SAFETY: promised by the caller.
        unsafe {
            let done = match S::IN_PROGRESS {
                4 => whole::<S, GELU, 4>(s, x, 0),
                _ => whole::<S, GELU, 2>(s, x, 0),
            };
            whole::<S, GELU, 1>(s, x, done);
        }
    }
}

/// Computes N vectors from `at` on while there are as many; returns the place after them.
///
/// # Safety
/// The elements must be there.
#[inline(always)]
unsafe fn whole<S: Simd, const GELU: bool, const N: usize>(s: S, x: &ErfArgs, mut at: usize) -> usize {
    while at + N * LANES <= x.n {
        let mut v = [s.zero(); N];
        // SAFETY: promised by the caller.
        unsafe {
            for i in 0..N {
                v[i] = s.load(x.x, at + i * LANES);
                if GELU {
                    v[i] = s.mul(v[i], s.splat(FRAC_1_SQRT_2));
                }
            }
            erf_of(s, &mut v);
            for i in 0..N {
                if GELU {
                    let half = s.mul(s.splat(0.5), s.load(x.x, at + i * LANES));
                    v[i] = s.mul(half, s.add(s.splat(1.0), v[i]));
                }
                s.store(x.out, at + i * LANES, v[i]);
            }
        }
        at += N * LANES;
    }
    at
}

/// The error function of N vectors, step by step; the same operations as [`erf_f32`].
#[inline(always)]
fn erf_of<S: Simd, const N: usize>(s: S, v: &mut [S::V; N]) {
    let (mut a, mut small, mut e) = ([s.zero(); N], [s.zero(); N], [s.zero(); N]);
    for i in 0..N {
        // The second operand is kept where it is NaN.
        a[i] = s.max(s.sub(s.zero(), v[i]), v[i]);
        let q = s.mul(v[i], v[i]);
        let mut p = s.splat(ERF.near[0]);
        for c in 1..ERF.near.len() {
            p = s.add(s.mul(p, q), s.splat(ERF.near[c]));
        }
        small[i] = s.mul(v[i], s.add(s.mul(p, q), s.splat(FRAC_2_SQRT_PI)));
    }
    let [c8, c7, c6, c5, c4, c3, c2, c1, c0] = ERF.far;
    for i in 0..N {
        let b = s.min(s.splat(ERF.most), a[i]);
        let square = s.mul(b, b);
        let fourth = s.mul(square, square);
        let high = s.add(s.mul(term(s, b, c7, c6), square), term(s, b, c5, c4));
        let low = s.add(s.mul(term(s, b, c3, c2), square), term(s, b, c1, c0));
        e[i] = s.add(s.mul(s.add(s.mul(s.splat(c8), fourth), high), fourth), low);
    }
    exp(s, &mut e);
    for i in 0..N {
        // Where this counts, numbers are larger than 1, and their signs remain.
        let sign = s.clamp(v[i], s.splat(-1.0), s.splat(1.0));
        let large = s.mul(s.sub(s.splat(1.0), e[i]), sign);
        v[i] = s.pick(a[i], s.splat(1.0), small[i], large);
    }
}

/// `b * high + low`, rounded after each step.
#[inline(always)]
fn term<S: Simd>(s: S, b: S::V, high: f32, low: f32) -> S::V {
    s.add(s.mul(s.splat(high), b), s.splat(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_have_the_bits_of_the_functions_at_every_width() {
        let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, 1.0, -1.0, 1e-40, 3e38, -4.0];
        for n in [1, 15, 16, 33, 64, 100, 3001] {
            let x: Vec<f32> =
                special.into_iter().chain((0..n).map(|i| (i * 7919 % 2003) as f32 / 160.0 - 6.25)).collect();
            for width in Width::all() {
                for (vectors, function) in
                    [(erf as fn(&[f32], &mut [f32]), erf_f32 as fn(f32) -> f32), (gelu, gelu_f32)]
                {
                    let mut out = vec![7.0; x.len()];
                    width.limit(|| vectors(&x, &mut out));
                    for (x, out) in x.iter().zip(out) {
                        let expected = function(*x);
                        let same = out.to_bits() == expected.to_bits() || (out.is_nan() && expected.is_nan());
                        assert!(same, "{x} on {width:?}: {out}, expected {expected}");
                    }
                }
            }
        }
    }
}
