//! The stage that is an operator of the program: its call is suspended until the program answers.

use super::inputs::HeldValue;
use super::output_types::{OutputTypes, ProgramAnswer, StageTypes, TypesAnswer, not_answered};
use super::stage_call::{StageCall, StageEnd};
use crate::ir::GraphNode;
use crate::memory::constants::allocate;
use crate::plan::GraphInputs;
use mxrt_engine::{FailureKind, OpError, Resume};
use mxrt_ops::{Callback, CustomResults};
use mxrt_tensor::{TensorRef, TensorType};
use smallvec::SmallVec;
use std::sync::Arc;

/// A node that the program computes.
pub(super) struct CallbackStage {
    types: Arc<OutputTypes>,
    callback: Arc<Callback>,
}

/// A question to the program.
pub(super) enum OpenCallback {
    /// types of the outputs
    Types(TypesAnswer),
    /// contents of the outputs
    Contents(Vec<TensorType>, ProgramAnswer<CustomResults>),
}

impl CallbackStage {
    pub fn new(node: GraphNode, callback: Callback) -> CallbackStage {
        CallbackStage { types: Arc::new(OutputTypes::new(node)), callback: Arc::new(callback) }
    }

    /// Types of the outputs, then of the new states.
    pub fn types(&self) -> &OutputTypes {
        &self.types
    }

    /// Asks the program, or takes its answer.
    pub fn run(&self, call: &StageCall<'_>, open: Option<OpenCallback>) -> Result<StageEnd<OpenCallback>, OpError> {
        let asked = match open {
            Some(OpenCallback::Contents(types, answer)) => {
                let made = take_contents(call, &types, &answer);
                return Ok(StageEnd::Done(made.unwrap_or_else(|error| self.fail(call, types, error))));
            }
            Some(OpenCallback::Types(answer)) => Some(answer),
            None => None,
        };
        let types = match self.types.of_call(call, asked.as_ref())? {
            StageTypes::Known(types) => types.iter().cloned().collect::<Option<Vec<_>>>(),
            StageTypes::Asked(answer, begin) => {
                return Ok(StageEnd::Suspended(OpenCallback::Types(answer), begin));
            }
        };
        let unknown = || OpError::new(FailureKind::Shape, "the class leaves shapes or dtypes of outputs unknown");
        self.ask_contents(call, types.ok_or_else(|| self.types.describe(call, unknown()))?)
    }

    fn ask_contents(&self, call: &StageCall<'_>, types: Vec<TensorType>) -> Result<StageEnd<OpenCallback>, OpError> {
        if let Some(failure) = call.inputs.first_failure() {
            let made = types.into_iter().map(|t| HeldValue::failed(Some(t), &failure));
            return Ok(StageEnd::Done(made.collect()));
        }
        let count = self.types.node().inputs.len();
        let inputs = (0..count).map(|i| call.inputs.tensor(i)).collect::<Result<SmallVec<[TensorRef<'_>; 4]>, _>>();
        let arrays = match inputs.and_then(|inputs| self.callback.arrays(call.request.engine, &inputs, &types)) {
            Ok(arrays) => arrays,
            Err(error) => return Ok(StageEnd::Done(self.fail(call, types, error))),
        };
        let answer: ProgramAnswer<CustomResults> = Arc::default();
        let (callback, told) = (self.callback.clone(), answer.clone());
        let begin = move |resume: Resume| {
            let reply = move |results: CustomResults| {
                let _ = told.set(results);
                resume.resume();
            };
            callback.begin(arrays, Box::new(reply));
        };
        Ok(StageEnd::Suspended(OpenCallback::Contents(types, answer), Box::new(begin)))
    }

    /// Makes the values of a failed call. The types stay: later plans compute what does not depend on
    /// it.
    fn fail(&self, call: &StageCall<'_>, types: Vec<TensorType>, error: OpError) -> Vec<HeldValue> {
        let failure = call.request.site.failure(self.types.describe(call, error));
        types.into_iter().map(|t| HeldValue::failed(Some(t), &failure)).collect()
    }
}

/// The values that the program has made.
fn take_contents(
    call: &StageCall<'_>,
    types: &[TensorType],
    answer: &ProgramAnswer<CustomResults>,
) -> Result<Vec<HeldValue>, OpError> {
    let results = answer.get().ok_or_else(not_answered)?.as_ref().map_err(OpError::clone)?;
    check(results, types)?;
    let memory = call.request.site.memory();
    let hold = |(tensor, bytes): (&TensorType, &Vec<u8>)| {
        let mut block = allocate(memory, bytes.len())?;
        block.as_mut_slice()[..bytes.len()].copy_from_slice(bytes);
        Ok(HeldValue::new(tensor.clone(), block))
    };
    types.iter().zip(results).map(hold).collect()
}

/// Results have the types that the class has said.
fn check(results: &[Vec<u8>], types: &[TensorType]) -> Result<(), OpError> {
    let fits = |(bytes, tensor): (&Vec<u8>, &TensorType)| bytes.len() == tensor.bytes();
    if results.len() == types.len() && results.iter().zip(types).all(fits) {
        return Ok(());
    }
    let message = "an operator of the program has made outputs of other sizes than it said";
    Err(OpError::new(FailureKind::Shape, message))
}
