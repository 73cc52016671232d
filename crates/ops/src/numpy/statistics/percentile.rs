//! `_npi_percentile`: elements below which given shares of all are.

use super::counted;
use crate::numpy::reduce::{AXIS, KEEPDIMS, left_shape, marked, reduced_axes};
use crate::prelude::*;
use half::f16;
use mxrt_kernels::shape::copy_strided;
use mxrt_kernels::strides::contiguous;
use mxrt_tensor::TensorRef;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npi_percentile",
    doc: "Percentiles over axes, interpolated between the two nearest elements.",
    inputs: Inputs::ByAttrs(|attrs| if attrs.opt_float("q_scalar").is_some() { &["a"] } else { &["a", "q"] }),
    attrs: &[
        AXIS,
        AttrDef::new(
            "interpolation",
            AttrKind::Enum(&["linear", "lower", "higher", "midpoint", "nearest"]),
            "linear",
            "How a percentile between two elements is made.",
        ),
        KEEPDIMS,
        AttrDef::new("q_scalar", AttrKind::OptFloat, "None", "The percentile, in the place of the array q.").wide(),
    ],
    infer_shape: |shapes| {
        let Some(dims) = shapes.dims(0) else { return Ok(()) };
        let reduced = reduced_axes(shapes.attrs, dims.len())?;
        if let Some(shape) = shapes.input(0)
            && counted(&shape, &reduced) == 0
        {
            return Err(value_error("a percentile of no elements is asked for: a has none along the reduced axes"));
        }
        let left = left_shape(&dims, &reduced, shapes.attrs.bool("keepdims"));
        if shapes.inputs.len() < 2 {
            return shapes.set_output(0, left);
        }
        let Some(q) = shapes.dims(1) else { return Ok(()) };
        if q.len() > 1 {
            return Err(shape_error(format!("q has shape {}; expected one axis or a scalar", shapes.inputs[1])));
        }
        let all = q.iter().chain(left.dims().unwrap_or(&[])).copied();
        shapes.set_output(0, PartialShape::from_dims(all))
    },
    infer_dtype: |dtypes| match dtypes.inputs[0] {
        Some(DType::F64) => dtypes.set_output(0, DType::F64),
        Some(_) => dtypes.set_output(0, DType::F32),
        None => Ok(()),
    },
    bind: bind_percentile,
    ..OpDef::BASE
}];

/// How a percentile between two elements is made.
#[derive(Clone, Copy)]
enum Between {
    Linear,
    Lower,
    Higher,
    Midpoint,
    Nearest,
}

fn bind_percentile(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let shape = signature.inputs[0].shape.clone();
    let reduced = marked(attrs.opt_ints("axis"), shape.len())?;
    let between = match attrs.str("interpolation") {
        "lower" => Between::Lower,
        "higher" => Between::Higher,
        "midpoint" => Between::Midpoint,
        "nearest" => Between::Nearest,
        _ => Between::Linear,
    };
    let scalar = attrs.opt_float("q_scalar");
    let halves = signature.inputs[0].dtype == DType::F16;
    signature.inputs.iter().try_for_each(|t| check_numeric(t.dtype))?;
    Ok(kernel_fn(signature, move |call| {
        let percentiles = match (scalar, call.inputs.get(1)) {
            (Some(q), _) => Scratch::filled(call.par, 1, q),
            (None, Some(q)) => floats(call.par, q)?,
            (None, None) => return Err(wrong_arity()),
        };
        if let Some(q) = percentiles.iter().find(|q| !(0.0..=100.0).contains(*q)) {
            return Err(value_error(format!("the percentile {q} is not between 0 and 100")));
        }
        let (mut rows, count) = rows_of(call, &call.inputs[0], &shape, &reduced)?;
        let number = rows.len() / count.max(1);
        let mut out = Scratch::<f64>::new(call.par, percentiles.len() * number);
        for (i, row) in rows.chunks_mut(count.max(1)).enumerate() {
            row.sort_unstable_by(f64::total_cmp);
            for (k, q) in percentiles.iter().enumerate() {
                out[k * number + i] = percentile(row, *q, between, halves);
            }
        }
        store_floats(&out, &mut call.outputs[0])
    }))
}

/// The elements in double precision, those that are reduced to one next to each other, and their
/// number.
fn rows_of(
    call: &KernelCall<'_, '_>,
    x: &TensorRef<'_>,
    shape: &[usize],
    reduced: &[bool],
) -> Result<(Scratch<f64>, usize), OpError> {
    let values = floats(call.par, x)?;
    let steps = contiguous(shape);
    let axes = |wanted: bool| (0..shape.len()).filter(move |axis| reduced[*axis] == wanted);
    let order: Vec<usize> = axes(false).chain(axes(true)).collect();
    let mut rows = Scratch::new(call.par, values.len());
    let strides: Vec<isize> = order.iter().map(|axis| steps[*axis]).collect();
    let extents: Vec<usize> = order.iter().map(|axis| shape[*axis]).collect();
    copy_strided(call.par, &values, 0, &strides, &extents, &mut rows).map_err(kernel_error)?;
    Ok((rows, counted(shape, reduced)))
}

/// A percentile of sorted elements. The place is computed in single precision, and shares of elements
/// in half precision are rounded to it, as in MXNet.
fn percentile(row: &[f64], q: f64, between: Between, halves: bool) -> f64 {
    let last = row.len() - 1;
    let place = f64::from((q * last as f64 / 100.0) as f32);
    let at = |place: f64| row[(place as usize).min(last)];
    let share = |x: f64, of: f64| if halves { f16::from_f32((x * of) as f32).to_f64() } else { x * of };
    match between {
        Between::Lower => at(place.floor()),
        Between::Higher => at(place.ceil()),
        Between::Nearest => at(place.round()),
        Between::Linear | Between::Midpoint => {
            let place = if matches!(between, Between::Midpoint) { (place.floor() + place.ceil()) / 2.0 } else { place };
            let above = place - place.floor();
            share(at(place.floor()), 1.0 - above) + share(at(place.floor() + 1.0), above)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    const X: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 9.0];

    #[test]
    fn percentiles_are_between_elements() {
        let of = |how: &str| {
            let test = OpTest::new("_npi_percentile").attr("interpolation", how).f32([6], &X);
            f32s(&test.f32([2], &[50.0, 100.0]).run(), [2])
        };
        assert_eq!(of("linear"), [3.5, 9.0]);
        assert_eq!(of("higher"), [4.0, 9.0]);
        // As recorded from MXNet 1.9.1.
        let halves = [1000.0, 35.0, 15.0, 2.675_781_3, 0.375, -1.5];
        let y = OpTest::new("_npi_percentile").f16([6], &halves).f32([3], &[10.0, 33.3, 99.9]).run();
        assert_eq!(f32s(&y, [3]), [-0.5625, 1.904_907_2, 995.175_05]);
        let error = OpTest::new("_npi_percentile").attr("q_scalar", "101").f32([6], &X).error();
        assert!(error.message.contains("101"), "{}", error.message);
    }
}
