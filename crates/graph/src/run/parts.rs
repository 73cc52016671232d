//! Graphs that no single op of the engine can run: stages that are ops of their own.
//!
//! | stage | does |
//! | --- | --- |
//! | `Graph` | calls a part of the graph, which is compiled as a graph of its own |
//! | `Operators` | runs nodes one by one on arrays as they are stored, like imperative calls |
//! | `Transfer` | copies a value to another context, or densely |
//!
//! A call pushes them in order and returns at once. They cannot be stages of one [cursor]: an op that
//! pushed them while it runs would find them queued after what the caller has written since to the
//! arrays that they read, and these writes wait for the op to end.
//!
//! [cursor]: super::executable::cursor

use super::cached_op::CachedOp;
use super::call_options::CallOptions;
use super::executable::cut::{Cut, LastUses, STORED, Stage, StagePart, ValueSource, cut_by_place, cut_stored};
use super::executable::inputs::not_held;
use super::prepared::PreparedCall;
use super::started::{Started, call_error};
use super::stored_nodes::StoredNodes;
use crate::compile::interrupt::Interrupter;
use crate::ir::Value;
use mxrt_engine::OpError;
use mxrt_ops::{Invocation, to_storage};
use mxrt_tensor::{Context, NDArray, StorageType, TensorType};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};

/// Places of the nodes of a graph.
#[derive(PartialEq)]
pub(super) enum NodePlaces {
    Contexts {
        /// context of each node
        nodes: Vec<Context>,
        /// context of the results; none: they stay where they are computed
        results: Option<Context>,
    },
    Storage {
        /// flag for each node: it runs on arrays as they are stored
        nodes: Vec<bool>,
        /// whether the arrays are on a device
        on_device: bool,
    },
}

/// A graph in stages that are ops of their own.
pub(super) struct PartedGraph {
    pub places: NodePlaces,
    stages: Vec<Stage<PartKind>>,
    /// number of the values that outlive their stage
    values: usize,
    last_uses: LastUses,
    outputs: Vec<ValueSource>,
    /// whether no other call may come between: copies of states go to the host and back
    in_order: bool,
    /// whether nobody notices that some parts were pushed before a call was given up and begun again
    pub repeatable: bool,
}

enum PartKind {
    Graph(Box<GraphPart>),
    Operators(StoredNodes),
    Transfer(Transfer),
}

struct GraphPart {
    op: CachedOp,
    /// how its inputs come to where it reads them
    transfer: Option<Transfer>,
    /// sources of its inputs before that
    origins: Vec<ValueSource>,
}

/// A copy of a value, unless it is there already.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Transfer {
    To(Context),
    Dense,
}

impl Transfer {
    fn of(self, array: &NDArray) -> Result<NDArray, OpError> {
        match self {
            Transfer::To(context) if array.context() != context => array.copy_to_context(context),
            Transfer::Dense if array.is_sparse() => to_storage(array, StorageType::Default),
            _ => Ok(array.clone()),
        }
    }
}

impl PartedGraph {
    /// Divides a graph by the places of its nodes, and compiles the parts.
    pub fn new(whole: &CachedOp, places: NodePlaces) -> Result<PartedGraph, OpError> {
        let mut assembly = Assembly::default();
        let outputs = match &places {
            NodePlaces::Contexts { nodes, results } => assembly.by_context(whole, nodes, *results)?,
            NodePlaces::Storage { nodes, on_device } => assembly.by_storage(whole, nodes, *on_device)?,
        };
        let Assembly { stages, values, .. } = assembly;
        let last_uses = LastUses::new(&stages, values, &outputs);
        let in_order = matches!(places, NodePlaces::Contexts { results: Some(_), .. }) && whole.states.len() > 0;
        let repeatable = !whole.source.nodes.iter().any(|node| node.is_random() || node.is_stage());
        Ok(PartedGraph { places, stages, values, last_uses, outputs, in_order, repeatable })
    }

    /// Builds the plans of the graphs for these types of the inputs, and gives each graph, its context
    /// and the types that it reads to `f`. Ends where types are known only after a stage has run.
    pub fn each_graph(
        &self,
        inputs: &[TensorType],
        interrupter: &mut Interrupter<'_>,
        mut f: impl FnMut(&CachedOp, Context, &[TensorType]) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        let mut made: Vec<Option<TensorType>> = vec![None; self.values];
        for stage in &self.stages {
            let type_of = |source: &ValueSource| source.find(|i| inputs.get(i), |v| made[v].as_ref()).cloned();
            let types = stage.sources.iter().map(type_of).collect::<Option<Vec<_>>>().ok_or_else(not_held)?;
            let results = match &stage.kind {
                PartKind::Graph(part) => {
                    let results = part.op.result_types(&types, interrupter)?;
                    f(&part.op, part.context(), &types)?;
                    results
                }
                PartKind::Operators(_) => None,
                PartKind::Transfer(_) => Some(types),
            };
            let Some(results) = results else { return Ok(()) };
            stage.makes.iter().zip(results).for_each(|(value, tensor)| made[*value] = Some(tensor));
        }
        Ok(())
    }

    /// Whether another stage reads what one makes.
    fn is_read(&self, stage: &Stage<PartKind>) -> bool {
        let mut read = self.stages.iter().flat_map(|other| &other.sources).filter_map(|source| source.held());
        read.any(|value| stage.makes.contains(&value))
    }
}

/// Stages that are being added, one after the other.
#[derive(Default)]
struct Assembly {
    stages: Vec<Stage<PartKind>>,
    values: usize,
    /// values after transfers, by those before
    there: HashMap<(ValueSource, Transfer), ValueSource>,
}

impl Assembly {
    /// Adds the parts of a graph whose nodes are on contexts. Returns the sources of the results.
    fn by_context(
        &mut self,
        whole: &CachedOp,
        contexts: &[Context],
        results: Option<Context>,
    ) -> Result<Vec<ValueSource>, OpError> {
        // All contexts of the host are one.
        let of = |context: &Context| if context.device().is_some() { *context } else { Context::default() };
        let mut places: Vec<Context> = Vec::new();
        let number = |context: &Context| match places.iter().position(|place| *place == of(context)) {
            Some(number) => number,
            None => {
                places.push(of(context));
                places.len() - 1
            }
        };
        let numbers: Vec<usize> = contexts.iter().map(number).collect();
        let Cut { stages, values, outputs } = cut_by_place(&whole.source, &numbers);
        self.values = values.len();
        if let Some(context) = results {
            let input = |i| ((ValueSource::Input(i), Transfer::To(context)), ValueSource::Input(i));
            self.there.extend((0..whole.num_inputs()).map(input));
        }
        for Stage { kind, sources, makes } in stages {
            let StagePart::Segment(graph, place) = kind else { return Err(not_held()) };
            let op = CachedOp::of_part(whole, graph, true)?;
            let context = *places.get(place).ok_or_else(not_held)?;
            self.graph(GraphPart { op, transfer: Some(Transfer::To(context)), origins: sources }, makes);
        }
        let at_home = |source| results.map_or(source, |context| self.transferred(source, Transfer::To(context)));
        Ok(outputs.into_iter().map(at_home).collect())
    }

    /// Adds the parts of a graph of which some nodes run on arrays as they are stored; on a device the
    /// others are given dense copies. Returns the sources of the results.
    fn by_storage(&mut self, whole: &CachedOp, stored: &[bool], on_device: bool) -> Result<Vec<ValueSource>, OpError> {
        let Cut { stages, values, outputs } = cut_stored(&whole.source, stored);
        self.values = values.len();
        for Stage { kind, sources, makes } in stages {
            let StagePart::Segment(graph, place) = kind else { return Err(not_held()) };
            if place == STORED {
                let given = |number: &usize| outputs.contains(&ValueSource::Held(*number));
                let results = graph.outputs.iter().zip(&makes).filter(|(_, number)| given(number));
                let results: HashSet<Value> = results.map(|(value, _)| *value).collect();
                let kind = PartKind::Operators(StoredNodes::new(graph, &sources, &results));
                self.stages.push(Stage { kind, sources, makes });
            } else {
                let op = CachedOp::of_part(whole, graph, false)?;
                let transfer = on_device.then_some(Transfer::Dense);
                self.graph(GraphPart { op, transfer, origins: sources }, makes);
            }
        }
        Ok(outputs)
    }

    /// Adds a graph, after transfers of what it reads.
    fn graph(&mut self, part: GraphPart, makes: Vec<usize>) {
        let transfer = part.transfer;
        let there = |source: &ValueSource| transfer.map_or(*source, |transfer| self.transferred(*source, transfer));
        let sources: Vec<ValueSource> = part.origins.iter().map(there).collect();
        // Operators that read nothing run on the host.
        let elsewhere = sources.is_empty() && part.context().device().is_some();
        let made = if elsewhere { makes.iter().map(|_| self.value()).collect() } else { makes.clone() };
        self.stages.push(Stage { kind: PartKind::Graph(Box::new(part)), sources, makes: made.clone() });
        let Some(transfer) = transfer else { return };
        for (from, to) in made.into_iter().zip(makes) {
            if elsewhere {
                self.transfer(ValueSource::Held(from), transfer, to);
            }
            self.there.insert((ValueSource::Held(to), transfer), ValueSource::Held(to));
        }
    }

    /// The source of a value after a transfer, which is added unless the value is there.
    fn transferred(&mut self, source: ValueSource, transfer: Transfer) -> ValueSource {
        if let Some(there) = self.there.get(&(source, transfer)) {
            return *there;
        }
        let value = self.value();
        self.transfer(source, transfer, value);
        // An input may be a state, which has changed by the next transfer.
        if source.held().is_some() {
            self.there.insert((source, transfer), ValueSource::Held(value));
        }
        ValueSource::Held(value)
    }

    fn transfer(&mut self, source: ValueSource, transfer: Transfer, value: usize) {
        self.stages.push(Stage { kind: PartKind::Transfer(transfer), sources: vec![source], makes: vec![value] });
    }

    /// The number of a new value.
    fn value(&mut self) -> usize {
        self.values += 1;
        self.values - 1
    }
}

impl CachedOp {
    /// Pushes the stages.
    #[cfg_attr(debug_assertions, track_caller)]
    pub(super) fn start_parts(
        &self,
        graph: &PartedGraph,
        call: &PreparedCall<'_>,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Started, OpError> {
        let made = if graph.in_order {
            // Plans, for which the program may be asked, are built before.
            graph.each_graph(&(call.types)(), interrupter, |_, _, _| Ok(()))?;
            self.states.in_order(|| self.push_parts(graph, call, &mut Interrupter::never()))?
        } else {
            self.push_parts(graph, call, interrupter)?
        };
        let mut results: SmallVec<[NDArray; 2]> = SmallVec::new();
        for source in &graph.outputs {
            let array = array_of(*source, call, &made).ok_or_else(not_held)?;
            // Results are arrays of their own.
            let shared = matches!(source, ValueSource::Input(_)) || results.iter().any(|r| r.same_storage(array));
            results.push(if shared { to_storage(array, array.storage_type())? } else { array.clone() });
        }
        let started = Started::from_iter(results);
        match call.outputs {
            Some(outputs) => started.stored(outputs, interrupter),
            None => Ok(started),
        }
    }

    /// Pushes the stages, one after the other. Returns the values that are left.
    #[cfg_attr(debug_assertions, track_caller)]
    fn push_parts(
        &self,
        graph: &PartedGraph,
        call: &PreparedCall<'_>,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Vec<Option<NDArray>>, OpError> {
        let mut made: Vec<Option<NDArray>> = vec![None; graph.values];
        for (number, stage) in graph.stages.iter().enumerate() {
            // Results may be dropped here when others have read them.
            let cancel_on_drop = call.options.cancel_on_drop && !graph.is_read(stage);
            let options = CallOptions { cancel_on_drop, ..*call.options };
            let results =
                self.push_part(stage, &PreparedCall { options: &options, known: None, ..*call }, &made, interrupter)?;
            stage.makes.iter().zip(results).for_each(|(value, array)| made[*value] = Some(array));
            graph.last_uses.over(number, stage).for_each(|value| made[value] = None);
        }
        Ok(made)
    }

    /// Pushes a stage, which reads what those before it have made.
    #[cfg_attr(debug_assertions, track_caller)]
    fn push_part(
        &self,
        stage: &Stage<PartKind>,
        call: &PreparedCall<'_>,
        made: &[Option<NDArray>],
        interrupter: &mut Interrupter<'_>,
    ) -> Result<SmallVec<[NDArray; 2]>, OpError> {
        let arrays = stage.sources.iter().map(|source| array_of(*source, call, made));
        let arrays = arrays.collect::<Option<SmallVec<[&NDArray; 4]>>>().ok_or_else(not_held)?;
        match &stage.kind {
            PartKind::Graph(part) => {
                part.push(&arrays, call.options, |origin| array_of(origin, call, made), interrupter)
            }
            PartKind::Operators(nodes) => {
                let (engine, options, random) = (self.engine(), self.options.kernel, self.random());
                let context = arrays.first().map_or_else(Context::default, |array| array.context());
                let input = |at: usize| stage.sources.get(at)?.find(Some, |_| None);
                let bound = |at| input(at).is_some_and(|input| call.binding.is_bound(input));
                nodes.push(&Invocation { engine, context, options, random }, &arrays, bound)
            }
            PartKind::Transfer(transfer) => arrays.iter().map(|array| transfer.of(array)).collect(),
        }
    }
}

impl GraphPart {
    /// Context of what it reads and makes; that of the host where the call's arrays decide.
    fn context(&self) -> Context {
        match self.transfer {
            Some(Transfer::To(context)) => context,
            _ => Context::default(),
        }
    }

    /// Pushes the part. States that were transferred are copied back.
    #[cfg_attr(debug_assertions, track_caller)]
    fn push<'a>(
        &self,
        arrays: &[&NDArray],
        options: &CallOptions,
        origin: impl Fn(ValueSource) -> Option<&'a NDArray>,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<SmallVec<[NDArray; 2]>, OpError> {
        let started = self.op.call(arrays, None, options, interrupter)?;
        self.op.states.copy_back(arrays, |state| origin(*self.origins.get(state)?))?;
        started.arrays_unless(interrupter).map_err(call_error)
    }
}

/// The array that a stage of a call reads.
fn array_of<'a>(source: ValueSource, call: &'a PreparedCall<'_>, made: &'a [Option<NDArray>]) -> Option<&'a NDArray> {
    source.find(|i| call.binding.array(i, call.data), |value| made.get(value)?.as_ref())
}
