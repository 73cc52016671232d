//! Random numbers from a counter: what element `i` of array number `position` gets depends on these
//! two and the seed alone.
//!
//! Philox4x32-10: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1,
//! 2, 3" (SC 2011).

mod formula;
mod lanes;
mod places;

pub use formula::{Formula, fill_integers};
pub use places::{distinct_places, permutation, shuffle, unique_log_uniform};

use crate::element::Element;
use crate::math::{cos_f64, ln_f64};
use crate::par::{Par, chunk_elems, par_chunks_mut};

/// One block of Philox4x32-10.
pub fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let a = 0xd251_1f53_u64 * counter[0] as u64;
        let b = 0xcd9e_8d57_u64 * counter[2] as u64;
        counter = [(b >> 32) as u32 ^ counter[1] ^ key[0], b as u32, (a >> 32) as u32 ^ counter[3] ^ key[1], a as u32];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    counter
}

/// The numbers that belong to one element: as many as it asks for, without touching those of its
/// neighbours.
#[derive(Clone, Debug)]
pub struct Stream {
    counter: [u32; 4],
    key: [u32; 2],
    block: [u32; 4],
    used: usize,
}

impl Stream {
    /// The numbers of element `element` of array number `position` (both below 2^48).
    pub fn new(seed: u64, position: u64, element: u64) -> Self {
        let counter =
            [0, element as u32, (element >> 32) as u32 & 0xffff | (position as u32) << 16, (position >> 16) as u32];
        Stream { counter, key: [seed as u32, (seed >> 32) as u32], block: [0; 4], used: 4 }
    }

    /// 32 random bits.
    pub fn next_u32(&mut self) -> u32 {
        if self.used == 4 {
            self.block = philox(self.counter, self.key);
            self.counter[0] = self.counter[0].wrapping_add(1);
            self.used = 0;
        }
        self.used += 1;
        self.block[self.used - 1]
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.next_u32() as u64 | (self.next_u32() as u64) << 32
    }

    /// A whole number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Uniform in [0, 1), with 53 bits.
    pub fn uniform(&mut self) -> f64 {
        let (low, high) = (self.next_u32(), self.next_u32());
        uniform(low, high)
    }

    /// Normal with mean 0 and deviation 1 (Box and Muller, one of the pair).
    pub fn normal(&mut self) -> f64 {
        let (u, v) = (self.uniform(), self.uniform());
        normal(u, v)
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        exponential(self.uniform())
    }

    /// Gamma with shape `alpha` > 0 (0 for 0, else NaN) and scale 1: G. Marsaglia, W. Tsang, "A simple
    /// method for generating gamma variables" (2000).
    pub fn gamma(&mut self, alpha: f64) -> f64 {
        if alpha.is_nan() || alpha <= 0.0 || alpha.is_infinite() {
            return if alpha >= 0.0 { alpha } else { f64::NAN };
        }
        if alpha < 1.0 {
            let boost = (1.0 - self.uniform()).powf(1.0 / alpha);
            return self.gamma(alpha + 1.0) * boost;
        }
        let d = alpha - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && (1.0 - self.uniform()).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }

    /// Poisson with mean `lambda` (0 for a negative one, NaN for NaN): products of uniforms below
    /// 10, above it W. Hörmann's transformed rejection PTRS (1993).
    pub fn poisson(&mut self, lambda: f64) -> f64 {
        if lambda.is_nan() || lambda <= 0.0 || lambda.is_infinite() {
            return if lambda <= 0.0 { 0.0 } else { lambda };
        }
        if lambda < 10.0 {
            let (limit, mut product, mut count) = ((-lambda).exp(), self.uniform(), 0.0);
            while product > limit {
                product *= self.uniform();
                count += 1.0;
            }
            return count;
        }
        let b = 0.931 + 2.53 * lambda.sqrt();
        let a = -0.059 + 0.02483 * b;
        let inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
        let v_r = 0.9277 - 3.6224 / (b - 2.0);
        loop {
            let u = self.uniform() - 0.5;
            let v = 1.0 - self.uniform();
            let us = 0.5 - u.abs();
            let k = ((2.0 * a / us + b) * u + lambda + 0.43).floor();
            if us >= 0.07 && v <= v_r {
                return k;
            }
            if k < 0.0 || (us < 0.013 && v > us) {
                continue;
            }
            let left = (v * inverse_alpha / (a / (us * us) + b)).ln();
            if left <= -lambda + k * lambda.ln() - libm::lgamma(k + 1.0) {
                return k;
            }
        }
    }

    /// How many of `trials` succeed, each with probability `p` from 0 to 1. Above 10 expected
    /// successes it is W. Hörmann's transformed rejection BTRS (1993).
    pub fn binomial(&mut self, trials: u64, p: f64) -> u64 {
        if p > 0.5 {
            return trials - self.binomial(trials, 1.0 - p);
        }
        let n = trials as f64;
        if n * p < 10.0 {
            return few_successes(self, n, p) as u64;
        }
        let q = 1.0 - p;
        let deviation = (n * p * q).sqrt();
        let b = 1.15 + 2.53 * deviation;
        let a = -0.0873 + 0.0248 * b + 0.01 * p;
        let alpha = (2.83 + 5.1 / b) * deviation;
        let v_r = 0.92 - 4.2 / b;
        let mode = ((n + 1.0) * p).floor();
        loop {
            let u = self.uniform() - 0.5;
            let v = 1.0 - self.uniform();
            let us = 0.5 - u.abs();
            let k = ((2.0 * a / us + b) * u + n * p + 0.5).floor();
            if !(0.0..=n).contains(&k) {
                continue;
            }
            if us >= 0.07 && v <= v_r {
                return k as u64;
            }
            let left = (v * alpha / (a / (us * us) + b)).ln();
            let factorials = libm::lgamma(mode + 1.0) + libm::lgamma(n - mode + 1.0)
                - libm::lgamma(k + 1.0)
                - libm::lgamma(n - k + 1.0);
            if left <= factorials + (k - mode) * (p / q).ln() {
                return k as u64;
            }
        }
    }
}

/// Uniform in [0, 1), of 64 random bits.
#[inline(always)]
fn uniform(low: u32, high: u32) -> f64 {
    // Both parts and their sum are exact.
    (f64::from(high) * 2_097_152.0 + f64::from(low >> 11)) * (1.0 / 9_007_199_254_740_992.0)
}

/// Normal with mean 0 and deviation 1 (Box and Muller, one of the pair), of two uniform numbers.
#[inline(always)]
fn normal(u: f64, v: f64) -> f64 {
    (2.0 * exponential(u)).sqrt() * cos_f64(std::f64::consts::TAU * v)
}

/// Exponential with mean 1, of a uniform number.
#[inline(always)]
fn exponential(u: f64) -> f64 {
    -ln_f64(1.0 - u)
}

/// The number of successes in a few expected ones: `trials * p` below 10. The trials between two
/// successes are drawn, not each trial.
fn few_successes(stream: &mut Stream, trials: f64, p: f64) -> f64 {
    let failure = (-p).ln_1p();
    let (mut passed, mut count) = (0.0, 0.0);
    loop {
        passed += ((1.0 - stream.uniform()).ln() / failure).floor() + 1.0;
        if passed.is_nan() || passed > trials {
            return count;
        }
        count += 1.0;
    }
}

/// Fills `out` with `f(stream)`, every element from its own [`Stream`].
pub fn fill<T: Element>(
    par: &dyn Par,
    seed: u64,
    position: u64,
    out: &mut [T],
    f: impl Fn(usize, &mut Stream) -> f64 + Sync,
) {
    let chunk = chunk_elems::<T>() / 4;
    par_chunks_mut(par, out, chunk, |i, out| {
        for (j, out) in out.iter_mut().enumerate() {
            let element = i * chunk + j;
            *out = T::from_f64(f(element, &mut Stream::new(seed, position, element as u64)));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads};

    #[test]
    fn philox_gives_its_published_test_vectors() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
        assert_eq!(philox([u32::MAX; 4], [u32::MAX; 2]), [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
        let counter = [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344];
        assert_eq!(philox(counter, [0xa4093822, 0x299f31d0]), [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]);
    }

    /// Mean and variance of what `f` fills; also checks that no split of the loop changes a bit.
    fn moments(f: impl Fn(&dyn Par, &mut [f64])) -> (f64, f64) {
        let mut out = vec![0.0; 100_000];
        f(&Serial, &mut out);
        for par in [&Reverse as &dyn Par, &Threads(3)] {
            let mut again = vec![0.0; out.len()];
            f(par, &mut again);
            assert_eq!(out, again);
        }
        let mean = out.iter().sum::<f64>() / out.len() as f64;
        (mean, out.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / out.len() as f64)
    }

    #[track_caller]
    fn near((mean, variance): (f64, f64), want_mean: f64, want_variance: f64) {
        let slack = 6.0 * (want_variance / 1e5).sqrt();
        assert!((mean - want_mean).abs() < slack, "mean {mean}, expected {want_mean}");
        assert!((variance / want_variance - 1.0).abs() < 0.06, "variance {variance}, expected {want_variance}");
    }

    #[test]
    fn distributions_have_their_moments() {
        near(moments(|par, out| fill(par, 1, 2, out, |_, s| s.uniform())), 0.5, 1.0 / 12.0);
        near(moments(|par, out| fill(par, 1, 3, out, |_, s| s.normal())), 0.0, 1.0);
        near(moments(|par, out| fill_integers(par, 1, 4, -5, 5, out)), -0.5, 99.0 / 12.0);
        near(moments(|par, out| fill(par, 1, 5, out, |_, s| s.exponential())), 1.0, 1.0);
        for alpha in [0.3, 1.0, 7.5] {
            near(moments(|par, out| fill(par, 1, 6, out, |_, s| s.gamma(alpha))), alpha, alpha);
        }
        for lambda in [0.5, 4.0, 30.0, 1000.0] {
            near(moments(|par, out| fill(par, 1, 7, out, |_, s| s.poisson(lambda))), lambda, lambda);
        }
        for (n, p) in
            [(1, 0.3), (40, 0.1), (40, 0.5), (40, 0.9), (1_000_000, 1e-6), (1_000_000_000, 0.25), (1 << 32, 0.999)]
        {
            let (mean, variance) = (n as f64 * p, n as f64 * p * (1.0 - p));
            near(moments(|par, out| fill(par, 1, 8, out, |_, s| s.binomial(n, p) as f64)), mean, variance);
        }
    }

    #[test]
    fn binomial_counts_have_their_probabilities() {
        // Both methods; the statistic has as many degrees of freedom as there are counts.
        for (n, p) in [(12u64, 0.3f64), (60, 0.4)] {
            let mut found = vec![0.0f64; n as usize + 1];
            (0..200_000).for_each(|i| found[Stream::new(3, 9, i).binomial(n, p) as usize] += 1.0);
            let (mut probability, mut statistic, mut counts) = ((1.0 - p).powi(n as i32), 0.0f64, 0.0f64);
            for (k, found) in found.iter().enumerate() {
                let want = probability * 200_000.0;
                if want >= 10.0 {
                    statistic += (found - want) * (found - want) / want;
                    counts += 1.0;
                }
                probability *= (n - k as u64) as f64 / (k + 1) as f64 * p / (1.0 - p);
            }
            assert!(statistic < counts + 5.0 * (2.0 * counts).sqrt(), "{n} {p}: {statistic} for {counts} counts");
        }
        let certain = |p: f64| Stream::new(1, 1, 1).binomial(1000, p);
        assert_eq!([certain(0.0), certain(1.0), Stream::new(1, 1, 1).binomial(0, 0.5)], [0, 1000, 0]);
    }

    #[test]
    fn ranges_hold_in_every_type() {
        let mut out = vec![0i32; 10_000];
        fill_integers(&Serial, 9, 0, 3, 6, &mut out);
        assert!((3..6).all(|v| out.contains(&v)) && out.iter().all(|v| (3..6).contains(v)));
    }

    #[test]
    fn another_seed_or_position_gives_other_numbers() {
        let numbers = |seed, position| {
            let mut out = [0f32; 8];
            fill(&Serial, seed, position, &mut out, |_, s| s.uniform());
            out
        };
        assert_eq!(numbers(1, 2), numbers(1, 2));
        assert_ne!(numbers(1, 2), numbers(1, 3));
        assert_ne!(numbers(1, 2), numbers(2, 2));
        assert_ne!(numbers(1, 1 << 20), numbers(1, 1 << 40));
    }
}
