//! Values that stages read: inputs of the graph, and values that stages before have made.

use super::cut::ValueSource;
use crate::plan::{GraphInputs, ValueKey};
use crate::run::inputs::CallInputs;
use mxrt_engine::memory::Block;
use mxrt_engine::{Failure, FailureKind, OpError};
use mxrt_tensor::{TensorRef, TensorType};

/// Types of the inputs of a node; none of those that it does not read.
pub(super) type NodeSignature = Vec<Option<TensorType>>;

/// The inputs of an executable, with their types.
pub trait ExecutableInputs: GraphInputs {
    /// The type of an input; none if what should have made it has failed.
    fn tensor_type(&self, input: usize) -> Option<TensorType>;
}

/// The inputs of a call.
pub struct RequestInputs<'a> {
    /// contents
    pub arrays: CallInputs<'a>,
    /// types of all
    pub types: &'a [TensorType],
}

impl GraphInputs for RequestInputs<'_> {
    fn tensor(&self, input: usize) -> Result<TensorRef<'_>, OpError> {
        self.arrays.tensor(input)
    }

    fn key(&self, input: usize) -> ValueKey {
        self.arrays.key(input)
    }

    fn failure(&self, input: usize) -> Option<&Failure> {
        self.arrays.failure(input)
    }

    fn any_failed(&self) -> bool {
        self.arrays.any_failed()
    }

    fn params_key(&self) -> Option<(u64, u64)> {
        self.arrays.params_key()
    }
}

impl ExecutableInputs for RequestInputs<'_> {
    fn tensor_type(&self, input: usize) -> Option<TensorType> {
        self.types.get(input).cloned()
    }
}

/// A value that outlives its stage.
pub struct HeldValue {
    /// none if a data-dependent operator before it has failed
    pub tensor: Option<TensorType>,
    pub content: Result<Block, Failure>,
}

impl HeldValue {
    pub fn new(tensor: TensorType, block: Block) -> HeldValue {
        HeldValue { tensor: Some(tensor), content: Ok(block) }
    }

    pub fn failed(tensor: Option<TensorType>, failure: &Failure) -> HeldValue {
        HeldValue { tensor, content: Err(failure.clone()) }
    }

    pub fn view(&self) -> Result<TensorRef<'_>, OpError> {
        match self {
            HeldValue { tensor: Some(tensor), content: Ok(block) } => {
                Ok(TensorRef::new(tensor.dtype, &tensor.shape, &block.as_slice()[..tensor.bytes()]))
            }
            _ => Err(not_held()),
        }
    }
}

pub fn not_held() -> OpError {
    OpError::new(FailureKind::Operator, "a stage reads a value that no stage before it has made")
}

/// The inputs of a stage.
pub(super) struct StageInputs<'a> {
    pub sources: &'a [ValueSource],
    pub outer: &'a dyn ExecutableInputs,
    pub held: &'a [Option<HeldValue>],
}

impl StageInputs<'_> {
    fn held(&self, value: usize) -> Option<&HeldValue> {
        self.held.get(value)?.as_ref()
    }

    /// The failure of an input that has no type because of it.
    pub fn without_type(&self) -> Option<Failure> {
        let untyped = |i: &usize| !matches!(self.sources[*i], ValueSource::Unread) && self.tensor_type(*i).is_none();
        (0..self.sources.len()).filter(untyped).find_map(|i| self.failure(i).cloned())
    }

    /// The first failure of an input.
    pub fn first_failure(&self) -> Option<Failure> {
        (0..self.sources.len()).find_map(|i| self.failure(i)).cloned()
    }

    /// Types of all inputs. Called where all have one.
    pub fn all_types(&self) -> Vec<TensorType> {
        (0..self.sources.len()).filter_map(|i| self.tensor_type(i)).collect()
    }

    /// Types of all inputs; none of those that the stage does not read.
    pub fn signature(&self) -> NodeSignature {
        (0..self.sources.len()).map(|i| self.tensor_type(i)).collect()
    }

    /// The input of the whole graph that an input is.
    pub fn graph_input(&self, input: usize) -> Option<usize> {
        self.sources.get(input)?.find(Some, |_| None)
    }
}

impl GraphInputs for StageInputs<'_> {
    fn tensor(&self, input: usize) -> Result<TensorRef<'_>, OpError> {
        match *self.sources.get(input).ok_or_else(not_held)? {
            ValueSource::Input(i) => self.outer.tensor(i),
            ValueSource::Held(value) => self.held(value).ok_or_else(not_held)?.view(),
            ValueSource::Unread => Err(not_held()),
        }
    }

    fn key(&self, input: usize) -> ValueKey {
        self.graph_input(input).map_or_else(ValueKey::default, |i| self.outer.key(i))
    }

    fn failure(&self, input: usize) -> Option<&Failure> {
        let held = |value| self.held(value)?.content.as_ref().err();
        self.sources.get(input)?.find(|i| self.outer.failure(i), held)
    }

    fn any_failed(&self) -> bool {
        (0..self.sources.len()).any(|i| self.failure(i).is_some())
    }

    fn params_key(&self) -> Option<(u64, u64)> {
        self.outer.params_key()
    }
}

impl ExecutableInputs for StageInputs<'_> {
    fn tensor_type(&self, input: usize) -> Option<TensorType> {
        self.sources.get(input)?.find(|i| self.outer.tensor_type(i), |value| self.held(value)?.tensor.clone())
    }
}
