//! Densities of probability distributions.

use crate::element::Element;
use crate::error::check_len;
use crate::math::{exp_f64, ln_f64};
use crate::par::{Par, chunk_by_work, par_chunks_mut};
use crate::vectorize::{Loop, vectorize};

/// A distribution; its parameters are passed separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Density {
    /// Lower and upper end. The density is the same beyond them, as in MXNet.
    Uniform,
    /// Mean and deviation.
    Normal,
    /// Shape and rate.
    Gamma,
    /// Rate.
    Exponential,
    /// Mean.
    Poisson,
    /// Limit of failures, and their probability.
    NegativeBinomial,
    /// Mean and dispersion.
    GeneralizedNegativeBinomial,
}

impl Density {
    /// Densities of `samples`, or their logarithms. There are equally many samples for each element
    /// of the parameters; `second` is empty where there is one parameter.
    ///
    /// # Panics
    /// If the lengths contradict each other.
    pub fn run<T: Element>(
        self,
        par: &dyn Par,
        log: bool,
        samples: &[T],
        first: &[T],
        second: Option<&[T]>,
        out: &mut [T],
    ) {
        check_len("the output", out.len(), samples.len());
        if out.is_empty() {
            return;
        }
        let many = samples.len() / first.len();
        check_len("the samples", samples.len(), first.len() * many);
        check_len("the second parameter", second.map_or(first.len(), <[T]>::len), first.len());
        let chunk = chunk_by_work(self.work());
        par_chunks_mut(par, out, chunk, |i, out| {
            let mut at = i * chunk;
            let mut rest = out;
            while !rest.is_empty() {
                let which = at / many;
                let (out, after) = rest.split_at_mut(((which + 1) * many - at).min(rest.len()));
                let given = [first[which].to_f64(), second.map_or(0.0, |b| b[which].to_f64())];
                vectorize(Run { density: self, log, given, samples: &samples[at..at + out.len()], out });
                at += out.len();
                rest = after;
            }
        });
    }

    /// Simple operations that a sample takes.
    fn work(self) -> usize {
        match self {
            Density::Uniform => 1,
            Density::Normal | Density::Exponential | Density::Gamma => 8,
            _ => 40,
        }
    }
}

/// Samples with the same parameters.
struct Run<'a, T> {
    density: Density,
    log: bool,
    given: [f64; 2],
    samples: &'a [T],
    out: &'a mut [T],
}

impl<T: Element> Run<'_, T> {
    /// Computes densities from numbers that all samples share.
    #[inline(always)]
    fn each<D: At<N>, const N: usize>(self, shared: [f64; N]) {
        // A closure of this size would not be inlined, and not be vectorised.
        for (out, x) in self.out.iter_mut().zip(self.samples) {
            *out = T::from_f64(D::at(x.to_f64(), shared));
        }
    }

    /// Computes densities by their logarithms.
    #[inline(always)]
    fn logarithms<D: At<N>, const N: usize>(self, shared: [f64; N]) {
        if self.log { self.each::<D, N>(shared) } else { self.each::<ExpOf<D>, N>(shared) }
    }
}

impl<T: Element> Loop for Run<'_, T> {
    #[inline(always)]
    fn run(self) {
        let [a, b] = self.given;
        let failures = |k: f64, p: f64| [k, libm::lgamma(k), k * p.ln(), (1.0 - p).ln()];
        match (self.density, self.log) {
            (Density::Uniform, false) => self.out.fill(T::from_f64(1.0 / (b - a))),
            (Density::Uniform, true) => self.out.fill(T::from_f64(-(b - a).ln())),
            (Density::Normal, false) => self.each::<Normal, 3>([a, b * b, std::f64::consts::TAU.sqrt() * b]),
            (Density::Normal, true) => {
                self.each::<NormalLogarithm, 3>([a, b * b, (std::f64::consts::TAU.sqrt() * b).ln()]);
            }
            (Density::Exponential, false) => self.each::<Exponential, 1>([a]),
            (Density::Exponential, true) => self.each::<ExponentialLogarithm, 2>([a, a.ln()]),
            (Density::Gamma, _) => self.logarithms::<Gamma, 4>([a * b.ln(), a - 1.0, b, libm::lgamma(a)]),
            (Density::Poisson, _) => self.logarithms::<Poisson, 2>([a, a.ln()]),
            (Density::NegativeBinomial, _) => self.logarithms::<Failures, 4>(failures(a, b)),
            (Density::GeneralizedNegativeBinomial, _) => {
                self.logarithms::<Failures, 4>(failures(1.0 / b, 1.0 / (a * b + 1.0)));
            }
        }
    }
}

/// A density at a sample, or its logarithm, from numbers that all samples share.
trait At<const N: usize> {
    fn at(x: f64, shared: [f64; N]) -> f64;
}

/// The density of which another one is the logarithm.
struct ExpOf<D>(std::marker::PhantomData<D>);

impl<D: At<N>, const N: usize> At<N> for ExpOf<D> {
    #[inline(always)]
    fn at(x: f64, shared: [f64; N]) -> f64 {
        exp_f64(D::at(x, shared))
    }
}

/// Defines densities, whose functions unlike closures can be inlined always.
macro_rules! densities {
    ($($name:ident($x:ident, [$($shared:ident),*]: $count:literal) $body:expr;)*) => {
        $(
            struct $name;

            impl At<$count> for $name {
                #[inline(always)]
                fn at($x: f64, [$($shared),*]: [f64; $count]) -> f64 {
                    $body
                }
            }
        )*
    };
}

densities! {
    Normal(x, [mean, square, width]: 3) exp_f64(-0.5 * (x - mean) * (x - mean) / square) / width;
    NormalLogarithm(x, [mean, square, height]: 3) -0.5 * (x - mean) * (x - mean) / square - height;
    Exponential(x, [rate]: 1) rate * exp_f64(-rate * x);
    ExponentialLogarithm(x, [rate, height]: 2) height - rate * x;
    Gamma(x, [height, power, rate, norm]: 4) height + power * ln_f64(x) - rate * x - norm;
    Poisson(x, [mean, logarithm]: 2) x * logarithm - libm::lgamma(x + 1.0) - mean;
    Failures(x, [limit, ways, certain, other]: 4)
        libm::lgamma(x + limit) - libm::lgamma(x + 1.0) - ways + certain + x * other;
}

/// Densities of Dirichlet distributions, or their logarithms: `samples` has vectors of `k` numbers,
/// equally many for each of those of `alpha`.
///
/// # Panics
/// If the lengths contradict each other.
pub fn dirichlet<T: Element>(par: &dyn Par, log: bool, k: usize, samples: &[T], alpha: &[T], out: &mut [T]) {
    check_len("the samples", samples.len(), out.len() * k);
    if out.is_empty() {
        return;
    }
    let vectors = alpha.len().checked_div(k).unwrap_or(1).max(1);
    let many = out.len() / vectors;
    check_len("the output", out.len(), vectors * many);
    let chunk = chunk_by_work(40 * k.max(1));
    par_chunks_mut(par, out, chunk, |i, out| {
        for (j, out) in out.iter_mut().enumerate() {
            let at = i * chunk + j;
            let alpha = alpha[at / many * k..][..k].iter().map(|a| a.to_f64());
            let sample = samples[at * k..][..k].iter().map(|x| x.to_f64());
            let weighted: f64 = alpha.clone().zip(sample).map(|(a, x)| (a - 1.0) * x.ln()).sum();
            let normalizer = libm::lgamma(alpha.clone().sum()) - alpha.map(libm::lgamma).sum::<f64>();
            let logarithm = weighted + normalizer;
            *out = T::from_f64(if log { logarithm } else { logarithm.exp() });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;
    use crate::testing::Threads;

    #[test]
    fn densities_add_up_to_one() {
        let cases = [
            (Density::Normal, [0.5, 1.5], -20.0, 0.01),
            (Density::Gamma, [2.5, 1.5], 1e-9, 0.01),
            (Density::Exponential, [0.7, 0.0], 0.005, 0.01),
            (Density::Poisson, [3.5, 0.0], 0.0, 1.0),
            (Density::NegativeBinomial, [2.5, 0.4], 0.0, 1.0),
            (Density::GeneralizedNegativeBinomial, [1.5, 0.4], 0.0, 1.0),
        ];
        for (density, [a, b], start, step) in cases {
            let samples: Vec<f64> = (0..4000).map(|i| start + f64::from(i) * step).collect();
            let run = |log: bool| {
                let mut out = vec![0.0; samples.len()];
                density.run(&Threads(2), log, &samples, &[a], Some(&[b]), &mut out);
                out
            };
            let (plain, log) = (run(false), run(true));
            let sum = plain.iter().sum::<f64>() * step;
            assert!((sum - 1.0).abs() < 1e-3, "{density:?}: {sum}");
            assert!(plain.iter().zip(&log).all(|(p, l)| (p - l.exp()).abs() < 1e-12), "{density:?}");
        }
    }

    #[test]
    fn densities_of_infinities_and_nan_are_what_their_formula_gives() {
        let mut out = [0.0f64; 3];
        let samples = [f64::INFINITY, f64::NAN, -1.0];
        Density::Normal.run(&Serial, false, &samples, &[0.0], Some(&[1.0]), &mut out);
        assert!(out[0] == 0.0 && out[1].is_nan() && (out[2] - 0.241_970_724_519_143_37).abs() < 1e-16, "{out:?}");
        Density::Gamma.run(&Serial, false, &[0.0, f64::NAN, -1.0], &[2.0], Some(&[1.0]), &mut out);
        assert!(out[0] == 0.0 && out[1].is_nan() && out[2].is_nan(), "{out:?}");
    }

    #[test]
    fn parameters_are_those_of_the_group() {
        let mut out = [0.0f64; 4];
        Density::Uniform.run(&Serial, false, &[0.0, 9.0, 1.0, 1.0], &[0.0, 1.0], Some(&[2.0, 2.0]), &mut out);
        assert_eq!(out, [0.5, 0.5, 1.0, 1.0]);
        // 3! times the product of the numbers, for alpha = 2 in two dimensions.
        let mut out = [0.0f64; 2];
        dirichlet(&Serial, false, 2, &[0.25, 0.75, 0.5, 0.5], &[2.0, 2.0], &mut out);
        assert!((out[0] - 6.0 * 0.1875).abs() < 1e-12 && (out[1] - 1.5).abs() < 1e-12);
    }
}
