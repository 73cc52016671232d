//! Runs an executable stage by stage, with a cursor that can be suspended at any stage.

use super::callback::OpenCallback;
use super::flow::OpenFlow;
use super::inputs::{HeldValue, StageInputs, not_held};
use super::plan::OpenPlan;
use super::stage_call::{ExecutableRequest, StageCall, StageEnd, TurnEnd};
use super::{Executable, Stage, StageKind, ValueSource};
use crate::ir::describe;
use crate::memory::constants::allocate;
use crate::plan::GraphInputs;
use mxrt_engine::{Failure, FailureKind, OpError};
use mxrt_ops::{KernelOptions, run_data_dependent};
use mxrt_tensor::{TensorRef, TensorType};
use smallvec::SmallVec;

/// Progress of a request: the current stage, and the values between stages.
#[derive(Default)]
pub(in crate::run) struct Cursor {
    stage: usize,
    /// values by number; `None` before they are made and after their last use
    held: Vec<Option<HeldValue>>,
    /// stage that has begun
    open: Option<OpenStage>,
}

/// A stage that has begun and not ended.
pub(super) enum OpenStage {
    Plan(OpenPlan),
    Callback(OpenCallback),
    Flow(OpenFlow),
}

impl Executable {
    /// Runs the stages from the cursor on.
    pub fn run(&self, request: &ExecutableRequest<'_>, at: &mut Cursor) -> Result<TurnEnd, OpError> {
        at.held.resize_with(self.values.len(), || None);
        while let Some(stage) = self.stages.get(at.stage) {
            if request.site.is_cancelled() {
                let message = "the results were dropped while the graph was running";
                return Err(OpError::new(FailureKind::Cancelled, message).op("CachedOp"));
            }
            let failed =
                |failure: &Failure| stage.makes.iter().map(|_| HeldValue::failed(None, failure)).collect::<Vec<_>>();
            let inputs = StageInputs { sources: &stage.sources, outer: request.inputs, held: &at.held };
            let call = StageCall { request, read_once: &self.read_once, number: at.stage, inputs: &inputs };
            let made = match inputs.without_type() {
                Some(failure) => failed(&failure),
                None => match stage.run(&call, self.options, at.open.take()) {
                    Ok(StageEnd::Done(made)) => made,
                    Ok(StageEnd::Again(open)) => {
                        at.open = Some(open);
                        return Ok(TurnEnd::Again);
                    }
                    Ok(StageEnd::Suspended(open, begin)) => {
                        at.open = Some(open);
                        return Ok(TurnEnd::Suspended(begin));
                    }
                    Err(error) => failed(&request.site.failure(error)),
                },
            };
            for (value, made) in stage.makes.iter().zip(made) {
                at.held[*value] = Some(made);
            }
            self.last_uses.over(at.stage, stage).for_each(|value| at.held[value] = None);
            at.stage += 1;
        }
        self.results(request, std::mem::take(&mut at.held)).map(TurnEnd::Done)
    }

    /// Takes the results out of the values that are left.
    fn results(
        &self,
        request: &ExecutableRequest<'_>,
        mut held: Vec<Option<HeldValue>>,
    ) -> Result<Vec<HeldValue>, OpError> {
        let copy = |tensor: TensorRef<'_>| -> Result<HeldValue, OpError> {
            let made = TensorType::new(tensor.dtype, tensor.shape.clone());
            let mut block = allocate(request.site.memory(), made.bytes())?;
            block.as_mut_slice()[..made.bytes()].copy_from_slice(tensor.bytes());
            Ok(HeldValue::new(made, block))
        };
        let mut results = Vec::with_capacity(self.outputs.len());
        for (i, source) in self.outputs.iter().enumerate() {
            let again = self.outputs[i + 1..].contains(source);
            let inputs = StageInputs { sources: std::slice::from_ref(source), outer: request.inputs, held: &held };
            results.push(match (inputs.failure(0).cloned(), source) {
                (Some(failure), _) => HeldValue::failed(None, &failure),
                (None, ValueSource::Held(value)) if !again => held[*value].take().ok_or_else(not_held)?,
                _ => copy(inputs.tensor(0)?)?,
            });
        }
        Ok(results)
    }
}

impl Stage<StageKind> {
    fn run(
        &self,
        call: &StageCall<'_>,
        options: KernelOptions,
        open: Option<OpenStage>,
    ) -> Result<StageEnd<OpenStage>, OpError> {
        match (&self.kind, open) {
            (StageKind::Plan(segment), open) => {
                let open = if let Some(OpenStage::Plan(open)) = open { Some(open) } else { None };
                super::plan::run(segment, call, open).map(|end| end.map(OpenStage::Plan))
            }
            (StageKind::Callback(stage), open) => {
                let open = if let Some(OpenStage::Callback(open)) = open { Some(open) } else { None };
                stage.run(call, open).map(|end| end.map(OpenStage::Callback))
            }
            (StageKind::Flow(stage), open) => {
                let open = if let Some(OpenStage::Flow(open)) = open { Some(open) } else { None };
                stage.run(call, open).map(|end| end.map(OpenStage::Flow))
            }
            (StageKind::DataDependent(node), _) => {
                if let Some(failure) = call.inputs.first_failure() {
                    return Err(failure.into());
                }
                let count = self.sources.len();
                let tensors = (0..count).map(|i| call.inputs.tensor(i)).collect::<Result<SmallVec<[_; 4]>, _>>()?;
                let (par, memory) = (call.request.site.par(), call.request.site.memory());
                let made = run_data_dependent((node.op, &node.attrs), options, par, memory, &tensors);
                let made = made.map_err(|error| {
                    let types = call.inputs.all_types();
                    describe(error, (node.stands_for, &node.name, &node.attr_text), types.iter())
                })?;
                Ok(StageEnd::Done(made.into_iter().map(|(tensor, block)| HeldValue::new(tensor, block)).collect()))
            }
        }
    }
}
