//! Sequences of different lengths in one array, and attention over them.

use crate::prelude::*;

pub mod ctc_loss;
mod interleaved;
pub mod interleaved_qk;
pub mod interleaved_valatt;
pub mod last;
pub mod mask;
pub mod reverse;
pub mod rnn;

const USE_LENGTH: AttrDef =
    AttrDef::new("use_sequence_length", AttrKind::Bool, "False", "Whether lengths are given; all are full if not.");

/// `data`, and `sequence_length` where lengths are used.
const INPUTS: Inputs =
    Inputs::ByAttrs(|attrs| if attrs.bool("use_sequence_length") { &["data", "sequence_length"] } else { &["data"] });

/// The lengths may have another dtype than the data.
fn data_decides(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    match dtypes.inputs[0].or(dtypes.outputs[0]) {
        Some(dtype) => {
            dtypes.set_input(0, "data", dtype)?;
            if dtypes.inputs.get(1) == Some(&None) {
                dtypes.set_input(1, "sequence_length", dtype)?;
            }
            dtypes.set_output(0, dtype)
        }
        None => Ok(()),
    }
}

/// Gives the lengths their shape: one for each element of the batch.
fn infer_lengths(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(dims) = shapes.dims(0) else { return Ok(()) };
    if dims.len() < 2 {
        return Err(shape_error(format!("data has shape {} but needs axes of time and batch", shapes.inputs[0])));
    }
    let batch = PartialShape::from_dims([dims[1 - time_axis(shapes.attrs)?]]);
    let have = shapes.inputs.get(1).cloned().unwrap_or_default();
    shapes.set_input(1, "sequence_length", batch.clone()).map_err(|_| {
        shape_error(format!("sequence_length has shape {have} but data {} needs {batch}", shapes.inputs[0]))
    })
}

/// The axis of time: 0 or 1; the other one is the batch.
fn time_axis(attrs: &Attrs) -> Result<usize, OpError> {
    match attrs.int("axis") {
        0 => Ok(0),
        1 => Ok(1),
        other => Err(value_error(format!("axis must be 0 or 1, the axis of time, got {other}"))),
    }
}

/// Data as time, batch and the bytes of one step.
#[derive(Clone, Copy)]
struct TimeSteps {
    time: usize,
    batch: usize,
    bytes: usize,
    axis: usize,
    with_lengths: bool,
}

impl TimeSteps {
    fn new(attrs: &Attrs, signature: &Signature<'_>) -> Result<TimeSteps, OpError> {
        let data = &signature.inputs[0];
        let axis = time_axis(attrs)?;
        let [a, b, rest @ ..] = &data.shape[..] else { return Err(wrong_arity()) };
        let (time, batch) = if axis == 0 { (*a, *b) } else { (*b, *a) };
        if let Some(length) = signature.inputs.get(1) {
            check_integers("sequence_length", length.dtype)?;
        }
        let bytes = rest.iter().product::<usize>() * data.dtype.size();
        Ok(TimeSteps { time, batch, bytes, axis, with_lengths: signature.inputs.len() > 1 })
    }

    fn form(&self, kind: SequenceKind, signature: &Signature<'_>) -> KernelForm {
        let inner = self.bytes / signature.inputs[0].dtype.size();
        KernelForm::Sequence { kind, size: [self.time, self.batch], inner, batch_first: self.axis == 1 }
    }

    /// Step and sequence of a row of data.
    fn place(&self, row: usize) -> [usize; 2] {
        if self.axis == 0 { [row / self.batch, row % self.batch] } else { [row % self.time, row / self.time] }
    }

    /// The bytes of step `t` of sequence `n`.
    fn at(&self, t: usize, n: usize) -> std::ops::Range<usize> {
        let index = if self.axis == 0 { t * self.batch + n } else { n * self.time + t };
        index * self.bytes..(index + 1) * self.bytes
    }

    /// The length of every sequence, none longer than there are steps.
    fn lengths(&self, call: &KernelCall<'_, '_>) -> Result<Scratch<usize>, OpError> {
        if !self.with_lengths {
            return Ok(Scratch::filled(call.par, self.batch, self.time));
        }
        let given = integers(call.par, call.inputs.get(1).ok_or_else(wrong_arity)?)?;
        let lengths = given.iter().map(|l| usize::try_from(*l).unwrap_or(0).min(self.time));
        Ok(Scratch::collect(call.par, given.len(), lengths))
    }
}
