//! Joins a depthwise convolution and the 1x1 convolution that alone reads it into one step, where the map between them is too
//! large to stay in a cache. Whether it pays the operators say; it runs when layouts are assigned.

use crate::plan::infer::Types;
use crate::plan::ir::{Graph, GraphNode, Rewriter, Value};
use mxrt_engine::OpError;
use mxrt_ops::{BlockedNode, KernelOptions, Signature, join_convolutions};
use mxrt_tensor::TensorType;
use std::collections::HashMap;
use std::sync::Arc;

/// Rewrites `_blocked_convolution(_blocked_convolution(x))` where it can be one step.
pub fn run(graph: Graph, types: &Types, options: KernelOptions) -> Result<Graph, OpError> {
    let uses = graph.uses();
    // The second layers by number, each with the first and what the new node is.
    let mut joined = HashMap::new();
    for (n, node) in graph.nodes.iter().enumerate() {
        if let Some((m, first)) = node.inputs.first().and_then(|data| graph.producer(*data))
            && is_convolution(node)
            && is_convolution(first)
            && uses.get(&node.inputs[0]) == Some(&1)
            && let Some(form) = form(m, first, n, node, types, options)
        {
            joined.insert(n, (m, form));
        }
    }
    let firsts: Vec<usize> = joined.values().map(|(m, _)| *m).collect();
    let mut new = Rewriter::new(&graph);
    for (n, node) in graph.nodes.iter().enumerate() {
        if firsts.contains(&n) {
            continue;
        }
        let Some((m, (op, attrs))) = joined.remove(&n) else {
            new.keep(n, node);
            continue;
        };
        let inputs = graph.nodes[m].inputs.iter().chain(&node.inputs[1..]).copied().collect::<Vec<_>>();
        let made = GraphNode::new(op, Arc::clone(&node.name), attrs, new.values(&inputs))?.standing_for(node);
        let made = new.push(made);
        new.replace(Value::Node(n, 0), Value::Node(made, 0));
    }
    Ok(new.finish(&graph))
}

fn is_convolution(node: &GraphNode) -> bool {
    node.op.name == "_blocked_convolution"
}

fn form(
    m: usize,
    first: &GraphNode,
    n: usize,
    then: &GraphNode,
    types: &Types,
    options: KernelOptions,
) -> Option<(&'static str, Vec<(String, String)>)> {
    let types_of = |values: &[Value]| values.iter().map(|v| types.get(v).cloned()).collect::<Option<Vec<TensorType>>>();
    let around = |n: usize, node: &GraphNode| Some((types_of(&node.inputs)?, types_of(&[Value::Node(n, 0)])?));
    let (first_types, then_types) = (around(m, first)?, around(n, then)?);
    join_convolutions(&described(first, &first_types, options), &described(then, &then_types, options))
}

fn described<'a>(
    node: &'a GraphNode,
    (inputs, outputs): &'a (Vec<TensorType>, Vec<TensorType>),
    options: KernelOptions,
) -> BlockedNode<'a> {
    BlockedNode { text: &node.attr_text, attrs: &node.attrs, signature: Signature { inputs, outputs, options } }
}
