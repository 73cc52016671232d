//! `SequenceReverse`: reverses each sequence, and leaves the elements after its end unchanged.

use super::{INPUTS, TimeSteps, USE_LENGTH, data_decides, infer_lengths, time_axis};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "SequenceReverse",
    doc: "Each sequence backwards; what follows its end stays.",
    inputs: INPUTS,
    attrs: &[USE_LENGTH, AttrDef::new("axis", AttrKind::Int, "0", "The axis of time; only 0.")],
    infer_shape: |shapes| {
        if time_axis(shapes.attrs)? != 0 {
            return Err(value_error("axis must be 0, the axis of time"));
        }
        shapes.same_as_first()?;
        infer_lengths(shapes)
    },
    infer_dtype: data_decides,
    bind,
    form: |attrs, signature| Ok(Some(TimeSteps::new(attrs, signature)?.form(SequenceKind::Reverse, signature))),
    ..OpDef::BASE
}];

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let steps = TimeSteps::new(attrs, signature)?;
    Ok(kernel_fn(signature, move |call| {
        let lengths = steps.lengths(call)?;
        let x = call.inputs[0].bytes();
        let out = call.outputs[0].bytes_mut();
        for (n, length) in lengths.iter().copied().enumerate() {
            for t in 0..steps.time {
                let from = if t < length { length - 1 - t } else { t };
                out[steps.at(t, n)].copy_from_slice(&x[steps.at(from, n)]);
            }
        }
        Ok(())
    }))
}
