//! A [`CachedOp`] with its parameters: calls name the data only.

use super::cached_op::{CachedOp, CompiledBody, JoinedRows, with_device};
use super::call_options::CallOptions;
use super::call_plan::CallPlan;
use super::inputs::InputSource;
use super::plan_cache::CallSignature;
use super::prepared::{Binding, PreparedCall};
use super::started::Started;
use crate::compile::interrupt::Interrupter;
use crate::symbol::first_names;
use mxrt_engine::{FailureKind, OpError};
use mxrt_tensor::{Context, DType, NDArray, ParameterSet, TensorType};
use std::sync::Arc;

/// A compiled symbol together with arrays for some of its inputs, usually the parameters. Calls
/// read these through one gate, so a call costs the same for any number of them.
///
/// A write of one of the arrays waits for the calls made before it, and later calls wait for the
/// write.
pub struct BoundOp {
    op: Arc<CachedOp>,
    binding: Binding,
    /// types of all inputs; those of the data are placeholders
    types: Vec<TensorType>,
    /// types of the graph's parameters, as the plan cache knows them; `None` if some of them are
    /// not bound
    param_types: Option<Arc<[TensorType]>>,
    /// positions of the data among the inputs
    data: Vec<usize>,
    context: Option<Context>,
}

impl BoundOp {
    /// Binds arrays to inputs, in `list_inputs()` order. `None` marks an input that calls pass.
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
        let of_call = op.data();
        let all_bound = data.iter().all(|i| of_call.contains(i));
        let param_types = match &op.body {
            CompiledBody::Plan(segment) if all_bound => Some(segment.plans().known_types(&segment.param_types(&types))),
            _ => None,
        };
        let sparse = params.iter().any(NDArray::is_sparse);
        let params = (!params.is_empty()).then(|| ParameterSet::new(op.engine(), params));
        let binding = Binding { sources: sources.into(), params, sparse, all_bound };
        Ok(BoundOp { op, binding, types, param_types, data, context })
    }

    /// Binds no array: calls pass all inputs.
    pub fn unbound(op: Arc<CachedOp>) -> BoundOp {
        let data: Vec<usize> = (0..op.num_inputs()).collect();
        let binding = Binding::unbound(op.unbound.sources.clone());
        let types = vec![TensorType::new(DType::F32, &[][..]); data.len()];
        BoundOp { op, binding, types, param_types: None, data, context: None }
    }

    /// The graph.
    pub fn op(&self) -> &Arc<CachedOp> {
        &self.op
    }

    /// The effect of joining calls into a batch, estimated from plans. `data` are types of the
    /// unbound inputs, with at least two rows.
    pub fn joined_rows(&self, data: &[TensorType]) -> Result<JoinedRows, OpError> {
        let mut types = self.types.clone();
        for (position, tensor) in self.data.iter().zip(data) {
            types[*position] = tensor.clone();
        }
        self.op.joined_rows(&types)
    }

    /// Begins a call on the unbound inputs. Returns the results before they are computed.
    ///
    /// With `outputs` the results are written to these arrays, whose shapes and dtypes must fit. If
    /// shapes of results follow from contents, this waits for the shapes. With the naive engine the
    /// call is over when this returns.
    ///
    /// Wrong numbers, shapes and dtypes of inputs are errors here. Failures of values are stored in
    /// the results and raised when they are read. If the interrupter gives up, the error has kind
    /// `Cancelled`.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn call(
        &self,
        data: &[&NDArray],
        outputs: Option<&[&NDArray]>,
        options: &CallOptions,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Started, OpError> {
        let begun = self.check(data).and_then(|()| {
            let (known, types) = (self.known(data), || self.all_types(data));
            let (binding, given) = (&self.binding, Some(&self.data[..]));
            self.op.begin(PreparedCall { binding, data, given, outputs, options, known, types: &types }, interrupter)
        });
        begun.map_err(|error| with_device(error, data))
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
                format!("this graph takes {takes} inputs besides its parameters, got {got}; they are {listed}");
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

    /// The plan for this data, found without a look at the parameters.
    fn known(&self, data: &[&NDArray]) -> Option<Arc<CallPlan>> {
        let (Some(params), CompiledBody::Plan(segment)) = (&self.param_types, &self.op.body) else { return None };
        let type_of = |input: &usize| match self.binding.sources[*input] {
            InputSource::Data(i) => data[i].tensor_type(),
            InputSource::Param(_) => self.types[*input].clone(),
        };
        let types: CallSignature = segment.data().iter().map(type_of).collect();
        segment.plans().get(params, &types)
    }

    /// Types of all inputs of a call.
    fn all_types(&self, data: &[&NDArray]) -> CallSignature {
        let mut types: CallSignature = self.types.iter().cloned().collect();
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
