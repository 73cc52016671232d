//! Random numbers from a counter: what element `i` of array number `position` gets depends on these
//! two and the seed alone.
//!
//! Philox4x32-10: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1,
//! 2, 3" (SC 2011).

use crate::element::Element;
use crate::par::{Par, chunk_elems, par_chunks_mut};
use crate::scratch::Scratch;

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
        (self.next_u64() >> 11) as f64 * (1.0 / 9007199254740992.0)
    }

    /// Normal with mean 0 and deviation 1 (Box and Muller, one of the pair).
    pub fn normal(&mut self) -> f64 {
        let (u, v) = (self.uniform(), self.uniform());
        (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.uniform()).ln()
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

/// Integers, uniform in low..high; `low` where the range is empty.
pub fn fill_integers<T: Element>(par: &dyn Par, seed: u64, position: u64, low: i64, high: i64, out: &mut [T]) {
    let range = high.wrapping_sub(low) as u64;
    let range = if low < high { range } else { 1 };
    let chunk = chunk_elems::<T>();
    par_chunks_mut(par, out, chunk, |i, out| {
        for (j, out) in out.iter_mut().enumerate() {
            let bits = Stream::new(seed, position, (i * chunk + j) as u64).next_u64();
            // The high half of the product is uniform up to 2^-64.
            let offset = ((bits as u128 * range as u128) >> 64) as i64;
            *out = T::from_i64(low.wrapping_add(offset));
        }
    });
}

/// Different whole numbers below `limit`, each drawn with a probability that falls like its
/// inverse: `round(limit^u) - 1` for uniform `u`, until there are as many as `out` takes. Returns how many
/// draws that took.
///
/// # Panics
/// If there are fewer numbers below `limit` than `out` takes.
pub fn unique_log_uniform(stream: &mut Stream, limit: usize, out: &mut [i64]) -> i64 {
    assert!(out.len() <= limit, "{} different numbers below {limit}", out.len());
    let scale = (limit as f64).ln();
    let (mut seen, mut found, mut draws) = (std::collections::HashSet::new(), 0, 0);
    while found < out.len() {
        let value = ((stream.uniform() * scale).exp().round() as i64 - 1).clamp(0, limit as i64 - 1);
        if seen.insert(value) {
            out[found] = value;
            found += 1;
        }
        draws += 1;
    }
    draws
}

/// A random permutation of `0..out.len()` (Fisher and Yates). Runs in the calling thread.
pub fn permutation(seed: u64, position: u64, out: &mut [usize]) {
    out.iter_mut().enumerate().for_each(|(i, v)| *v = i);
    let mut stream = Stream::new(seed, position, 0);
    for i in (1..out.len()).rev() {
        let j = stream.below(i as u64 + 1) as usize;
        out.swap(i, j);
    }
}

/// The first numbers of a random permutation of `0..n`, in time and memory that follow from how many
/// they are. Runs in the calling thread.
///
/// # Panics
/// If more than `n` are wanted.
pub fn distinct_places(par: &dyn Par, seed: u64, position: u64, n: usize, out: &mut [i64]) {
    assert!(out.len() <= n, "{} different places of {n}", out.len());
    let mut stream = Stream::new(seed, position, 0);
    let mut draw = |i: usize| i + stream.below((n - i) as u64) as usize;
    if out.len() > n / 8 {
        let mut all = Scratch::collect(par, n, 0..n);
        for (i, out) in out.iter_mut().enumerate() {
            all.swap(i, draw(i));
            *out = all[i] as i64;
        }
        return;
    }
    // What the permutation has moved, and to where: the rest is where it began.
    let mut moved = Moved::new(par, out.len());
    for (i, out) in out.iter_mut().enumerate() {
        let j = draw(i);
        *out = moved.at(j) as i64;
        moved.put(j, moved.at(i));
    }
}

/// The few elements of a permutation that are not at their place: a hash table.
struct Moved {
    /// place and element; the place is `usize::MAX` where there is none
    slots: Scratch<[usize; 2]>,
}

impl Moved {
    fn new(par: &dyn Par, most: usize) -> Moved {
        Moved { slots: Scratch::filled(par, (2 * most).next_power_of_two(), [usize::MAX; 2]) }
    }

    /// The slot of a place, or the one that it would have.
    fn slot(&self, place: usize) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = ((place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        while self.slots[slot][0] != place && self.slots[slot][0] != usize::MAX {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn at(&self, place: usize) -> usize {
        let [known, element] = self.slots[self.slot(place)];
        if known == place { element } else { place }
    }

    fn put(&mut self, place: usize, element: usize) {
        let slot = self.slot(place);
        self.slots[slot] = [place, element];
    }
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

    #[test]
    fn few_places_are_the_beginning_of_a_permutation() {
        for n in [1000, 1001] {
            let mut all = vec![0; n];
            distinct_places(&Serial, 7, 3, n, &mut all);
            let mut few = [0; 100];
            distinct_places(&Serial, 7, 3, n, &mut few);
            assert_eq!(few, all[..100], "of {n}: few are looked up, all are moved");
            all.sort_unstable();
            assert!(all.into_iter().eq(0..n as i64));
        }
        // Each ordered pair of five is as frequent as any other.
        let mut counts = [0u32; 25];
        for seed in 0..20_000 {
            let mut pair = [0; 2];
            distinct_places(&Serial, seed, 0, 5, &mut pair);
            counts[(pair[0] * 5 + pair[1]) as usize] += 1;
        }
        for (i, count) in counts.iter().enumerate() {
            let range = if i % 6 == 0 { 0..1 } else { 850..1150 };
            assert!(range.contains(count), "{counts:?}");
        }
        distinct_places(&Serial, 1, 1, usize::MAX >> 1, &mut [0; 40]);
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

    #[test]
    fn a_permutation_holds_every_place_once() {
        let mut out = vec![0; 1000];
        permutation(3, 4, &mut out);
        assert!(out.iter().enumerate().any(|(i, &v)| i != v));
        out.sort_unstable();
        assert!(out.iter().enumerate().all(|(i, &v)| i == v));
    }
}
