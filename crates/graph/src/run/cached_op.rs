//! [`CachedOp`]: a symbol that any number of threads call.

use super::call_options::CallOptions;
use super::executable::Executable;
use super::inputs::InputSource;
use super::placements::Placements;
use super::plan_cache::CacheStats;
use super::prepared::{Binding, PreparedCall};
use super::segment::{MEMORY_PER_NODE, Segment};
use super::staged_graph::Staged;
use super::started::Started;
use super::state_updates::StateUpdates;
use super::stored::makes_sparse;
use crate::compile::flags::{Accuracy, CachedOpFlags, mark_constants};
use crate::compile::interrupt::Interrupter;
use crate::compile::options::BuildOptions;
use crate::compile::report::PlanReport;
use crate::ir::{Graph, GraphNode};
use crate::passes;
use crate::symbol::{Symbol, first_names};
use mxrt_engine::{Engine, FailureKind, OpError, OpName, reserve};
use mxrt_ops::{ConvSignature, Precision, RandomKey, RandomState};
use mxrt_tensor::{Context, NDArray, TensorType};
use std::collections::HashMap;
use std::sync::Arc;

/// Adds the device of the inputs to an error of a call.
pub(super) fn with_device(mut error: OpError, inputs: &[&NDArray]) -> OpError {
    if let Some(first) = inputs.first() {
        error.device.get_or_insert_with(|| first.context().to_string());
    }
    error
}

/// A compiled symbol. It is `Send + Sync`: any number of threads call it concurrently, with any
/// mixture of shapes. A [`BoundOp`](super::BoundOp) holds its parameters.
pub struct CachedOp {
    engine: &'static Engine,
    name: OpName,
    /// the graph before any pass
    pub(super) source: Graph,
    pub(super) body: CompiledBody,
    /// binding that takes every input from the call
    pub(super) unbound: Binding,
    pub(super) options: BuildOptions,
    random: Arc<RandomState>,
    pub(super) states: StateUpdates,
    /// whether some device cannot run all of the graph
    pub(super) hosted: bool,
    /// context of each node of the source; `None` for that of the arrays of a call
    pub(super) groups: Option<Vec<Context>>,
    /// the graph in parts, made at the first call that needs it
    pub(super) placements: Placements,
    /// whether calls look how arrays are stored; parts of a graph that was divided so do not
    pub(super) knows_storage: bool,
    /// whether the graph makes sparse arrays of dense ones
    pub(super) makes_sparse: bool,
}

/// Contents of a compiled symbol.
pub(super) enum CompiledBody {
    /// one plan for each signature, whose calls write the results where they belong
    Plan(Arc<Segment>),
    /// several stages
    Stages(Staged),
}

/// The name of a call of the whole graph in profiles and errors. It names more than an output,
/// which would look like one of the nodes.
fn call_name(symbol: &Symbol) -> OpName {
    match symbol.list_outputs().as_slice() {
        [] => "CachedOp".into(),
        [output] => format!("CachedOp({output})").into(),
        [first, ..] => format!("CachedOp({first}, ...)").into(),
    }
}

impl CachedOp {
    /// Compiles a symbol with default options.
    pub fn new(engine: &'static Engine, symbol: &Symbol, flags: &CachedOpFlags) -> Result<CachedOp, OpError> {
        CachedOp::compile(engine, symbol, flags, BuildOptions::default())
    }

    /// Compiles a symbol. Passes that need no shapes run here, once. Plans are built at the first
    /// call of a signature. Flags take precedence over options.
    pub fn compile(
        engine: &'static Engine,
        symbol: &Symbol,
        flags: &CachedOpFlags,
        mut options: BuildOptions,
    ) -> Result<CachedOp, OpError> {
        match flags.accuracy {
            Accuracy::Default => {}
            Accuracy::Exact => options.kernel.winograd = 0,
            Accuracy::Bf16 => options.kernel.precision = Precision::Bf16,
            Accuracy::W8 => options.kernel.precision = Precision::W8,
            Accuracy::Auto => options.kernel = options.kernel.with_chosen_precision(),
        }
        options.fallback = flags.fallback.unwrap_or(options.fallback);
        reserve::check_room(symbol.topo().len().saturating_mul(MEMORY_PER_NODE))?;
        let mut graph = Graph::from_symbol(symbol)?;
        mark_constants(&mut graph, flags)?;
        CachedOp::of_graph(engine, call_name(symbol), graph, options)
    }

    /// Compiles a graph on which no pass has run.
    pub(super) fn of_graph(
        engine: &'static Engine,
        name: OpName,
        source: Graph,
        options: BuildOptions,
    ) -> Result<CachedOp, OpError> {
        let mut graph = passes::run_all(source.clone(), options.passes)?;
        let outputs = graph.outputs.len();
        let states = StateUpdates::of(&mut graph)?;
        let unbound = Binding::unbound((0..graph.inputs.len()).map(InputSource::Data).collect());
        let body = if graph.nodes.iter().any(GraphNode::is_stage) {
            let executable = Executable::new(engine, graph.clone(), options)?;
            CompiledBody::Stages(Staged::new(graph, executable, outputs))
        } else {
            CompiledBody::Plan(Arc::new(Segment::new(engine, graph, options)))
        };
        let random = Arc::new(RandomState::new(0));
        let hosted = source.nodes.iter().any(|node| node.flow.is_some() || node.is_stage());
        let (makes_sparse, placements) = (makes_sparse(&source), Placements::default());
        Ok(CachedOp {
            engine,
            name,
            source,
            body,
            unbound,
            options,
            random,
            states,
            hosted,
            groups: None,
            placements,
            knows_storage: true,
            makes_sparse,
        })
    }

    /// Compiles a part of a graph.
    pub(super) fn of_part(whole: &CachedOp, graph: Graph, knows_storage: bool) -> Result<CachedOp, OpError> {
        let op = CachedOp::of_graph(whole.engine, whole.name.clone(), graph, whole.options)?;
        Ok(CachedOp { knows_storage, ..op.with_random(whole.random.clone()) })
    }

    /// Puts nodes on contexts: those in `groups` on their own, all others on `rest`. Results stay
    /// where they are computed.
    pub fn with_groups(mut self, rest: Context, groups: &HashMap<String, Context>) -> CachedOp {
        let context = |node: &GraphNode| groups.get(&*node.name).copied().unwrap_or(rest);
        self.groups = Some(self.source.nodes.iter().map(context).collect());
        self
    }

    /// Uses this stream for random operators instead of one of its own.
    pub fn with_random(mut self, random: Arc<RandomState>) -> CachedOp {
        self.random = random;
        self
    }

    /// Number of inputs, in the order of the symbol's `list_inputs()`.
    pub fn num_inputs(&self) -> usize {
        self.graph().inputs.len()
    }

    /// Number of results.
    pub fn num_outputs(&self) -> usize {
        self.graph().outputs.len() - self.states.len()
    }

    /// Begins a call on all inputs, in `list_inputs()` order.
    /// [`BoundOp::call`](super::BoundOp::call) describes the arguments.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn call(
        &self,
        inputs: &[&NDArray],
        outputs: Option<&[&NDArray]>,
        options: &CallOptions,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Started, OpError> {
        let checked =
            self.check_count(inputs.len()).and_then(|()| self.check_contexts(inputs.iter().copied().enumerate()));
        let begun = checked.and_then(|()| {
            let types = || inputs.iter().map(|a| a.tensor_type()).collect();
            let (binding, data) = (&self.unbound, inputs);
            self.begin(
                PreparedCall { binding, data, given: None, outputs, options, known: None, types: &types },
                interrupter,
            )
        });
        begun.map_err(|error| with_device(error, inputs))
    }

    /// Whether the shapes of results may follow from contents.
    pub fn is_data_dependent(&self) -> bool {
        matches!(&self.body, CompiledBody::Stages(staged) if staged.is_data_dependent())
    }

    /// The plan for these input types.
    pub fn plan(&self, inputs: &[TensorType]) -> Result<PlanReport, OpError> {
        match &self.body {
            CompiledBody::Plan(segment) => segment.report(inputs),
            CompiledBody::Stages(staged) => {
                let types = staged.types(inputs, &mut Interrupter::never())?;
                staged.executable.report(inputs, types.as_ref())
            }
        }
    }

    /// The plan for these input types, as text.
    pub fn plan_text(&self, inputs: &[TensorType]) -> Result<String, OpError> {
        Ok(self.plan(inputs)?.to_string())
    }

    /// The distinct convolutions of the plan for these input types, for measuring their methods
    /// ([`mxrt_ops::measure`]).
    pub fn convolutions(&self, inputs: &[TensorType]) -> Result<Vec<ConvSignature>, OpError> {
        let mut signatures = match &self.body {
            CompiledBody::Plan(segment) => segment.convolutions(inputs)?,
            CompiledBody::Stages(staged) => {
                let types = staged.types(inputs, &mut Interrupter::never())?;
                staged.executable.convolutions(inputs, types.as_ref())?
            }
        };
        signatures.sort_unstable();
        signatures.dedup();
        Ok(signatures)
    }

    /// Statistics of the plan caches, added up.
    pub fn stats(&self) -> CacheStats {
        match &self.body {
            CompiledBody::Plan(segment) => segment.plans().stats(),
            CompiledBody::Stages(staged) => {
                let none = CacheStats::of_limit(self.options.cache);
                staged.executable.segments().iter().fold(none, |all, segment| all.with(segment.plans().stats()))
            }
        }
    }

    /// The graph after the passes that need no types.
    pub(super) fn graph(&self) -> &Graph {
        match &self.body {
            CompiledBody::Plan(segment) => segment.graph(),
            CompiledBody::Stages(staged) => &staged.graph,
        }
    }

    /// Name of calls in messages.
    pub(super) fn name(&self) -> &OpName {
        &self.name
    }

    /// The random stream.
    pub(super) fn random(&self) -> &Arc<RandomState> {
        &self.random
    }

    /// Draws a piece of the random stream.
    pub(super) fn draw(&self) -> RandomKey {
        self.random.draw()
    }

    /// The engine that runs the calls.
    pub(super) fn engine(&self) -> &'static Engine {
        self.engine
    }

    /// Positions of the inputs that are not parameters.
    pub(super) fn data(&self) -> Vec<usize> {
        let inputs = &self.graph().inputs;
        (0..inputs.len()).filter(|i| !inputs[*i].constant).collect()
    }

    pub(super) fn check_count(&self, given: usize) -> Result<(), OpError> {
        if given == self.graph().inputs.len() {
            return Ok(());
        }
        let names: Vec<&str> = self.graph().inputs.iter().map(|i| &*i.name).collect();
        let listed = first_names(&names);
        let message = format!("CachedOp requires {} inputs but got {given}; they are {listed}", names.len());
        Err(OpError::new(FailureKind::Value, message).op("CachedOp"))
    }

    /// The name of an input, by its position.
    pub(super) fn input_name(&self, input: usize) -> &str {
        &self.graph().inputs[input].name
    }

    /// Checks that all arrays, given with the numbers of their inputs, are on one context.
    pub(super) fn check_contexts<'a>(
        &self,
        mut arrays: impl Iterator<Item = (usize, &'a NDArray)>,
    ) -> Result<(), OpError> {
        if self.groups.is_some() {
            return Ok(());
        }
        let Some((first, array)) = arrays.next() else { return Ok(()) };
        let context = array.context();
        match arrays.find(|(_, a)| a.context() != context) {
            None => Ok(()),
            Some((other, array)) => {
                let (first, other) = (&self.graph().inputs[first].name, &self.graph().inputs[other].name);
                let message = format!(
                    "input '{other}': got an array on {}, wanted {context}, where '{first}' is: pass \
                     x.as_in_context(mx.{context}). CachedOp: all inputs must live on the same context",
                    array.context()
                );
                Err(OpError::new(FailureKind::Device, message).op("CachedOp"))
            }
        }
    }

    /// Whether the rows of calls may be joined into one batch, for inputs of at least two rows.
    pub(super) fn joined_rows(&self, types: &[TensorType]) -> Result<JoinedRows, OpError> {
        let CompiledBody::Plan(segment) = &self.body else { return Ok(JoinedRows::Dependent) };
        Ok(match segment.rows(types)? {
            None => JoinedRows::Dependent,
            Some(division) if division.side_by_side => JoinedRows::NoGain,
            Some(_) => JoinedRows::Gain,
        })
    }
}

/// Effect of joining the rows of several calls into one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinedRows {
    /// Joining is not possible: rows depend on each other, or on random numbers or states of the
    /// graph.
    Dependent,
    /// Nothing is gained: computing rows costs more than reading the weights.
    NoGain,
    /// Time is saved: the weights are read once for all rows, which costs more than computing one.
    Gain,
}

impl std::fmt::Debug for CachedOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CachedOp({}, {} inputs, {:?})", self.name.as_str(), self.num_inputs(), self.stats())
    }
}
