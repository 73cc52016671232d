//! `SequenceLast`: the last step of each sequence.

use super::{INPUTS, TimeSteps, USE_LENGTH, data_decides, infer_lengths, time_axis};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "SequenceLast",
    doc: "The last step of each sequence.",
    inputs: INPUTS,
    attrs: &[
        USE_LENGTH,
        AttrDef::new("axis", AttrKind::Int, "0", "The axis of time: 0 or 1; the other one is the batch."),
    ],
    infer_shape: |shapes| {
        infer_lengths(shapes)?;
        let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
        dims.remove(time_axis(shapes.attrs)?);
        shapes.set_output(0, PartialShape::from_dims(dims))
    },
    infer_dtype: data_decides,
    bind,
    form: |attrs, signature| Ok(Some(steps(attrs, signature)?.form(SequenceKind::Last, signature))),
    ..OpDef::BASE
}];

fn steps(attrs: &Attrs, signature: &Signature<'_>) -> Result<TimeSteps, OpError> {
    let steps = TimeSteps::new(attrs, signature)?;
    if steps.time == 0 {
        return Err(shape_error("data has no steps, so there is no last one"));
    }
    Ok(steps)
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let steps = steps(attrs, signature)?;
    Ok(kernel_fn(signature, move |call| {
        let lengths = steps.lengths(call)?;
        let x = call.inputs[0].bytes();
        let out = call.outputs[0].bytes_mut();
        for (n, length) in lengths.iter().copied().enumerate() {
            out[n * steps.bytes..][..steps.bytes].copy_from_slice(&x[steps.at(length.max(1) - 1, n)]);
        }
        Ok(())
    }))
}
