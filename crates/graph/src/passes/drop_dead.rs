//! Removes nodes whose values have no reader.

use crate::ir::{Graph, GraphNode, Rewriter, Value};
use mxrt_engine::OpError;

/// Drops nodes whose values have no reader.
pub fn run(graph: Graph) -> Result<Graph, OpError> {
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
