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
    /// memory for the first inputs
    inputs: Vec<RecordedPlace>,
    /// addresses of the other inputs in every call
    fixed: Vec<DevicePtr>,
    outputs: Vec<RecordedPlace>,
}

/// Memory of the recording.
#[derive(Clone, Copy)]
struct RecordedPlace {
    at: DevicePtr,
    bytes: usize,
}

impl RecordedCall {
    /// Records the work that `submit` submits for arguments in memory of the recording: the first
    /// `copied` inputs, the outputs, and `scratch` bytes. The other inputs keep their present
    /// addresses. `None`: the device records nothing, or one of those is memory of this call alone.
    pub fn record(
        ctx: &DeviceCtx<'_>,
        at: &DeviceArguments,
        copied: usize,
        scratch: usize,
        submit: impl FnOnce(&DeviceArguments) -> Result<(), OpError>,
    ) -> Result<Option<RecordedCall>, OpError> {
        if at.aside.iter().skip(copied).any(|aside| *aside) {
            return Ok(None);
        }
        let place = |bytes: &usize| ctx.scratch((*bytes).max(1)).map(|at| RecordedPlace { at, bytes: *bytes });
        let recorded = ctx.record_work(|| {
            let inputs = at.input_bytes.iter().take(copied).map(place).collect::<Result<Vec<_>, OpError>>()?;
            let outputs = at.output_bytes.iter().map(place).collect::<Result<Vec<_>, OpError>>()?;
            let fixed: Vec<DevicePtr> = at.inputs.iter().skip(copied).copied().collect();
            let arguments = DeviceArguments {
                inputs: inputs.iter().map(|place| place.at).chain(fixed.iter().copied()).collect(),
                outputs: outputs.iter().map(|place| place.at).collect(),
                input_bytes: at.input_bytes.clone(),
                output_bytes: at.output_bytes.clone(),
                aside: at.aside.clone(),
                scratch: ctx.scratch(scratch.max(1))?,
            };
            submit(&arguments)?;
            Ok((inputs, fixed, outputs))
        })?;
        Ok(recorded.map(|(work, (inputs, fixed, outputs))| RecordedCall {
            work: Arc::new(work),
            inputs,
            fixed,
            outputs,
        }))
    }

    /// Whether it can stand for a call with these arguments.
    pub fn fits(&self, at: &DeviceArguments) -> bool {
        let same = |places: &[RecordedPlace], bytes: &[usize]| {
            places.iter().map(|place| place.bytes).eq(bytes.iter().copied())
        };
        let copied = self.inputs.len();
        at.inputs.get(copied..).is_some_and(|fixed| *fixed == *self.fixed)
            && same(&self.inputs, &at.input_bytes[..copied])
            && same(&self.outputs, &at.output_bytes)
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
    pub fn submit(&self, ctx: &DeviceCtx<'_>, at: &DeviceArguments) -> Result<(), OpError> {
        if !self.fits(at) {
            return Err(OpError::new(FailureKind::Value, "work that was recorded for other arrays"));
        }
        let arguments: SmallVec<[_; 4]> = self.inputs.iter().zip(at.inputs.iter().copied()).collect();
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
