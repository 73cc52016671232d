//! `_npi_multinomial`: counts of outcomes of random trials.

use crate::prelude::*;
use crate::random::key;
use mxrt_engine::FailureKind;
use mxrt_kernels::random::Stream;
use std::sync::Arc;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npi_multinomial",
    doc: "How often each outcome occurs among n trials, in int64; outcomes are along the last axis.",
    inputs: Inputs::ByAttrs(|attrs| if attrs.opt_floats("pvals").is_some() { &[] } else { &["a"] }),
    attrs: &[
        AttrDef::required("n", AttrKind::IntFrom(0), "Number of trials."),
        AttrDef::new("pvals", AttrKind::OptFloats, "None", "Probabilities; those of the input if None.").wide(),
        AttrDef::new("size", AttrKind::OptShape, "None", "Shape of the result before the axis of outcomes."),
    ],
    infer_shape: |shapes| {
        let outcomes = match shapes.attrs.opt_floats("pvals") {
            Some(pvals) => pvals.len(),
            None => match shapes.input(0) {
                Some(shape) => shape.size(),
                None => return Ok(()),
            },
        };
        let mut size = extents("size", shapes.attrs.opt_ints("size").unwrap_or(&[]))?;
        size.push(outcomes);
        checked_product(&size)?;
        shapes.set_output(0, Shape::new(&size))
    },
    infer_dtype: |dtypes| dtypes.set_output(0, DType::I64),
    form: |attrs, signature| {
        let (trials, probabilities) = (trials(attrs, signature)?, attrs.opt_floats("pvals").map(Arc::from));
        Ok(Some(KernelForm::Draw(DrawForm::Outcomes { trials, probabilities })))
    },
    bind: |attrs, signature| {
        let trials = trials(attrs, signature)?;
        let given: Option<Vec<f64>> = attrs.opt_floats("pvals").map(<[f64]>::to_vec);
        Ok(kernel_fn(signature, move |call| {
            let weights = match &given {
                Some(pvals) => ReadElements::Borrowed(&pvals[..]),
                None => ReadElements::Made(floats(call.par, &call.inputs[0])?),
            };
            let sum: f64 = weights.iter().sum();
            if weights.iter().any(|w| !(0.0..=1.0).contains(w)) || sum > 1.0 + 1e-5 {
                return Err(probabilities_error());
            }
            let RandomKey { seed, position: at } = key(call)?;
            let out = elements_mut::<i64>(&mut call.outputs[0])?;
            out.fill(0);
            for (i, counts) in out.chunks_mut(weights.len().max(1)).enumerate() {
                let mut stream = Stream::new(seed, at, i as u64);
                let (mut left, mut probability) = (trials as u64, 1.0);
                // Of the trials with none of the outcomes before, some have this one.
                for (count, weight) in counts.iter_mut().zip(weights.iter()) {
                    let drawn =
                        if left == 0 { 0 } else { stream.binomial(left, (weight / probability).clamp(0.0, 1.0)) };
                    *count = drawn as i64;
                    left -= drawn;
                    probability -= weight;
                }
                // What the probabilities leave belongs to the last outcome.
                counts.iter_mut().rev().take(1).for_each(|last| *last += left as i64);
            }
            Ok(())
        }))
    },
    random: true,
    ..OpDef::BASE
}];

/// Trials of one draw: beyond these, logarithms of factorials lose the digits that it needs.
const MOST_TRIALS: usize = 1 << 32;

/// The error of numbers that are no probabilities of outcomes.
pub fn probabilities_error() -> OpError {
    OpError::new(FailureKind::Value, "pvals must be probabilities with a sum of at most 1")
}

/// The number of trials, if it can be drawn from these inputs.
fn trials(attrs: &Attrs, signature: &Signature<'_>) -> Result<usize, OpError> {
    let trials = attrs.count("n");
    if trials > MOST_TRIALS {
        return Err(value_error(format!("n={trials} trials are too many; at most {MOST_TRIALS} are drawn in a call")));
    }
    if let Some(array) = signature.inputs.first() {
        check_numeric(array.dtype)?;
    }
    Ok(trials)
}

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    #[test]
    fn counts_of_outcomes_have_their_means_and_variances_however_many_trials() {
        for (n, pvals) in
            [(7.0, "(0.2, 0.5, 0.3)"), (1e9, "(0.2, 0.5, 0.3)"), (4e9, "(0.2, 0.5)"), (1e3, "(0.2, 0.5, 0.3, 0)")]
        {
            let draws = 4000;
            let test =
                OpTest::new("_npi_multinomial").attrs(&[("n", &n.to_string()), ("pvals", pvals), ("size", "(4000,)")]);
            let counts = test.run().values::<i64>();
            let outcomes = counts.len() / draws;
            let chances = if outcomes == 2 { vec![0.2, 0.8] } else { vec![0.2, 0.5, 0.3, 0.0] };
            assert!(counts.chunks(outcomes).all(|counts| counts.iter().sum::<i64>() == n as i64));
            for (k, p) in chances[..outcomes].iter().enumerate() {
                let (mean, variance) = (n * p, n * p * (1.0 - p));
                let off: Vec<f64> = counts.chunks(outcomes).map(|counts| counts[k] as f64 - mean).collect();
                let middle = off.iter().sum::<f64>() / draws as f64;
                assert!(middle.abs() <= 5.0 * (variance / draws as f64).sqrt(), "{n} {pvals} {k}: {middle}");
                let spread = off.iter().map(|v| v * v).sum::<f64>() / draws as f64;
                assert!((spread - variance).abs() <= 0.15 * variance, "{n} {pvals} {k}: {spread}, not {variance}");
            }
        }
    }

    #[test]
    fn trials_without_end_are_refused() {
        let error = OpTest::new("_npi_multinomial").attrs(&[("n", "1000000000000"), ("pvals", "(0.5, 0.5)")]).error();
        assert!(error.message.contains("n=1000000000000 trials"), "{}", error.message);
    }

    #[test]
    fn every_trial_has_one_outcome() {
        let counts =
            OpTest::new("_npi_multinomial").attrs(&[("n", "100"), ("pvals", "(0.5, 0.5)"), ("size", "(2,)")]).run();
        let counts = counts.values::<i64>();
        assert_eq!([counts[0] + counts[1], counts[2] + counts[3]], [100, 100]);
        let counts =
            OpTest::new("_npi_multinomial").attrs(&[("n", "10000"), ("pvals", "(0, 0.1, 0.2, 0.3, 0.4)")]).run();
        for (count, want) in counts.values::<i64>().into_iter().zip([0, 1000, 2000, 3000, 4000]) {
            assert!((count - want).abs() <= want / 5, "{count} of {want}");
        }
    }
}
