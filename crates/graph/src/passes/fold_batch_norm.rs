//! Folds an inference-time BatchNorm into the convolution or dense layer before it.
//!
//! The folded weights are computed by a node of constants (`_fold_batch_norm`), so a changed
//! statistic is picked up by the next request, and a failure in the arithmetic belongs to that
//! node.

use crate::ir::{Graph, GraphNode, Rewriter, Value};
use mxrt_engine::OpError;

/// Rewrites `BatchNorm(Convolution(x, w[, b]))` to `Convolution(x, w', b')` where everything but x
/// is constant.
pub fn run(graph: Graph) -> Result<Graph, OpError> {
    let uses = graph.uses();
    let mut new = Rewriter::new(&graph);
    for (n, node) in graph.nodes.iter().enumerate() {
        match foldable(&graph, node) {
            Some(layer) if uses.get(&node.inputs[0]) == Some(&1) => fold(&mut new, n, node, layer)?,
            _ => new.keep(n, node),
        }
    }
    Ok(new.finish(&graph))
}

/// The layer before a BatchNorm, if the two can become one.
fn foldable<'a>(graph: &'a Graph, norm: &GraphNode) -> Option<&'a GraphNode> {
    if norm.op.name != "BatchNorm" || norm.op.num_outputs(&norm.attrs) != 1 {
        return None;
    }
    let (_, layer) = graph.producer(*norm.inputs.first()?)?;
    let channels_axis = match layer.op.name {
        // Output channels are axis 1 of the result in every layout that has a kernel here.
        "Convolution" => 1,
        "FullyConnected" if layer.attrs.bool("flatten") => 1,
        _ => return None,
    };
    if norm.attrs.int("axis") != channels_axis {
        return None;
    }
    let constant = |v: &Value| matches!(v, Value::Input(i) if graph.inputs[*i].constant);
    let all = layer.inputs.iter().skip(1).chain(norm.inputs.iter().skip(1)).all(constant);
    all.then_some(layer)
}

fn fold(new: &mut Rewriter, n: usize, norm: &GraphNode, layer: &GraphNode) -> Result<(), OpError> {
    let with_bias = layer.inputs.len() > 2;
    let mut attrs: Vec<(String, String)> =
        ["eps", "fix_gamma"].iter().filter_map(|k| norm.attr(k).map(|v| (k.to_string(), v.to_owned()))).collect();
    attrs.push(("with_bias".to_owned(), if with_bias { "True" } else { "False" }.to_owned()));
    let mut inputs = new.values(&layer.inputs[1..]);
    inputs.extend(new.values(&norm.inputs[1..]));
    let folded = new.push(GraphNode::new("_fold_batch_norm", norm.name.clone(), attrs, inputs)?.standing_for(norm));
    let mut attrs = layer.attr_text.to_vec();
    attrs.retain(|(k, _)| k != "no_bias");
    let inputs = vec![new.value(layer.inputs[0]), Value::Node(folded, 0), Value::Node(folded, 1)];
    let layer = GraphNode::new(layer.op.name, layer.name.clone(), with_default_bias(layer, attrs), inputs)?;
    let made = new.push(layer);
    new.replace(Value::Node(n, 0), Value::Node(made, 0));
    Ok(())
}

/// `no_bias` says False now, whatever the operator's default.
fn with_default_bias(layer: &GraphNode, mut attrs: Vec<(String, String)>) -> Vec<(String, String)> {
    if layer.attrs.declares("no_bias") {
        attrs.push(("no_bias".to_owned(), "False".to_owned()));
    }
    attrs
}
