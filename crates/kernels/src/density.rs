//! Densities of probability distributions.

use crate::element::Element;
use crate::error::check_len;
use crate::par::{Par, chunk_by_work, par_chunks_mut};

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
    /// The logarithm of the density at `x`.
    fn logarithm(self, x: f64, [a, b]: [f64; 2]) -> f64 {
        match self {
            Density::Uniform => -(b - a).ln(),
            Density::Normal => -0.5 * (x - a) * (x - a) / (b * b) - (std::f64::consts::TAU.sqrt() * b).ln(),
            Density::Gamma => a * b.ln() + (a - 1.0) * x.ln() - b * x - libm::lgamma(a),
            Density::Exponential => a.ln() - a * x,
            Density::Poisson => x * a.ln() - libm::lgamma(x + 1.0) - a,
            Density::NegativeBinomial => {
                let ways = libm::lgamma(x + a) - libm::lgamma(x + 1.0) - libm::lgamma(a);
                ways + a * b.ln() + x * (1.0 - b).ln()
            }
            Density::GeneralizedNegativeBinomial => {
                Density::NegativeBinomial.logarithm(x, [1.0 / b, 1.0 / (a * b + 1.0)])
            }
        }
    }

    /// The density at `x`, without a logarithm where there needs to be none.
    fn at(self, x: f64, [a, b]: [f64; 2]) -> f64 {
        match self {
            Density::Uniform => 1.0 / (b - a),
            Density::Normal => (-0.5 * (x - a) * (x - a) / (b * b)).exp() / (std::f64::consts::TAU.sqrt() * b),
            Density::Exponential => a * (-a * x).exp(),
            _ => self.logarithm(x, [a, b]).exp(),
        }
    }

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
        let chunk = chunk_by_work(40);
        par_chunks_mut(par, out, chunk, |i, out| {
            for (j, out) in out.iter_mut().enumerate() {
                let at = i * chunk + j;
                let parameters = [first[at / many].to_f64(), second.map_or(0.0, |b| b[at / many].to_f64())];
                let x = samples[at].to_f64();
                *out = T::from_f64(if log { self.logarithm(x, parameters) } else { self.at(x, parameters) });
            }
        });
    }
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
