//! Steps of sequences: `sequence.h`.

use crate::arguments::SequenceArgument;
use crate::launch::{Bound, code, each, known};
use mxrt_ops::{KernelForm, SequenceKind, Signature};

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    let KernelForm::Sequence { kind, size: [time, batch], inner, batch_first } = *form else { return None };
    let (input, output) = (signature.inputs.first()?, signature.outputs.first()?);
    if !signature.inputs.iter().all(known) {
        return None;
    }
    let (kind, value) = match kind {
        SequenceKind::Mask(value) => (0, value),
        SequenceKind::Last => (1, 0.0),
        SequenceKind::Reverse => (2, 0.0),
    };
    let n = output.shape.size();
    let argument = SequenceArgument {
        to: 0,
        from: 0,
        lengths: 0,
        n: n as i64,
        time: time as i64,
        batch: batch as i64,
        inner: inner as i64,
        value,
        batch_first: i32::from(batch_first),
        kind,
        dtype: code(input.dtype),
        size: input.dtype.size() as i32,
        length_dtype: signature.inputs.get(1).map_or(0, |lengths| code(lengths.dtype)),
        unused: 0,
    };
    Some(Bound::kernel(c"sequence", each(n), move |at| SequenceArgument {
        to: at.outputs[0].0,
        from: at.inputs[0].0,
        lengths: at.inputs.get(1).map_or(0, |lengths| lengths.0),
        ..argument
    }))
}
