//! Hoisting of values that a loop computes from captured values alone, which are the same in all
//! iterations.
//!
//! A graph is divided in two: the first part computes such values before the first iteration, and
//! the rest reads them. Constant values stay in both parts, because plans keep constants.

use super::capture::InnerGraph;
use crate::execute::InnerSource;
use crate::ir::{Graph, GraphInput, GraphNode, Value};
use crate::passes;
use mxrt_engine::OpError;
use mxrt_tensor::TensorType;

/// Values that are computed before the first iteration.
pub(super) struct Hoisted {
    /// the graph that computes them, from the inputs of the whole graph
    pub graph: Graph,
    /// the values in the whole graph, by number
    values: Vec<Value>,
}

/// Finds the values to hoist. Returns `None` if every value that costs time depends on rows or
/// states.
pub(super) fn hoist(inner: &InnerGraph) -> Result<Option<Hoisted>, OpError> {
    let graph = &inner.graph;
    let same = same_in_all_iterations(inner);
    let is_same = |value: &Value| value.node().is_some_and(|n| same[n]);
    let mut values: Vec<Value> = Vec::new();
    let readers = graph.nodes.iter().enumerate().filter(|(n, _)| !same[*n]).flat_map(|(_, node)| &node.inputs);
    for value in readers.chain(&graph.outputs).filter(|value| is_same(value)) {
        if !values.contains(value) {
            values.push(*value);
        }
    }
    if values.is_empty() {
        return Ok(None);
    }
    let before = passes::without_dead(Graph { outputs: values.clone(), ..graph.clone() })?;
    Ok(Some(Hoisted { graph: before, values }))
}

/// Decides for every node whether it is computed once: it costs time, depends on captured values
/// that are not all constant, and on nothing else.
fn same_in_all_iterations(inner: &InnerGraph) -> Vec<bool> {
    let graph = &inner.graph;
    let constant = graph.constant_nodes();
    let captured = |i: usize| matches!(inner.sources[i], InnerSource::Whole(_));
    // Of captured values alone, constants among them; and whether that is more than another shape.
    let mut same: Vec<bool> = Vec::with_capacity(graph.nodes.len());
    let mut computed: Vec<bool> = Vec::with_capacity(graph.nodes.len());
    for (n, node) in graph.nodes.iter().enumerate() {
        let of_captured = |value: &Value| match *value {
            Value::Input(i) => captured(i) || graph.inputs[i].constant,
            Value::Node(m, _) => same[m] || constant[m],
        };
        let once = !constant[n] && is_plain(node) && node.inputs.iter().all(of_captured);
        let reads_computed = node.inputs.iter().any(|value| value.node().is_some_and(|m| computed[m]));
        computed.push(once && (reads_computed || !(node.op.rewrites.is_identity)(&node.attrs)));
        same.push(once);
    }
    computed
}

/// Whether a node draws no random numbers, runs no graphs, and reads something.
fn is_plain(node: &GraphNode) -> bool {
    !node.is_random() && node.flow.is_none() && !node.inputs.is_empty()
}

impl Hoisted {
    /// Makes `inner` read the hoisted values, which have these types, instead of computing them.
    pub fn leave(&self, inner: &mut InnerGraph, types: &[TensorType]) -> Result<(), OpError> {
        let mut rest = std::mem::take(&mut inner.graph);
        let first = rest.inputs.len();
        let moved = |value: &mut Value| {
            if let Some(k) = self.values.iter().position(|hoisted| hoisted == value) {
                *value = Value::Input(first + k);
            }
        };
        for (k, (value, tensor)) in self.values.iter().zip(types).enumerate() {
            let name = value.node().map_or_else(|| "hoisted".into(), |n| rest.nodes[n].name.clone());
            rest.inputs.push(GraphInput { name, constant: false, captured: false, origin: first + k });
            inner.types.push(tensor.clone());
            inner.sources.push(InnerSource::Hoisted(k));
        }
        rest.nodes.iter_mut().flat_map(|node| &mut node.inputs).for_each(moved);
        rest.outputs.iter_mut().for_each(moved);
        inner.graph = passes::without_dead(rest)?;
        Ok(())
    }
}
