//! `_random_uniform` and related operators: arrays drawn from one distribution.

use super::{Distribution, bind_constant, constant_form, parameters};
use crate::create::{dtype_from_attr, shape_from_attr};
use crate::prelude::*;

const SHAPE: AttrDef = AttrDef::new("shape", AttrKind::Shape, "None", "Shape of the result.");
const CTX: AttrDef = AttrDef::new("ctx", AttrKind::Str, "", "Where the array is made.");
const DTYPE: AttrDef = AttrDef::new(
    "dtype",
    AttrKind::DType(&["None", "float16", "float32", "float64"]),
    "None",
    "dtype of the result; float32 if not given.",
);

macro_rules! random_op {
    ($name:literal, $aliases:expr, $distribution:ident, [$first:literal $(, $second:literal)?], $attrs:expr, $doc:literal) => {
        OpDef {
            name: $name,
            aliases: $aliases,
            doc: $doc,
            inputs: Inputs::Fixed(&[]),
            attrs: $attrs,
            infer_shape: shape_from_attr,
            infer_dtype: dtype_from_attr,
            bind: |attrs, signature| {
                let [first, second] = parameters(attrs, &[$first $(, $second)?]);
                bind_constant(Distribution::$distribution, first, second, signature)
            },
            form: |attrs, signature| {
                let [first, second] = parameters(attrs, &[$first $(, $second)?]);
                constant_form(Distribution::$distribution, first, second, signature)
            },
            random: true,
            ..OpDef::BASE
        }
    };
}

const fn parameter(name: &'static str, default: &'static str, doc: &'static str) -> AttrDef {
    AttrDef::new(name, AttrKind::Float, default, doc)
}

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    random_op!(
        "_random_uniform",
        &["random_uniform", "uniform"],
        Uniform,
        ["low", "high"],
        &[parameter("low", "0", "Lower end."), parameter("high", "1", "Upper end, not included."), SHAPE, CTX, DTYPE],
        "Numbers drawn uniformly from a range."
    ),
    random_op!(
        "_random_normal",
        &["normal", "random_normal"],
        Normal,
        ["loc", "scale"],
        &[parameter("loc", "0", "Mean."), parameter("scale", "1", "Deviation."), SHAPE, CTX, DTYPE],
        "Numbers drawn from a normal distribution."
    ),
    random_op!(
        "_random_gamma",
        &["random_gamma"],
        Gamma,
        ["alpha", "beta"],
        &[parameter("alpha", "1", "Shape."), parameter("beta", "1", "Scale."), SHAPE, CTX, DTYPE],
        "Numbers drawn from a gamma distribution."
    ),
    random_op!(
        "_random_exponential",
        &["random_exponential"],
        Exponential,
        ["lam"],
        &[parameter("lam", "1", "Rate."), SHAPE, CTX, DTYPE],
        "Numbers drawn from an exponential distribution."
    ),
    random_op!(
        "_random_poisson",
        &["random_poisson"],
        Poisson,
        ["lam"],
        &[parameter("lam", "1", "Mean."), SHAPE, CTX, DTYPE],
        "Numbers drawn from a Poisson distribution."
    ),
    random_op!(
        "_random_negative_binomial",
        &["random_negative_binomial"],
        NegativeBinomial,
        ["k", "p"],
        &[
            AttrDef::new("k", AttrKind::Int, "1", "Number of successes."),
            parameter("p", "1", "Probability of a success."),
            SHAPE,
            CTX,
            DTYPE,
        ],
        "Numbers drawn from a negative binomial distribution: failures before k successes."
    ),
    random_op!(
        "_random_generalized_negative_binomial",
        &["random_generalized_negative_binomial"],
        GeneralizedNegativeBinomial,
        ["mu", "alpha"],
        &[parameter("mu", "1", "Mean."), parameter("alpha", "1", "Dispersion."), SHAPE, CTX, DTYPE],
        "Numbers drawn from a negative binomial distribution, given by mean and dispersion."
    ),
];

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn samples_have_the_moments_of_their_distribution() {
        for (op, attrs, mean, deviation) in [
            ("_random_uniform", [("low", "-1"), ("high", "3")], 1.0, 4.0 / 12f64.sqrt()),
            ("_random_normal", [("loc", "2"), ("scale", "0.5")], 2.0, 0.5),
            ("_random_gamma", [("alpha", "2"), ("beta", "1.5")], 3.0, 2f64.sqrt() * 1.5),
            ("_random_negative_binomial", [("k", "4"), ("p", "0.5")], 4.0, 8f64.sqrt()),
        ] {
            let y = OpTest::new(op).attr("shape", "(20000,)").attrs(&attrs).run();
            let y: Vec<f64> = f32s(&y, [20000]).into_iter().map(f64::from).collect();
            let m = y.iter().sum::<f64>() / y.len() as f64;
            let d = (y.iter().map(|v| (v - m) * (v - m)).sum::<f64>() / y.len() as f64).sqrt();
            assert!((m - mean).abs() < 0.05 && (d - deviation).abs() < 0.05, "{op}: mean {m}, deviation {d}");
        }
    }

    #[test]
    fn parameters_that_make_no_distribution_are_refused() {
        let error = OpTest::new("random_normal").attr("scale", "-1").attr("shape", "(2, 2)").error();
        assert!(error.message.contains("scale must be positive, got 0 and -1"), "{}", error.message);
        for (op, lam, want) in [
            ("random_poisson", "-1", "lam must be 0 or more, got -1"),
            ("random_poisson", "nan", "lam must be 0 or more, got NaN"),
            ("random_exponential", "-1", "lam must be positive, got -1"),
        ] {
            let error = OpTest::new(op).attr("lam", lam).attr("shape", "(2,)").error();
            assert!(error.message.ends_with(want), "{}", error.message);
        }
    }
}
