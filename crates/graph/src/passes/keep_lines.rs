//! Rows of layers on tiles stay in lines between layers: what makes them writes them once, and no
//! product converts them again.

use crate::ir::{Graph, GraphNode, Rewriter, Types, Value};
use mxrt_engine::OpError;
use mxrt_ops::{DenseForm, KernelOptions, Precision, Signature};
use mxrt_tensor::TensorType;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A value that only dense layers on tiles read is left in lines by the layer that makes it. One
/// that several of them read is written in lines once.
pub fn run(graph: Graph, types: &Types, options: KernelOptions) -> Result<Graph, OpError> {
    let layers: HashMap<usize, DenseForm> =
        (0..graph.nodes.len()).filter_map(|n| Some((n, layer(&graph, types, options, n)?))).collect();
    let mut readers: HashMap<Value, Vec<usize>> = HashMap::new();
    for n in 0..graph.nodes.len() {
        if layers.contains_key(&n) {
            readers.entry(graph.nodes[n].inputs[0]).or_default().push(n);
        }
    }
    let (uses, constants) = (graph.uses(), graph.constant_nodes());
    let mut kept: HashSet<usize> = HashSet::new();
    let mut shared: HashMap<Value, [usize; 2]> = HashMap::new();
    for (value, readers) in &readers {
        let [rows, columns, _] = layers[&readers[0]].size;
        if readers.iter().any(|n| layers[n].size[..2] != [rows, columns]) {
            continue;
        }
        let maker = value.node().and_then(|n| layers.get(&n));
        let fits = maker.is_some_and(|maker| [maker.size[0], maker.size[2]] == [rows, columns]);
        match value {
            Value::Node(n, 0) if fits && uses.get(value) == Some(&readers.len()) => {
                kept.insert(*n);
            }
            Value::Node(n, _) if readers.len() > 1 && !constants[*n] => {
                shared.insert(*value, [rows, columns]);
            }
            Value::Input(i) if readers.len() > 1 && !graph.inputs[*i].constant => {
                shared.insert(*value, [rows, columns]);
            }
            _ => {}
        }
    }
    if kept.is_empty() && shared.is_empty() {
        return Ok(graph);
    }
    let precision = if options.precision == Precision::Bf16 { "bf16" } else { "float32" };
    let mut new = Rewriter::new(&graph);
    let mut lines: HashMap<Value, Value> = HashMap::new();
    for (n, node) in graph.nodes.iter().enumerate() {
        let Some(form) = layers.get(&n) else {
            new.keep(n, node);
            continue;
        };
        let data = node.inputs[0];
        if let (Some([rows, columns]), false) = (shared.get(&data), lines.contains_key(&data)) {
            let attrs = vec![
                ("size".to_owned(), format!("({rows}, {columns})")),
                ("precision".to_owned(), precision.to_owned()),
            ];
            let made = GraphNode::new("_to_lines", Arc::clone(&node.name), attrs, vec![new.value(data)])?;
            lines.insert(data, Value::Node(new.push(made.standing_for(node)), 0));
        }
        let (from, to) = (lines.get(&data).copied(), kept.contains(&n));
        if from.is_none() && !to {
            new.keep(n, node);
            continue;
        }
        let [rows, columns, _] = form.size;
        let shape = types.get(&Value::Node(n, 0)).map(|t| t.shape.to_string()).unwrap_or_default();
        let mut attrs = node.attr_text.to_vec();
        attrs.extend(
            [
                ("size", format!("({rows}, {columns})")),
                ("precision", precision.to_owned()),
                ("from_lines", if from.is_some() { "True" } else { "False" }.to_owned()),
                ("to_lines", if to { "True" } else { "False" }.to_owned()),
                ("shape", shape),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        let mut inputs = new.values(&node.inputs);
        inputs[0] = from.unwrap_or(inputs[0]);
        let made = GraphNode::new("_lines_fully_connected", Arc::clone(&node.name), attrs, inputs)?;
        let made = Value::Node(new.push(made.standing_for(node)), 0);
        new.replace(Value::Node(n, 0), made);
        if to {
            lines.insert(Value::Node(n, 0), made);
        }
    }
    Ok(new.finish(&graph))
}

/// The form of a node that is a dense layer on tiles.
fn layer(graph: &Graph, types: &Types, options: KernelOptions, n: usize) -> Option<DenseForm> {
    let node = &graph.nodes[n];
    if !matches!(node.op.name, "FullyConnected" | "_fused_fully_connected") {
        return None;
    }
    let inputs: Vec<TensorType> = node.inputs.iter().map(|value| types.get(value).cloned()).collect::<Option<_>>()?;
    let outputs = [types.get(&Value::Node(n, 0))?.clone()];
    DenseForm::on_tiles(&Signature { inputs: &inputs, outputs: &outputs, options })
}
