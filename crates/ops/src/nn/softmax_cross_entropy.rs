//! `softmax_cross_entropy`: the loss of a classification, summed over the batch.

use crate::prelude::*;
use mxrt_kernels::softmax::{SoftmaxParams, softmax};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "softmax_cross_entropy",
    doc: "The sum over the batch of -log(softmax(data)) at the class that label names.",
    inputs: Inputs::Fixed(&["data", "label"]),
    ignores_unknown_attrs: true,
    infer_shape: |shapes| {
        shapes.set_output(0, Shape::new(&[1]))?;
        let Some(dims) = shapes.dims(0) else { return Ok(()) };
        if dims.len() != 2 {
            return Err(shape_error(format!("data must be (batch, classes), got {}", shapes.inputs[0])));
        }
        shapes.set_input(1, "label", PartialShape::from_dims([dims[0]]))
    },
    bind,
    ..OpDef::BASE
}];

fn bind(_: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let [batch, classes] = signature.inputs[0].shape[..] else { return Err(wrong_arity()) };
    let params = SoftmaxParams { log: true, ..Default::default() };
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let ([data, label], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let mut logs = Scratch::<T>::new(call.par, batch * classes);
        softmax::<T, T>(call.par, params, elements(data)?, [batch, classes, 1], None, &mut logs);
        let mut loss = 0.0;
        for (row, label) in logs.chunks(classes.max(1)).zip(integers(call.par, label)?.iter()) {
            let class = usize::try_from(*label).ok().filter(|c| *c < classes);
            let class = class.ok_or_else(|| value_error(format!("label {label} is not one of {classes} classes")))?;
            loss -= row[class].to_f64();
        }
        elements_mut::<T>(out)?.fill(T::from_f64(loss));
        Ok(())
    })))
}
