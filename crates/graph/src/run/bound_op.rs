//! A [`CachedOp`] with its parameters: calls name the data only.

use super::cached_op::{Binding, CachedOp, JoinedRows, with_device};
use super::call_options::CallOptions;
use super::inputs::InputSource;
use super::late::settle;
use super::plan_cache::CallSignature;
use super::program::Program;
use crate::compile::interrupt::Interrupter;
use crate::symbol::first_names;
use mxrt_engine::{FailureKind, OpError};
use mxrt_tensor::{Context, DType, LateArray, NDArray, ParameterSet, TensorType};
use smallvec::SmallVec;
use std::sync::Arc;

/// Calls with more inputs never run inline where none is bound: looking their plan up takes long
/// itself.
const MAX_INLINE_INPUTS: usize = 4;

/// A compiled symbol together with arrays for some of its inputs, usually the parameters. These are
/// read through one gate, so that a call costs the same however many there are.
///
/// A write of one of the arrays waits for the calls made before, and calls made later wait for it.
pub struct BoundOp {
    op: Arc<CachedOp>,
    binding: Binding,
    /// types of all inputs; those of the data are placeholders
    types: Vec<TensorType>,
    /// types of the graph's parameters, as the plan cache knows them; none if some of them are not
    /// bound
    param_types: Option<Arc<[TensorType]>>,
    /// positions of the data among the inputs
    data: Vec<usize>,
    context: Option<Context>,
}

impl BoundOp {
    /// Binds arrays to inputs, in `list_inputs()` order; None where a call's argument goes.
    pub fn new(op: Arc<CachedOp>, arrays: &[Option<&NDArray>]) -> Result<BoundOp, OpError> {
        op.check_count(arrays.len())?;
        let (mut sources, mut types, mut data, mut params) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (i, array) in arrays.iter().enumerate() {
            match array {
                Some(array) => {
                    sources.push(InputSource::Param(params.len()));
                    types.push(array.tensor_type());
                    params.push((*array).clone());
                }
                None => {
                    sources.push(InputSource::Data(data.len()));
                    types.push(TensorType::new(DType::F32, &[][..]));
                    data.push(i);
                }
            }
        }
        op.check_contexts(arrays.iter().enumerate().filter_map(|(i, a)| Some((i, (*a)?))))?;
        let context = params.first().map(NDArray::context);
        let all_bound = data.iter().all(|i| op.data.contains(i));
        let param_types = all_bound.then(|| op.plans().known_types(&op.param_types(&types)));
        let params = (!params.is_empty()).then(|| ParameterSet::new(op.engine(), params));
        let binding = Binding { sources: sources.into(), params, random: None };
        Ok(BoundOp { op, binding, types, param_types, data, context })
    }

    /// The same symbol with no array bound: calls name all inputs.
    pub fn unbound(op: Arc<CachedOp>) -> BoundOp {
        let data: Vec<usize> = (0..op.num_inputs()).collect();
        let binding = Binding { sources: op.unbound.sources.clone(), params: None, random: None };
        let types = vec![TensorType::new(DType::F32, &[][..]); data.len()];
        BoundOp { op, binding, types, param_types: None, data, context: None }
    }

    /// The graph.
    pub fn op(&self) -> &Arc<CachedOp> {
        &self.op
    }

    /// What joining calls into a batch does, by the plan's estimates. `data` are types of the rest
    /// of the inputs with at least two rows.
    pub fn joined_rows(&self, data: &[TensorType]) -> Result<JoinedRows, OpError> {
        let mut types = self.types.clone();
        for (position, tensor) in self.data.iter().zip(data) {
            types[*position] = tensor.clone();
        }
        self.op.joined_rows(&types)
    }

    /// Runs the graph on the rest of its inputs. See [`CachedOp::call_with`].
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn call_with(
        &self,
        data: &[&NDArray],
        outputs: Option<&[&NDArray]>,
        options: &CallOptions,
    ) -> Result<SmallVec<[NDArray; 2]>, OpError> {
        self.call_unless(data, outputs, options, &mut Interrupter::never())
    }

    /// The same; when the interrupter gives up while a plan is built, the error has kind
    /// `Cancelled`.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn call_unless(
        &self,
        data: &[&NDArray],
        outputs: Option<&[&NDArray]>,
        options: &CallOptions,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<SmallVec<[NDArray; 2]>, OpError> {
        if self.op.is_late() {
            let late = self.call_late(data, options, interrupter)?;
            return settle(self.op.engine(), &late, outputs).map_err(|error| with_device(error, data));
        }
        let made = self.check(data).and_then(|()| {
            let program = match self.known(data) {
                Some(program) => program,
                None => self.op.program(&self.all_types(data), &self.data, interrupter)?,
            };
            self.op.start(program, &self.binding, data, outputs, options)
        });
        made.map_err(|error| with_device(error, data))
    }

    /// The same for a graph that [is late](CachedOp::is_late): returns before it has run.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn call_late(
        &self,
        data: &[&NDArray],
        options: &CallOptions,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<SmallVec<[LateArray; 2]>, OpError> {
        let start = |()| self.op.start_late(&self.binding, data, self.all_types(data), options, interrupter);
        self.check(data).and_then(start).map_err(|error| with_device(error, data))
    }

    /// The same if it takes a few microseconds in the calling thread. None if there is no plan yet,
    /// or one that would run here for longer.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn try_call_inline(
        &self,
        data: &[&NDArray],
        outputs: Option<&[&NDArray]>,
        options: &CallOptions,
    ) -> Option<Result<SmallVec<[NDArray; 2]>, OpError>> {
        if data.len() != self.data.len() || self.op.is_late() {
            return None;
        }
        let program = match self.known(data) {
            None if self.types.len() <= MAX_INLINE_INPUTS => self.op.find(&self.all_types(data)),
            known => known,
        };
        let program = program.filter(|program| self.op.runs_inline(program))?;
        let start = |()| self.op.start(program, &self.binding, data, outputs, options);
        Some(self.check(data).and_then(start).map_err(|error| with_device(error, data)))
    }

    fn check(&self, data: &[&NDArray]) -> Result<(), OpError> {
        if self.binding.params.is_none() {
            self.op.check_count(data.len())?;
        }
        if data.len() != self.data.len() {
            let (takes, got) = (self.data.len(), data.len());
            let names: Vec<&str> = self.data.iter().map(|i| self.op.input_name(*i)).collect();
            let listed = first_names(&names);
            let message =
                format!("this graph takes {takes} inputs beside its parameters, got {got}; they are {listed}");
            return Err(OpError::new(FailureKind::Value, message).op("CachedOp"));
        }
        let Some(context) = self.context.or_else(|| data.first().map(|a| a.context())) else { return Ok(()) };
        if data.iter().all(|a| a.context() == context) {
            return Ok(());
        }
        let bound = self.binding.params.as_ref().map_or(&[][..], |set| set.arrays());
        let params = self.binding.sources.iter().enumerate().filter_map(|(i, source)| match source {
            InputSource::Param(p) => Some((i, &bound[*p])),
            InputSource::Data(_) => None,
        });
        self.op.check_contexts(params.chain(self.data.iter().copied().zip(data.iter().copied())))
    }

    /// The program for this data, found without looking at the parameters.
    fn known(&self, data: &[&NDArray]) -> Option<Arc<Program>> {
        let params = self.param_types.as_ref()?;
        let type_of = |input: &usize| match self.binding.sources[*input] {
            InputSource::Data(i) => data[i].tensor_type(),
            InputSource::Param(_) => self.types[*input].clone(),
        };
        let types: CallSignature = self.op.data.iter().map(type_of).collect();
        self.op.plans().get(params, &types)
    }

    /// Types of all inputs of a call.
    fn all_types(&self, data: &[&NDArray]) -> Vec<TensorType> {
        let mut types = self.types.clone();
        for (position, array) in self.data.iter().zip(data) {
            types[*position] = array.tensor_type();
        }
        types
    }
}

impl std::fmt::Debug for BoundOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BoundOp({:?}, {:?})", self.op, self.binding.params)
    }
}
