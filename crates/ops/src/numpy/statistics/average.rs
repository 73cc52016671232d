//! `_npi_average`: means with weights.

use super::counted;
use crate::math::reduce::Reduced;
use crate::numpy::reduce::{AXIS, left_shape, reduced_axes};
use crate::prelude::*;
use mxrt_kernels::elementwise::{Binary, binary_broadcast};
use mxrt_kernels::reduce::{Reduction, reduce};
use mxrt_tensor::TensorMut;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
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
}];

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

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    const X: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 9.0];

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
}
