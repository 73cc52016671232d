//! `SequenceMask`: overwrites the elements after the end of each sequence.

use super::{INPUTS, TimeSteps, USE_LENGTH, data_decides, infer_lengths};
use crate::prelude::*;
use mxrt_kernels::par::{chunk_rows, par_chunks_mut};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "SequenceMask",
    aliases: &["_npx_sequence_mask"],
    doc: "Sets everything after the end of each sequence to value.",
    inputs: INPUTS,
    attrs: &[
        USE_LENGTH,
        AttrDef::new("value", AttrKind::Float, "0", "What is written."),
        AttrDef::new("axis", AttrKind::Int, "0", "The axis of time: 0 or 1; the other one is the batch."),
    ],
    infer_shape: |shapes| {
        shapes.same_as_first()?;
        infer_lengths(shapes)
    },
    infer_dtype: data_decides,
    bind,
    form: |attrs, signature| {
        let form = TimeSteps::new(attrs, signature)?.form(SequenceKind::Mask(attrs.float("value")), signature);
        for_numeric(signature.inputs[0].dtype, form)
    },
    ..OpDef::BASE
}];

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let steps = TimeSteps::new(attrs, signature)?;
    let value = attrs.float("value");
    dispatch!(signature.inputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
        let lengths = steps.lengths(call)?;
        let value = T::from_f64(value);
        let (x, out) = (elements::<T>(&call.inputs[0])?, elements_mut::<T>(&mut call.outputs[0])?);
        let inner = steps.bytes / size_of::<T>();
        let rows = chunk_rows::<T>(inner);
        par_chunks_mut(call.par, out, rows * inner.max(1), |i, out| {
            let steps = (i * rows..).map(|row| steps.place(row));
            for ((out, x), [t, n]) in out.chunks_mut(inner).zip(x[i * rows * inner..].chunks(inner)).zip(steps) {
                if t < lengths[n] { out.copy_from_slice(x) } else { out.fill(value) }
            }
        });
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn steps_behind_the_end_are_overwritten() {
        let y = OpTest::new("SequenceMask")
            .attr("use_sequence_length", "True")
            .attr("value", "-1")
            .f32([3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
            .f32([2], &[1.0, 3.0])
            .run();
        assert_eq!(f32s(&y, [3, 2]), [1.0, 2.0, -1.0, 4.0, -1.0, 6.0]);
    }
}
