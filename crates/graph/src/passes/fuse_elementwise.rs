//! Chains of element-wise operators become one loop each: what they compute in between never
//! reaches memory.

use crate::ir::{Graph, GraphNode, Rewriter, Types, Value, ValueMap};
use mxrt_engine::OpError;
use mxrt_ops::{KernelOptions, MAX_PROGRAM_STEPS, OperandBroadcast, Signature, StepInput, program_step};
use mxrt_tensor::{DType, TensorType};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Arrays that a loop reads at most.
const MAX_INPUTS: usize = 8;

/// Joins float32 operators on arrays of one shape, and on some that repeat over images, whose
/// intermediate results have no other reader.
pub fn run(graph: Graph, types: &Types, options: KernelOptions) -> Result<Graph, OpError> {
    let groups = groups(&graph, types, options);
    let inner: HashSet<usize> = groups.values().flatten().copied().collect();
    let mut new = Rewriter::new(&graph);
    for (n, node) in graph.nodes.iter().enumerate() {
        match groups.get(&n) {
            Some(members) => {
                let made = fused(&graph, types, &new, members, n)?;
                let made = new.push(made);
                new.replace(Value::Node(n, 0), Value::Node(made, 0));
            }
            None if inner.contains(&n) => {}
            None => new.keep(n, node),
        }
    }
    Ok(new.finish(&graph))
}

/// Members of every group in order, by its last.
fn groups(graph: &Graph, types: &Types, options: KernelOptions) -> HashMap<usize, Vec<usize>> {
    let (uses, constant) = (graph.uses(), graph.constant_nodes());
    let mut groups: HashMap<usize, Vec<usize>> = HashMap::new();
    for (n, node) in graph.nodes.iter().enumerate() {
        if constant[n] || !fits(n, node, types) {
            continue;
        }
        let mut members = vec![n];
        while let Some(other) = absorbable(graph, types, &uses, &groups, &members) {
            members.extend(groups.remove(&other).unwrap_or_default());
        }
        members.sort_unstable();
        groups.insert(n, members);
    }
    groups.retain(|n, members| members.len() > 1 || only_fused_is_blocked(*n, graph, types, options));
    groups
}

/// The last node of another group all of whose readers are members, if the two fit together. What
/// repeats is no part of the loop: it would be computed again and again.
fn absorbable(
    graph: &Graph,
    types: &Types,
    uses: &ValueMap<usize>,
    groups: &HashMap<usize, Vec<usize>>,
    members: &[usize],
) -> Option<usize> {
    let reads = || members.iter().flat_map(|m| &graph.nodes[*m].inputs);
    reads().find_map(|value| {
        let Value::Node(other, 0) = value else { return None };
        if types.get(value) != types.get(&Value::Node(*members.first()?, 0)) {
            return None;
        }
        let group = groups.get(other).filter(|_| !members.contains(other))?;
        let all_here = uses.get(value) == Some(&reads().filter(|v| *v == value).count());
        let together: Vec<usize> = members.iter().chain(group).copied().collect();
        let small = together.len() <= MAX_PROGRAM_STEPS && inputs(graph, &together).len() <= MAX_INPUTS;
        (all_here && small).then_some(*other)
    })
}

/// The values that a group reads from outside, each once.
fn inputs(graph: &Graph, members: &[usize]) -> Vec<Value> {
    let mut found = Vec::new();
    for value in members.iter().flat_map(|m| &graph.nodes[*m].inputs) {
        let inside = matches!(value, Value::Node(n, _) if members.contains(n));
        if !inside && !found.contains(value) {
            found.push(*value);
        }
    }
    found
}

/// The broadcast of an operand of a node to its result. `None` if a chain cannot read the operand.
fn broadcast(n: usize, node: &GraphNode, operand: usize, types: &Types) -> Option<OperandBroadcast> {
    let (input, output) = (types.get(node.inputs.get(operand)?)?, types.get(&Value::Node(n, 0))?);
    let function = (node.op.rewrites.elementwise)(&node.attrs).filter(|f| f.arity() == node.inputs.len())?;
    let single = input.dtype == DType::F32 && output.dtype == DType::F32;
    function.broadcast(operand, &input.shape, &output.shape).filter(|_| single)
}

fn fits(n: usize, node: &GraphNode, types: &Types) -> bool {
    let broadcasts: Option<Vec<OperandBroadcast>> =
        (0..node.inputs.len()).map(|i| broadcast(n, node, i, types)).collect();
    broadcasts.is_some_and(|broadcasts| broadcasts.contains(&OperandBroadcast::Whole))
        && node.op.num_outputs(&node.attrs) == 1
        && step(node, &[]).is_some()
}

/// A single operator that could stay in a blocked layout as a chain of one, but not by itself.
fn only_fused_is_blocked(n: usize, graph: &Graph, types: &Types, options: KernelOptions) -> bool {
    let node = &graph.nodes[n];
    let Some(output) = types.get(&Value::Node(n, 0)) else { return false };
    let inputs: Vec<TensorType> = node.inputs.iter().filter_map(|v| types.get(v).cloned()).collect();
    let signature = Signature { inputs: &inputs, outputs: std::slice::from_ref(output), options };
    (3..=4).contains(&output.shape.len()) && (node.op.rewrites.blocked_form)(&node.attrs, &signature).is_none()
}

fn step(node: &GraphNode, reads: &[StepInput]) -> Option<String> {
    let declared = node.attr_text.iter().filter(|(name, _)| node.attrs.declares(name));
    let attrs: Vec<(&str, &str)> = declared.map(|(k, v)| (k.as_str(), v.as_str())).collect();
    program_step(node.op.name, &attrs, reads)
}

fn fused(graph: &Graph, types: &Types, new: &Rewriter, members: &[usize], n: usize) -> Result<GraphNode, OpError> {
    let repeats = |value: &Value| types.get(value) != types.get(&Value::Node(n, 0));
    // What repeats comes last.
    let (mut read, repeated): (Vec<Value>, Vec<Value>) = inputs(graph, members).into_iter().partition(|v| !repeats(v));
    read.extend(repeated);
    let source = |value: &Value| match value {
        Value::Node(n, _) if members.contains(n) => StepInput::Step(members.iter().position(|m| m == n).unwrap_or(0)),
        _ => StepInput::Input(read.iter().position(|v| v == value).unwrap_or(0)),
    };
    let steps: Vec<String> = members
        .iter()
        .filter_map(|m| {
            let node = &graph.nodes[*m];
            step(node, &node.inputs.iter().map(source).collect::<Vec<_>>())
        })
        .collect();
    let mut attrs = vec![("num_args".to_owned(), read.len().to_string()), ("program".to_owned(), steps.join(";"))];
    let repeated = read.iter().filter(|value| repeats(value)).count();
    if repeated > 0 {
        attrs.push(("repeated".to_owned(), repeated.to_string()));
    }
    let last = &graph.nodes[n];
    Ok(GraphNode::new("_fused_elementwise", Arc::clone(&last.name), attrs, new.values(&read))?.standing_for(last))
}
