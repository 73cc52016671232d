//! Places drawn at random, and counts of outcomes.

use super::random::CTX;
use crate::prelude::*;
use crate::random::key;
use mxrt_engine::{FailureKind, OpError};
use mxrt_kernels::random::Stream;
use mxrt_tensor::{DType, Shape};

/// Rows of the table.
pub static OPS: &[OpDef] = &[CHOICE, MULTINOMIAL];

/// Trials of one call: each is drawn.
const MOST_TRIALS: usize = 1 << 32;

const CHOICE: OpDef = OpDef {
    name: "_npi_choice",
    doc: "Places drawn from an array, or from as many as a says, with or without replacement, and with \
          weights if there are any; in int64.",
    inputs: Inputs::ByAttrs(|attrs| match (attrs.opt_int("a").is_none(), attrs.bool("weighted")) {
        (false, false) => &[],
        (true, true) => &["input1", "input2"],
        _ => &["input1"],
    }),
    attrs: &[
        AttrDef::required("a", AttrKind::OptInt, "Number of places; the length of the first input if None."),
        AttrDef::required("size", AttrKind::OptShape, "Shape of the result; a scalar if None."),
        CTX,
        AttrDef::new("replace", AttrKind::Bool, "True", "Whether a place can be drawn again."),
        AttrDef::new("weighted", AttrKind::Bool, "False", "Whether the last input has the weights."),
    ],
    infer_shape: |shapes| {
        let size = extents("size", shapes.attrs.opt_ints("size").unwrap_or(&[]))?;
        checked_product(&size)?;
        shapes.set_output(0, Shape::new(&size))
    },
    infer_dtype: |dtypes| dtypes.set_output(0, DType::I64),
    bind: |attrs, signature| {
        let (weighted, replace) = (attrs.bool("weighted"), attrs.bool("replace"));
        let n = match attrs.opt_int("a") {
            Some(a) => usize::try_from(a).ok(),
            None => signature.inputs.first().map(|t| t.shape.size()),
        };
        let n = n.filter(|n| *n < 1 << 40).ok_or_else(|| value_error("a must not be negative"))?;
        let count = signature.outputs[0].shape.size();
        let weights = if weighted { Some(signature.inputs.len() - 1) } else { None };
        if let Some(weights) = weights {
            check_numeric(signature.inputs[weights].dtype)?;
            if signature.inputs[weights].shape.size() != n {
                return Err(shape_error(format!(
                    "there are {} weights for {n} places",
                    signature.inputs[weights].shape.size()
                )));
            }
        }
        if count > 0 && (n == 0 || (!replace && count > n)) {
            return Err(value_error(format!(
                "cannot take {count} places out of {n}{}",
                if replace { "" } else { " without replacement" }
            )));
        }
        Ok(kernel_fn(signature, move |call| {
            let weights = weights.map(|i| floats(&call.inputs[i])).transpose()?;
            let RandomKey { seed, position: at } = key(call)?;
            let out = elements_mut::<i64>(&mut call.outputs[0])?;
            draw_places(n, weights.as_deref(), replace, out, |i| Stream::new(seed, at, i as u64))
        }))
    },
    random: true,
    ..OpDef::BASE
};

fn draw_places(
    n: usize,
    weights: Option<&[f64]>,
    replace: bool,
    out: &mut [i64],
    stream: impl Fn(usize) -> Stream,
) -> Result<(), OpError> {
    if let Some(wrong) = weights.and_then(|w| w.iter().find(|w| !(**w >= 0.0 && w.is_finite()))) {
        return Err(OpError::new(FailureKind::Value, format!("{wrong} is not a probability")));
    }
    match (weights, replace) {
        (None, true) => {
            for (i, out) in out.iter_mut().enumerate() {
                *out = ((stream(i).uniform() * n as f64) as usize).min(n - 1) as i64;
            }
        }
        (Some(weights), true) => {
            let sums = running_sums(weights);
            let total = sums.last().copied().unwrap_or(0.0);
            for (i, out) in out.iter_mut().enumerate() {
                let u = stream(i).uniform() * total;
                *out = sums.partition_point(|sum| *sum <= u).min(n - 1) as i64;
            }
        }
        (weights, false) => {
            // The largest of keys that are exponential with the weight as their rate are such a draw.
            let mut keys: Vec<(f64, usize)> =
                (0..n).map(|i| (stream(i).exponential() / weights.map_or(1.0, |w| w[i]), i)).collect();
            keys.sort_by(|a, b| a.0.total_cmp(&b.0));
            out.iter_mut().zip(keys).for_each(|(out, (_, place))| *out = place as i64);
        }
    }
    Ok(())
}

fn running_sums(weights: &[f64]) -> Vec<f64> {
    let mut sum = 0.0;
    weights
        .iter()
        .map(|w| {
            sum += w;
            sum
        })
        .collect()
}

const MULTINOMIAL: OpDef = OpDef {
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
    bind: |attrs, signature| {
        let trials = attrs.count("n");
        if trials > MOST_TRIALS {
            return Err(value_error(format!(
                "n={trials} trials are too many; at most {MOST_TRIALS} are drawn in a call"
            )));
        }
        let given: Option<Vec<f64>> = attrs.opt_floats("pvals").map(<[f64]>::to_vec);
        if let Some(array) = signature.inputs.first() {
            check_numeric(array.dtype)?;
        }
        Ok(kernel_fn(signature, move |call| {
            let weights = match &given {
                Some(pvals) => pvals.clone(),
                None => floats(&call.inputs[0])?,
            };
            let sum: f64 = weights.iter().sum();
            if weights.iter().any(|w| !(0.0..=1.0).contains(w)) || sum > 1.0 + 1e-5 {
                return Err(OpError::new(FailureKind::Value, "pvals must be probabilities with a sum of at most 1"));
            }
            let RandomKey { seed, position: at } = key(call)?;
            let sums = running_sums(&weights);
            let out = elements_mut::<i64>(&mut call.outputs[0])?;
            out.fill(0);
            for (i, counts) in out.chunks_mut(weights.len().max(1)).enumerate() {
                let mut stream = Stream::new(seed, at, i as u64);
                let last = counts.len() - 1;
                // What the probabilities leave belongs to the last outcome.
                for _ in 0..trials {
                    let drawn = stream.uniform();
                    counts[sums.partition_point(|sum| *sum <= drawn).min(last)] += 1;
                }
            }
            Ok(())
        }))
    },
    random: true,
    ..OpDef::BASE
};

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    fn of(op: &str, attrs: &[(&str, &str)]) -> OpTest {
        attrs.iter().fold(OpTest::new(op), |t, (k, v)| t.attr(k, v))
    }

    #[test]
    fn places_are_drawn_with_and_without_replacement() {
        let mut all = of("_npi_choice", &[("a", "5"), ("size", "(5,)"), ("replace", "False")]).run().values::<i64>();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4]);
        let test = of("_npi_choice", &[("a", "3"), ("size", "(50,)"), ("weighted", "True")]);
        assert_eq!(test.f32([3], &[0.0, 1.0, 0.0]).run().values::<i64>(), [1; 50]);
        let error = of("_npi_choice", &[("a", "2"), ("size", "(3,)"), ("replace", "False")]).error();
        assert!(error.message.contains("3 places out of 2"), "{}", error.message);
        let counts = of("_npi_multinomial", &[("n", "100"), ("pvals", "(0.5, 0.5)"), ("size", "(2,)")]).run();
        let counts = counts.values::<i64>();
        assert_eq!([counts[0] + counts[1], counts[2] + counts[3]], [100, 100]);
        let counts = of("_npi_multinomial", &[("n", "10000"), ("pvals", "(0, 0.1, 0.2, 0.3, 0.4)")]).run();
        for (count, want) in counts.values::<i64>().into_iter().zip([0, 1000, 2000, 3000, 4000]) {
            assert!((count - want).abs() <= want / 5, "{count} of {want}");
        }
    }

    #[test]
    fn trials_without_end_are_refused() {
        let error = of("_npi_multinomial", &[("n", "1000000000000"), ("pvals", "(0.5, 0.5)")]).error();
        assert!(error.message.contains("n=1000000000000 trials"), "{}", error.message);
    }
}
