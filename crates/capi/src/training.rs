//! The mode of training, which belongs to a thread, and operators that compute something else in
//! it.

use crate::border::{Error, c_functions};
use crate::pointers::put;
use crate::runtime::runtime;
use mxrt::Symbol;
use mxrt::internal::symbol::{Node, NodeEntry, differs_in_training, may_differ_in_training};
use mxrt::internal::{ExecutorSite, ForkSafeMutex, Interrupter, OpDef, TrainingOp};
use mxrt::{CallOptions, NDArray};
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::ffi::c_int;
use std::sync::Arc;

thread_local! {
    static TRAINS: Cell<bool> = const { Cell::new(false) };
    static RECORDS: Cell<bool> = const { Cell::new(false) };
}

/// Whether calls of this thread compute as in training.
pub(crate) fn trains() -> bool {
    TRAINS.get()
}

/// The environment of graphs that are compiled for callers.
pub(crate) fn site() -> Result<ExecutorSite, Error> {
    let runtime = runtime()?;
    Ok(ExecutorSite { engine: runtime.engine, options: runtime.plans, random: runtime.random.clone() })
}

/// An operator, the number of inputs and the attributes of a call.
type CallKey = (&'static str, usize, Vec<(String, String)>);

/// Operators with their attributes, as graphs that compute as in training.
static OPERATORS: ForkSafeMutex<Option<HashMap<CallKey, Arc<TrainingOp>>>> = ForkSafeMutex::new(None);
/// Number of them that are kept.
const KEPT: usize = 256;

/// Calls an operator of the library as in training. `None` if the thread does not train, or the
/// operator computes the same.
pub(crate) fn call(
    def: &'static OpDef,
    attrs: &[(String, String)],
    inputs: &[&NDArray],
    outputs: Option<&[&NDArray]>,
) -> Result<Option<Vec<NDArray>>, Error> {
    if !trains() || !may_differ_in_training(def) {
        return Ok(None);
    }
    if !differs_in_training(def, &def.parse_attrs(attrs.iter().map(|(key, value)| (&**key, &**value)))?) {
        return Ok(None);
    }
    let Some(op) = operator(def, attrs, inputs.len())? else { return Ok(None) };
    let started = op.call(inputs, outputs, &CallOptions::default(), &mut Interrupter::never())?;
    Ok(Some(started.arrays()?.into_iter().collect()))
}

/// The graph of one operator, as in training.
fn operator(def: &'static OpDef, attrs: &[(String, String)], inputs: usize) -> Result<Option<Arc<TrainingOp>>, Error> {
    let mut sorted = attrs.to_vec();
    sorted.sort_unstable();
    let key = (def.name, inputs, sorted);
    if let Some(op) = OPERATORS.lock().as_ref().and_then(|known| known.get(&key)) {
        return Ok(Some(op.clone()));
    }
    let variable = |i| NodeEntry::new(Node::variable(format!("input{i}"), BTreeMap::new()), 0);
    let node = Node::operator(def, def.name, attrs.iter().cloned().collect(), (0..inputs).map(variable).collect())?;
    let outputs = (0..node.num_outputs()).map(|i| NodeEntry::new(node.clone(), i)).collect();
    let Some(op) = TrainingOp::compile(&site()?, &Symbol::from_entries(outputs))?.map(Arc::new) else {
        return Ok(None);
    };
    keep(key, op.clone());
    Ok(Some(op))
}

fn keep(key: CallKey, op: Arc<TrainingOp>) {
    let mut operators = OPERATORS.lock();
    let known = operators.get_or_insert_default();
    let surplus = if known.len() < KEPT { HashMap::new() } else { std::mem::take(known) };
    known.insert(key, op);
    drop(operators);
    drop(surplus);
}

c_functions! {
    /// Whether the thread records. Nothing is recorded.
    fn MXAutogradIsRecording(curr: *mut bool) {
        put(curr, RECORDS.get(), "curr")
    }

    /// Whether the thread computes as in training.
    fn MXAutogradIsTraining(curr: *mut bool) {
        put(curr, TRAINS.get(), "curr")
    }

    /// Sets what `MXAutogradIsRecording` says in this thread. Nothing is recorded:
    /// `MXAutogradBackward` fails.
    fn MXAutogradSetIsRecording(is_recording: c_int, prev: *mut c_int) {
        put(prev, c_int::from(RECORDS.get()), "prev")?;
        RECORDS.set(is_recording != 0);
        Ok(())
    }

    /// Makes this thread compute as in training (1) or as in inference (0): operators and
    /// CachedOps. Dropout drops elements, between the layers of RNN too; BatchNorm takes the
    /// statistics of the batch and leaves its moving averages unchanged; a `Custom` operator is
    /// told.
    fn MXAutogradSetIsTraining(is_training: c_int, prev: *mut c_int) {
        put(prev, c_int::from(TRAINS.get()), "prev")?;
        TRAINS.set(is_training != 0);
        Ok(())
    }

    /// Accepted without effect: blocks mark their parameters while they load.
    fn MXAutogradMarkVariables(
        num_var: u32,
        var_handles: *mut crate::NDArrayHandle,
        reqs_array: *mut u32,
        grad_handles: *mut crate::NDArrayHandle,
    ) {
        let _ = (num_var, var_handles, reqs_array, grad_handles);
        Ok(())
    }
}
