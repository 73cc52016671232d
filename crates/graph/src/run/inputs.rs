//! The inputs of a graph in a call, and in a part of a batch.

use crate::plan::{GraphInputs, ValueKey};
use mxrt_engine::{Engine, Failure, FailureKind, OpError};
use mxrt_tensor::{CallLaunch, NDArray, TensorRef, TensorType};

/// Source of an input of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputSource {
    /// array of the call
    Data(usize),
    /// array of the set of parameters
    Param(usize),
}

/// The inputs of a running call.
pub struct CallInputs<'a> {
    /// source of each input of the graph
    pub sources: &'a [InputSource],
    /// whether all constant inputs of the graph are parameters of the set
    pub all_bound: bool,
    /// the arrays
    pub arrays: mxrt_tensor::CallArrays<'a>,
}

impl CallInputs<'_> {
    fn source(&self, input: usize) -> Result<InputSource, OpError> {
        self.sources.get(input).copied().ok_or_else(|| no_input(input))
    }
}

fn no_input(input: usize) -> OpError {
    OpError::new(FailureKind::Operator, format!("the plan reads input {input}, which the call does not have"))
}

impl GraphInputs for CallInputs<'_> {
    fn tensor(&self, input: usize) -> Result<TensorRef<'_>, OpError> {
        match self.source(input)? {
            InputSource::Data(i) => self.arrays.input(i),
            InputSource::Param(i) => self.arrays.param(i),
        }
    }

    fn key(&self, input: usize) -> ValueKey {
        match self.sources[input] {
            InputSource::Data(i) => self.arrays.input_key(i),
            InputSource::Param(i) => self.arrays.param_key(i),
        }
    }

    fn failure(&self, input: usize) -> Option<&Failure> {
        match *self.sources.get(input)? {
            InputSource::Data(i) => self.arrays.failure(i),
            InputSource::Param(i) => self.arrays.param_failure(i),
        }
    }

    fn any_failed(&self) -> bool {
        self.arrays.any_failed()
    }

    fn params_key(&self) -> Option<(u64, u64)> {
        // A constant that the call passes is not in the key of the set.
        if self.all_bound { self.arrays.params_key() } else { None }
    }
}

/// Some rows of the inputs that are divided by rows.
pub struct BatchRows<'a> {
    /// all rows
    pub all: &'a dyn GraphInputs,
    /// types of the inputs with the rows of this part
    pub types: &'a [TensorType],
    /// whether each input is divided by rows
    pub divided: &'a [bool],
    /// first row
    pub first: usize,
}

impl GraphInputs for BatchRows<'_> {
    fn tensor(&self, input: usize) -> Result<TensorRef<'_>, OpError> {
        let whole = self.all.tensor(input)?;
        if !self.divided.get(input).copied().unwrap_or(false) {
            return Ok(whole);
        }
        let part = self.types.get(input).ok_or_else(|| no_input(input))?;
        let rows = part.shape.first().copied().unwrap_or(1).max(1);
        let at = part.bytes() / rows * self.first;
        let bytes = whole.bytes().get(at..at + part.bytes()).ok_or_else(|| no_input(input))?;
        Ok(TensorRef::new(part.dtype, &part.shape, bytes))
    }

    fn key(&self, input: usize) -> ValueKey {
        self.all.key(input)
    }

    fn failure(&self, input: usize) -> Option<&Failure> {
        self.all.failure(input)
    }

    fn any_failed(&self) -> bool {
        self.all.any_failed()
    }

    fn params_key(&self) -> Option<(u64, u64)> {
        self.all.params_key()
    }
}

/// The arrays that a call on a device reads: its inputs, then its parameters. Every call reads the
/// parameters and few ops write them, so they need not remember their readers.
pub(super) fn frozen_inputs<'a>(engine: &'static Engine, call: &CallLaunch<'a>) -> Vec<&'a NDArray> {
    let params = call.params.map_or(&[][..], |set| set.arrays());
    params.iter().for_each(|array| engine.freeze(array.var()));
    call.inputs.iter().copied().chain(params).collect()
}
