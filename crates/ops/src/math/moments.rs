//! `moments`: mean and variance.

use super::reduce::{Reduced, left_shape};
use crate::prelude::*;
use mxrt_kernels::elementwise::{Binary, Unary, binary_broadcast, unary_inplace};
use mxrt_kernels::reduce::{Reduction, reduce};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "moments",
    doc: "Mean and variance over axes.",
    outputs: Outputs::Count(|_| 2),
    attrs: &[
        AttrDef::new("axes", AttrKind::OptShape, "None", "Axes to reduce; all if not given."),
        AttrDef::new("keepdims", AttrKind::Bool, "False", "Keep reduced axes with size 1."),
    ],
    infer_shape,
    bind,
    form,
    ..OpDef::BASE
}];

fn reduced_axes(attrs: &Attrs, rank: usize) -> Result<Reduced, OpError> {
    let axes = attrs.opt_ints("axes").unwrap_or(&[]);
    if axes.is_empty() {
        return Ok(smallvec::smallvec![true; rank]);
    }
    let mut reduced: Reduced = smallvec::smallvec![false; rank];
    resolve_axes(axes, rank)?.into_iter().for_each(|a| reduced[a] = true);
    Ok(reduced)
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(dims) = shapes.dims(0) else { return Ok(()) };
    let left = left_shape(&dims, &reduced_axes(shapes.attrs, dims.len())?, shapes.attrs.bool("keepdims"));
    shapes.set_output(0, left.clone())?;
    shapes.set_output(1, left)
}

fn form(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let data = &signature.inputs[0];
    for_floats(data.dtype, KernelForm::Moments { reduced: reduced_axes(attrs, data.shape.len())?.to_vec() })
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let shape = signature.inputs[0].shape.clone();
    let reduced = reduced_axes(attrs, shape.len())?;
    // The mean as it broadcasts against the data.
    let kept: Vec<usize> = shape.iter().zip(&reduced).map(|(n, r)| if *r { 1 } else { *n }).collect();
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let ([data], [mean, variance]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let (x, mean) = (elements::<T>(data)?, elements_mut::<T>(mean)?);
        reduce(call.par, Reduction::Mean, x, &shape, &reduced, mean);
        let mut distances = Scratch::<T>::new(call.par, x.len());
        binary_broadcast(call.par, Binary::Sub, x, &shape, mean, &kept, &mut distances, &shape);
        unary_inplace(call.par, Unary::Square, &mut distances);
        reduce(call.par, Reduction::Mean, &distances, &shape, &reduced, elements_mut(variance)?);
        Ok(())
    })))
}
