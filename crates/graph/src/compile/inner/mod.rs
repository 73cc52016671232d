//! Compiles control flow into a step of a plan: its graphs become plans, and its memory is planned.
//!
//! | module | does |
//! | --- | --- |
//! | `capture` | constants of the outer graph become constants of an inner one |
//! | `hoist` | values that are the same in all iterations are computed before the first one |

mod capture;
mod hoist;

use super::interrupt::Interrupter;
use super::options::BuildOptions;
use super::values::{Expressions, GraphValues};
use crate::control_flow::FlowKind;
use crate::execute::{ControlFlow, FlowMemory, InnerPlan};
use crate::ir::{Flow, Graph, Value};
use crate::passes::HOIST;
use crate::plan::Plan;
use capture::{InnerGraph, inner_graph};
use hoist::hoist;
use mxrt_engine::ForkSafeMutex as Mutex;
use mxrt_engine::{FailureKind, OpError};
use mxrt_tensor::TensorType;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

/// Plans of inner graphs, by graph, types and captured constants. Plans for other lengths of a loop
/// share them. The table holds weak references; the plans around inner plans keep these alive.
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

/// A control-flow step, and the values that are its operands.
pub(super) struct CompiledFlow {
    pub flow: Arc<ControlFlow>,
    /// the inputs of the node that are operands
    pub operands: Vec<usize>,
}

/// Builds the plan of a graph.
pub(super) type BuildPlan =
    fn(&Graph, &[TensorType], BuildOptions, &InnerPlans, &mut Interrupter<'_>) -> Result<Plan, OpError>;

/// The graph around inner ones, and how plans are built.
pub(super) struct InnerContext<'a> {
    pub values: &'a GraphValues<'a>,
    pub expressions: &'a Expressions,
    pub options: BuildOptions,
    pub plans: &'a InnerPlans,
    pub build: BuildPlan,
}

/// Compiles the graphs of node `n`. The interrupter may abandon the compilation.
pub(super) fn compile_flow(
    outer: &InnerContext<'_>,
    n: usize,
    flow: &Arc<Flow>,
    interrupter: &mut Interrupter<'_>,
) -> Result<CompiledFlow, OpError> {
    let node = &outer.values.graph.nodes[n];
    let wiring = &flow.wiring;
    // What is captured and constant is a constant of the inner plans.
    let inside = |k: usize| wiring.is_captured(k) && outer.values.is_constant(node.inputs[k]);
    let read = |k: usize| wiring.inputs.iter().any(|feeds| feeds.contains(&k)) || !wiring.is_captured(k);
    let operands: Vec<usize> = (0..node.inputs.len()).filter(|k| read(*k) && !inside(*k)).collect();
    let number: Vec<Option<usize>> =
        (0..node.inputs.len()).map(|k| operands.iter().position(|operand| *operand == k)).collect();
    let plans = plans_of(outer, n, flow, &number, interrupter)?;
    let types = (0..node.op.num_outputs(&node.attrs)).map(|o| outer.values.type_of(Value::Node(n, o)).cloned());
    let outputs = types.collect::<Result<Vec<_>, _>>()?;
    plans.iter().enumerate().try_for_each(|(g, inner)| check_outputs(flow, g, inner.plan.outputs(), &outputs))?;
    let stacked = wiring.stacked;
    let state_types = outputs[stacked..stacked + wiring.states.len()].to_vec();
    let arena = plans.iter().flat_map(InnerPlan::all).map(|plan| plan.arena_bytes()).max().unwrap_or(0);
    let hoisted: Vec<Vec<usize>> = plans.iter().map(InnerPlan::bytes_before).collect();
    let condition = if wiring.is_condition(0) { plans[0].plan.outputs()[0].bytes() } else { 0 };
    let rows = if wiring.rows == 0 { 0 } else { rows_of(outer.values.type_of(node.inputs[0])?) };
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

/// The number of rows that a loop goes over.
fn rows_of(data: &TensorType) -> usize {
    data.shape.first().copied().unwrap_or(0)
}

/// Compiles the graphs of node `n`, whose inputs have these numbers as operands.
fn plans_of(
    outer: &InnerContext<'_>,
    n: usize,
    flow: &Arc<Flow>,
    number: &[Option<usize>],
    interrupter: &mut Interrupter<'_>,
) -> Result<Vec<InnerPlan>, OpError> {
    let inputs = &outer.values.graph.nodes[n].inputs;
    let mut plans = Vec::with_capacity(flow.graphs.len());
    for g in 0..flow.graphs.len() {
        let mut inner = inner_graph((outer.values, outer.expressions), flow, g, inputs, number)?;
        let before = before_iterations(outer, flow, g, &mut inner, interrupter)?;
        if runs_before(outer, flow) {
            inner.mark_captured();
        }
        let plan = plan_of(outer, flow, &g.to_string(), &inner, interrupter)?;
        plans.push(InnerPlan { plan, sources: inner.sources, own_params: HashSet::new(), before });
    }
    let own = own_params(outer, n, &plans);
    for inner in &mut plans {
        inner.own_params.clone_from(&own);
        inner.before.iter_mut().for_each(|before| before.own_params.clone_from(&own));
    }
    Ok(plans)
}

/// Whether values may be computed before the first iteration. A branch has no iterations.
fn runs_before(outer: &InnerContext<'_>, flow: &Flow) -> bool {
    flow.wiring.kind != FlowKind::Cond && outer.options.passes.runs(HOIST)
}

/// Plans what graph `g` computes before the first iteration, and makes `inner` read the results.
/// Returns `None` if it computes nothing then.
fn before_iterations(
    outer: &InnerContext<'_>,
    flow: &Arc<Flow>,
    g: usize,
    inner: &mut InnerGraph,
    interrupter: &mut Interrupter<'_>,
) -> Result<Option<Box<InnerPlan>>, OpError> {
    if !runs_before(outer, flow) {
        return Ok(None);
    }
    let Some(hoisted) = hoist(inner)? else { return Ok(None) };
    let (types, sources) = (inner.types.clone(), inner.sources.clone());
    let before = InnerGraph { graph: hoisted.graph.clone(), types, sources, constants: inner.constants.clone() };
    let plan = plan_of(outer, flow, &format!("before {g}"), &before, interrupter)?;
    hoisted.leave(inner, plan.outputs())?;
    Ok(Some(Box::new(InnerPlan { plan, sources: before.sources, own_params: HashSet::new(), before: None })))
}

/// Returns the plan of a graph of the node. `part` tells it from the node's other graphs.
fn plan_of(
    outer: &InnerContext<'_>,
    flow: &Arc<Flow>,
    part: &str,
    inner: &InnerGraph,
    interrupter: &mut Interrupter<'_>,
) -> Result<Arc<Plan>, OpError> {
    let types: Vec<String> = inner.types.iter().map(|t| t.to_string()).collect();
    let key = format!("{:p} {part} ({}) {{{}}}", Arc::as_ptr(flow), types.join(", "), inner.constants);
    let build = || (outer.build)(&inner.graph, &inner.types, outer.options, outer.plans, interrupter);
    outer.plans.get_or_build(key, build)
}

/// The inputs of the outer graph that reach node `n` only and that none of its graphs reads
/// unpacked.
fn own_params(outer: &InnerContext<'_>, n: usize, plans: &[InnerPlan]) -> HashSet<usize> {
    let graph = outer.values.graph;
    let mut own: HashSet<usize> = plans.iter().flat_map(InnerPlan::constants).collect();
    let read: Vec<usize> = plans.iter().flat_map(InnerPlan::inputs_read).collect();
    // What is constant is read by the nodes that read its expression.
    let mut reaches_others = vec![false; graph.nodes.len()];
    let results = graph.outputs.iter();
    results.clone().filter_map(|value| value.node()).for_each(|m| reaches_others[m] = true);
    for m in (0..graph.nodes.len()).rev() {
        let elsewhere = m != n && (!outer.values.constant[m] || reaches_others[m]);
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

fn row_type_of_stack(tensor: &TensorType) -> TensorType {
    let shape: &[usize] = tensor.shape.get(1..).unwrap_or(&[]);
    TensorType::new(tensor.dtype, shape)
}

/// Checks the types of what graph `g` makes. Passes keep the types of results, so they cannot
/// differ; if they did, the planned memory would not fit.
fn check_outputs(flow: &Flow, g: usize, made: &[TensorType], outputs: &[TensorType]) -> Result<(), OpError> {
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
