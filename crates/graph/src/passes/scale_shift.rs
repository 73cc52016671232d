//! Turns an inference-time BatchNorm that could not be folded, and a relu that follows it, into one
//! multiplication and addition.

use crate::ir::{Graph, GraphNode, Rewriter, Types, Value};
use mxrt_engine::OpError;
use mxrt_ops::KernelOptions;
use mxrt_tensor::DType;
use std::collections::HashMap;
use std::sync::Arc;

/// Rewrites `[relu](BatchNorm(x, constants))` to `_scale_shift(x, scale, shift)`, the two computed
/// from constants.
pub fn run(graph: Graph, types: &Types, _: KernelOptions) -> Result<Graph, OpError> {
    let uses = graph.uses();
    // BatchNorm nodes by the relu that takes them over, if any.
    let mut relu_of: HashMap<usize, usize> = HashMap::new();
    for (n, node) in graph.nodes.iter().enumerate() {
        let is_relu = node.op.name == "relu" || (node.op.name == "Activation" && node.attrs.str("act_type") == "relu");
        if is_relu
            && let Some((m, norm)) = graph.producer(node.inputs[0])
            && uses.get(&node.inputs[0]) == Some(&1)
            && applies(&graph, norm, types)
        {
            relu_of.insert(m, n);
        }
    }
    let taken: HashMap<usize, usize> = relu_of.iter().map(|(norm, relu)| (*relu, *norm)).collect();
    let mut new = Rewriter::new(&graph);
    for (n, node) in graph.nodes.iter().enumerate() {
        if relu_of.contains_key(&n) {
            continue;
        }
        let (norm, activation) = match taken.get(&n) {
            Some(norm) => (&graph.nodes[*norm], "relu"),
            None if applies(&graph, node, types) => (node, "none"),
            None => {
                new.keep(n, node);
                continue;
            }
        };
        let made = emit(&mut new, norm, activation)?;
        new.replace(Value::Node(n, 0), Value::Node(made, 0));
    }
    Ok(new.finish(&graph))
}

fn applies(graph: &Graph, norm: &GraphNode, types: &Types) -> bool {
    let constant = |v: &Value| matches!(v, Value::Input(i) if graph.inputs[*i].constant);
    norm.op.name == "BatchNorm"
        && norm.op.num_outputs(&norm.attrs) == 1
        && norm.inputs.iter().all(|v| types.get(v).is_some_and(|t| t.dtype == DType::F32))
        && norm.inputs.iter().skip(1).all(constant)
        && !norm.inputs.first().is_some_and(constant)
}

fn emit(new: &mut Rewriter, norm: &GraphNode, activation: &str) -> Result<usize, OpError> {
    let name = || Arc::clone(&norm.name);
    let given = |keys: &[&str]| -> Vec<(String, String)> {
        keys.iter().filter_map(|k| norm.attr(k).map(|v| (k.to_string(), v.to_owned()))).collect()
    };
    // Folding into a weight of ones leaves the factor and the offset of every channel.
    let ones = GraphNode::new("ones_like", name(), Vec::new(), vec![new.value(norm.inputs[1])])?.standing_for(norm);
    let ones = Value::Node(new.push(ones), 0);
    let mut inputs = vec![ones];
    inputs.extend(new.values(&norm.inputs[1..]));
    let folded =
        new.push(GraphNode::new("_fold_batch_norm", name(), given(&["eps", "fix_gamma"]), inputs)?.standing_for(norm));
    let mut attrs = given(&["axis"]);
    attrs.push(("act_type".to_owned(), activation.to_owned()));
    let inputs = vec![new.value(norm.inputs[0]), Value::Node(folded, 0), Value::Node(folded, 1)];
    Ok(new.push(GraphNode::new("_scale_shift", name(), attrs, inputs)?.standing_for(norm)))
}
