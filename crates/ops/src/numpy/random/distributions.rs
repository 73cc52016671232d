//! Random numbers of a distribution whose parameters are numbers or arrays: a row each.

use super::{CTX, Family, SIZE, arrays, bind, distribution, infer_shape, required, with_noise};
use crate::prelude::*;
use crate::random::DrawMethod;
use mxrt_kernels::random::Formula;

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    distribution!(
        "_npi_uniform",
        ["low" "high"],
        &[LOW, HIGH, SIZE, CTX, DTYPE],
        false,
        |_| None,
        DrawMethod::Formula(Formula::Uniform),
        "Numbers drawn uniformly from a range."
    ),
    distribution!(
        "_npi_uniform_n",
        ["low" "high"],
        &[LOW, HIGH, SIZE, CTX, DTYPE],
        true,
        |_| None,
        DrawMethod::Formula(Formula::Uniform),
        "Numbers drawn uniformly from ranges, size times for each."
    ),
    with_noise!(
        "_npi_normal",
        ["loc" "scale"],
        &[LOC, SCALE, SIZE, CTX, DTYPE],
        false,
        |p| negative("scale must not be negative", p[1]),
        DrawMethod::Formula(Formula::Normal),
        "Numbers drawn from normal distributions."
    ),
    with_noise!(
        "_npi_normal_n",
        ["loc" "scale"],
        &[LOC, SCALE, SIZE, CTX, DTYPE],
        true,
        |p| negative("scale must not be negative", p[1]),
        DrawMethod::Formula(Formula::Normal),
        "Numbers drawn from normal distributions, size times for each."
    ),
    distribution!(
        "_npi_gamma",
        ["shape" "scale"],
        &[required("shape", "Shape; an array if None."), SCALE, SIZE, CTX, DTYPE],
        false,
        |p| not_positive("shape must be positive", p[0]).or(not_positive("scale must be positive", p[1])),
        DrawMethod::Draw(|shape, scale, stream| scale * stream.gamma(shape)),
        "Numbers drawn from gamma distributions."
    ),
    distribution!(
        "_npi_logistic",
        ["loc" "scale"],
        &[LOC, SCALE, SIZE, CTX],
        false,
        |p| negative("scale must not be negative", p[1]),
        DrawMethod::Formula(Formula::Logistic),
        "Numbers drawn from logistic distributions."
    ),
    distribution!(
        "_npi_gumbel",
        ["loc" "scale"],
        &[LOC, SCALE, SIZE, CTX],
        false,
        |p| negative("scale must not be negative", p[1]),
        DrawMethod::Formula(Formula::Gumbel),
        "Numbers drawn from Gumbel distributions."
    ),
    with_noise!(
        "_npi_rayleigh",
        ["scale"],
        &[optional("scale", "1", "Scale; an array if None."), SIZE, CTX],
        false,
        |p| negative("scale must not be negative", p[0]),
        DrawMethod::Formula(Formula::Rayleigh),
        "Numbers drawn from Rayleigh distributions."
    ),
    with_noise!(
        "_npi_exponential",
        ["scale"],
        &[optional("scale", "1", "Scale; an array if None."), SIZE, CTX],
        false,
        |p| negative("scale must not be negative", p[0]),
        DrawMethod::Formula(Formula::Scaled),
        "Numbers drawn from exponential distributions."
    ),
    with_noise!(
        "_npi_weibull",
        ["a"],
        &[optional("a", "None", "Shape; an array if None."), SIZE, CTX],
        false,
        |p| not_positive("a must be positive", p[0]),
        DrawMethod::Formula(Formula::Weibull),
        "Numbers drawn from Weibull distributions of scale 1."
    ),
    with_noise!(
        "_npi_pareto",
        ["a"],
        &[optional("a", "None", "Shape; an array if None."), SIZE, CTX],
        false,
        |p| not_positive("a must be positive", p[0]),
        DrawMethod::Formula(Formula::Pareto),
        "Numbers drawn from Pareto distributions of the second kind."
    ),
    distribution!(
        "_npi_powerd",
        ["a"],
        &[optional("a", "None", "Exponent, plus 1; an array if None."), SIZE],
        false,
        |p| not_positive("a must be positive", p[0]),
        DrawMethod::Formula(Formula::Power),
        "Numbers between 0 and 1 drawn from power distributions."
    ),
];

const DTYPE: AttrDef =
    AttrDef::new("dtype", AttrKind::OptDType(&["float16", "float32", "float64"]), "float32", "dtype of the result.");

const fn optional(name: &'static str, default: &'static str, doc: &'static str) -> AttrDef {
    AttrDef::new(name, AttrKind::OptFloat, default, doc)
}

fn negative(what: &'static str, value: f64) -> Option<&'static str> {
    (value < 0.0).then_some(what)
}

fn not_positive(what: &'static str, value: f64) -> Option<&'static str> {
    (value <= 0.0).then_some(what)
}

const LOW: AttrDef = required("low", "Lower end; an array if None.");
const HIGH: AttrDef = required("high", "Upper end, not included; an array if None.");
const LOC: AttrDef = required("loc", "Centre; an array if None.");
const SCALE: AttrDef = required("scale", "Scale; an array if None.");

#[cfg(test)]
mod tests {
    use crate::testing::{Array, OpTest, f32s};

    fn moments(array: &Array) -> (f64, f64) {
        let y: Vec<f64> = f32s(array, [20000]).into_iter().map(f64::from).collect();
        let mean = y.iter().sum::<f64>() / y.len() as f64;
        (mean, (y.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / y.len() as f64).sqrt())
    }

    #[test]
    fn samples_have_the_moments_of_their_distribution() {
        let pi = std::f64::consts::PI;
        for (op, attrs, mean, deviation) in [
            ("_npi_uniform", vec![("low", "-1"), ("high", "3")], 1.0, 4.0 / 12f64.sqrt()),
            ("_npi_normal", vec![("loc", "2"), ("scale", "0.5")], 2.0, 0.5),
            ("_npi_gamma", vec![("shape", "2"), ("scale", "1.5")], 3.0, 2f64.sqrt() * 1.5),
            ("_npi_logistic", vec![("loc", "1"), ("scale", "0.5")], 1.0, 0.5 * pi / 3f64.sqrt()),
            ("_npi_gumbel", vec![("loc", "0"), ("scale", "0.5")], 0.5 * 0.5772, 0.5 * pi / 6f64.sqrt()),
            ("_npi_rayleigh", vec![("scale", "1")], (pi / 2.0).sqrt(), (2.0 - pi / 2.0).sqrt()),
            ("_npi_exponential", vec![("scale", "0.5")], 0.5, 0.5),
            ("_npi_weibull", vec![("a", "1")], 1.0, 1.0),
            ("_npi_pareto", vec![("a", "6")], 0.2, (6f64 / 4.0).sqrt() / 5.0),
            ("_npi_powerd", vec![("a", "2")], 2.0 / 3.0, (2f64 / 4.0).sqrt() / 3.0),
        ] {
            let (m, d) = moments(&OpTest::new(op).attrs(&attrs).attr("size", "(20000,)").run());
            assert!((m - mean).abs() < 0.05 && (d - deviation).abs() < 0.05, "{op}: mean {m}, deviation {d}");
        }
    }

    #[test]
    fn parameters_may_be_arrays() {
        let y = OpTest::new("_npi_uniform")
            .attrs(&[("low", "None"), ("high", "None")])
            .f32([2], &[0.0, 10.0])
            .f32([2, 1], &[1.0, 11.0])
            .run();
        let y = f32s(&y, [2, 2]);
        assert!((0.0..1.0).contains(&y[0]) && (1.0..=10.0).contains(&y[1]) && (10.0..11.0).contains(&y[3]), "{y:?}");
        let y = OpTest::new("_npi_normal_n")
            .attrs(&[("loc", "None"), ("scale", "0"), ("size", "(2,)")])
            .f32([3], &[1.0, 2.0, 3.0])
            .run();
        assert_eq!(f32s(&y, [2, 3]), [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
        let error = OpTest::new("_npi_normal").attrs(&[("loc", "0"), ("scale", "None")]).f32([2], &[1.0, -1.0]).error();
        assert!(error.message.contains("scale must not be negative"), "{}", error.message);
        let error = OpTest::new("_npi_normal")
            .attrs(&[("loc", "0"), ("scale", "None"), ("size", "(3,)")])
            .f32([2], &[1.0, 1.0])
            .error();
        assert!(error.message.contains("(3,)"), "{}", error.message);
    }
}
