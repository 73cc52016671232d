//! Makes a large convolution and the pooling that alone reads it one step, so that what lies
//! between stays in the cache.
//!
//! Whether that pays depends on the kernel and the image; `with_pooling` knows. Both have to be
//! blocked already.

use crate::ir::{Graph, GraphNode, Rewriter, Types, Value, ValueMap};
use mxrt_engine::OpError;
use mxrt_ops::{KernelOptions, with_pooling};
use std::collections::HashMap;
use std::sync::Arc;

/// Rewrites `_blocked_pooling(_blocked_convolution(...))`.
pub fn run(graph: Graph, types: &Types, options: KernelOptions) -> Result<Graph, OpError> {
    let uses = graph.uses();
    // The new nodes, by the pooling whose place they take.
    let mut joined: HashMap<usize, GraphNode> = HashMap::new();
    let mut absorbed = vec![false; graph.nodes.len()];
    for (n, pool) in graph.nodes.iter().enumerate() {
        if let Some((m, conv)) = reader_of_convolution(&graph, &uses, pool)
            && let Some(data) = types.get(&conv.inputs[0])
            && let Some(attrs) = with_pooling(&conv.attrs, &pool.attrs, data, options)
        {
            absorbed[m] = true;
            joined.insert(n, join(conv, attrs)?);
        }
    }
    let mut new = Rewriter::new(&graph);
    for (n, node) in graph.nodes.iter().enumerate() {
        match joined.remove(&n) {
            Some(node) => {
                let inputs = new.values(&node.inputs);
                let made = new.push(GraphNode { inputs, ..node });
                new.replace(Value::Node(n, 0), Value::Node(made, 0));
            }
            None if absorbed[n] => {}
            None => new.keep(n, node),
        }
    }
    Ok(new.finish(&graph))
}

/// The convolution that a pooling alone reads.
fn reader_of_convolution<'g>(
    graph: &'g Graph,
    uses: &ValueMap<usize>,
    pool: &GraphNode,
) -> Option<(usize, &'g GraphNode)> {
    let data = pool.inputs.first().filter(|data| pool.op.name == "_blocked_pooling" && uses.get(data) == Some(&1))?;
    graph.producer(*data).filter(|(_, conv)| conv.op.name == "_blocked_convolution")
}

/// The convolution with other attributes, its inputs not replaced yet.
fn join(conv: &GraphNode, attrs: [(String, String); 3]) -> Result<GraphNode, OpError> {
    let mut all: Vec<_> =
        conv.attr_text.iter().filter(|(key, _)| attrs.iter().all(|(k, _)| k != key)).cloned().collect();
    all.extend(attrs);
    Ok(GraphNode::new(conv.op.name, Arc::clone(&conv.name), all, conv.inputs.clone())?.standing_for(conv))
}
