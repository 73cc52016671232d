//! Connectionist temporal classification: Graves et al., "Connectionist Temporal Classification:
//! Labelling Unsegmented Sequence Data with Recurrent Neural Networks" (2006).

use crate::element::{Element, Float};
use crate::error::check_len;
use crate::par::{Par, par_chunks_mut};
use crate::scratch::Scratch;

/// A batch of sequences of activations.
#[derive(Clone, Copy, Debug)]
pub struct CtcLoss {
    /// Steps of the longest sequence.
    pub steps: usize,
    /// Sequences.
    pub batch: usize,
    /// Symbols, the blank among them.
    pub symbols: usize,
    /// Number of the blank symbol.
    pub blank: usize,
}

/// The target of a sequence, and the number of its steps that count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CtcTarget<'a> {
    /// Symbols.
    pub labels: &'a [usize],
    /// Steps.
    pub steps: usize,
}

impl CtcLoss {
    /// The negative logarithm of the probability of each target, under the softmax of
    /// `activations` (`[steps, batch, symbols]`). A target that does not fit into its steps has
    /// loss 0, as in MXNet.
    ///
    /// # Panics
    /// If the lengths contradict each other, or a target names a symbol or a step that does not
    /// exist.
    pub fn run<T: Element>(&self, par: &dyn Par, activations: &[T], targets: &[CtcTarget<'_>], out: &mut [T]) {
        check_len("the activations", activations.len(), self.steps * self.batch * self.symbols);
        check_len("the targets", targets.len(), self.batch);
        check_len("the output", out.len(), self.batch);
        par_chunks_mut(par, out, 1, |i, out| {
            let loss = self.loss(par, activations, i, &targets[i]);
            out.iter_mut().for_each(|out| *out = T::from_f64(loss));
        });
    }

    fn loss<T: Element>(&self, par: &dyn Par, activations: &[T], sequence: usize, target: &CtcTarget<'_>) -> f64 {
        let labels = target.labels;
        let repeats = labels.windows(2).filter(|pair| pair[0] == pair[1]).count();
        if labels.len() + repeats > target.steps || target.steps == 0 {
            return 0.0;
        }
        // States: a blank before, between and after the labels.
        let blanks = labels.iter().flat_map(|label| [self.blank, *label]);
        let states = Scratch::collect(par, 2 * labels.len() + 1, blanks.chain(std::iter::once(self.blank)));
        let skips = |i: usize| i >= 2 && states[i] != self.blank && states[i] != states[i - 2];
        let mut row = Scratch::<T::Acc>::new(par, self.symbols);
        let mut reached = Scratch::filled(par, states.len(), f64::NEG_INFINITY);
        for step in 0..target.steps {
            let activations = &activations[(step * self.batch + sequence) * self.symbols..][..self.symbols];
            let normalizer = normalizer(activations, &mut row);
            // Backwards, so that what is read still belongs to the step before.
            for i in (0..states.len()).rev() {
                let before = match (step, i) {
                    (0, 0 | 1) => 0.0,
                    (0, _) => f64::NEG_INFINITY,
                    (_, 0) => reached[0],
                    _ if skips(i) => log_sum(log_sum(reached[i], reached[i - 1]), reached[i - 2]),
                    _ => log_sum(reached[i], reached[i - 1]),
                };
                reached[i] = before + activations[states[i]].to_f64() - normalizer;
            }
        }
        -reached.iter().rev().take(2).copied().fold(f64::NEG_INFINITY, log_sum)
    }
}

/// The logarithm of the sum of exponentials of a row.
fn normalizer<T: Element>(x: &[T], row: &mut [T::Acc]) -> f64 {
    T::acc_all(x, row);
    let max = row.iter().copied().fold(<T::Acc as Element>::BOTTOM, |max, v| if v > max { v } else { max });
    let nowhere = std::ptr::null();
    max.to_f64() + T::Acc::exponentials(row, max, [nowhere; 2]).ln()
}

/// `ln(e^a + e^b)`.
fn log_sum(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads, random};

    /// The sum over all paths.
    fn by_definition(loss: CtcLoss, activations: &[f32], sequence: usize, target: &CtcTarget) -> f64 {
        let n = loss.symbols;
        let row = |step: usize| &activations[(step * loss.batch + sequence) * n..][..n];
        let mut total = 0.0;
        for path in 0..n.pow(target.steps as u32) {
            let symbols: Vec<usize> = (0..target.steps).map(|step| path / n.pow(step as u32) % n).collect();
            let mut spelt = symbols.clone();
            spelt.dedup();
            spelt.retain(|s| *s != loss.blank);
            if spelt == target.labels {
                let share = |(step, s): (usize, &usize)| {
                    let sum: f64 = row(step).iter().map(|v| f64::from(*v).exp()).sum();
                    f64::from(row(step)[*s]).exp() / sum
                };
                total += symbols.iter().enumerate().map(share).product::<f64>();
            }
        }
        -total.ln()
    }

    #[test]
    fn the_loss_is_that_of_all_paths_together() {
        let targets: [(&[usize], usize); 5] = [(&[1, 2], 5), (&[2, 2], 4), (&[], 3), (&[1], 1), (&[2, 1, 2], 5)];
        let targets = targets.map(|(labels, steps)| CtcTarget { labels, steps });
        let loss = CtcLoss { steps: 5, batch: 5, symbols: 4, blank: 3 };
        let activations: Vec<f32> = random(100, 1).iter().map(|v| v * 3.0).collect();
        let results = [&Serial as &dyn Par, &Reverse, &Threads(2)].map(|par| {
            let mut out = vec![0f32; 5];
            loss.run(par, &activations, &targets, &mut out);
            out
        });
        for (i, got) in results[0].iter().enumerate() {
            let want = by_definition(loss, &activations, i, &targets[i]);
            assert!((f64::from(*got) - want).abs() < 1e-5 * want.max(1.0), "{i}: {got}, expected {want}");
        }
        assert!(results.iter().all(|r| *r == results[0]));
    }

    #[test]
    fn what_does_not_fit_costs_nothing_and_infinities_do_not_panic() {
        let loss = CtcLoss { steps: 2, batch: 1, symbols: 2, blank: 0 };
        let cost = |activations: [f32; 4], labels: &[usize], steps| {
            let mut out = [7f32];
            loss.run(&Serial, &activations, &[CtcTarget { labels, steps }], &mut out);
            out[0]
        };
        assert_eq!(cost([0.0; 4], &[1, 1], 2), 0.0);
        assert_eq!(cost([0.0; 4], &[], 0), 0.0);
        assert_eq!(cost([0.0, f32::NEG_INFINITY, 0.0, f32::NEG_INFINITY], &[1], 2), f32::INFINITY);
        assert!(cost([f32::NAN; 4], &[1], 2).is_nan());
    }
}
