//! Random numbers whose parameters are numbers or arrays that are broadcast.

use super::select::common_shape;
use crate::prelude::*;
use crate::random::key;
use mxrt_engine::{FailureKind, OpError};
use mxrt_kernels::random::{Stream, fill};
use mxrt_kernels::strides::{broadcast, contiguous};
use mxrt_tensor::{DType, PartialShape, Shape};

const SIZE: AttrDef =
    AttrDef::new("size", AttrKind::OptShape, "None", "Shape of the result; that of the parameters if not given.");
pub(super) const CTX: AttrDef = AttrDef::new("ctx", AttrKind::Str, "cpu", "Where the array is made.");
const DTYPE: AttrDef =
    AttrDef::new("dtype", AttrKind::OptDType(&["float16", "float32", "float64"]), "float32", "dtype of the result.");

/// A distribution: the names of its parameters, whether they make one, and a number drawn from it.
struct Family {
    names: &'static [&'static str],
    /// whether every element of `size` is an array of the shape of the parameters
    each: bool,
    check: fn(&[f64]) -> Option<&'static str>,
    draw: fn(&[f64], &mut Stream) -> f64,
}

macro_rules! distribution {
    ($name:literal, [$($parameter:literal)*], $attrs:expr, $each:literal, $check:expr, $draw:expr, $doc:literal) => {
        OpDef {
            name: $name,
            doc: $doc,
            inputs: Inputs::ByAttrs(|attrs| arrays(attrs, &[$($parameter),*])),
            attrs: $attrs,
            infer_shape: |shapes| infer_shape(shapes, $each),
            infer_dtype: |dtypes| {
                let asked = if dtypes.attrs.declares("dtype") { dtypes.attrs.opt_dtype("dtype") } else { None };
                dtypes.set_output(0, asked.unwrap_or(DType::F32))
            },
            bind: |attrs, signature| {
                const FAMILY: Family =
                    Family { names: &[$($parameter),*], each: $each, check: $check, draw: $draw };
                bind(&FAMILY, attrs, signature)
            },
            random: true,
            ..OpDef::BASE
        }
    };
}

/// A distribution of which MXNet keeps the noise, in an output that only files see.
macro_rules! with_noise {
    ($($distribution:tt)*) => {
        OpDef {
            outputs: Outputs::OneNamed("output0"),
            hidden_outputs: |_| 1,
            ..distribution!($($distribution)*)
        }
    };
}

const fn required(name: &'static str, doc: &'static str) -> AttrDef {
    AttrDef::required(name, AttrKind::OptFloat, doc)
}

const fn optional(name: &'static str, default: &'static str, doc: &'static str) -> AttrDef {
    AttrDef::new(name, AttrKind::OptFloat, default, doc)
}

fn negative(what: &'static str, value: f64) -> Option<&'static str> {
    (value < 0.0).then_some(what)
}

fn not_positive(what: &'static str, value: f64) -> Option<&'static str> {
    (value <= 0.0).then_some(what)
}

/// A number above 0 and below 1.
fn open(stream: &mut Stream) -> f64 {
    loop {
        let u = stream.uniform();
        if u > 0.0 {
            return u;
        }
    }
}

fn uniform(p: &[f64], stream: &mut Stream) -> f64 {
    p[0] + (p[1] - p[0]) * stream.uniform()
}

fn normal(p: &[f64], stream: &mut Stream) -> f64 {
    p[0] + p[1] * stream.normal()
}

const LOW: AttrDef = required("low", "Lower end; an array if None.");
const HIGH: AttrDef = required("high", "Upper end, not included; an array if None.");
const LOC: AttrDef = required("loc", "Centre; an array if None.");
const SCALE: AttrDef = required("scale", "Scale; an array if None.");

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    distribution!(
        "_npi_uniform",
        ["low" "high"],
        &[LOW, HIGH, SIZE, CTX, DTYPE],
        false,
        |_| None,
        uniform,
        "Numbers drawn uniformly from a range."
    ),
    distribution!(
        "_npi_uniform_n",
        ["low" "high"],
        &[LOW, HIGH, SIZE, CTX, DTYPE],
        true,
        |_| None,
        uniform,
        "Numbers drawn uniformly from ranges, size times for each."
    ),
    with_noise!(
        "_npi_normal",
        ["loc" "scale"],
        &[LOC, SCALE, SIZE, CTX, DTYPE],
        false,
        |p| negative("scale must not be negative", p[1]),
        normal,
        "Numbers drawn from normal distributions."
    ),
    with_noise!(
        "_npi_normal_n",
        ["loc" "scale"],
        &[LOC, SCALE, SIZE, CTX, DTYPE],
        true,
        |p| negative("scale must not be negative", p[1]),
        normal,
        "Numbers drawn from normal distributions, size times for each."
    ),
    distribution!(
        "_npi_gamma",
        ["shape" "scale"],
        &[required("shape", "Shape; an array if None."), SCALE, SIZE, CTX, DTYPE],
        false,
        |p| not_positive("shape must be positive", p[0]).or(not_positive("scale must be positive", p[1])),
        |p, stream| p[1] * stream.gamma(p[0]),
        "Numbers drawn from gamma distributions."
    ),
    distribution!(
        "_npi_logistic",
        ["loc" "scale"],
        &[LOC, SCALE, SIZE, CTX],
        false,
        |p| negative("scale must not be negative", p[1]),
        |p, stream| {
            let u = open(stream);
            p[0] + p[1] * (u.ln() - (-u).ln_1p())
        },
        "Numbers drawn from logistic distributions."
    ),
    distribution!(
        "_npi_gumbel",
        ["loc" "scale"],
        &[LOC, SCALE, SIZE, CTX],
        false,
        |p| negative("scale must not be negative", p[1]),
        |p, stream| p[0] - p[1] * (-open(stream).ln()).ln(),
        "Numbers drawn from Gumbel distributions."
    ),
    with_noise!(
        "_npi_rayleigh",
        ["scale"],
        &[optional("scale", "1", "Scale; an array if None."), SIZE, CTX],
        false,
        |p| negative("scale must not be negative", p[0]),
        |p, stream| p[0] * (2.0 * stream.exponential()).sqrt(),
        "Numbers drawn from Rayleigh distributions."
    ),
    with_noise!(
        "_npi_exponential",
        ["scale"],
        &[optional("scale", "1", "Scale; an array if None."), SIZE, CTX],
        false,
        |p| negative("scale must not be negative", p[0]),
        |p, stream| p[0] * stream.exponential(),
        "Numbers drawn from exponential distributions."
    ),
    with_noise!(
        "_npi_weibull",
        ["a"],
        &[optional("a", "None", "Shape; an array if None."), SIZE, CTX],
        false,
        |p| not_positive("a must be positive", p[0]),
        |p, stream| stream.exponential().powf(1.0 / p[0]),
        "Numbers drawn from Weibull distributions of scale 1."
    ),
    with_noise!(
        "_npi_pareto",
        ["a"],
        &[optional("a", "None", "Shape; an array if None."), SIZE, CTX],
        false,
        |p| not_positive("a must be positive", p[0]),
        |p, stream| (stream.exponential() / p[0]).exp_m1(),
        "Numbers drawn from Pareto distributions of the second kind."
    ),
    distribution!(
        "_npi_powerd",
        ["a"],
        &[optional("a", "None", "Exponent, plus 1; an array if None."), SIZE],
        false,
        |p| not_positive("a must be positive", p[0]),
        |p, stream| (-stream.exponential() / p[0]).exp(),
        "Numbers between 0 and 1 drawn from power distributions."
    ),
    BERNOULLI,
];

/// The inputs: a name for every parameter that is not given as a number.
fn arrays(attrs: &Attrs, names: &[&str]) -> &'static [&'static str] {
    match names.iter().filter(|name| attrs.opt_float(name).is_none()).count() {
        0 => &[],
        1 => &["input1"],
        _ => &["input1", "input2"],
    }
}

fn infer_shape(shapes: &mut Shapes<'_>, each: bool) -> Result<(), OpError> {
    let known = shapes.inputs.iter().map(PartialShape::complete).collect::<Option<Vec<Shape>>>();
    let size = shapes.attrs.opt_ints("size").map(|size| extents("size", size)).transpose()?;
    let Some(known) = known else { return Ok(()) };
    let common = common_shape(&known)?;
    let out: Shape = match size {
        None => common,
        Some(size) if each => size.into_iter().chain(common.iter().copied()).collect(),
        Some(size) => {
            let whole = Shape::new(&size);
            let fits = common_shape(&[common.clone(), whole.clone()]).is_ok_and(|both| both == whole);
            if !fits {
                return Err(shape_error(format!("parameters of shape {common} cannot be broadcast to size {whole}")));
            }
            whole
        }
    };
    checked_product(&out)?;
    shapes.set_output(0, out)
}

/// A number, or an array with the steps in which it is read.
enum Parameter {
    Number(f64),
    Array(usize, Vec<isize>),
}

/// The parameters of a distribution: numbers of attributes, and the inputs in their order.
fn parameters(family: &Family, attrs: &Attrs, signature: &Signature<'_>) -> Result<Vec<Parameter>, OpError> {
    let mut next = 0;
    let mut parameters = Vec::with_capacity(family.names.len());
    for name in family.names {
        parameters.push(match attrs.opt_float(name) {
            Some(number) => Parameter::Number(number),
            None => {
                let array = signature.inputs.get(next).ok_or_else(wrong_arity)?;
                check_numeric(array.dtype)?;
                next += 1;
                // The steps of `each` are those of the last axes, which are the parameters'.
                Parameter::Array(next - 1, broadcast(&array.shape, &signature.outputs[0].shape))
            }
        });
    }
    Ok(parameters)
}

/// The position in an array that is broadcast to a shape.
fn position(mut place: usize, shape: &[usize], steps: &[isize]) -> usize {
    let mut at = 0;
    for (n, step) in shape.iter().zip(steps).rev() {
        at += place % n * step.unsigned_abs();
        place /= n;
    }
    at
}

fn bind(family: &'static Family, attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let shape = signature.outputs[0].shape.clone();
    let parameters = parameters(family, attrs, signature)?;
    debug_assert!(!family.each || contiguous(&shape).len() == shape.len(), "one step for each axis");
    dispatch!(signature.outputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let mut values = Vec::with_capacity(parameters.len());
        for parameter in &parameters {
            values.push(match parameter {
                Parameter::Number(number) => (Scratch::filled(call.par, 1, *number), None),
                Parameter::Array(input, steps) => (floats(call.par, &call.inputs[*input])?, Some(steps)),
            });
        }
        let RandomKey { seed, position: at } = key(call)?;
        let of = |place: usize| -> [f64; 2] {
            let value = |i: usize| match values.get(i) {
                Some((numbers, None)) => numbers[0],
                Some((numbers, Some(steps))) => numbers[position(place, &shape, steps)],
                None => 0.0,
            };
            [value(0), value(1)]
        };
        if let Some((place, wrong)) = (0..shape.size()).find_map(|i| Some((i, (family.check)(&of(i))?))) {
            let p = of(place);
            let message = format!("{wrong}, got {}", p[..family.names.len()].iter().map(f64::to_string).collect::<Vec<_>>().join(" and "));
            return Err(OpError::new(FailureKind::Value, message));
        }
        let out = elements_mut::<T>(&mut call.outputs[0])?;
        fill(call.par, seed, at, out, |place, stream| (family.draw)(&of(place), stream));
        Ok(())
    })))
}

const BERNOULLI: OpDef = OpDef {
    name: "_npi_bernoulli",
    doc: "1 with a probability, else 0; the probability is given as such or by its logit.",
    inputs: Inputs::ByAttrs(|attrs| match (attrs.opt_float("prob"), attrs.opt_float("logit")) {
        (None, None) => &["input1"],
        _ => &[],
    }),
    attrs: &[
        required("prob", "Probability; an array if both are None."),
        required("logit", "Logit of the probability."),
        SIZE,
        CTX,
        AttrDef::new(
            "dtype",
            AttrKind::OptDType(&["bool", "float16", "float32", "float64", "int32", "int64", "int8", "uint8"]),
            "float32",
            "dtype of the result.",
        ),
        AttrDef::required("is_logit", AttrKind::Bool, "Whether the array holds logits."),
    ],
    infer_shape: |shapes| infer_shape(shapes, false),
    infer_dtype: crate::create::dtype_from_attr,
    bind: |attrs, signature| {
        let (shape, logit) = (signature.outputs[0].shape.clone(), attrs.bool("is_logit"));
        let number = attrs.opt_float("prob").or(attrs.opt_float("logit").map(sigmoid));
        let steps = signature.inputs.first().map(|t| broadcast(&t.shape, &shape)).unwrap_or_default();
        dispatch!(signature.outputs[0].dtype, all, T => Ok(kernel_fn(signature, move |call| {
            let probabilities = match number {
                Some(number) => Scratch::filled(call.par, 1, number),
                None => {
                    let mut given = floats(call.par, &call.inputs[0])?;
                    given.iter_mut().filter(|_| logit).for_each(|p| *p = sigmoid(*p));
                    given
                }
            };
            if let Some(wrong) = probabilities.iter().find(|p| !(0.0..=1.0).contains(*p)) {
                return Err(OpError::new(FailureKind::Value, format!("{wrong} is not a probability")));
            }
            let RandomKey { seed, position: at } = key(call)?;
            let out = elements_mut::<T>(&mut call.outputs[0])?;
            fill(call.par, seed, at, out, |place, stream| {
                let p = if number.is_some() { probabilities[0] } else { probabilities[position(place, &shape, &steps)] };
                f64::from(u8::from(stream.uniform() < p))
            });
            Ok(())
        })))
    },
    random: true,
    ..OpDef::BASE
};

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

#[cfg(test)]
mod tests {
    use crate::testing::{Array, OpTest, f32s};

    fn of(op: &str, attrs: &[(&str, &str)]) -> OpTest {
        attrs.iter().fold(OpTest::new(op), |t, (k, v)| t.attr(k, v))
    }

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
            ("_npi_bernoulli", vec![("prob", "0.25"), ("logit", "None"), ("is_logit", "0")], 0.25, 0.1875f64.sqrt()),
        ] {
            let (m, d) = moments(&of(op, &attrs).attr("size", "(20000,)").run());
            assert!((m - mean).abs() < 0.05 && (d - deviation).abs() < 0.05, "{op}: mean {m}, deviation {d}");
        }
    }

    #[test]
    fn parameters_may_be_arrays() {
        let y = of("_npi_uniform", &[("low", "None"), ("high", "None")])
            .f32([2], &[0.0, 10.0])
            .f32([2, 1], &[1.0, 11.0])
            .run();
        let y = f32s(&y, [2, 2]);
        assert!((0.0..1.0).contains(&y[0]) && (1.0..=10.0).contains(&y[1]) && (10.0..11.0).contains(&y[3]), "{y:?}");
        let y =
            of("_npi_normal_n", &[("loc", "None"), ("scale", "0"), ("size", "(2,)")]).f32([3], &[1.0, 2.0, 3.0]).run();
        assert_eq!(f32s(&y, [2, 3]), [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
        let error = of("_npi_normal", &[("loc", "0"), ("scale", "None")]).f32([2], &[1.0, -1.0]).error();
        assert!(error.message.contains("scale must not be negative"), "{}", error.message);
        let error =
            of("_npi_normal", &[("loc", "0"), ("scale", "None"), ("size", "(3,)")]).f32([2], &[1.0, 1.0]).error();
        assert!(error.message.contains("(3,)"), "{}", error.message);
    }
}
