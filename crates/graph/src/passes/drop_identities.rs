//! Removes operators that are the identity at inference.

use crate::ir::{Graph, Rewriter, Value};
use mxrt_engine::OpError;

/// Operators that pass their input on unchanged at inference, shape included. (Those that change
/// the shape, such as Reshape, are resolved when the plan is built, where shapes are known.)
const PASS_THROUGH: &[&str] = &["Dropout", "_copy", "BlockGrad", "identity", "make_loss"];

/// Drops nodes that are the identity at inference.
pub fn run(graph: Graph) -> Result<Graph, OpError> {
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
