//! Fuses functions of a dense layer's result (GELU, sigmoid, HardSwish) into the layer, which
//! applies them while the result is in the first-level cache, or on a device in registers.

use crate::ir::{Graph, GraphNode, Rewriter, Types, Value};
use mxrt_engine::OpError;
use mxrt_ops::{Elementwise, KernelOptions, StepInput, SumEpilogue, program_step};
use mxrt_tensor::DType;
use std::collections::HashMap;
use std::sync::Arc;

/// `f(layer(x))` becomes one node with the same bits, where no other node reads the layer's result.
pub fn run(graph: Graph, types: &Types, _: KernelOptions) -> Result<Graph, OpError> {
    fuse(graph, types, |_, node, dtype| if dtype == DType::F32 { program(node) } else { None })
}

/// Fuses the functions that a device applies to sums, one for each layer. A result of float16 is rounded
/// once, after the function.
pub fn run_on_device(graph: Graph, types: &Types, _: KernelOptions) -> Result<Graph, OpError> {
    fuse(graph, types, |layer, node, dtype| {
        let free = ["act_type", "program"].iter().all(|name| layer.attr(name).is_none());
        let of_floats = matches!(dtype, DType::F16 | DType::F32);
        let function = (node.op.rewrites.elementwise)(&node.attrs);
        let applies = matches!(function, Some(Elementwise::Unary(function)) if SumEpilogue::applies(function));
        if free && of_floats && applies { program(node) } else { None }
    })
}

/// Fuses what `fused_program` names of a layer, a reader of its result, and the type of that.
fn fuse(
    graph: Graph,
    types: &Types,
    fused_program: impl Fn(&GraphNode, &GraphNode, DType) -> Option<String>,
) -> Result<Graph, OpError> {
    let uses = graph.uses();
    // Layers and programs, by the node whose result they make.
    let mut groups: HashMap<usize, (usize, String)> = HashMap::new();
    for (n, node) in graph.nodes.iter().enumerate() {
        let Some(value) = node.inputs.first().filter(|value| uses.get(value) == Some(&reads(node))) else { continue };
        if let (Some((layer, producer)), Some(made)) = (graph.producer(*value), types.get(value))
            && matches!(producer.op.name, "FullyConnected" | "_fused_fully_connected")
            && let Some(program) = fused_program(producer, node, made.dtype)
        {
            groups.insert(n, (layer, program));
        }
    }
    let mut is_layer = vec![false; graph.nodes.len()];
    groups.values().for_each(|(layer, _)| is_layer[*layer] = true);
    let mut new = Rewriter::new(&graph);
    for (n, node) in graph.nodes.iter().enumerate() {
        match groups.get(&n) {
            Some((layer, program)) => {
                let made = fused(&new, &graph.nodes[*layer], program)?;
                let made = new.push(made);
                new.replace(Value::Node(n, 0), Value::Node(made, 0));
            }
            None if is_layer[n] => {}
            None => new.keep(n, node),
        }
    }
    Ok(new.finish(&graph))
}

/// How often a node reads its first input.
fn reads(node: &GraphNode) -> usize {
    node.inputs.iter().filter(|value| node.inputs.first() == Some(value)).count()
}

/// The steps that a node applies to every element of one array. `None` if it computes something
/// else.
fn program(node: &GraphNode) -> Option<String> {
    if node.op.name == "_fused_elementwise" {
        return (node.inputs.len() == 1).then(|| node.attr("program").map(str::to_owned))?;
    }
    let function = (node.op.rewrites.elementwise)(&node.attrs)?;
    if node.op.num_outputs(&node.attrs) != 1 || node.inputs.len() != function.arity() {
        return None;
    }
    // Both operands of a function of two may be the layer's result.
    let declared = node.attr_text.iter().filter(|(name, _)| node.attrs.declares(name));
    let attrs: Vec<(&str, &str)> = declared.map(|(k, v)| (k.as_str(), v.as_str())).collect();
    (reads(node) == node.inputs.len())
        .then(|| program_step(node.op.name, &attrs, &vec![StepInput::Input(0); node.inputs.len()]))?
}

fn fused(new: &Rewriter, layer: &GraphNode, program: &str) -> Result<GraphNode, OpError> {
    let mut attrs = layer.attr_text.to_vec();
    attrs.push(("program".to_owned(), program.to_owned()));
    let inputs = new.values(&layer.inputs);
    Ok(GraphNode::new("_fused_fully_connected", Arc::clone(&layer.name), attrs, inputs)?.standing_for(layer))
}
