//! A convolution makes the scaled outputs that a `_blocked_scale_shift` would make of its own, while they are near: a batch
//! normalisation between a residual that goes on and the next layers.

use crate::plan::infer::Types;
use crate::plan::ir::{Graph, GraphNode, Rewriter, Value};
use mxrt_engine::OpError;
use mxrt_ops::{KernelOptions, with_scaled};
use std::collections::HashMap;
use std::sync::Arc;

/// What a convolution takes over.
struct Taken {
    /// The number of the `_blocked_scale_shift`.
    scale: usize,
    /// Whether nobody else reads the outputs of the convolution.
    alone: bool,
    attrs: Vec<(String, String)>,
}

/// Rewrites `_blocked_scale_shift(_blocked_convolution(...), constant, constant)`.
pub fn run(graph: Graph, _: &Types, _: KernelOptions) -> Result<Graph, OpError> {
    let (uses, constant) = (graph.uses(), graph.constant_nodes());
    let mut taken: HashMap<usize, Taken> = HashMap::new();
    for (n, node) in graph.nodes.iter().enumerate().filter(|(_, node)| node.op.name == "_blocked_scale_shift") {
        let [data, factors @ ..] = &node.inputs[..] else { continue };
        let are_constant = factors.iter().all(|value| value.node().is_none_or(|m| constant[m]));
        if let Some((m, conv)) = graph.producer(*data)
            && are_constant
            && conv.op.name == "_blocked_convolution"
            && !taken.contains_key(&m)
        {
            let alone = uses.get(data) == Some(&1);
            if let Some(attrs) = with_scaled(&conv.attrs, &node.attrs, alone) {
                taken.insert(m, Taken { scale: n, alone, attrs });
            }
        }
    }
    if taken.is_empty() {
        return Ok(graph);
    }
    // Factors may stand behind the convolution; what is constant needs nothing that is not.
    let mut new = Rewriter::new(&graph);
    graph.nodes.iter().enumerate().filter(|(n, _)| constant[*n]).for_each(|(n, node)| new.keep(n, node));
    let scales: Vec<usize> = taken.values().map(|one| one.scale).collect();
    for (n, node) in graph.nodes.iter().enumerate().filter(|(n, _)| !constant[*n]) {
        match taken.get(&n) {
            Some(one) => {
                let factors = graph.nodes[one.scale].inputs.iter().skip(1);
                let inputs: Vec<Value> = node.inputs.iter().chain(factors).map(|value| new.value(*value)).collect();
                let made = new.push(join(node, &one.attrs, inputs)?);
                new.replace(Value::Node(n, 0), Value::Node(made, 0));
                new.replace(Value::Node(one.scale, 0), Value::Node(made, usize::from(!one.alone)));
            }
            None if scales.contains(&n) => {}
            None => new.keep(n, node),
        }
    }
    Ok(new.finish(&graph))
}

/// The convolution with other attributes and inputs.
fn join(conv: &GraphNode, attrs: &[(String, String)], inputs: Vec<Value>) -> Result<GraphNode, OpError> {
    let mut all: Vec<_> =
        conv.attr_text.iter().filter(|(key, _)| attrs.iter().all(|(k, _)| k != key)).cloned().collect();
    all.extend_from_slice(attrs);
    Ok(GraphNode::new(conv.op.name, Arc::clone(&conv.name), all, inputs)?.standing_for(conv))
}
