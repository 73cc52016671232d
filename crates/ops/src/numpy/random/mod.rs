//! Random numbers whose parameters are numbers or arrays that are broadcast.

pub mod bernoulli;
pub mod distributions;

use super::select::common_shape;
use crate::prelude::*;
use crate::random::{DrawMethod, key};
use mxrt_engine::FailureKind;
use mxrt_kernels::strides::{broadcast, contiguous};

const SIZE: AttrDef =
    AttrDef::new("size", AttrKind::OptShape, "None", "Shape of the result; that of the parameters if not given.");
pub(super) const CTX: AttrDef = AttrDef::new("ctx", AttrKind::Str, "cpu", "Where the array is made.");

/// A distribution: the names of its parameters, whether they make one, and a number drawn from it.
struct Family {
    names: &'static [&'static str],
    /// whether every element of `size` is an array of the shape of the parameters
    each: bool,
    /// reason why some parameters are wrong; each of them is judged alone
    check: fn(&[f64]) -> Option<&'static str>,
    method: DrawMethod,
}

macro_rules! distribution {
    ($name:literal, [$($parameter:literal)*], $attrs:expr, $each:literal, $check:expr, $method:expr, $doc:literal) => {
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
                    Family { names: &[$($parameter),*], each: $each, check: $check, method: $method };
                bind(&FAMILY, attrs, signature)
            },
            random: true,
            ..OpDef::BASE
        }
    };
}
use distribution;

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
use with_noise;

const fn required(name: &'static str, doc: &'static str) -> AttrDef {
    AttrDef::required(name, AttrKind::OptFloat, doc)
}

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

/// The elements of an array that is broadcast to a shape, from place `first` of it on.
fn broadcast_from(numbers: &[f64], shape: &[usize], steps: &[isize], first: usize, mut out: &mut [f64]) {
    let (last, step) = (shape.last().map_or(1, |n| *n), steps.last().map_or(0, |step| step.unsigned_abs()));
    let mut place = first;
    while !out.is_empty() {
        let (mut row, column) = (place / last, place % last);
        let mut at = column * step;
        for (n, step) in shape.iter().zip(steps).rev().skip(1) {
            at += row % n * step.unsigned_abs();
            row /= n;
        }
        let (run, rest) = out.split_at_mut((last - column).min(out.len()));
        match step {
            0 => run.fill(numbers[at]),
            1 => run.copy_from_slice(&numbers[at..at + run.len()]),
            _ => run.iter_mut().zip(numbers[at..].iter().step_by(step)).for_each(|(out, v)| *out = *v),
        }
        (place, out) = (place + run.len(), rest);
    }
}

/// The numbers of a parameter, and the steps in which an array is read.
type ParameterValues<'a> = (Scratch<f64>, Option<&'a [isize]>);

/// Writes the parameters of elements from place `first` on.
fn write_parameters(values: &[ParameterValues<'_>], shape: &[usize], first: usize, out: [&mut [f64]; 2]) {
    for (out, (numbers, steps)) in out.into_iter().zip(values) {
        match steps {
            Some(steps) => broadcast_from(numbers, shape, steps, first, out),
            None => out.fill(numbers[0]),
        }
    }
}

/// Checks the parameters. The error names those of the first place that has wrong ones.
fn check(family: &Family, values: &[ParameterValues<'_>], shape: &Shape) -> Result<(), OpError> {
    let is_wrong = |i: usize, number: f64| {
        let mut p = [1.0; 2];
        p[i] = number;
        (family.check)(&p).is_some()
    };
    if !values.iter().enumerate().any(|(i, (numbers, _))| numbers.iter().any(|number| is_wrong(i, *number))) {
        return Ok(());
    }
    for place in 0..shape.size() {
        let (mut a, mut b) = ([0.0], [0.0]);
        write_parameters(values, shape, place, [&mut a, &mut b]);
        let p = [a[0], b[0]];
        if let Some(wrong) = (family.check)(&p) {
            let given = p[..family.names.len()].iter().map(f64::to_string).collect::<Vec<_>>().join(" and ");
            return Err(OpError::new(FailureKind::Value, format!("{wrong}, got {given}")));
        }
    }
    Ok(())
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
                Parameter::Array(input, steps) => (floats(call.par, &call.inputs[*input])?, Some(&steps[..])),
            });
        }
        check(family, &values, &shape)?;
        let key = key(call)?;
        let out = elements_mut::<T>(&mut call.outputs[0])?;
        family.method.fill(call.par, key, out, |first, given| write_parameters(&values, &shape, first, given));
        Ok(())
    })))
}
