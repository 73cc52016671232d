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
    let chosen = Chosen::find(&graph, types, options);
    if chosen.kept.is_empty() && chosen.shared.is_empty() {
        return Ok(graph);
    }
    chosen.apply(&graph, types, options.precision)
}

/// Dense layers on tiles, and the rows that are kept in lines for them.
struct Chosen {
    layers: HashMap<usize, DenseForm>,
    /// layers that leave their results in lines
    kept: HashSet<usize>,
    /// values that are written in lines, with their rows and columns
    shared: HashMap<Value, [usize; 2]>,
}

impl Chosen {
    fn find(graph: &Graph, types: &Types, options: KernelOptions) -> Chosen {
        let layers: HashMap<usize, DenseForm> =
            (0..graph.nodes.len()).filter_map(|n| Some((n, layer(graph, types, options, n)?))).collect();
        let mut readers: HashMap<Value, Vec<usize>> = HashMap::new();
        for n in layers.keys() {
            readers.entry(graph.nodes[*n].inputs[0]).or_default().push(*n);
        }
        let (uses, constants) = (graph.uses(), graph.constant_nodes());
        let mut chosen = Chosen { layers, kept: HashSet::new(), shared: HashMap::new() };
        for (value, readers) in &readers {
            let [rows, columns, _] = chosen.layers[&readers[0]].size;
            if readers.iter().any(|n| chosen.layers[n].size[..2] != [rows, columns]) {
                continue;
            }
            let maker = value.node().and_then(|n| chosen.layers.get(&n));
            let fits = maker.is_some_and(|maker| [maker.size[0], maker.size[2]] == [rows, columns]);
            let is_constant = match value {
                Value::Node(n, _) => constants[*n],
                Value::Input(i) => graph.inputs[*i].constant,
            };
            match value {
                Value::Node(n, 0) if fits && uses.get(value) == Some(&readers.len()) => {
                    chosen.kept.insert(*n);
                }
                _ if readers.len() > 1 && !is_constant => {
                    chosen.shared.insert(*value, [rows, columns]);
                }
                _ => {}
            }
        }
        chosen
    }

    fn apply(&self, graph: &Graph, types: &Types, precision: Precision) -> Result<Graph, OpError> {
        let precision = if precision == Precision::Bf16 { "bf16" } else { "float32" };
        let mut new = Rewriter::new(graph);
        let mut lines: HashMap<Value, Value> = HashMap::new();
        for (n, node) in graph.nodes.iter().enumerate() {
            let Some(form) = self.layers.get(&n) else {
                new.keep(n, node);
                continue;
            };
            let data = node.inputs[0];
            if let (Some(size), false) = (self.shared.get(&data), lines.contains_key(&data)) {
                let attrs = vec![size_attr(*size), text("precision", precision)];
                let name = format!("{}_lines", graph.name_of(data));
                let made = GraphNode::new("_to_lines", name.into(), attrs, vec![new.value(data)])?;
                lines.insert(data, Value::Node(new.push(made.standing_for(node)), 0));
            }
            let (from, to) = (lines.get(&data).copied(), self.kept.contains(&n));
            if from.is_none() && !to {
                new.keep(n, node);
                continue;
            }
            let mut attrs = node.attr_text.to_vec();
            attrs.extend(line_attrs(form, precision, [from.is_some(), to], types.get(&Value::Node(n, 0))));
            let mut inputs = new.values(&node.inputs);
            inputs[0] = from.unwrap_or(inputs[0]);
            let made = GraphNode::new("_lines_fully_connected", Arc::clone(&node.name), attrs, inputs)?;
            let made = Value::Node(new.push(made.standing_for(node)), 0);
            new.replace(Value::Node(n, 0), made);
            if to {
                lines.insert(Value::Node(n, 0), made);
            }
        }
        Ok(new.finish(graph))
    }
}

/// Makes the attributes that say how a layer reads and leaves its rows.
fn line_attrs(
    form: &DenseForm,
    precision: &str,
    [from_lines, to_lines]: [bool; 2],
    result: Option<&TensorType>,
) -> [(String, String); 5] {
    let [rows, columns, _] = form.size;
    let said = |yes: bool| if yes { "True" } else { "False" };
    [
        size_attr([rows, columns]),
        text("precision", precision),
        text("from_lines", said(from_lines)),
        text("to_lines", said(to_lines)),
        text("shape", &result.map(|t| t.shape.to_string()).unwrap_or_default()),
    ]
}

fn text(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn size_attr([rows, columns]: [usize; 2]) -> (String, String) {
    text("size", &format!("({rows}, {columns})"))
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
