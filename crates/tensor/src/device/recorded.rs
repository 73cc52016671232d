//! Recorded work of an op. The addresses of the op's arrays differ from call to call, so the work
//! has its own memory for them, and the device copies.

use super::DeviceArguments;
use mxrt_engine::device::Recording;
use mxrt_engine::{DeviceCtx, DevicePtr, FailureKind, OpError};
use smallvec::SmallVec;
use std::sync::Arc;

/// Work of an op that is submitted again as one piece.
pub struct RecordedCall {
    work: Arc<Recording>,
    inputs: Vec<RecordedInput>,
    outputs: Vec<RecordedPlace>,
}

/// Use of an input by recorded work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputUse {
    /// No kernel reads it.
    Unread,
    /// Kernels read a copy in memory of the recording.
    Copied,
    /// Kernels read it at its address, which all calls have in common.
    Fixed,
}

/// An input of the recording.
#[derive(Clone, Copy)]
enum RecordedInput {
    Unread,
    Copied(RecordedPlace),
    Fixed(DevicePtr),
}

/// Memory of the recording.
#[derive(Clone, Copy)]
struct RecordedPlace {
    at: DevicePtr,
    bytes: usize,
}

impl RecordedCall {
    /// Records the work that `submit` submits for arguments in memory of the recording: the copied
    /// inputs, the outputs, and `scratch` bytes. `uses` are those of the inputs; memory of this
    /// call alone must be copied. `None`: the device records nothing.
    pub fn record(
        ctx: &DeviceCtx<'_>,
        at: &DeviceArguments,
        uses: &[InputUse],
        scratch: usize,
        submit: impl FnOnce(&DeviceArguments) -> Result<(), OpError>,
    ) -> Result<Option<RecordedCall>, OpError> {
        let place = |bytes: &usize| ctx.scratch((*bytes).max(1)).map(|at| RecordedPlace { at, bytes: *bytes });
        let recorded = ctx.record_work(|| {
            let input = |(i, used): (usize, &InputUse)| {
                Ok(match used {
                    InputUse::Unread => RecordedInput::Unread,
                    InputUse::Copied => RecordedInput::Copied(place(&at.input_bytes[i])?),
                    InputUse::Fixed => RecordedInput::Fixed(at.inputs[i]),
                })
            };
            let inputs = uses.iter().enumerate().map(input).collect::<Result<Vec<_>, OpError>>()?;
            let outputs = at.output_bytes.iter().map(place).collect::<Result<Vec<_>, OpError>>()?;
            let arguments = DeviceArguments {
                inputs: inputs.iter().map(RecordedInput::address).collect(),
                outputs: outputs.iter().map(|place| place.at).collect(),
                input_bytes: at.input_bytes.clone(),
                output_bytes: at.output_bytes.clone(),
                aside: at.aside.clone(),
                scratch: ctx.scratch(scratch.max(1))?,
            };
            submit(&arguments)?;
            Ok((inputs, outputs))
        })?;
        Ok(recorded.map(|(work, (inputs, outputs))| RecordedCall { work: Arc::new(work), inputs, outputs }))
    }

    /// Whether it can stand for a call with these arguments, which uses its inputs so.
    pub fn fits(&self, at: &DeviceArguments, uses: &[InputUse]) -> bool {
        let same = |(i, used): (usize, &InputUse)| match (used, self.inputs.get(i)) {
            (InputUse::Unread, Some(RecordedInput::Unread)) => true,
            (InputUse::Copied, Some(RecordedInput::Copied(place))) => at.input_bytes.get(i) == Some(&place.bytes),
            (InputUse::Fixed, Some(RecordedInput::Fixed(address))) => at.inputs.get(i) == Some(address),
            _ => false,
        };
        uses.len() == self.inputs.len()
            && uses.iter().enumerate().all(same)
            && self.outputs.iter().map(|place| place.bytes).eq(at.output_bytes.iter().copied())
    }

    /// Whether a call could start without waiting for the end of another one.
    pub fn is_free(&self, ctx: &DeviceCtx<'_>) -> bool {
        ctx.is_free(&self.work)
    }

    /// Whether no call uses it that is not complete.
    pub fn is_idle(&self) -> bool {
        Arc::strong_count(&self.work) == 1
    }

    /// Submits it for these arguments. An error of kind `Value` if it does not [fit](Self::fits).
    /// After an error of kind `Memory` the work can be submitted in another way: inputs are as
    /// before.
    pub fn submit(&self, ctx: &DeviceCtx<'_>, at: &DeviceArguments, uses: &[InputUse]) -> Result<(), OpError> {
        if !self.fits(at, uses) {
            return Err(OpError::new(FailureKind::Value, "work that was recorded for other arrays"));
        }
        let copied = |(input, array): (&RecordedInput, &DevicePtr)| match input {
            RecordedInput::Copied(place) => Some((*place, *array)),
            RecordedInput::Unread | RecordedInput::Fixed(_) => None,
        };
        let arguments: SmallVec<[_; 4]> = self.inputs.iter().zip(&at.inputs).filter_map(copied).collect();
        let results: SmallVec<[_; 4]> = self.outputs.iter().zip(at.outputs.iter().copied()).collect();
        let copy = |to: DevicePtr, from: DevicePtr, bytes: usize| match bytes {
            0 => Ok(()),
            // SAFETY: memory of arrays of this op and of the recording, of these sizes.
            _ => unsafe { ctx.copy(to, from, bytes) },
        };
        ctx.replay(
            &self.work,
            || arguments.iter().try_for_each(|(place, array)| copy(place.at, *array, place.bytes)),
            || results.iter().try_for_each(|(place, array)| copy(*array, place.at, place.bytes)),
        )
    }
}

impl RecordedInput {
    /// Address at which kernels read it; nothing reads at that of an unread one.
    fn address(&self) -> DevicePtr {
        match self {
            RecordedInput::Unread => DevicePtr(0),
            RecordedInput::Copied(place) => place.at,
            RecordedInput::Fixed(address) => *address,
        }
    }
}
