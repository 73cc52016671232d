//! Variances, averages with weights and percentiles, computed in double precision.

use super::reduce::{AXIS, DTYPE, KEEPDIMS, infer_shape, left_shape, marked, reduced_axes};
use crate::math::reduce::Reduced;
use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::elementwise::{Binary, Unary, binary_broadcast, unary_inplace};
use mxrt_kernels::reduce::{Reduction, reduce, row_square_sums, row_sums};
use mxrt_kernels::shape::copy_strided;
use mxrt_kernels::strides::contiguous;
use mxrt_tensor::{DType, PartialShape, Shape, TensorMut, TensorRef};

const MOMENT: OpDef = OpDef {
    inputs: Inputs::Fixed(&["a"]),
    attrs: &[
        AXIS,
        DTYPE,
        AttrDef::new("ddof", AttrKind::Int, "0", "The sum is divided by the number less this."),
        KEEPDIMS,
    ],
    hidden_outputs: |_| 1,
    infer_shape,
    infer_dtype: |dtypes| match dtypes.attrs.opt_dtype("dtype").or(dtypes.inputs[0]) {
        Some(dtype) => dtypes.set_output(0, dtype),
        None => Ok(()),
    },
    ..OpDef::BASE
};

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_npi_var",
        outputs: Outputs::OneNamed("var"),
        doc: "The variance over axes.",
        bind: |attrs, signature| bind_moment(false, attrs, signature),
        form: |attrs, signature| moment_form(false, attrs, signature),
        ..MOMENT
    },
    OpDef {
        name: "_npi_std",
        outputs: Outputs::OneNamed("std"),
        doc: "The standard deviation over axes.",
        bind: |attrs, signature| bind_moment(true, attrs, signature),
        form: |attrs, signature| moment_form(true, attrs, signature),
        ..MOMENT
    },
    AVERAGE,
    PERCENTILE,
];

/// The form of a moment in floating point; none for whole numbers, and for those of nothing.
fn moment_form(root: bool, attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let (data, out) = (&signature.inputs[0], &signature.outputs[0]);
    let reduced = reduced_axes(attrs, data.shape.len())?.to_vec();
    let count = counted(&data.shape, &reduced);
    if !out.dtype.is_float() || count == 0 {
        return Ok(None);
    }
    let divisor = count as f64 - attrs.int("ddof") as f64;
    for_numeric(data.dtype, KernelForm::Variances { reduced, divisor, root })
}

fn bind_moment(root: bool, attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let shape = signature.inputs[0].shape.clone();
    let reduced = reduced_axes(attrs, shape.len())?;
    let count = counted(&shape, &reduced);
    let divisor = count as f64 - attrs.int("ddof") as f64;
    let moment = move |sum: f64| if root { (sum / divisor).sqrt() } else { sum / divisor };
    check_numeric(signature.inputs[0].dtype)?;
    check_numeric(signature.outputs[0].dtype)?;
    let kept = kept_shape(&shape, &reduced);
    let whole = !signature.inputs[0].dtype.is_float() && !signature.outputs[0].dtype.is_float();
    let first = reduced.iter().position(|r| *r).unwrap_or(shape.len());
    if !whole && count > 0 && reduced[first..].iter().all(|r| *r) {
        return dispatch!(signature.inputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
            let x = elements::<T>(&call.inputs[0])?;
            let mut means = row_sums(call.par, x, count);
            means.iter_mut().for_each(|sum| *sum /= count as f64);
            let mut out = row_square_sums(call.par, x, count, &means);
            out.iter_mut().for_each(|sum| *sum = moment(*sum));
            store_floats(&out, &mut call.outputs[0])
        })));
    }
    Ok(kernel_fn(signature, move |call| {
        let data = floats(call.par, &call.inputs[0])?;
        let mut x = Scratch::<f64>::new(call.par, data.len());
        let mut out = Scratch::<f64>::new(call.par, call.outputs[0].len());
        reduce(call.par, Reduction::Mean, &data, &shape, &reduced, &mut out);
        // MXNet keeps the mean of whole numbers in their type.
        if whole {
            out.iter_mut().for_each(|mean| *mean = mean.trunc());
        }
        binary_broadcast(call.par, Binary::Sub, &data, &shape, &out, &kept, &mut x, &shape);
        unary_inplace(call.par, Unary::Square, &mut x);
        reduce(call.par, Reduction::Sum, &x, &shape, &reduced, &mut out);
        out.iter_mut().for_each(|sum| *sum = moment(*sum));
        store_floats(&out, &mut call.outputs[0])
    }))
}

/// Elements that are reduced to one.
fn counted(shape: &[usize], reduced: &[bool]) -> usize {
    shape.iter().zip(reduced).filter(|(_, r)| **r).map(|(n, _)| n).product()
}

/// The shape in which a result broadcasts against the data.
fn kept_shape(shape: &[usize], reduced: &[bool]) -> Vec<usize> {
    shape.iter().zip(reduced).map(|(n, r)| if *r { 1 } else { *n }).collect()
}

const AVERAGE: OpDef = OpDef {
    name: "_npi_average",
    doc: "The average over axes, with weights if there are any, and the sum of the weights; of whole \
          numbers truncated. Weights have the shape of the data, or belong to the elements along the one axis.",
    inputs: Inputs::ByAttrs(|attrs| if attrs.bool("weighted") { &["a", "weights"] } else { &["a"] }),
    attrs: &[
        AXIS,
        AttrDef::new("returned", AttrKind::Bool, "False", "Whether the sum of the weights is visible."),
        AttrDef::new("weighted", AttrKind::Bool, "True", "Whether there are weights."),
    ],
    outputs: Outputs::Named(|attrs| if attrs.bool("returned") { &["output0", "output1"] } else { &["output0"] }),
    hidden_outputs: |attrs| if attrs.bool("returned") { 0 } else { 1 },
    infer_shape: |shapes| {
        let Some(dims) = shapes.dims(0) else { return Ok(()) };
        let attrs = shapes.attrs;
        let reduced = reduced_axes(attrs, dims.len())?;
        let left = left_shape(&dims, &reduced, false);
        shapes.set_output(0, left.clone())?;
        if !attrs.bool("weighted") {
            return shapes.set_output(1, PartialShape::from_dims([]));
        }
        let (Some(data), Some(weights)) = (shapes.input(0), shapes.input(1)) else { return Ok(()) };
        match weight_axis(&data, &weights, &reduced)? {
            Some(_) => shapes.set_output(1, PartialShape::from_dims([])),
            None => shapes.set_output(1, left),
        }
    },
    infer_dtype: |dtypes| dtypes.uniform(&["a", "weights"]),
    bind: bind_average,
    ..OpDef::BASE
};

/// The axis whose elements the weights belong to; `None` where they have the shape of the data.
fn weight_axis(data: &Shape, weights: &Shape, reduced: &[bool]) -> Result<Option<usize>, OpError> {
    if data == weights {
        return Ok(None);
    }
    let mut axes = reduced.iter().enumerate().filter(|(_, r)| **r).map(|(axis, _)| axis);
    match (&weights[..], axes.next(), axes.next()) {
        ([n], Some(axis), None) if data[axis] == *n => Ok(Some(axis)),
        _ => Err(shape_error(format!(
            "weights {weights} do not fit the data {data}: expected its shape, or one axis and as \
             many weights as it has elements"
        ))),
    }
}

fn bind_average(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let shape = signature.inputs[0].shape.clone();
    let reduced = reduced_axes(attrs, shape.len())?;
    let count = counted(&shape, &reduced) as f64;
    check_numeric(signature.inputs[0].dtype)?;
    if !attrs.bool("weighted") {
        return Ok(kernel_fn(signature, move |call| {
            let mut out = Scratch::<f64>::new(call.par, call.outputs[0].len());
            reduce(call.par, Reduction::Mean, &floats(call.par, &call.inputs[0])?, &shape, &reduced, &mut out);
            store_floats(&out, &mut call.outputs[0])?;
            let all =
                |weights: &mut TensorMut<'_>| store_floats(&Scratch::filled(call.par, weights.len(), count), weights);
            call.outputs.get_mut(1).map_or(Ok(()), all)
        }));
    }
    let mut of_weights = shape.to_vec();
    let axis = weight_axis(&shape, &signature.inputs[1].shape, &reduced)?;
    let summed: Reduced = reduced.iter().map(|r| *r || axis.is_some()).collect();
    if let Some(axis) = axis {
        of_weights.fill(1);
        of_weights[axis] = shape[axis];
    }
    Ok(kernel_fn(signature, move |call| {
        let (data, weights) = (floats(call.par, &call.inputs[0])?, floats(call.par, &call.inputs[1])?);
        let mut products = Scratch::<f64>::new(call.par, data.len());
        binary_broadcast(call.par, Binary::Mul, &data, &shape, &weights, &of_weights, &mut products, &shape);
        let mut sums = Scratch::<f64>::new(call.par, call.outputs[0].len());
        reduce(call.par, Reduction::Sum, &products, &shape, &reduced, &mut sums);
        let mut scales = Scratch::<f64>::new(call.par, if axis.is_some() { 1 } else { sums.len() });
        reduce(call.par, Reduction::Sum, &weights, &of_weights, &summed, &mut scales);
        let scale = |i: usize| if axis.is_some() { scales[0] } else { scales[i] };
        sums.iter_mut().enumerate().for_each(|(i, sum)| *sum /= scale(i));
        store_floats(&sums, &mut call.outputs[0])?;
        call.outputs.get_mut(1).map_or(Ok(()), |weights| store_floats(&scales, weights))
    }))
}

const PERCENTILE: OpDef = OpDef {
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
};

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
                out[k * number + i] = percentile(row, *q, between);
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

/// A percentile of sorted elements. The place is computed in single precision, as in MXNet.
fn percentile(row: &[f64], q: f64, between: Between) -> f64 {
    let last = row.len() - 1;
    let place = f64::from((q * last as f64 / 100.0) as f32);
    let at = |place: f64| row[(place as usize).min(last)];
    match between {
        Between::Lower => at(place.floor()),
        Between::Higher => at(place.ceil()),
        Between::Nearest => at(place.round()),
        Between::Linear | Between::Midpoint => {
            let place = if matches!(between, Between::Midpoint) { (place.floor() + place.ceil()) / 2.0 } else { place };
            let above = place - place.floor();
            at(place.floor()) * (1.0 - above) + at(place.floor() + 1.0) * above
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    const X: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 9.0];

    #[test]
    fn variances_divide_by_what_ddof_leaves() {
        let var = |ddof: &str| OpTest::new("_npi_var").attr("axis", "(1,)").attr("ddof", ddof).f32([2, 3], &X).run();
        assert_eq!(f32s(&var("1"), [2]), [1.0, 7.0]);
        assert_eq!(f32s(&OpTest::new("_npi_std").f32([2], &[1.0, 3.0]).run(), []), [1.0]);
    }

    #[test]
    fn weights_belong_to_elements_or_to_the_places_of_an_axis() {
        let test = || OpTest::new("_npi_average").attr("returned", "True").attr("axis", "(1,)").f32([2, 3], &X);
        let both = test().f32([3], &[1.0, 1.0, 2.0]).run_all();
        assert_eq!(f32s(&both[0], [2]), [2.25, 6.75]);
        assert_eq!(f32s(&both[1], []), [4.0]);
        let both = test().f32([2, 3], &[1.0, 0.0, 0.0, 0.0, 0.0, 4.0]).run_all();
        assert_eq!((f32s(&both[0], [2]), f32s(&both[1], [2])), (vec![1.0, 9.0], vec![1.0, 4.0]));
        assert!(test().f32([2], &[1.0, 1.0]).error().message.contains("weights (2,)"));
    }

    #[test]
    fn percentiles_are_between_elements() {
        let of = |how: &str| {
            let test = OpTest::new("_npi_percentile").attr("interpolation", how).f32([6], &X);
            f32s(&test.f32([2], &[50.0, 100.0]).run(), [2])
        };
        assert_eq!(of("linear"), [3.5, 9.0]);
        assert_eq!(of("higher"), [4.0, 9.0]);
        let error = OpTest::new("_npi_percentile").attr("q_scalar", "101").f32([6], &X).error();
        assert!(error.message.contains("101"), "{}", error.message);
    }
}
