//! Passes that remove nodes without effect: identities, repeated nodes, nodes without readers.

use crate::ir::{Graph, GraphNode, Rewriter, Value};
use mxrt_engine::OpError;
use std::collections::HashMap;

/// Operators that pass their input on unchanged at inference, shape included. (Those that change the shape, such as
/// Reshape, are resolved when the plan is built, where shapes are known.)
const PASS_THROUGH: &[&str] = &["Dropout", "_copy", "BlockGrad", "identity", "make_loss"];

/// Drops nodes that are the identity at inference.
pub fn drop_identities(graph: Graph) -> Result<Graph, OpError> {
    let mut new = Rewriter::new(&graph);
    for (n, node) in graph.nodes.iter().enumerate() {
        if PASS_THROUGH.contains(&node.op.name) && (node.op.rewrites.is_identity)(&node.attrs) {
            let source = new.value(node.inputs[0]);
            new.replace(Value::Node(n, 0), source);
        } else {
            new.keep(n, node);
        }
    }
    Ok(new.finish(&graph))
}

/// What a node computes: operator, attributes, operands.
type Computation<'a> = (&'a str, Vec<(String, String)>, Vec<Value>);

/// Merges nodes that compute the same thing from the same values.
pub fn merge_equal(graph: Graph) -> Result<Graph, OpError> {
    let mut new = Rewriter::new(&graph);
    let mut seen: HashMap<Computation<'_>, usize> = HashMap::new();
    for (n, node) in graph.nodes.iter().enumerate() {
        let mut attrs = node.attr_text.clone();
        attrs.sort();
        let key = (node.op.name, attrs, new.values(&node.inputs));
        match seen.get(&key) {
            Some(earlier) if !node.op.random => {
                for output in 0..node.op.num_outputs(&node.attrs) {
                    new.replace(Value::Node(n, output), Value::Node(*earlier, output));
                }
            }
            _ => {
                new.keep(n, node);
                seen.insert(key, new.graph.nodes.len() - 1);
            }
        }
    }
    Ok(new.finish(&graph))
}

/// Drops nodes whose values have no reader.
pub fn drop_dead(graph: Graph) -> Result<Graph, OpError> {
    let mut live = vec![false; graph.nodes.len()];
    let mark = |live: &mut Vec<bool>, value: &Value| {
        if let Value::Node(n, _) = value {
            live[*n] = true;
        }
    };
    graph.outputs.iter().for_each(|v| mark(&mut live, v));
    for n in (0..graph.nodes.len()).rev().collect::<Vec<_>>() {
        if live[n] {
            let node: &GraphNode = &graph.nodes[n];
            node.inputs.iter().for_each(|v| mark(&mut live, v));
        }
    }
    let mut new = Rewriter::new(&graph);
    for (n, node) in graph.nodes.iter().enumerate().filter(|(n, _)| live[*n]) {
        new.keep(n, node);
    }
    Ok(new.finish(&graph))
}
