//! `_random_uniform_like` and related operators: random numbers in the shape of another array.

use super::{Distribution, bind_constant, constant_form, parameters};
use crate::prelude::*;

macro_rules! like {
    ($name:literal, $distribution:ident, $attrs:expr, [$first:literal $(, $second:literal)?], $doc:literal) => {
        OpDef {
            name: $name,
            doc: concat!("Numbers drawn from ", $doc, ", in the shape and dtype of data."),
            attrs: $attrs,
            inputs_before_attrs: 0,
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
    like!(
        "_random_uniform_like",
        Uniform,
        &[parameter("low", "0", "Lower end."), parameter("high", "1", "Upper end, not included.")],
        ["low", "high"],
        "a uniform distribution"
    ),
    like!(
        "_random_normal_like",
        Normal,
        &[parameter("loc", "0", "Mean."), parameter("scale", "1", "Deviation.")],
        ["loc", "scale"],
        "a normal distribution"
    ),
    like!(
        "_random_exponential_like",
        Exponential,
        &[parameter("lam", "1", "Rate.")],
        ["lam"],
        "an exponential distribution"
    ),
    like!(
        "_random_gamma_like",
        Gamma,
        &[parameter("alpha", "1", "Shape."), parameter("beta", "1", "Scale.")],
        ["alpha", "beta"],
        "a gamma distribution"
    ),
    like!("_random_poisson_like", Poisson, &[parameter("lam", "1", "Mean.")], ["lam"], "a Poisson distribution"),
    like!(
        "_random_negative_binomial_like",
        NegativeBinomial,
        &[
            AttrDef::new("k", AttrKind::Int, "1", "Number of successes."),
            parameter("p", "1", "Probability of a success."),
        ],
        ["k", "p"],
        "a negative binomial distribution"
    ),
    like!(
        "_random_generalized_negative_binomial_like",
        GeneralizedNegativeBinomial,
        &[parameter("mu", "1", "Mean."), parameter("alpha", "1", "Dispersion.")],
        ["mu", "alpha"],
        "a negative binomial distribution, given by mean and dispersion"
    ),
];

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn samples_have_the_mean_of_their_distribution() {
        for (op, attrs, mean) in [
            ("_random_exponential_like", vec![("lam", "2")], 0.5),
            ("_random_gamma_like", vec![("alpha", "2"), ("beta", "1.5")], 3.0),
            ("_random_poisson_like", vec![("lam", "3")], 3.0),
            ("_random_negative_binomial_like", vec![("k", "4"), ("p", "0.5")], 4.0),
            ("_random_generalized_negative_binomial_like", vec![("mu", "2"), ("alpha", "0.3")], 2.0),
        ] {
            let test = OpTest::new(op).attrs(&attrs);
            let y = f32s(&test.f32([20000], &[0.0; 20000]).run(), [20000]);
            let got = y.iter().sum::<f32>() / 20000.0;
            assert!((got - mean).abs() < 0.1, "{op}: mean {got}");
        }
        assert!(OpTest::new("_random_poisson_like").i32([1], &[0]).error().message.contains("int32"));
    }
}
