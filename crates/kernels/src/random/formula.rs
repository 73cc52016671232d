//! Numbers that a formula makes of one or two uniform ones, computed in vectors.

use super::lanes::{BLOCK, Words, element_words};
use super::{exponential, normal, uniform};
use crate::element::Element;
use crate::math::{exp_f64, expm1_f64, ln_f64};
use crate::par::{Par, chunk_elems, par_chunks_mut};
use crate::vectorize::{Loop, vectorize};

/// A distribution with up to two parameters, whose numbers take no rejected attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Formula {
    /// Lower and upper end.
    Uniform,
    /// Mean and deviation.
    Normal,
    /// Rate.
    Exponential,
    /// Scale of an exponential distribution.
    Scaled,
    /// Scale.
    Rayleigh,
    /// Shape; the scale is 1.
    Weibull,
    /// Shape, of the second kind.
    Pareto,
    /// Exponent, plus 1.
    Power,
    /// Centre and scale.
    Logistic,
    /// Centre and scale.
    Gumbel,
    /// Probability of 1; it is 0 otherwise.
    Event,
    /// Number of whole numbers from 0 on, up to 2^52.
    Whole,
}

impl Formula {
    /// Fills `out`. Every element gets what [`Stream`](super::Stream) has for it. `parameters` writes
    /// those of as many elements as it is given room for, from the one of this number on.
    pub fn fill<T: Element>(
        self,
        par: &dyn Par,
        seed: u64,
        position: u64,
        out: &mut [T],
        parameters: impl Fn(usize, [&mut [f64]; 2]) + Sync,
    ) {
        let chunk = chunk_elems::<T>() / 4;
        par_chunks_mut(par, out, chunk, |i, out| {
            let mut given = [[0.0; BLOCK]; 2];
            for (j, out) in out.chunks_mut(BLOCK).enumerate() {
                let element = i * chunk + j * BLOCK;
                let [a, b] = &mut given;
                parameters(element, [&mut a[..out.len()], &mut b[..out.len()]]);
                vectorize(NumberBlock { formula: self, seed, position, element: element as u64, given: &given, out });
            }
        });
    }

    /// Fills `out` with numbers that have the same parameters.
    pub fn fill_alike<T: Element>(self, par: &dyn Par, seed: u64, position: u64, given: [f64; 2], out: &mut [T]) {
        self.fill(par, seed, position, out, |_, [a, b]| {
            a.fill(given[0]);
            b.fill(given[1]);
        });
    }
}

/// Some numbers, at most [`BLOCK`].
struct NumberBlock<'a, T> {
    formula: Formula,
    seed: u64,
    position: u64,
    element: u64,
    given: &'a [[f64; BLOCK]; 2],
    out: &'a mut [T],
}

impl<T: Element> NumberBlock<'_, T> {
    #[inline(always)]
    fn each<F: Number>(self) {
        let (mut words, mut values) = (Words::default(), [0.0; BLOCK]);
        element_words(self.seed, self.position, self.element, &mut words);
        let [w0, w1, w2, w3] = &words.0;
        let [a, b] = self.given;
        for j in 0..BLOCK {
            values[j] = F::of(uniform(w0[j], w1[j]), uniform(w2[j], w3[j]), a[j], b[j]);
        }
        self.out.iter_mut().zip(&values).for_each(|(out, v)| *out = T::from_f64(*v));
    }
}

impl<T: Element> Loop for NumberBlock<'_, T> {
    #[inline(always)]
    fn run(self) {
        match self.formula {
            Formula::Uniform => self.each::<Uniform>(),
            Formula::Normal => self.each::<Normal>(),
            Formula::Exponential => self.each::<Exponential>(),
            Formula::Scaled => self.each::<Scaled>(),
            Formula::Rayleigh => self.each::<Rayleigh>(),
            Formula::Weibull => self.each::<Weibull>(),
            Formula::Pareto => self.each::<Pareto>(),
            Formula::Power => self.each::<Power>(),
            Formula::Logistic => self.each::<Logistic>(),
            Formula::Gumbel => self.each::<Gumbel>(),
            Formula::Event => self.each::<Event>(),
            Formula::Whole => self.each::<Whole>(),
        }
    }
}

/// The number that two uniform ones make, and two parameters.
trait Number {
    fn of(u: f64, v: f64, a: f64, b: f64) -> f64;
}

/// Defines numbers, whose functions unlike closures can be inlined always.
macro_rules! numbers {
    ($($name:ident($($arg:pat_param),*) $body:block)*) => {
        $(
            struct $name;

            impl Number for $name {
                #[inline(always)]
                fn of($($arg: f64),*) -> f64 $body
            }
        )*
    };
}

numbers! {
    Uniform(u, _, a, b) { a + (b - a) * u }
    Normal(u, v, a, b) { a + b * normal(u, v) }
    Exponential(u, _, a, _) { exponential(u) / a }
    Scaled(u, _, a, _) { a * exponential(u) }
    Rayleigh(u, _, a, _) { a * (2.0 * exponential(u)).sqrt() }
    Weibull(u, _, a, _) { exp_f64(ln_f64(exponential(u)) * (1.0 / a)) }
    Pareto(u, _, a, _) { expm1_f64(exponential(u) / a) }
    Power(u, _, a, _) { exp_f64(-exponential(u) / a) }
    Logistic(u, v, a, b) {
        let u = above_zero(u, v);
        a + b * (ln_f64(u) - ln_f64(1.0 - u))
    }
    Gumbel(u, v, a, b) { a - b * ln_f64(-ln_f64(above_zero(u, v))) }
    Event(u, _, a, _) { if u < a { 1.0 } else { 0.0 } }
    Whole(u, _, a, _) {
        let whole = (u * a).floor();
        if whole < a { whole } else { a - 1.0 }
    }
}

/// The first of two uniform numbers that is above 0.
#[inline(always)]
fn above_zero(u: f64, v: f64) -> f64 {
    let v = if v > 0.0 { v } else { f64::MIN_POSITIVE };
    if u > 0.0 { u } else { v }
}

/// Fills `out` with integers, uniform in low..high; with `low` where the range is empty.
pub fn fill_integers<T: Element>(par: &dyn Par, seed: u64, position: u64, low: i64, high: i64, out: &mut [T]) {
    let range = if low < high { high.wrapping_sub(low) as u64 } else { 1 };
    let chunk = chunk_elems::<T>();
    par_chunks_mut(par, out, chunk, |i, out| {
        for (j, out) in out.chunks_mut(BLOCK).enumerate() {
            vectorize(Integers { seed, position, element: (i * chunk + j * BLOCK) as u64, low, range, out });
        }
    });
}

/// Some integers, at most [`BLOCK`].
struct Integers<'a, T> {
    seed: u64,
    position: u64,
    element: u64,
    low: i64,
    range: u64,
    out: &'a mut [T],
}

impl<T: Element> Integers<'_, T> {
    /// Computes the integers by the place in the range that 64 random bits mean.
    #[inline(always)]
    fn each(self, place: impl Fn(u64, u64) -> u64) {
        let (mut words, mut places) = (Words::default(), [0; BLOCK]);
        element_words(self.seed, self.position, self.element, &mut words);
        for j in 0..BLOCK {
            places[j] = place(u64::from(words.0[0][j]), u64::from(words.0[1][j]));
        }
        let places = self.out.iter_mut().zip(&places);
        places.for_each(|(out, place)| *out = T::from_i64(self.low.wrapping_add(*place as i64)));
    }
}

impl<T: Element> Loop for Integers<'_, T> {
    #[inline(always)]
    fn run(self) {
        // The high half of the product is uniform up to 2^-64.
        let range = self.range;
        match u32::try_from(range) {
            Ok(range) => self.each(|low, high| {
                let range = u64::from(range);
                (high * range + ((low * range) >> 32)) >> 32
            }),
            Err(_) => self.each(|low, high| ((u128::from(low | high << 32) * u128::from(range)) >> 64) as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Stream, fill};
    use super::*;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads};

    const ALL: [Formula; 12] = [
        Formula::Uniform,
        Formula::Normal,
        Formula::Exponential,
        Formula::Scaled,
        Formula::Rayleigh,
        Formula::Weibull,
        Formula::Pareto,
        Formula::Power,
        Formula::Logistic,
        Formula::Gumbel,
        Formula::Event,
        Formula::Whole,
    ];

    /// The number of a formula, from a stream and functions of the standard library.
    fn drawn(formula: Formula, stream: &mut Stream, [a, b]: [f64; 2]) -> f64 {
        let (u, v) = (stream.uniform(), stream.uniform());
        let e = -(1.0 - u).ln();
        match formula {
            Formula::Uniform => a + (b - a) * u,
            Formula::Normal => a + b * ((2.0 * e).sqrt() * (std::f64::consts::TAU * v).cos()),
            Formula::Exponential => e / a,
            Formula::Scaled => e * a,
            Formula::Rayleigh => a * (2.0 * e).sqrt(),
            Formula::Weibull => e.powf(1.0 / a),
            Formula::Pareto => (e / a).exp_m1(),
            Formula::Power => (-e / a).exp(),
            Formula::Logistic => a + b * (u.ln() - (-u).ln_1p()),
            Formula::Gumbel => a - b * (-u.ln()).ln(),
            Formula::Event => f64::from(u8::from(u < a)),
            Formula::Whole => (u * a).floor(),
        }
    }

    #[test]
    fn numbers_are_those_of_the_streams_however_the_work_is_split() {
        let given = |i: usize| [0.75 + (i % 7) as f64, 1.5 + (i % 5) as f64];
        for formula in ALL {
            let mut want = vec![0f64; 5000];
            fill(&Serial, 9, 3, &mut want, |i, stream| drawn(formula, stream, given(i)));
            for par in [&Serial as &dyn Par, &Reverse, &Threads(3)] {
                let mut got = vec![0f64; want.len()];
                formula.fill(par, 9, 3, &mut got, |first, [a, b]| {
                    (0..a.len()).for_each(|j| [a[j], b[j]] = given(first + j));
                });
                for (i, (got, want)) in got.iter().zip(&want).enumerate() {
                    assert!((got - want).abs() <= 4e-15 * (1.0 + want.abs()), "{formula:?} {i}: {got}, not {want}");
                }
            }
        }
    }

    #[test]
    fn integers_are_the_high_halves_of_products() {
        for (low, high) in [(-5i64, 5i64), (0, 1 << 40), (i64::MIN, i64::MAX), (3, 3), (0, u32::MAX.into())] {
            let mut got = vec![0i64; 300];
            fill_integers(&Threads(2), 4, 5, low, high, &mut got);
            for (i, got) in got.iter().enumerate() {
                let range = if low < high { high.wrapping_sub(low) as u64 } else { 1 };
                let place = Stream::new(4, 5, i as u64).below(range);
                assert_eq!(*got, low.wrapping_add(place as i64), "{low}..{high}, element {i}");
            }
        }
    }
}
