//! [`CachedOp`]: a symbol that any number of threads call.

use super::build_turn::BuildTurn;
use super::call_options::CallOptions;
use super::device_program::DeviceConstants;
use super::explain::explain;
use super::inputs::InputSource;
use super::late::{LateGraph, settle};
use super::plan_cache::{CacheStats, CallSignature, PlanCache};
use super::program::{DividedBatch, Program};
use super::rows::{self, Division};
use super::state_updates::StateUpdates;
use crate::compile::build::{BuildOptions, Plan, SharedPlans};
use crate::compile::flags::{Accuracy, CachedOpFlags, mark_constants};
use crate::compile::interrupt::Interrupter;
use crate::compile::report::PlanReport;
use crate::ir::{Graph, GraphNode};
use crate::passes;
use crate::symbol::{Symbol, first_names};
use mxrt_engine::ForkSafeMutex as Mutex;
use mxrt_engine::{Cost, Engine, EngineKind, FailureKind, OpError, OpName, reserve};
use mxrt_ops::{ConvSignature, Precision, Question, RandomKey, RandomState};
use mxrt_tensor::{Context, NDArray, ParameterSet, TensorType};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// Memory that passes, and again a plan, take for each node, about.
const MEMORY_PER_NODE: usize = 4 << 10;

/// Plans estimated below this run inline even where other threads wait for the calling thread.
const INLINE_NS: u64 = 10_000;

/// Shapes of single rows for which the division of batches is remembered.
const MAX_DIVISIONS: usize = 64;

/// Errors of a call say where it would have run.
pub(super) fn with_device(mut error: OpError, inputs: &[&NDArray]) -> OpError {
    if let Some(first) = inputs.first() {
        error.device.get_or_insert_with(|| first.context().to_string());
    }
    error
}

/// A compiled symbol. `Send + Sync`: any number of threads call it, with any mixture of shapes, at
/// the same time.
pub struct CachedOp {
    pub(super) engine: &'static Engine,
    pub(super) name: OpName,
    graph: Graph,
    /// positions of the inputs that are parameters, and of the others
    params: Vec<usize>,
    pub(super) data: Vec<usize>,
    /// every input is an array of the call
    pub(super) unbound: Binding,
    pub(super) options: BuildOptions,
    pub(super) random: Arc<RandomState>,
    plans: PlanCache,
    building: BuildTurn,
    divisions: Mutex<HashMap<CallSignature, Option<Division>>>,
    shared: SharedPlans,
    pub(super) device_constants: DeviceConstants,
    pub(super) states: StateUpdates,
    /// the program is asked about types while a plan is built
    asks_program: bool,
    /// its stages, if shapes follow from contents
    pub(super) late: Option<Arc<LateGraph>>,
}

impl CachedOp {
    /// Compiles a symbol with default options.
    pub fn new(engine: &'static Engine, symbol: &Symbol, flags: &CachedOpFlags) -> Result<CachedOp, OpError> {
        CachedOp::compile(engine, symbol, flags, BuildOptions::default())
    }

    /// Compiles a symbol. Passes that need no shapes run here, once; plans are built at the first
    /// call of a signature. What the flags say goes before the options.
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
        }
        reserve::check_room(symbol.topo().len().saturating_mul(MEMORY_PER_NODE))?;
        let mut graph = Graph::from_symbol(symbol)?;
        mark_constants(&mut graph, flags)?;
        let states = StateUpdates::of(&mut graph)?;
        let graph = passes::run_all(graph, options.passes)?;
        let name: OpName = symbol.list_outputs().first().map_or_else(|| "CachedOp".into(), |n| n.clone().into());
        let late = LateGraph::new(engine, &name, &graph, options)?.map(Arc::new);
        Ok(CachedOp { late, states, ..CachedOp::of_graph(engine, name, graph, options) })
    }

    /// A graph on which the passes that need no shapes have run.
    pub(crate) fn of_graph(engine: &'static Engine, name: OpName, graph: Graph, options: BuildOptions) -> CachedOp {
        let (params, data) = (0..graph.inputs.len()).partition(|i| graph.inputs[*i].constant);
        let asks_program = graph.nodes.iter().any(GraphNode::asks_program);
        let sources = (0..graph.inputs.len()).map(InputSource::Data).collect();
        let unbound = Binding { sources, params: None, random: None };
        CachedOp {
            engine,
            name,
            graph,
            params,
            data,
            unbound,
            options,
            random: Arc::new(RandomState::new(0)),
            plans: PlanCache::new(options.cache),
            building: BuildTurn::default(),
            divisions: Mutex::default(),
            shared: SharedPlans::new(engine),
            device_constants: DeviceConstants::default(),
            states: StateUpdates::default(),
            asks_program,
            late: None,
        }
    }

    /// Uses this stream for random operators instead of one of its own.
    pub fn with_random(mut self, random: Arc<RandomState>) -> CachedOp {
        self.random = random;
        self
    }

    /// Number of inputs, in the order of the symbol's `list_inputs()`.
    pub fn num_inputs(&self) -> usize {
        self.graph.inputs.len()
    }

    /// Number of results.
    pub fn num_outputs(&self) -> usize {
        self.graph.outputs.len() - self.states.len()
    }

    /// Runs the graph on these inputs, in `list_inputs()` order. Returns the results before they
    /// are computed, but for a graph that [is late](CachedOp::is_late), whose results have no shape
    /// before: [`CachedOp::call_late`] does not wait for these.
    ///
    /// Wrong numbers, shapes and dtypes of inputs are errors here; failures of values are kept in
    /// the results and raised when they are read.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn call(&self, inputs: &[&NDArray]) -> Result<SmallVec<[NDArray; 2]>, OpError> {
        self.call_with(inputs, None, &CallOptions::default())
    }

    /// The same into arrays of the caller, whose shapes and dtypes must fit.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn call_into(&self, inputs: &[&NDArray], outputs: &[&NDArray]) -> Result<(), OpError> {
        self.call_with(inputs, Some(outputs), &CallOptions::default()).map(drop)
    }

    /// The same with a place in the queue, into new arrays or those of the caller, which are
    /// returned.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn call_with(
        &self,
        inputs: &[&NDArray],
        outputs: Option<&[&NDArray]>,
        options: &CallOptions,
    ) -> Result<SmallVec<[NDArray; 2]>, OpError> {
        let made = match self.is_late() {
            true => self.call_late(inputs, options).and_then(|late| settle(self.engine, &late, outputs)),
            false => {
                self.prepare(inputs).and_then(|program| self.start(program, &self.unbound, inputs, outputs, options))
            }
        };
        made.map_err(|error| with_device(error, inputs))
    }

    /// Whether a call returns within microseconds: it runs in a worker, or is short.
    pub(super) fn runs_inline(&self, program: &Program) -> bool {
        let here = program.cost_ns() < Cost::SMALL_NS || self.engine.kind() == EngineKind::Naive;
        !here || program.cost_ns() < INLINE_NS
    }

    /// The plan for these input types.
    pub fn plan(&self, inputs: &[TensorType]) -> Result<PlanReport, OpError> {
        if let Some(late) = &self.late {
            return late.report(inputs);
        }
        Ok(self.program_of_all(inputs)?.report())
    }

    /// The plan for these input types, as text.
    pub fn plan_text(&self, inputs: &[TensorType]) -> Result<String, OpError> {
        Ok(self.plan(inputs)?.to_string())
    }

    /// The distinct convolutions of the plan for these input types, for measuring their methods
    /// ([`mxrt_ops::measure`]).
    pub fn convolutions(&self, inputs: &[TensorType]) -> Result<Vec<ConvSignature>, OpError> {
        if let Some(late) = &self.late {
            let Some((first, of_first)) = late.first() else { return Ok(Vec::new()) };
            return first.convolutions(&of_first.iter().map(|i| inputs[*i].clone()).collect::<Vec<_>>());
        }
        let mut signatures: Vec<ConvSignature> =
            self.program_of_all(inputs)?.plans().iter().flat_map(|plan| plan.convolutions()).collect();
        signatures.sort_unstable();
        signatures.dedup();
        Ok(signatures)
    }

    /// The graph after all passes, as text.
    pub fn graph_text(&self) -> String {
        self.graph.to_string()
    }

    /// State of the plan cache.
    pub fn stats(&self) -> CacheStats {
        match &self.late {
            Some(late) => late.segments().fold(self.plans.stats(), |all, segment| all.with(segment.stats())),
            None => self.plans.stats(),
        }
    }

    /// The graph.
    pub(super) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// What calls are called in messages.
    pub(super) fn name(&self) -> &OpName {
        &self.name
    }

    /// A piece of the random stream.
    pub(super) fn draw(&self) -> RandomKey {
        self.random.draw()
    }

    /// The engine that runs it.
    pub(super) fn engine(&self) -> &'static Engine {
        self.engine
    }

    /// The programs.
    pub(super) fn plans(&self) -> &PlanCache {
        &self.plans
    }

    /// Types of the parameters among these types of all inputs.
    pub(super) fn param_types(&self, types: &[TensorType]) -> CallSignature {
        self.params.iter().map(|i| types[*i].clone()).collect()
    }

    /// The program for these types of all inputs, if it has been built.
    pub(super) fn find(&self, types: &[TensorType]) -> Option<Arc<Program>> {
        if self.params.is_empty() {
            return self.plans.get(&[], types);
        }
        let data: CallSignature = self.data.iter().map(|i| types[*i].clone()).collect();
        self.plans.get(&self.param_types(types), &data)
    }

    /// Whether the program may be asked about types while a plan is built.
    pub(super) fn asks_program(&self) -> bool {
        self.asks_program
    }

    /// Runs something that does so, in a thread of the program.
    pub(super) fn ask_program(&self, question: Question) {
        match self.graph.nodes.iter().find_map(GraphNode::program_operator) {
            Some(operator) => operator.ask(question),
            None => question(),
        }
    }

    pub(super) fn prepare(&self, inputs: &[&NDArray]) -> Result<Arc<Program>, OpError> {
        self.check_count(inputs.len())?;
        self.check_contexts(inputs.iter().copied().enumerate())?;
        let types: CallSignature = inputs.iter().map(|a| a.tensor_type()).collect();
        self.program_of_all(&types)
    }

    pub(super) fn check_count(&self, given: usize) -> Result<(), OpError> {
        if given == self.graph.inputs.len() {
            return Ok(());
        }
        let names: Vec<&str> = self.graph.inputs.iter().map(|i| &*i.name).collect();
        let listed = first_names(&names);
        let message = format!("CachedOp requires {} inputs but got {given}; they are {listed}", names.len());
        Err(OpError::new(FailureKind::Value, message).op("CachedOp"))
    }

    /// The name of an input that there is.
    pub(super) fn input_name(&self, input: usize) -> &str {
        &self.graph.inputs[input].name
    }

    /// Arrays, and of which inputs they are.
    pub(super) fn check_contexts<'a>(
        &self,
        mut arrays: impl Iterator<Item = (usize, &'a NDArray)>,
    ) -> Result<(), OpError> {
        let Some((first, array)) = arrays.next() else { return Ok(()) };
        let context = array.context();
        match arrays.find(|(_, a)| a.context() != context) {
            None => Ok(()),
            Some((other, array)) => {
                let (first, other) = (&self.graph.inputs[first].name, &self.graph.inputs[other].name);
                let message = format!(
                    "input '{other}': got an array on {}, wanted {context}, where '{first}' is: pass \
                     x.as_in_context(mx.{context}). CachedOp: all inputs must live on the same context",
                    array.context()
                );
                Err(OpError::new(FailureKind::Device, message).op("CachedOp"))
            }
        }
    }

    /// The program for these types of all inputs. `given` are the inputs whose arrays the call
    /// names: errors are about these. Building one may be given up.
    pub(crate) fn program(
        &self,
        types: &[TensorType],
        given: &[usize],
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Arc<Program>, OpError> {
        if let Some(program) = self.find(types) {
            return Ok(program);
        }
        let built = {
            // Code of the program may wait for threads that wait for the turn. Then several threads
            // may build the same plan, of which one is kept.
            let _turn = if self.asks_program { None } else { self.building.take(interrupter)? };
            self.get_or_build(types, interrupter)
        };
        built.map_err(|error| explain(error, &self.graph, types, given))
    }

    /// The program for these types of all inputs, of which no error names the graph's inputs.
    pub(crate) fn program_whole(
        &self,
        types: &[TensorType],
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Arc<Program>, OpError> {
        match self.find(types) {
            Some(program) => Ok(program),
            None => {
                let program = Arc::new(Program::whole(self.build(types, interrupter)?));
                self.plans.insert(&self.param_types(types), types.iter().cloned().collect(), &program, 0);
                Ok(program)
            }
        }
    }

    /// The same where a call names all inputs.
    fn program_of_all(&self, types: &[TensorType]) -> Result<Arc<Program>, OpError> {
        match self.find(types) {
            Some(program) => Ok(program),
            None => self.program(types, &(0..types.len()).collect::<Vec<_>>(), &mut Interrupter::never()),
        }
    }

    /// Called by the thread that has the turn to build, or by any where the program is asked about types.
    fn get_or_build(&self, types: &[TensorType], interrupter: &mut Interrupter<'_>) -> Result<Arc<Program>, OpError> {
        if let Some(program) = self.find(types) {
            return Ok(program);
        }
        let raw = self.graph.inputs.iter().zip(types).filter(|(i, _)| i.constant).map(|(_, t)| t.bytes()).sum();
        let program = match self.divide(types, interrupter)? {
            Some((parts, outputs)) => Program::parts(parts, outputs),
            None => Program::whole(self.build(types, interrupter)?),
        };
        let program = Arc::new(program);
        let data: CallSignature = self.data.iter().map(|i| types[*i].clone()).collect();
        if self.plans.insert(&self.param_types(types), data, &program, raw) {
            // The next plan wants blocks of other sizes: those of the old one are of no use.
            self.engine.memory().trim();
        }
        Ok(program)
    }

    fn build(&self, types: &[TensorType], interrupter: &mut Interrupter<'_>) -> Result<Plan, OpError> {
        reserve::check_room(self.graph.nodes.len().saturating_mul(MEMORY_PER_NODE))?;
        Plan::build(&self.graph, types, self.options, &self.shared, interrupter)
    }

    /// The parts of a batch that is better not run as a whole, and the types of its results.
    fn divide(
        &self,
        types: &[TensorType],
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Option<(DividedBatch, Vec<TensorType>)>, OpError> {
        if !self.options.passes.runs(passes::DIVIDE_BATCH) {
            return Ok(None);
        }
        let Some((rows, divided)) = rows::batch(&self.graph, types, self.options.kernel)? else { return Ok(None) };
        let division = self.division(types, &divided, interrupter)?;
        let Some(division) = division.filter(|d| d.applies(rows)) else { return Ok(None) };
        let mut some = |n: usize| self.get_or_build(&rows::with_rows(types, &divided, n), interrupter);
        let part = some(division.each)?;
        let left = rows % division.each;
        let rest = if left > 0 { Some(some(left)?) } else { None };
        let outputs = rows::with_rows(part.outputs(), &vec![true; part.outputs().len()], rows);
        let Division { each, side_by_side } = division;
        Ok(Some((DividedBatch { rows, each, side_by_side, divided, part, rest }, outputs)))
    }

    /// Whether the rows of calls may be joined into one batch, for inputs of at least two rows.
    pub(super) fn joined_rows(&self, types: &[TensorType]) -> Result<JoinedRows, OpError> {
        if self.is_late() || self.states.len() > 0 {
            return Ok(JoinedRows::Dependent);
        }
        let Some((_, divided)) = rows::batch(&self.graph, types, self.options.kernel)? else {
            return Ok(JoinedRows::Dependent);
        };
        let division = self.division(types, &divided, &mut Interrupter::never())?;
        Ok(match division {
            None => JoinedRows::Dependent,
            Some(division) if division.side_by_side => JoinedRows::NoGain,
            Some(_) => JoinedRows::Gain,
        })
    }

    /// How batches of rows like these are divided: decided once.
    fn division(
        &self,
        types: &[TensorType],
        divided: &[bool],
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Option<Division>, OpError> {
        let single: CallSignature = rows::with_rows(types, divided, 1).into();
        if let Some(known) = self.divisions.lock().get(&single) {
            return Ok(*known);
        }
        let mut cost = |types: &[TensorType]| match self.build(types, interrupter) {
            Ok(plan) => Ok(Some(plan.cost_ns())),
            Err(error) if error.kind == FailureKind::Cancelled => Err(error),
            // What cannot be built for other numbers of rows is not divided.
            Err(_) => Ok(None),
        };
        let division = match (cost(&single)?, cost(&rows::with_rows(types, divided, rows::TOGETHER))?) {
            (Some(one), Some(together)) => Some(Division::choose(one, together)),
            _ => None,
        };
        let mut divisions = self.divisions.lock();
        if divisions.len() >= MAX_DIVISIONS {
            divisions.clear();
        }
        divisions.insert(single, division);
        Ok(division)
    }
}

/// What joining the rows of several calls into one batch does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinedRows {
    /// Not possible: rows depend on each other, or on what the graph draws or keeps.
    Dependent,
    /// Computing rows costs more than reading the weights, so that nothing is gained.
    NoGain,
    /// The weights are read once for all rows, which costs more than computing one.
    Gain,
}

/// Which inputs of a graph are arrays of every call, and where the others come from.
pub(super) struct Binding {
    /// by input
    pub sources: Arc<[InputSource]>,
    /// the arrays that are bound, if any
    pub params: Option<Arc<ParameterSet>>,
    /// what a call draws from instead of the stream of the graph
    pub random: Option<RandomKey>,
}

impl Binding {
    /// The array of an input in a call with this data.
    pub(super) fn array<'a>(&'a self, input: usize, data: &[&'a NDArray]) -> Option<&'a NDArray> {
        match *self.sources.get(input)? {
            InputSource::Data(i) => data.get(i).copied(),
            InputSource::Param(i) => self.params.as_ref()?.arrays().get(i),
        }
    }

    /// Where a call with these arrays runs.
    pub(super) fn context(&self, data: &[&NDArray]) -> Context {
        let bound = || self.params.as_ref()?.arrays().first();
        data.first().copied().or_else(bound).map_or_else(Context::default, NDArray::context)
    }
}

impl std::fmt::Debug for CachedOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CachedOp({}, {} inputs, {:?})", self.name.as_str(), self.num_inputs(), self.stats())
    }
}
