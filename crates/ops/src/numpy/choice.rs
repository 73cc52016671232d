//! `_npi_choice`: places drawn at random.

use super::random::CTX;
use crate::prelude::*;
use crate::random::key;
use mxrt_engine::FailureKind;
use mxrt_kernels::random::{Formula, Stream, distinct_places, fill_integers};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
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
    form: |attrs, signature| {
        let (below, weights) = places(attrs, signature)?;
        let distinct = !attrs.bool("replace");
        Ok(Some(KernelForm::Draw(match weights {
            Some(weights) => DrawForm::Weighted { weights, distinct },
            None => DrawForm::Places { below, distinct },
        })))
    },
    bind: |attrs, signature| {
        let replace = attrs.bool("replace");
        let (n, weights) = places(attrs, signature)?;
        Ok(kernel_fn(signature, move |call| {
            let weights = weights.map(|i| floats(call.par, &call.inputs[i])).transpose()?;
            let RandomKey { seed, position: at } = key(call)?;
            let out = elements_mut::<i64>(&mut call.outputs[0])?;
            let stream = |i: usize| Stream::new(seed, at, i as u64);
            match (&weights, replace) {
                (None, true) if n <= MOST_IN_DOUBLE => {
                    Formula::Whole.fill_alike(call.par, seed, at, [n as f64, 0.0], out)
                }
                (None, true) => fill_integers(call.par, seed, at, 0, n as i64, out),
                (None, false) => distinct_places(call.par, seed, at, n, out),
                (Some(weights), _) => draw_weighted(call.par, weights, replace, out, stream)?,
            }
            Ok(())
        }))
    },
    random: true,
    ..OpDef::BASE
}];

/// How many places there are, and which input has their weights.
fn places(attrs: &Attrs, signature: &Signature<'_>) -> Result<(usize, Option<usize>), OpError> {
    let n = match attrs.opt_int("a") {
        Some(a) => usize::try_from(a).ok(),
        None => signature.inputs.first().map(|t| t.shape.size()),
    };
    let n = n.ok_or_else(|| value_error(format!("a={} must not be negative", attrs.int("a"))))?;
    let (count, replace) = (signature.outputs[0].shape.size(), attrs.bool("replace"));
    let weights = if attrs.bool("weighted") { Some(signature.inputs.len() - 1) } else { None };
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
    Ok((n, weights))
}

/// The error of weights of which one is none; without it, of weights that are all zero.
pub fn weights_error(wrong: Option<f64>, weights: usize) -> OpError {
    match wrong {
        Some(wrong) => OpError::new(FailureKind::Value, format!("{wrong} is not a probability")),
        None => value_error(format!("all {weights} probabilities are 0: at least one must be positive")),
    }
}

/// Places up to which one is made of 53 bits; any number of them for more.
const MOST_IN_DOUBLE: usize = 1 << 40;

fn draw_weighted(
    par: &dyn Par,
    weights: &[f64],
    replace: bool,
    out: &mut [i64],
    stream: impl Fn(usize) -> Stream,
) -> Result<(), OpError> {
    if let Some(wrong) = weights.iter().find(|w| !(**w >= 0.0 && w.is_finite())) {
        return Err(weights_error(Some(*wrong), weights.len()));
    }
    if !out.is_empty() && weights.iter().all(|w| *w == 0.0) {
        return Err(weights_error(None, weights.len()));
    }
    match replace {
        true => draw_with_replacement(par, weights, out, stream),
        false => draw_without_replacement(par, weights, out, stream),
    }
    Ok(())
}

/// Draws each index by the place of a uniform number among the running sums of the weights.
fn draw_with_replacement(par: &dyn Par, weights: &[f64], out: &mut [i64], stream: impl Fn(usize) -> Stream) {
    let sums = running_sums(par, weights);
    let total = sums.last().copied().unwrap_or(0.0);
    for (i, out) in out.iter_mut().enumerate() {
        let u = stream(i).uniform() * total;
        *out = sums.partition_point(|sum| *sum <= u).min(weights.len() - 1) as i64;
    }
}

/// Draws the indices of the smallest of keys that are exponential with the weight as their rate. As
/// many are kept as are wanted, and twice that while they are collected.
fn draw_without_replacement(par: &dyn Par, weights: &[f64], out: &mut [i64], stream: impl Fn(usize) -> Stream) {
    let wanted = out.len();
    let order = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    let mut kept = Scratch::filled(par, weights.len().min(2 * wanted), (0.0, 0));
    let mut count = 0;
    for (i, weight) in weights.iter().enumerate() {
        if count == kept.len() {
            if wanted == 0 {
                break;
            }
            kept.select_nth_unstable_by(wanted - 1, order);
            count = wanted;
        }
        kept[count] = (stream(i).exponential() / weight, i);
        count += 1;
    }
    let kept = &mut kept[..count];
    kept.sort_unstable_by(order);
    out.iter_mut().zip(&*kept).for_each(|(out, (_, place))| *out = *place as i64);
}

fn running_sums(par: &dyn Par, weights: &[f64]) -> Scratch<f64> {
    let mut sum = 0.0;
    let sums = weights.iter().map(|w| {
        sum += w;
        sum
    });
    Scratch::collect(par, weights.len(), sums)
}

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    #[test]
    fn places_are_drawn_with_and_without_replacement() {
        let mut all = OpTest::new("_npi_choice")
            .attrs(&[("a", "5"), ("size", "(5,)"), ("replace", "False")])
            .run()
            .values::<i64>();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4]);
        let test = OpTest::new("_npi_choice").attrs(&[("a", "3"), ("size", "(50,)"), ("weighted", "True")]);
        assert_eq!(test.f32([3], &[0.0, 1.0, 0.0]).run().values::<i64>(), [1; 50]);
        for n in ["1000000000000", "9223372036854775807"] {
            for replace in ["True", "False"] {
                let few = OpTest::new("_npi_choice")
                    .attrs(&[("a", n), ("size", "(5,)"), ("replace", replace)])
                    .run()
                    .values::<i64>();
                let end = n.parse::<i64>().unwrap();
                assert!(few.iter().all(|place| (0..end).contains(place)) && few[0] != few[1], "{few:?}");
                assert!(few.iter().any(|place| *place > end / 100), "{few:?}");
            }
        }
        let error = OpTest::new("_npi_choice").attrs(&[("a", "-1"), ("size", "(3,)")]).error();
        assert!(error.message.contains("a=-1"), "{}", error.message);
        for replace in ["True", "False"] {
            let none = OpTest::new("_npi_choice").attrs(&[
                ("a", "3"),
                ("size", "(2,)"),
                ("replace", replace),
                ("weighted", "True"),
            ]);
            let error = none.f32([3], &[0.0; 3]).error();
            assert!(error.message.contains("all 3 probabilities are 0"), "{}", error.message);
        }
        let error = OpTest::new("_npi_choice").attrs(&[("a", "2"), ("size", "(3,)"), ("replace", "False")]).error();
        assert!(error.message.contains("3 places out of 2"), "{}", error.message);
    }

    /// Draws pairs of weights 1, 2 and 3: they come in proportion to the weight of the first and that
    /// of the second among the rest.
    #[test]
    fn ordered_pairs_are_as_frequent_as_their_weights_say() {
        let mut counts = [[0; 3]; 3];
        let draws = 6000;
        for seed in 0..draws {
            let test = OpTest::new("_npi_choice").attrs(&[
                ("a", "3"),
                ("size", "(2,)"),
                ("replace", "False"),
                ("weighted", "True"),
            ]);
            let pair = test.seed(seed).f32([3], &[1.0, 2.0, 3.0]).run().values::<i64>();
            counts[pair[0] as usize][pair[1] as usize] += 1;
        }
        for (first, row) in counts.iter().enumerate() {
            for (second, count) in row.iter().enumerate() {
                let [a, b] = [first, second].map(|place| (place + 1) as f64);
                let want = if first == second { 0.0 } else { a / 6.0 * b / (6.0 - a) * draws as f64 };
                assert!(
                    (f64::from(*count) - want).abs() <= 5.0 * want.sqrt(),
                    "{counts:?}, {want} of {first} {second}"
                );
            }
        }
    }
}
