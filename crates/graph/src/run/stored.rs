//! Graphs on sparse arrays.
//!
//! A call infers from the storage types of its arrays, as MXNet does, which nodes have a kernel for
//! sparse arrays, and how their results are stored. These nodes run one by one, like imperative
//! calls. The nodes between them are compiled as graphs of their own, which read dense arrays. On a
//! device such a graph is given dense copies.

use super::cached_op::CachedOp;
use super::call_options::CallOptions;
use super::executable::cut::{Cut, CutStage, StagePart, ValueSource, cut_stored};
use super::plan_cache::CallSignature;
use super::prepared::{PreparedCall, fits};
use super::started::{Started, call_error};
use crate::compile::interrupt::Interrupter;
use crate::compile::report::PlanReport;
use crate::ir::{Graph, GraphNode, Value, ValueMap, describe, infer};
use crate::plan::ValueKey;
use mxrt_engine::ForkSafeMutex as Mutex;
use mxrt_engine::{FailureKind, OpError};
use mxrt_ops::{
    Invocation, LastStoredCall, StorageChoice, choose_storage, convert_into, dense_copies_text, invoke_again,
    result_storage, to_storage,
};
use mxrt_tensor::{Context, NDArray, StorageType, TensorType};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

/// Signatures, divisions of a graph, and warnings that are remembered, of each as many.
const MAX_KNOWN: usize = 64;

/// Storage types of the inputs of a graph.
type InputStorage = SmallVec<[StorageType; 8]>;

/// Storage types and types of the inputs of a graph, and their context.
type Inputs = (InputStorage, CallSignature, Context);

/// Inputs that were looked up, and what was inferred for them.
type LastInputs = (Inputs, Arc<Inferred>);

/// Bytes of the data of a call that returns within microseconds.
const SHORT: usize = 16 << 10;

/// Whether a call on this data returns within microseconds, as far as is known.
fn is_short(data: &[&NDArray]) -> bool {
    let bytes = data.iter().try_fold(0_usize, |all, array| all.checked_add(array.estimated_bytes()?));
    bytes.is_some_and(|bytes| bytes <= SHORT)
}

/// The divisions of a graph for sparse arrays.
#[derive(Default)]
pub(super) struct StoredGraphs {
    inferred: Mutex<HashMap<Inputs, Arc<Inferred>>>,
    /// the last inputs that were looked up, so that calls on the same types compute no hash; apart, as
    /// graphs are made on small stacks
    last: Mutex<Option<Box<LastInputs>>>,
    divided: Mutex<HashMap<Arc<[bool]>, Arc<StoredGraph>>>,
    /// warnings of dense copies that nobody took yet
    warnings: Mutex<Vec<String>>,
}

impl StoredGraphs {
    /// The storage types of the graph's values for such inputs, if they were inferred before.
    fn known(&self, inputs: &Inputs) -> Option<Arc<Inferred>> {
        if let Some(last) = &*self.last.lock()
            && last.0 == *inputs
        {
            return Some(last.1.clone());
        }
        let inferred = self.inferred.lock().get(inputs).cloned()?;
        let before = self.last.lock().replace(Box::new((inputs.clone(), inferred.clone())));
        drop(before);
        Some(inferred)
    }
}

/// Storage types of a graph's values.
struct Inferred {
    /// the nodes that run on arrays as they are stored
    stored: Arc<[bool]>,
    /// whether the graph runs in parts: for these nodes, and on a device, whose kernels are given dense
    /// copies
    in_parts: bool,
    /// MXNet's warnings, one for each node that has no kernel for sparse arrays
    warnings: Vec<String>,
    /// the graph in parts, once it was divided
    divided: OnceLock<Arc<StoredGraph>>,
}

/// A graph in parts, in the order in which they run.
pub(super) struct StoredGraph {
    parts: Vec<StoredPart>,
    values: usize,
    outputs: Vec<ValueSource>,
}

struct StoredPart {
    work: Work,
    sources: Vec<ValueSource>,
    makes: Vec<usize>,
    /// whether other parts read what it makes
    is_read: bool,
}

enum Work {
    /// A graph for dense arrays.
    Dense(Box<CachedOp>),
    /// Nodes of one result each that run on arrays as they are stored.
    Stored(StoredNodes),
}

struct StoredNodes {
    graph: Graph,
    nodes: Vec<StoredNode>,
}

/// Memory of the last run of a node.
struct StoredNode {
    /// the value, if it depends on bound arrays alone
    kept: Option<Kept>,
    last: LastStoredCall,
}

/// The value of a node that reads bound arrays alone, and the keys of what it was computed from.
type Kept = Mutex<Option<(Keys, NDArray)>>;

type Keys = SmallVec<[ValueKey; 2]>;

impl StoredNodes {
    /// Nodes that read inputs of the whole graph alone may keep their value. Results of the graph,
    /// which callers may write to, do not.
    fn new(graph: Graph, sources: &[ValueSource], results: &HashSet<Value>) -> StoredNodes {
        let outer = |value: &Value| match *value {
            Value::Input(i) => matches!(sources.get(i), Some(ValueSource::Input(_))),
            Value::Node(..) => false,
        };
        let keeps = |n: usize, node: &GraphNode| {
            !node.inputs.is_empty() && node.inputs.iter().all(outer) && !results.contains(&Value::Node(n, 0))
        };
        let node = |(n, node)| StoredNode { kept: keeps(n, node).then(Kept::default), last: LastStoredCall::default() };
        let nodes = graph.nodes.iter().enumerate().map(node).collect();
        StoredNodes { graph, nodes }
    }
}

/// Whether a graph makes sparse arrays of dense ones.
pub(super) fn makes_sparse(graph: &Graph) -> bool {
    graph.nodes.iter().any(|node| mxrt_ops::makes_sparse(node.op, &node.attrs))
}

impl CachedOp {
    /// The parts for a call with sparse arrays; none if every node is computed densely.
    pub(super) fn stored_graph(
        &self,
        call: &PreparedCall<'_>,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Option<Arc<StoredGraph>>, OpError> {
        let sparse = call.binding.sparse || self.makes_sparse || call.data.iter().any(|array| array.is_sparse());
        if !sparse || !self.knows_storage || self.groups.is_some() {
            return Ok(None);
        }
        let array = |i: usize| call.binding.array(i, call.data);
        let stored = (0..self.num_inputs()).map(|i| array(i).map_or(StorageType::Default, NDArray::storage_type));
        let key = (stored.collect(), (call.types)(), call.binding.context(call.data));
        let known = self.stored.known(&key);
        let divided = known.as_ref().is_some_and(|inferred| !inferred.in_parts || inferred.divided.get().is_some());
        if interrupter.is_quick() && !(is_short(call.data) && divided) {
            return Err(interrupter.give_up());
        }
        let inferred = known.map_or_else(|| self.inferred(key), Ok)?;
        match inferred.divided.get() {
            None if inferred.in_parts => {
                let graph = self.divide(&inferred.stored)?;
                Ok(Some(inferred.divided.get_or_init(|| graph).clone()))
            }
            divided => Ok(divided.cloned()),
        }
    }

    /// Warnings, in MXNet's words, of nodes that copy sparse arrays densely: those of calls since
    /// this was asked.
    pub fn take_storage_warnings(&self) -> Vec<String> {
        if !self.knows_storage { Vec::new() } else { std::mem::take(&mut *self.stored.warnings.lock()) }
    }

    /// Says in a report of a plan what is computed with arrays as they are stored.
    pub(super) fn note_stored(&self, report: &mut PlanReport, inputs: &[&NDArray]) -> Result<(), OpError> {
        if !self.knows_storage || !(self.makes_sparse || inputs.iter().any(|array| array.is_sparse())) {
            return Ok(());
        }
        let types: Vec<TensorType> = inputs.iter().map(|array| array.tensor_type()).collect();
        let stored: InputStorage = inputs.iter().map(|array| array.storage_type()).collect();
        let inferred = self.infer_storage(&stored, &types, self.unbound.context(inputs))?;
        let named = |stored: bool| {
            let nodes = self.source.nodes.iter().zip(inferred.stored.iter()).filter(move |(_, s)| **s == stored);
            nodes.map(|(node, _)| format!("{} ({})", node.name, node.stands_for)).collect::<Vec<_>>()
        };
        let stored = named(true);
        report.note(match stored.is_empty() {
            true => "sparse arrays are copied densely: no node has a kernel for them".to_owned(),
            false => format!("with sparse arrays as they are stored, before or between plans: {}", stored.join(", ")),
        });
        Ok(())
    }

    /// Infers storage types, and remembers them.
    fn inferred(&self, key: Inputs) -> Result<Arc<Inferred>, OpError> {
        let inferred = Arc::new(self.infer_storage(&key.0, &key.1, key.2)?);
        let mut warnings = self.stored.warnings.lock();
        warnings.extend(inferred.warnings.iter().cloned());
        // A border may never take them.
        warnings.truncate(MAX_KNOWN);
        drop(warnings);
        let mut known = self.stored.inferred.lock();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(key, inferred.clone());
        Ok(inferred)
    }

    fn infer_storage(
        &self,
        inputs: &[StorageType],
        types: &[TensorType],
        context: Context,
    ) -> Result<Inferred, OpError> {
        let nodes = &self.source.nodes;
        let none = || Inferred {
            stored: vec![false; nodes.len()].into(),
            in_parts: false,
            warnings: Vec::new(),
            divided: OnceLock::new(),
        };
        // What is wrong with types is said where the graph is compiled.
        let Ok(types) = infer(&self.source, types) else { return Ok(none()) };
        let mut storage: ValueMap<StorageType> = ValueMap::default();
        storage.extend(inputs.iter().enumerate().map(|(i, stored)| (Value::Input(i), *stored)));
        let (mut stored, mut warnings) = (Vec::with_capacity(nodes.len()), Vec::new());
        for (n, node) in nodes.iter().enumerate() {
            let of = |value: &Value| storage.get(value).copied().unwrap_or(StorageType::Default);
            let reads: InputStorage = node.inputs.iter().map(of).collect();
            let (choice, result) = choose(node, &reads, &types).map_err(|error| {
                let known = node.inputs.iter().filter_map(|value| types.get(value));
                describe(error, (node.stands_for, &node.name, &node.attr_text), known)
            })?;
            if choice == StorageChoice::Warned {
                let results = vec![result; node.num_outputs()];
                warnings.push(dense_copies_text(node.op, &node.attr_text, &reads, &results, context));
            }
            let any = reads.iter().any(|s| s.is_sparse());
            stored.push(result.is_sparse() || (any && matches!(choice, StorageChoice::Kernel(_))));
            storage.insert(Value::Node(n, 0), result);
        }
        let in_parts = context.device().is_some() || stored.contains(&true);
        Ok(Inferred { stored: stored.into(), in_parts, warnings, divided: OnceLock::new() })
    }

    fn divide(&self, stored: &Arc<[bool]>) -> Result<Arc<StoredGraph>, OpError> {
        if let Some(known) = self.stored.divided.lock().get(stored) {
            return Ok(known.clone());
        }
        let Cut { stages, values, outputs } = cut_stored(&self.source, stored);
        let read: HashSet<ValueSource> = stages.iter().flat_map(|stage| stage.sources.iter().copied()).collect();
        let part = |stage: CutStage| {
            let StagePart::Segment(graph) = stage.part else { return Err(misplaced()) };
            let work = match stage.place {
                Some(STORED) => {
                    let made = graph.outputs.iter().zip(&stage.makes);
                    let given = made.filter(|(_, number)| outputs.contains(&ValueSource::Held(**number)));
                    let results = given.map(|(value, _)| *value).collect();
                    Work::Stored(StoredNodes::new(graph, &stage.sources, &results))
                }
                _ => Work::Dense(Box::new(CachedOp::of_dense(self, graph)?)),
            };
            let is_read = stage.makes.iter().any(|value| read.contains(&ValueSource::Held(*value)));
            Ok(StoredPart { work, sources: stage.sources, makes: stage.makes, is_read })
        };
        let parts = stages.into_iter().map(part).collect::<Result<Vec<StoredPart>, OpError>>()?;
        let graph = Arc::new(StoredGraph { parts, values: values.len(), outputs });
        let mut known = self.stored.divided.lock();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(stored.clone(), graph.clone());
        Ok(graph)
    }

    /// Pushes the parts.
    #[cfg_attr(debug_assertions, track_caller)]
    pub(super) fn start_stored(
        &self,
        graph: &StoredGraph,
        call: &PreparedCall<'_>,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Started, OpError> {
        let input = |i: usize| call.binding.array(i, call.data).ok_or_else(misplaced);
        let mut made: Vec<Option<NDArray>> = vec![None; graph.values];
        let read = |source: &ValueSource, made: &[Option<NDArray>]| match *source {
            ValueSource::Input(i) => input(i).cloned(),
            ValueSource::Held(value) => made.get(value).cloned().flatten().ok_or_else(misplaced),
            ValueSource::Unread => Err(misplaced()),
        };
        for part in &graph.parts {
            let arrays = part.sources.iter().map(|source| read(source, &made)).collect::<Result<Vec<_>, _>>()?;
            let results = self.start_part(part, &arrays, call, interrupter)?;
            for (value, array) in part.makes.iter().zip(results) {
                made[*value] = Some(array);
            }
        }
        let mut results: SmallVec<[NDArray; 2]> = SmallVec::new();
        for source in &graph.outputs {
            let array = read(source, &made)?;
            // Results are arrays of their own.
            let shared = matches!(source, ValueSource::Input(_)) || results.iter().any(|r| r.same_storage(&array));
            results.push(if shared { to_storage(&array, array.storage_type())? } else { array });
        }
        let Some(outputs) = call.outputs else { return Ok(Started::Known(results)) };
        fits(outputs, &results.iter().map(NDArray::tensor_type).collect::<Vec<_>>())?;
        for (from, to) in results.iter().zip(outputs) {
            convert_into(from, to)?;
        }
        Ok(Started::Known(outputs.iter().map(|a| (*a).clone()).collect()))
    }

    /// Pushes one part, which reads these arrays.
    #[cfg_attr(debug_assertions, track_caller)]
    fn start_part(
        &self,
        part: &StoredPart,
        arrays: &[NDArray],
        call: &PreparedCall<'_>,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<SmallVec<[NDArray; 2]>, OpError> {
        match &part.work {
            Work::Dense(op) => {
                let arrays = arrays.iter().map(for_plan).collect::<Result<Vec<NDArray>, OpError>>()?;
                let arrays: Vec<&NDArray> = arrays.iter().collect();
                // Its results may be dropped here when others have read them.
                let cancel_on_drop = call.options.cancel_on_drop && !part.is_read;
                let options = CallOptions { cancel_on_drop, ..*call.options };
                op.call(&arrays, None, &options, interrupter)?.arrays_unless(interrupter).map_err(call_error)
            }
            Work::Stored(nodes) => {
                let bound = |at: usize| match part.sources.get(at) {
                    Some(ValueSource::Input(i)) => call.binding.is_bound(*i),
                    _ => false,
                };
                self.run_nodes(nodes, arrays, &bound)
            }
        }
    }

    fn run_nodes(
        &self,
        nodes: &StoredNodes,
        arrays: &[NDArray],
        bound: &dyn Fn(usize) -> bool,
    ) -> Result<SmallVec<[NDArray; 2]>, OpError> {
        let graph = &nodes.graph;
        let context = arrays.first().map_or_else(Context::default, NDArray::context);
        let call = Invocation { engine: self.engine(), context, options: self.options.kernel, random: self.random() };
        let mut made: Vec<NDArray> = Vec::with_capacity(graph.nodes.len());
        for (node, StoredNode { kept, last }) in graph.nodes.iter().zip(&nodes.nodes) {
            let reads = node.inputs.iter().map(|value| value_of(*value, arrays, &made));
            let reads = reads.collect::<Result<SmallVec<[&NDArray; 4]>, OpError>>()?;
            let is_bound = |value: &Value| matches!(value, Value::Input(at) if bound(*at));
            let kept = kept.as_ref().filter(|_| node.inputs.iter().all(is_bound));
            let run = || {
                let result = invoke_again(&call, last, node.op, &node.attrs, &reads);
                let result = result.map_err(|e| if e.node.is_none() { e.node(&*node.name) } else { e })?;
                result.into_iter().next().ok_or_else(misplaced)
            };
            let result = match kept {
                Some(kept) => keep(kept, &reads, run)?,
                None => run()?,
            };
            drop(reads);
            made.push(result);
        }
        graph.outputs.iter().map(|value| value_of(*value, arrays, &made).cloned()).collect()
    }
}

/// The value of a node that was kept for the present content of what it reads, or else a new one.
fn keep(kept: &Kept, reads: &[&NDArray], run: impl FnOnce() -> Result<NDArray, OpError>) -> Result<NDArray, OpError> {
    // Keys count writes that are over. Where one is to come, a later call finds another key.
    let settled = reads.iter().all(|array| array.is_ready());
    let keys: Keys = reads.iter().map(|array| array.value_key()).collect();
    if settled
        && let Some((of, value)) = &*kept.lock()
        && *of == keys
        && value.var().failure().is_none()
    {
        return Ok(value.clone());
    }
    let value = run()?;
    let before = if settled { kept.lock().replace((keys, value.clone())) } else { None };
    drop(before);
    Ok(value)
}

/// The place of the nodes that run on arrays as they are stored; others have place 0.
pub(super) const STORED: usize = 1;

/// Decides what happens to a node, and how its first result is stored.
fn choose(
    node: &GraphNode,
    reads: &[StorageType],
    types: &ValueMap<TensorType>,
) -> Result<(StorageChoice, StorageType), OpError> {
    let sparse = reads.iter().any(|s| s.is_sparse());
    let all: Option<Vec<TensorType>> = node.inputs.iter().map(|value| types.get(value).cloned()).collect();
    let dense = if sparse { StorageChoice::Warned } else { StorageChoice::Dense };
    let Some(all) = all.filter(|_| node.flow.is_none() && !node.is_stage()) else {
        return Ok((dense, StorageType::Default));
    };
    match choose_storage(node.op, &node.attrs, reads, &all, None) {
        StorageChoice::Refused(reason) => Err(OpError::new(FailureKind::NotImplemented, reason)),
        choice => Ok((choice, result_storage(node.op, &node.attrs, reads, choice))),
    }
}

/// An array that a plan can read: on a device a dense one.
fn for_plan(array: &NDArray) -> Result<NDArray, OpError> {
    let copied = array.is_sparse() && array.context().device().is_some();
    if copied { to_storage(array, StorageType::Default) } else { Ok(array.clone()) }
}

fn value_of<'a>(value: Value, inputs: &'a [NDArray], made: &'a [NDArray]) -> Result<&'a NDArray, OpError> {
    let found = match value {
        Value::Input(i) => inputs.get(i),
        Value::Node(n, _) => made.get(n),
    };
    found.ok_or_else(misplaced)
}

fn misplaced() -> OpError {
    OpError::new(FailureKind::Operator, "a part of the graph reads a value that no part before it has made")
        .op("CachedOp")
}
