//! [`CachedOp`]: a symbol that any number of threads call.

use super::build::{BuildOptions, Plan};
use super::consts::{ConstCache, ValueKey, allocate};
use super::describe::StepTimes;
use super::ir::Graph;
use super::on_device::{self, DeviceCall};
use super::passes;
use super::plan_cache::{CacheStats, PlanCache, Signature};
use super::run::Request;
use crate::symbol::Symbol;
use mxrt_engine::{Cost, Engine, FailureKind, OpError, OpName, WaitError};
use mxrt_ops::{AttrDef, AttrKind, Attrs, EnginePar, RandomState};
use mxrt_tensor::{Context, Launch, NDArray, TensorMut, TensorType, launch};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;

/// Plans estimated below this run in the calling thread when a core is free.
const SMALL_NS: u64 = 200_000;

/// Runs whose steps are timed for [`CachedOp::measured_plan_text`].
const MEASURED_RUNS: usize = 5;

static FLAGS: &[AttrDef] = &[
    AttrDef::new("static_alloc", AttrKind::Bool, "False", "accepted; memory is always planned once per signature"),
    AttrDef::new("static_shape", AttrKind::Bool, "False", "accepted; every signature has its own plan"),
    AttrDef::new("inline_limit", AttrKind::Int, "2", "accepted; without effect"),
    AttrDef::new("forward_bulk_size", AttrKind::OptInt, "None", "accepted; a plan is always one operation"),
    AttrDef::new("backward_bulk_size", AttrKind::OptInt, "None", "accepted; there is no training"),
    AttrDef::new("data_indices", AttrKind::Shape, "()", "positions of the data among the inputs"),
    AttrDef::new("param_indices", AttrKind::Shape, "()", "positions of the parameters among the inputs"),
    AttrDef::new("subgraph", AttrKind::Str, "", "accepted; without effect"),
    AttrDef::new("is_dynamic", AttrKind::Bool, "False", "accepted; without effect"),
    AttrDef::new(
        "precision",
        AttrKind::Enum(&["default", "exact"]),
        "default",
        "exact: no algorithm that trades accuracy for speed (Winograd convolution)",
    ),
    AttrDef::new("thread_safe", AttrKind::Bool, "True", "accepted; every CachedOp is thread-safe"),
];

/// Flags of MXNet's `CachedOp`. Those without effect here describe what is always on.
#[derive(Clone, Debug, Default)]
pub struct CachedOpFlags {
    data: Vec<usize>,
    params: Vec<usize>,
    exact: bool,
}

impl CachedOpFlags {
    /// Parses (name, text) pairs; unknown names and bad values are errors.
    pub fn parse<'a>(given: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<CachedOpFlags, OpError> {
        let attrs = Attrs::parse(FLAGS, given).map_err(|e| e.op("CachedOp"))?;
        if attrs.bool("static_shape") && !attrs.bool("static_alloc") {
            let message = "static_alloc must be True when static_shape is True";
            return Err(OpError::new(FailureKind::Value, message).op("CachedOp"));
        }
        let indices = |name: &str| -> Result<Vec<usize>, OpError> {
            let wrong =
                |i: &i64| OpError::new(FailureKind::Value, format!("{name}: {i} is not a position of an input"));
            attrs.ints(name).iter().map(|i| usize::try_from(*i).map_err(|_| wrong(i).op("CachedOp"))).collect()
        };
        let exact = attrs.str("precision") == "exact";
        Ok(CachedOpFlags { data: indices("data_indices")?, params: indices("param_indices")?, exact })
    }
}

/// A compiled symbol. `Send + Sync`: any number of threads call it, with any mixture of shapes, at the same time.
pub struct CachedOp {
    engine: &'static Engine,
    name: Arc<str>,
    graph: Graph,
    options: BuildOptions,
    random: Arc<RandomState>,
    plans: PlanCache,
    building: Mutex<()>,
    consts: Arc<ConstCache>,
}

impl CachedOp {
    /// Compiles a symbol with default options.
    pub fn new(engine: &'static Engine, symbol: &Symbol, flags: &CachedOpFlags) -> Result<CachedOp, OpError> {
        CachedOp::compile(engine, symbol, flags, BuildOptions::default())
    }

    /// Compiles a symbol. Passes that need no shapes run here, once; plans are built at the first call of a signature.
    /// What the flags say goes before the options.
    pub fn compile(
        engine: &'static Engine,
        symbol: &Symbol,
        flags: &CachedOpFlags,
        mut options: BuildOptions,
    ) -> Result<CachedOp, OpError> {
        if flags.exact {
            options.kernel.winograd = 0;
        }
        let mut graph = Graph::from_symbol(symbol)?;
        mark_constants(&mut graph, flags)?;
        let graph = passes::run_all(graph, options.passes)?;
        let name = symbol.list_outputs().first().map_or_else(|| "CachedOp".into(), |n| n.as_str().into());
        Ok(CachedOp {
            engine,
            name,
            graph,
            options,
            random: Arc::new(RandomState::new(0)),
            plans: PlanCache::new(options.cache),
            building: Mutex::new(()),
            consts: Arc::default(),
        })
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
        self.graph.outputs.len()
    }

    /// Runs the graph on these inputs, in `list_inputs()` order. Returns the results before they are computed.
    ///
    /// Wrong numbers, shapes and dtypes of inputs are errors here; failures of values are kept in the results and
    /// raised when they are read.
    pub fn call(&self, inputs: &[&NDArray]) -> Result<SmallVec<[NDArray; 2]>, OpError> {
        let (plan, context) = self.prepare(inputs)?;
        let results = self.results(&plan, context)?;
        self.push(plan, inputs, &results.iter().collect::<SmallVec<[&NDArray; 2]>>())?;
        Ok(results)
    }

    /// The same into arrays of the caller, whose shapes and dtypes must fit.
    pub fn call_into(&self, inputs: &[&NDArray], outputs: &[&NDArray]) -> Result<(), OpError> {
        let (plan, context) = self.prepare(inputs)?;
        let fits = outputs.len() == plan.outputs().len()
            && outputs.iter().zip(plan.outputs()).all(|(a, t)| a.tensor_type() == *t);
        if !fits {
            let have: Vec<String> = outputs.iter().map(|a| a.tensor_type().to_string()).collect();
            let want: Vec<String> = plan.outputs().iter().map(|t| t.to_string()).collect();
            let message = format!("the output arrays are {}, but {} are made", have.join(", "), want.join(", "));
            return Err(OpError::new(FailureKind::Shape, message).op("CachedOp"));
        }
        if let Some(elsewhere) = outputs.iter().find(|a| a.context().device() != context.device()) {
            let message = format!("an output array is on {}, but the inputs are on {context}", elsewhere.context());
            return Err(OpError::new(FailureKind::Device, message).op("CachedOp"));
        }
        self.push(plan, inputs, outputs)
    }

    /// The plan for these input types, as text.
    pub fn plan_text(&self, inputs: &[TensorType]) -> Result<String, OpError> {
        Ok(self.plan(inputs)?.to_string())
    }

    /// The plan for these inputs, as text, with the time that each step takes on them: the shortest of several runs, all of
    /// them on as many cores as are idle. Waits for the runs; `poll` as for reading an array.
    pub fn measured_plan_text(
        &self,
        inputs: &[&NDArray],
        poll: &mut dyn FnMut() -> bool,
    ) -> Result<Result<String, WaitError>, OpError> {
        let (plan, context) = self.prepare(inputs)?;
        let results: SmallVec<[NDArray; 2]> = self.results(&plan, context)?;
        let times: Arc<Mutex<StepTimes>> = Arc::default();
        let record = times.clone();
        self.push_with(
            plan.clone(),
            inputs,
            &results.iter().collect::<SmallVec<[&NDArray; 2]>>(),
            move |plan, request, arena, outs| {
                // The first run computes constants and touches memory for the first time.
                plan.run(request, arena, outs)?;
                for _ in 0..MEASURED_RUNS {
                    record.lock().merge(&plan.run_timed(request, arena, outs)?);
                }
                Ok(())
            },
        )?;
        for result in &results {
            if let Err(error) = result.read(poll) {
                return Ok(Err(error));
            }
        }
        let times = times.lock();
        Ok(Ok(plan.text(Some(&times))))
    }

    /// The graph after all passes, as text.
    pub fn graph_text(&self) -> String {
        self.graph.to_string()
    }

    /// State of the plan cache.
    pub fn stats(&self) -> CacheStats {
        self.plans.stats()
    }

    fn results(&self, plan: &Plan, context: Context) -> Result<SmallVec<[NDArray; 2]>, OpError> {
        plan.outputs().iter().map(|t| NDArray::new(self.engine, context, t.clone())).collect()
    }

    fn prepare(&self, inputs: &[&NDArray]) -> Result<(Arc<Plan>, Context), OpError> {
        self.check(inputs)?;
        let types: Signature = inputs.iter().map(|a| a.tensor_type()).collect();
        Ok((self.plan(&types)?, inputs.first().map_or_else(Context::default, |a| a.context())))
    }

    fn check(&self, inputs: &[&NDArray]) -> Result<(), OpError> {
        if inputs.len() != self.graph.inputs.len() {
            let names: Vec<&str> = self.graph.inputs.iter().map(|i| &*i.name).collect();
            let message =
                format!("CachedOp requires {} inputs ({}) but got {}", names.len(), names.join(", "), inputs.len());
            return Err(OpError::new(FailureKind::Value, message).op("CachedOp"));
        }
        let Some(first) = inputs.first() else { return Ok(()) };
        match inputs.iter().position(|a| a.context() != first.context()) {
            None => Ok(()),
            Some(i) => {
                let message = format!(
                    "CachedOp requires all inputs to live on the same context. But {} is on {} while {} is on {}",
                    self.graph.inputs[0].name,
                    first.context(),
                    self.graph.inputs[i].name,
                    inputs[i].context()
                );
                Err(OpError::new(FailureKind::Device, message).op("CachedOp"))
            }
        }
    }

    fn plan(&self, types: &[TensorType]) -> Result<Arc<Plan>, OpError> {
        if let Some(plan) = self.plans.get(types) {
            return Ok(plan);
        }
        let _one_at_a_time = self.building.lock();
        if let Some(plan) = self.plans.get(types) {
            return Ok(plan);
        }
        let plan = Arc::new(Plan::build(&self.graph, types, self.options, self.consts.clone())?);
        if self.plans.insert(types, &plan) {
            self.consts.sweep();
        }
        Ok(plan)
    }

    fn push(&self, plan: Arc<Plan>, inputs: &[&NDArray], outputs: &[&NDArray]) -> Result<(), OpError> {
        self.push_with(plan, inputs, outputs, |plan, request, arena, outs| plan.run(request, arena, outs))
    }

    fn push_with<F>(&self, plan: Arc<Plan>, inputs: &[&NDArray], outputs: &[&NDArray], run: F) -> Result<(), OpError>
    where
        F: FnOnce(&Plan, &Request<'_>, &mut [u8], &mut [TensorMut<'_>]) -> Result<(), OpError> + Send + 'static,
    {
        let random: SmallVec<[_; 2]> = (0..plan.random_draws()).map(|_| self.random.draw()).collect();
        let name = OpName::from(self.name.clone());
        if let Some(device) = inputs.first().or_else(|| outputs.first()).and_then(|a| a.context().device()) {
            let params = &mut (0..inputs.len()).filter(|i| self.graph.inputs[*i].constant);
            let call = DeviceCall { device, name, plan, inputs, outputs, params, random };
            return on_device::push(self.engine, call, run).map_err(|e| e.op("CachedOp"));
        }
        let cost = if plan.cost_ns() < SMALL_NS { Cost::Small } else { Cost::Large };
        let arguments: Vec<NDArray> = inputs.iter().map(|a| (*a).clone()).collect();
        launch(self.engine, Launch { name, inputs, outputs, cost }, move |ctx, ins, outs| {
            let keys: Vec<ValueKey> = arguments.iter().map(|a| a.value_key()).collect();
            let par = EnginePar(ctx);
            let memory = ctx.engine().memory();
            let mut arena = allocate(memory, plan.arena_bytes())?;
            let request = Request { par: &par, memory, inputs: ins, keys: &keys, random: &random };
            run(&plan, &request, arena.as_mut_slice(), outs)
        });
        Ok(())
    }
}

impl std::fmt::Debug for CachedOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CachedOp({}, {} inputs, {:?})", self.name, self.num_inputs(), self.stats())
    }
}

fn mark_constants(graph: &mut Graph, flags: &CachedOpFlags) -> Result<(), OpError> {
    let n = graph.inputs.len();
    if let Some(i) = flags.data.iter().chain(&flags.params).find(|i| **i >= n) {
        let message = format!("data_indices or param_indices names input {i}, but there are {n} inputs");
        return Err(OpError::new(FailureKind::Index, message).op("CachedOp"));
    }
    if flags.params.is_empty() {
        graph.guess_constants();
        for i in &flags.data {
            graph.inputs[*i].constant = false;
        }
        return Ok(());
    }
    for i in &flags.params {
        graph.inputs[*i].constant = !flags.data.contains(i);
    }
    Ok(())
}
