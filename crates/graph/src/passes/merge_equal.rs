//! Computes once what several nodes compute.

use crate::ir::{Graph, Rewriter, Value};
use mxrt_engine::OpError;
use std::collections::HashMap;

/// Computation of a node: operator, attributes, operands.
type Computation<'a> = (&'a str, Vec<(String, String)>, Vec<Value>);

/// Merges nodes that compute the same thing from the same values.
pub fn run(graph: Graph) -> Result<Graph, OpError> {
    let mut new = Rewriter::new(&graph);
    let mut seen: HashMap<Computation<'_>, usize> = HashMap::new();
    for (n, node) in graph.nodes.iter().enumerate() {
        let mut attrs = node.attr_text.to_vec();
        attrs.sort();
        let key = (node.op.name, attrs, new.values(&node.inputs));
        match seen.get(&key) {
            Some(earlier) if !node.op.random && node.flow.is_none() => {
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
