//! Control flow as a step of a plan: its graphs become plans, and its memory is laid out.

use super::capture::{InnerGraph, InnerSource, inner_graph};
use super::hoist::hoist;
use super::{Flow, FlowKind};
use crate::compile::build::{Plan, PlanBuilder};
use crate::compile::interrupt::Interrupter;
use crate::ir::Value;
use crate::memory::offsets::aligned;
use crate::passes::HOIST;
use mxrt_engine::ForkSafeMutex as Mutex;
use mxrt_engine::{FailureKind, OpError};
use mxrt_ops::{Kernel, KernelCall};
use mxrt_tensor::TensorType;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Weak};

/// The plans of inner graphs, by graph, types and captured constants. Plans for other lengths of a
/// loop share them. Holds none alive itself: the plans around them do.
#[derive(Default)]
pub(crate) struct InnerPlans {
    plans: Mutex<HashMap<String, Weak<Plan>>>,
}

impl InnerPlans {
    fn get_or_build(&self, key: String, build: impl FnOnce() -> Result<Plan, OpError>) -> Result<Arc<Plan>, OpError> {
        if let Some(plan) = self.plans.lock().get(&key).and_then(Weak::upgrade) {
            return Ok(plan);
        }
        let plan = Arc::new(build()?);
        let mut plans = self.plans.lock();
        plans.retain(|_, plan| plan.strong_count() > 0);
        plans.insert(key, Arc::downgrade(&plan));
        Ok(plan)
    }
}

/// A graph of the node, ready to run.
pub(crate) struct InnerPlan {
    pub plan: Arc<Plan>,
    /// where each of its inputs comes from
    pub sources: Vec<InnerSource>,
    /// inputs of the outer graph that no other node reads: their raw weights may be released when
    /// this plan has packed them
    pub own_params: HashSet<usize>,
    /// what computes the values that are the same in all iterations, before the first one
    pub before: Option<Box<InnerPlan>>,
}

/// What a control-flow step runs.
pub(crate) struct ControlFlow {
    pub kind: FlowKind,
    /// operator and node, for messages
    pub op: &'static str,
    pub node: Arc<str>,
    pub plans: Vec<InnerPlan>,
    /// iterations of a `foreach`
    pub rows: usize,
    /// operands with the first values of the states
    pub states: Vec<usize>,
    pub state_types: Vec<TensorType>,
    /// the outputs before this one have a row for each iteration
    pub stacked: usize,
    pub stacked_rows: Vec<TensorType>,
    pub memory: FlowMemory,
}

/// Scratch memory of a step: it does not depend on the number of iterations.
pub(crate) struct FlowMemory {
    /// of one inner plan at a time
    pub arena: usize,
    /// a second copy of each state: one is read while the other is written
    pub states: Vec<Range<usize>>,
    /// of the condition
    pub condition: Range<usize>,
    /// by graph: values that are the same in all iterations, then packed ones
    pub hoisted: Vec<Vec<Range<usize>>>,
    pub bytes: usize,
}

impl FlowMemory {
    fn new(arena: usize, states: &[TensorType], condition: usize, hoisted: &[Vec<usize>]) -> FlowMemory {
        let mut bytes = aligned(arena);
        let mut next = |size: usize| {
            let range = bytes..bytes.saturating_add(size);
            bytes = aligned(range.end);
            range
        };
        let states = states.iter().map(|t| next(t.bytes())).collect();
        let condition = next(condition);
        let hoisted = hoisted.iter().map(|sizes| sizes.iter().map(|size| next(*size)).collect()).collect();
        FlowMemory { arena, states, condition, hoisted, bytes }
    }
}

/// A control-flow step, and the values that are its operands.
pub(crate) struct CompiledFlow {
    pub flow: Arc<ControlFlow>,
    /// which inputs of the node are operands
    pub operands: Vec<usize>,
}

impl ControlFlow {
    /// Compiles the graphs of node `n`, which may be given up.
    pub fn compile(
        builder: &PlanBuilder<'_>,
        n: usize,
        flow: &Arc<Flow>,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<CompiledFlow, OpError> {
        let node = &builder.graph.nodes[n];
        let wiring = &flow.wiring;
        // What is captured and constant is a constant of the inner plans.
        let inside = |k: usize| wiring.is_captured(k) && builder.is_constant(node.inputs[k]);
        let read = |k: usize| wiring.inputs.iter().any(|feeds| feeds.contains(&k)) || !wiring.is_captured(k);
        let operands: Vec<usize> = (0..node.inputs.len()).filter(|k| read(*k) && !inside(*k)).collect();
        let number: Vec<Option<usize>> =
            (0..node.inputs.len()).map(|k| operands.iter().position(|operand| *operand == k)).collect();
        let mut plans = Vec::with_capacity(flow.graphs.len());
        for g in 0..flow.graphs.len() {
            let mut inner = inner_graph(builder, flow, g, &node.inputs, &number)?;
            let before = before_iterations(builder, flow, g, &mut inner, interrupter)?;
            if runs_before(builder, flow) {
                inner.mark_captured();
            }
            let plan = plan_of(builder, flow, &g.to_string(), &inner, interrupter)?;
            plans.push(InnerPlan { plan, sources: inner.sources, own_params: HashSet::new(), before });
        }
        let own = own_params(builder, n, &plans);
        for inner in &mut plans {
            inner.own_params.clone_from(&own);
            inner.before.iter_mut().for_each(|before| before.own_params.clone_from(&own));
        }
        let outputs = (0..node.op.num_outputs(&node.attrs))
            .map(|o| builder.type_of(Value::Node(n, o)).cloned())
            .collect::<Result<Vec<_>, _>>()?;
        for (g, inner) in plans.iter().enumerate() {
            check_outputs(flow, g, inner.plan.outputs(), &outputs)?;
        }
        let stacked = wiring.stacked;
        let state_types = outputs[stacked..stacked + wiring.states.len()].to_vec();
        let arena = plans.iter().flat_map(InnerPlan::all).map(|plan| plan.arena_bytes()).max().unwrap_or(0);
        let hoisted: Vec<Vec<usize>> = plans.iter().map(InnerPlan::bytes_before).collect();
        let condition = if wiring.is_condition(0) { plans[0].plan.outputs()[0].bytes() } else { 0 };
        let rows = match wiring.rows {
            0 => 0,
            _ => builder.type_of(node.inputs[0])?.shape.first().copied().unwrap_or(0),
        };
        let flow = ControlFlow {
            kind: wiring.kind,
            op: node.stands_for,
            node: node.name.clone(),
            rows,
            states: wiring.states.iter().filter_map(|k| number[*k]).collect(),
            stacked,
            stacked_rows: outputs[..stacked].iter().map(row_type_of_stack).collect(),
            memory: FlowMemory::new(arena, &state_types, condition, &hoisted),
            state_types,
            plans,
        };
        Ok(CompiledFlow { flow: Arc::new(flow), operands })
    }

    /// The plans, those inside them included.
    pub fn all_plans(&self) -> Vec<&Plan> {
        self.plans.iter().flat_map(InnerPlan::all).flat_map(Plan::with_inner).collect()
    }

    /// The inputs of the outer graph that inner plans read as they are.
    pub fn inputs_read(&self) -> Vec<usize> {
        self.plans.iter().flat_map(InnerPlan::inputs_read).collect()
    }
}

/// Whether something is computed before the first iteration. A branch has one.
fn runs_before(builder: &PlanBuilder<'_>, flow: &Flow) -> bool {
    flow.wiring.kind != FlowKind::Cond && builder.options.passes.runs(HOIST)
}

/// The plan of what graph `g` computes before the first iteration, if that is something; `inner`
/// reads its results then.
fn before_iterations(
    builder: &PlanBuilder<'_>,
    flow: &Arc<Flow>,
    g: usize,
    inner: &mut InnerGraph,
    interrupter: &mut Interrupter<'_>,
) -> Result<Option<Box<InnerPlan>>, OpError> {
    if !runs_before(builder, flow) {
        return Ok(None);
    }
    let Some(hoisted) = hoist(inner)? else { return Ok(None) };
    let (types, sources) = (inner.types.clone(), inner.sources.clone());
    let before = InnerGraph { graph: hoisted.graph.clone(), types, sources, constants: inner.constants.clone() };
    let plan = plan_of(builder, flow, &format!("before {g}"), &before, interrupter)?;
    hoisted.leave(inner, plan.outputs())?;
    Ok(Some(Box::new(InnerPlan { plan, sources: before.sources, own_params: HashSet::new(), before: None })))
}

/// The plan of a graph of the node, which is called `part` among them.
fn plan_of(
    builder: &PlanBuilder<'_>,
    flow: &Arc<Flow>,
    part: &str,
    inner: &InnerGraph,
    interrupter: &mut Interrupter<'_>,
) -> Result<Arc<Plan>, OpError> {
    let types: Vec<String> = inner.types.iter().map(|t| t.to_string()).collect();
    let key = format!("{:p} {part} ({}) {{{}}}", Arc::as_ptr(flow), types.join(", "), inner.constants);
    let build = || Plan::build(&inner.graph, &inner.types, builder.options, builder.shared, interrupter);
    builder.shared.inner.get_or_build(key, build)
}

/// The inputs of the outer graph that reach node `n` only, and that no graph of it reads as they
/// are.
fn own_params(builder: &PlanBuilder<'_>, n: usize, plans: &[InnerPlan]) -> HashSet<usize> {
    let graph = builder.graph;
    let mut own: HashSet<usize> = plans.iter().flat_map(InnerPlan::constants).collect();
    let read: Vec<usize> = plans.iter().flat_map(InnerPlan::inputs_read).collect();
    // What is constant is read by the nodes that read its expression.
    let mut reaches_others = vec![false; graph.nodes.len()];
    let results = graph.outputs.iter();
    results.clone().filter_map(|value| value.node()).for_each(|m| reaches_others[m] = true);
    for m in (0..graph.nodes.len()).rev() {
        let elsewhere = m != n && (!builder.constant[m] || reaches_others[m]);
        for value in graph.nodes[m].inputs.iter().filter(|_| elsewhere) {
            match *value {
                Value::Input(input) => {
                    own.remove(&input);
                }
                Value::Node(made, _) => reaches_others[made] = true,
            }
        }
    }
    for value in results {
        if let Value::Input(input) = value {
            own.remove(input);
        }
    }
    own.retain(|input| !read.contains(input));
    own
}

impl InnerPlan {
    /// The plan, behind the one before the first iteration.
    fn all(&self) -> impl Iterator<Item = &Plan> {
        self.before.iter().map(|before| &*before.plan).chain([&*self.plan])
    }

    /// Types of what is made before the first iteration.
    pub fn hoisted(&self) -> &[TensorType] {
        self.before.as_ref().map_or(&[], |before| before.plan.outputs())
    }

    /// Bytes of each of these, then of what is packed before the first iteration.
    fn bytes_before(&self) -> Vec<usize> {
        self.hoisted().iter().map(TensorType::bytes).chain(self.plan.packed_once_bytes()).collect()
    }

    /// The inputs of the outer graph among its inputs.
    fn constants(&self) -> impl Iterator<Item = usize> {
        self.sources.iter().filter_map(|source| match source {
            InnerSource::Constant(input) => Some(*input),
            _ => None,
        })
    }

    /// Those that its steps read as they are.
    fn inputs_read(&self) -> impl Iterator<Item = usize> {
        let read = self.all().flat_map(Plan::inputs_read);
        read.filter_map(|j| match self.sources.get(j) {
            Some(InnerSource::Constant(input)) => Some(*input),
            _ => None,
        })
    }
}

fn row_type_of_stack(tensor: &TensorType) -> TensorType {
    let shape: &[usize] = tensor.shape.get(1..).unwrap_or(&[]);
    TensorType::new(tensor.dtype, shape)
}

/// Passes keep the types of results, so that what graph `g` makes cannot differ; were it to, memory
/// would not fit.
pub(super) fn check_outputs(flow: &Flow, g: usize, made: &[TensorType], outputs: &[TensorType]) -> Result<(), OpError> {
    if flow.wiring.is_condition(g) {
        return Ok(());
    }
    let want = outputs.iter().enumerate().map(|(o, t)| match o < flow.wiring.stacked {
        true => row_type_of_stack(t),
        false => t.clone(),
    });
    if want.eq(made.iter().cloned()) {
        return Ok(());
    }
    let text = |types: &[TensorType]| types.iter().map(|t| t.to_string()).collect::<Vec<_>>().join(", ");
    let message = format!("graph {g} makes {}, which does not fit {}", text(made), text(outputs));
    Err(OpError::new(FailureKind::Shape, message))
}

/// The kernel of a control-flow step: what plans and reports ask of it. The step itself runs
/// [`ControlFlow`], since kernels see neither parameters nor the place where they run.
pub(crate) struct FlowKernel(pub Arc<ControlFlow>);

impl Kernel for FlowKernel {
    fn run(&self, _: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        Err(OpError::new(FailureKind::Operator, "control flow runs as a step of a plan only"))
    }

    fn workspace(&self) -> usize {
        self.0.memory.bytes
    }

    fn describe(&self) -> String {
        let steps = |g: usize| {
            let plan = &self.0.plans[g].plan;
            let once =
                plan.packed_once.len() + self.0.plans[g].before.as_ref().map_or(0, |before| before.plan.steps.len());
            let once = if once > 0 { format!(", {once} before them") } else { String::new() };
            format!("{} steps, {} constants{once}", plan.steps.len(), plan.consts.slots.len())
        };
        match self.0.kind {
            FlowKind::Foreach => format!("{} rows of {}", self.0.rows, steps(0)),
            FlowKind::WhileLoop { max_iterations } => format!("at most {max_iterations} times {}", steps(1)),
            FlowKind::Cond => format!("{} or {}", steps(1), steps(2)),
        }
    }

    fn cost_ns(&self) -> u64 {
        let cost = |g: usize| self.0.plans[g].plan.cost_ns();
        let all = match self.0.kind {
            FlowKind::Foreach => cost(0).saturating_mul(self.0.rows as u64),
            FlowKind::WhileLoop { max_iterations } => {
                (cost(0).saturating_add(cost(1))).saturating_mul(max_iterations as u64)
            }
            FlowKind::Cond => cost(0).saturating_add(cost(1).max(cost(2))),
        };
        let before = self.0.plans.iter().filter_map(|inner| inner.before.as_ref());
        before.map(|before| before.plan.cost_ns()).fold(all, u64::saturating_add).max(1)
    }
}
