//! Random numbers whose parameters are numbers or arrays that are broadcast.

pub mod bernoulli;
pub mod distributions;

use super::select::common_shape;
use crate::prelude::*;
use crate::random::key;
use mxrt_engine::FailureKind;
use mxrt_kernels::random::{Stream, fill};
use mxrt_kernels::strides::{broadcast, contiguous};

const SIZE: AttrDef =
    AttrDef::new("size", AttrKind::OptShape, "None", "Shape of the result; that of the parameters if not given.");
pub(super) const CTX: AttrDef = AttrDef::new("ctx", AttrKind::Str, "cpu", "Where the array is made.");

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
