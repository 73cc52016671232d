//! LayerNorm takes the addition before it, where no layer took that.

use super::fuse_conv::summands;
use crate::ir::{Graph, GraphNode, Rewriter, Types, Value};
use mxrt_engine::OpError;
use mxrt_ops::KernelOptions;
use std::collections::HashMap;
use std::sync::Arc;

/// `LayerNorm(a + b)` along the last axis becomes one node, where no other node reads the sum.
pub fn run(graph: Graph, types: &Types, _: KernelOptions) -> Result<Graph, OpError> {
    let uses = graph.uses();
    let sums: HashMap<usize, (usize, [Value; 2])> = (0..graph.nodes.len())
        .filter_map(|n| {
            let node = &graph.nodes[n];
            let sum = *node.inputs.first().filter(|sum| node.op.name == "LayerNorm" && uses.get(sum) == Some(&1))?;
            let rank = types.get(&sum)?.shape.len() as i64;
            let last = [-1, rank - 1].contains(&node.attrs.int("axis"));
            let alone = (1..3).all(|output| !uses.contains_key(&Value::Node(n, output)));
            let (add, producer) = graph.producer(sum).filter(|_| last && alone && rank > 0)?;
            Some((n, (add, summands(producer, types)?)))
        })
        .collect();
    let mut taken = vec![false; graph.nodes.len()];
    sums.values().for_each(|(add, _)| taken[*add] = true);
    let mut new = Rewriter::new(&graph);
    for (n, node) in graph.nodes.iter().enumerate() {
        match sums.get(&n) {
            Some((_, terms)) => {
                let inputs = new.values(&[&terms[..], &node.inputs[1..]].concat());
                let attrs = node.attr("eps").map(|eps| ("eps".to_owned(), eps.to_owned())).into_iter().collect();
                let made = GraphNode::new("_layer_norm_of_sum", Arc::clone(&node.name), attrs, inputs)?;
                let made = new.push(made.standing_for(node));
                new.replace(Value::Node(n, 0), Value::Node(made, 0));
            }
            None if taken[n] => {}
            None => new.keep(n, node),
        }
    }
    Ok(new.finish(&graph))
}
