//! Constants that the graphs of a stage capture.
//!
//! A captured value that is constant outside becomes constant inside: the expression moves into the
//! graph, down to the parameters. So each segment inside folds and packs it once for each
//! version of the parameters, not in every iteration.

use crate::ir::Flow;
use crate::ir::{Graph, GraphNode, Value};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Returns node `n` with graphs that compute the constants which they capture. `constant` says of
/// each node of the graph whether it depends on parameters alone.
pub(super) fn capture_constants(graph: &Graph, constant: &[bool], n: usize) -> GraphNode {
    let mut node = graph.nodes[n].clone();
    let Some(mut flow) = node.flow.as_deref().cloned() else { return node };
    for g in 0..flow.graphs.len() {
        for j in 0..flow.graphs[g].inputs.len() {
            let k = flow.wiring.inputs[g][j];
            if let Value::Node(m, o) = node.inputs[k]
                && constant[m]
                && flow.wiring.is_captured(k)
            {
                let value = import(graph, m, o, &mut node.inputs, &mut flow, g);
                replace_input(&mut flow.graphs[g], j, value);
            }
        }
    }
    mark_constants(graph, &node.inputs, &mut flow);
    node.flow = Some(Arc::new(flow));
    node
}

/// Copies output `o` of the constant node `m`, and all that it depends on, to the beginning of graph
/// `g`. Returns the value there.
fn import(graph: &Graph, m: usize, o: usize, reads: &mut Vec<Value>, flow: &mut Flow, g: usize) -> Value {
    let mut needed = BTreeSet::new();
    needed.insert(m);
    let mut open = vec![m];
    while let Some(n) = open.pop() {
        let read = graph.nodes[n].inputs.iter().filter_map(|value| value.node());
        open.extend(read.filter(|m| needed.insert(*m)).collect::<Vec<_>>());
    }
    let places: HashMap<usize, usize> = needed.iter().enumerate().map(|(at, n)| (*n, at)).collect();
    let mut nodes = Vec::with_capacity(needed.len());
    for n in needed {
        let mut node = graph.nodes[n].clone();
        for value in &mut node.inputs {
            *value = match *value {
                Value::Node(m, o) => Value::Node(places[&m], o),
                Value::Input(i) => Value::Input(captured_input(graph, i, reads, flow, g)),
            };
        }
        nodes.push(node);
    }
    let (inner, first) = (&mut flow.graphs[g], nodes.len());
    let moved = |value: &mut Value| {
        if let Value::Node(n, _) = value {
            *n += first;
        }
    };
    inner.nodes.iter_mut().flat_map(|node| &mut node.inputs).chain(&mut inner.outputs).for_each(moved);
    inner.nodes.splice(..0, nodes);
    Value::Node(places[&m], o)
}

/// The input of graph `g` that stands for input `i` of the graph outside.
fn captured_input(graph: &Graph, i: usize, reads: &mut Vec<Value>, flow: &mut Flow, g: usize) -> usize {
    let captured = |k: &usize| flow.wiring.is_captured(*k) && reads[*k] == Value::Input(i);
    if let Some(j) = flow.wiring.inputs[g].iter().position(captured) {
        return j;
    }
    let k = (0..reads.len()).find(captured).unwrap_or_else(|| {
        reads.push(Value::Input(i));
        reads.len() - 1
    });
    flow.wiring.inputs[g].push(k);
    flow.graphs[g].inputs.push(graph.inputs[i].clone());
    flow.graphs[g].inputs.len() - 1
}

fn replace_input(graph: &mut Graph, j: usize, by: Value) {
    let values = graph.nodes.iter_mut().flat_map(|node| &mut node.inputs).chain(&mut graph.outputs);
    values.filter(|value| **value == Value::Input(j)).for_each(|value| *value = by);
}

/// Parameters of the graph outside are parameters inside, and nothing else is: what iterations
/// change, or a stage before has made, has no version.
fn mark_constants(graph: &Graph, reads: &[Value], flow: &mut Flow) {
    let changed = flow.changed_inputs();
    for (inner, feeds) in flow.graphs.iter_mut().zip(&flow.wiring.inputs) {
        for (input, k) in inner.inputs.iter_mut().zip(feeds) {
            let outer = match reads[*k] {
                Value::Input(i) if flow.wiring.is_captured(*k) && !changed.contains(k) => graph.inputs.get(i),
                _ => None,
            };
            input.constant = outer.is_some_and(|outer| outer.constant);
            if let Some(outer) = outer {
                input.origin = outer.origin;
            }
        }
    }
}
