//! A [`CachedOp`] with its parameters: calls name the data only.

use super::cached_op::{CachedOp, CallOptions};
use super::inputs::InputSource;
use super::plan_cache::CallSignature;
use super::program::Program;
use crate::symbol::first_names;
use mxrt_engine::{FailureKind, OpError};
use mxrt_tensor::{Context, NDArray, ParameterSet, TensorType};
use parking_lot::RwLock;
use smallvec::SmallVec;
use std::sync::{Arc, Weak};

/// Programs that are found without looking at the parameters.
const KNOWN: usize = 8;

/// The programs of the last calls.
type RecentPrograms = SmallVec<[(CallSignature, Weak<Program>); KNOWN]>;

/// A compiled symbol together with arrays for some of its inputs, usually the parameters. These are read through one gate,
/// so that a call costs the same however many there are.
///
/// Whoever writes one of the arrays waits for the calls made before, and calls made later wait for him, as ever.
pub struct BoundOp {
    op: Arc<CachedOp>,
    params: Arc<ParameterSet>,
    sources: Arc<[InputSource]>,
    /// types of all inputs; those of the data are placeholders
    types: Vec<TensorType>,
    /// positions of the data among the inputs
    data: Vec<usize>,
    context: Option<Context>,
    known: RwLock<RecentPrograms>,
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
                    types.push(TensorType::new(mxrt_tensor::DType::F32, &[][..]));
                    data.push(i);
                }
            }
        }
        op.check_contexts(arrays.iter().enumerate().filter_map(|(i, a)| Some((i, (*a)?))))?;
        let context = params.first().map(NDArray::context);
        let params = ParameterSet::new(op.engine(), params);
        Ok(BoundOp { op, params, sources: sources.into(), types, data, context, known: RwLock::default() })
    }

    /// The graph.
    pub fn op(&self) -> &Arc<CachedOp> {
        &self.op
    }

    /// Runs the graph on the rest of its inputs. See [`CachedOp::call_with`].
    pub fn call_with(
        &self,
        data: &[&NDArray],
        outputs: Option<&[&NDArray]>,
        options: &CallOptions,
    ) -> Result<SmallVec<[NDArray; 2]>, OpError> {
        self.check(data)?;
        let program = match self.known(data) {
            Some(program) => program,
            None => self.program(data)?,
        };
        self.op.start(program, &self.sources, data, Some(&self.params), outputs, options)
    }

    /// See [`CachedOp::try_call_inline`].
    pub fn try_call_inline(
        &self,
        data: &[&NDArray],
        outputs: Option<&[&NDArray]>,
        options: &CallOptions,
    ) -> Option<Result<SmallVec<[NDArray; 2]>, OpError>> {
        let program = self.known(data).filter(|program| self.op.runs_inline(program))?;
        let start = |()| self.op.start(program, &self.sources, data, Some(&self.params), outputs, options);
        Some(self.check(data).and_then(start))
    }

    fn check(&self, data: &[&NDArray]) -> Result<(), OpError> {
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
        let params = self.sources.iter().enumerate().filter_map(|(i, s)| match s {
            InputSource::Param(p) => Some((i, &self.params.arrays()[*p])),
            InputSource::Data(_) => None,
        });
        self.op.check_contexts(params.chain(self.data.iter().copied().zip(data.iter().copied())))
    }

    fn known(&self, data: &[&NDArray]) -> Option<Arc<Program>> {
        let program = self.known.read().iter().find(|(types, _)| fit(types, data))?.1.upgrade()?;
        self.op.used(&program);
        Some(program)
    }

    fn program(&self, data: &[&NDArray]) -> Result<Arc<Program>, OpError> {
        let mut types = self.types.clone();
        for (position, array) in self.data.iter().zip(data) {
            types[*position] = array.tensor_type();
        }
        let program = self.op.program(&types)?;
        let mut known = self.known.write();
        known.retain(|(types, program)| program.strong_count() > 0 && !fit(types, data));
        known.truncate(KNOWN - 1);
        known.insert(0, (data.iter().map(|a| a.tensor_type()).collect(), Arc::downgrade(&program)));
        Ok(program)
    }
}

fn fit(types: &CallSignature, data: &[&NDArray]) -> bool {
    types.len() == data.len() && types.iter().zip(data).all(|(t, a)| t.dtype == a.dtype() && t.shape == *a.shape())
}

impl std::fmt::Debug for BoundOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BoundOp({:?}, {:?})", self.op, self.params)
    }
}
