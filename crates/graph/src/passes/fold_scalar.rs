//! Folds numbers into the convolution or dense layer whose result they scale or shift.
//!
//! As for a BatchNorm, the new weights are computed by constant nodes, so a changed parameter is
//! picked up by the next request, and a failure in the arithmetic belongs to the operator with the
//! number.

use crate::ir::{Graph, GraphNode, Rewriter, Value};
use mxrt_engine::OpError;
use std::collections::HashMap;

/// Numbers that one layer takes. Constants are computed recursively, so chains of them have to stay
/// short.
const MOST: usize = 8;

/// A layer with numbers folded in.
#[derive(Clone)]
struct ScaledLayer<'g> {
    node: &'g GraphNode,
    /// weight and perhaps bias, as values of the new graph
    parameters: Vec<Value>,
    /// numbers so far
    numbers: usize,
}

/// Rewrites `layer(x, w[, b]) * number` to `layer(x, w * number[, b * number])`, likewise `/`, and
/// `layer(x, w, b) + number` to `layer(x, w, b + number)`, likewise `-`, where everything but x is
/// constant.
pub fn run(graph: Graph) -> Result<Graph, OpError> {
    let (uses, constant) = (graph.uses(), graph.constant_nodes());
    let mut new = Rewriter::new(&graph);
    // By the node whose result they make.
    let mut layers: HashMap<usize, ScaledLayer<'_>> = HashMap::new();
    for (n, node) in graph.nodes.iter().enumerate() {
        let once = node.inputs.first().filter(|v| uses.get(v) == Some(&1));
        let before = once
            .and_then(|v| graph.producer(*v))
            .filter(|_| !constant[n])
            .and_then(|(m, producer)| layers.get(&m).cloned().or_else(|| layer(&graph, &constant, &new, producer)));
        let takes =
            |layer: &ScaledLayer<'_>| layer.numbers < MOST && changed(node).is_some_and(|p| p < layer.parameters.len());
        match before.filter(takes) {
            Some(layer) => {
                let layer = fold(&mut new, n, node, layer)?;
                layers.insert(n, layer);
            }
            None => new.keep(n, node),
        }
    }
    Ok(new.finish(&graph))
}

/// A layer whose parameters are all constant.
fn layer<'g>(graph: &Graph, constant: &[bool], new: &Rewriter, node: &'g GraphNode) -> Option<ScaledLayer<'g>> {
    let parameters = node.inputs.get(1..).filter(|_| matches!(node.op.name, "Convolution" | "FullyConnected"))?;
    let is_constant = |v: &Value| match *v {
        Value::Input(i) => graph.inputs[i].constant,
        Value::Node(m, _) => constant[m],
    };
    parameters.iter().all(is_constant).then(|| ScaledLayer { node, parameters: new.values(parameters), numbers: 0 })
}

/// The first parameter that an operator with a number changes. It changes later parameters as well.
fn changed(node: &GraphNode) -> Option<usize> {
    let first = match node.op.name {
        "_mul_scalar" | "_div_scalar" => 0,
        "_plus_scalar" | "_minus_scalar" => 1,
        _ => return None,
    };
    // Zero, infinities and what becomes one of them in single precision would make other sums.
    (node.attrs.float("scalar") as f32).is_normal().then_some(first)
}

fn fold<'g>(
    new: &mut Rewriter,
    n: usize,
    node: &GraphNode,
    mut layer: ScaledLayer<'g>,
) -> Result<ScaledLayer<'g>, OpError> {
    match with_factor(new, node, &layer.parameters)? {
        Some(norm) => {
            let norm = new.push(norm);
            layer.parameters = vec![Value::Node(norm, 0), Value::Node(norm, 1)];
        }
        None => {
            for parameter in layer.parameters.iter_mut().skip(changed(node).unwrap_or(0)) {
                let made = GraphNode::new(node.op.name, node.name.clone(), number(node), vec![*parameter])?;
                *parameter = Value::Node(new.push(made), 0);
            }
        }
    }
    layer.numbers += 1;
    let mut inputs = vec![new.value(layer.node.inputs[0])];
    inputs.extend(&layer.parameters);
    let made = new.push(GraphNode { inputs, ..layer.node.clone() });
    new.replace(Value::Node(n, 0), Value::Node(made, 0));
    Ok(layer)
}

/// The attributes of an operator with a number. Whether it is whole matters to integers only, which
/// layers do not compute with.
fn number(node: &GraphNode) -> Vec<(String, String)> {
    node.attr("scalar").map(|text| ("scalar".to_owned(), text.to_owned())).into_iter().collect()
}

/// The BatchNorm that was folded into parameters, with a factor more. What it makes is rounded once
/// then, and the layer's own weights can still be derived from it (`memory/restore.rs`).
fn with_factor(new: &Rewriter, node: &GraphNode, parameters: &[Value]) -> Result<Option<GraphNode>, OpError> {
    let number = node.attrs.float("scalar");
    let factor = match node.op.name {
        "_mul_scalar" => number,
        "_div_scalar" => 1.0 / number,
        _ => return Ok(None),
    };
    let [Value::Node(weight, 0), Value::Node(bias, 1)] = *parameters else { return Ok(None) };
    let norm = &new.graph.nodes[weight];
    if weight != bias || norm.op.name != "_fold_batch_norm" {
        return Ok(None);
    }
    let mut attrs = norm.attr_text.to_vec();
    attrs.retain(|(key, _)| key != "factor");
    attrs.push(("factor".to_owned(), (norm.attrs.float("factor") * factor).to_string()));
    GraphNode::new(norm.op.name, norm.name.clone(), attrs, norm.inputs.clone())
        .map(|made| Some(made.standing_for(norm)))
}
