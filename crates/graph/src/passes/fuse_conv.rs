//! Fuses what follows a convolution or dense layer into its epilogue: a residual addition, then an
//! activation.

use crate::ir::{Graph, GraphNode, Rewriter, Types, Value, ValueMap};
use mxrt_engine::OpError;
use mxrt_ops::KernelOptions;
use std::collections::HashMap;
use std::sync::Arc;

/// Activation at the end of an epilogue.
#[derive(Clone, Debug, PartialEq)]
enum Activation {
    Relu,
    Clip(String, String),
    Leaky(String),
}

/// A layer and what is fused into it.
struct FusedLayer {
    layer: usize,
    residual: Option<Value>,
    activation: Option<Activation>,
}

/// `act(layer(x) + residual)` becomes one node, where no other node reads the values in between.
pub fn run(graph: Graph, types: &Types, _: KernelOptions) -> Result<Graph, OpError> {
    let uses = graph.uses();
    // Every node that is the last of a fused group, and every node that disappears into one.
    let mut groups: HashMap<usize, FusedLayer> = HashMap::new();
    let mut absorbed = vec![false; graph.nodes.len()];
    for n in 0..graph.nodes.len() {
        if let Some((fused, inner)) = match_group(&graph, types, &uses, &groups, n) {
            absorbed[inner] = true;
            groups.remove(&inner);
            absorbed[fused.layer] = true;
            groups.insert(n, fused);
        }
    }
    let mut new = Rewriter::new(&graph);
    for (n, node) in graph.nodes.iter().enumerate() {
        match groups.get(&n) {
            Some(fused) => {
                let made = fused_node(&graph, &new, fused)?;
                let made = new.push(made);
                new.replace(Value::Node(n, 0), Value::Node(made, 0));
            }
            None if absorbed[n] => {}
            None => new.keep(n, node),
        }
    }
    Ok(new.finish(&graph))
}

fn fused_operator(layer: &GraphNode) -> Option<&'static str> {
    match layer.op.name {
        "Convolution" => Some("_fused_convolution"),
        "FullyConnected" => Some("_fused_fully_connected"),
        _ => None,
    }
}

/// Finds a layer or group that makes an input of node `n` and can absorb the node. Returns the new
/// group, and the node that ended the old one.
fn match_group(
    graph: &Graph,
    types: &Types,
    uses: &ValueMap<usize>,
    groups: &HashMap<usize, FusedLayer>,
    n: usize,
) -> Option<(FusedLayer, usize)> {
    let node = &graph.nodes[n];
    let single = |v: &Value| uses.get(v) == Some(&1);
    let open_group = |v: &Value| {
        let (m, producer) = graph.producer(*v).filter(|_| single(v))?;
        if let Some(group) = groups.get(&m) {
            let open = group.activation.is_none();
            return open.then_some((FusedLayer { layer: group.layer, residual: group.residual, activation: None }, m));
        }
        fused_operator(producer)?;
        Some((FusedLayer { layer: m, residual: None, activation: None }, m))
    };
    if let Some(activation) = activation_of(node) {
        let (group, inner) = open_group(node.inputs.first()?)?;
        return Some((FusedLayer { activation: Some(activation), ..group }, inner));
    }
    if let Some([a, b]) = summands(node, types) {
        // The later layer takes the sum, so that the other operand exists when it runs.
        let candidates = if b > a { [(b, a), (a, b)] } else { [(a, b), (b, a)] };
        for (layer, residual) in candidates {
            if layer == residual {
                continue;
            }
            if let Some((group, inner)) = open_group(&layer)
                && group.residual.is_none()
            {
                return Some((FusedLayer { residual: Some(residual), ..group }, inner));
            }
        }
    }
    None
}

/// The two values of one type that a node adds.
pub(super) fn summands(node: &GraphNode, types: &Types) -> Option<[Value; 2]> {
    let &[a, b] = node.inputs.as_slice() else { return None };
    // Models from other frameworks broadcast every addition, whether shapes differ or not.
    let adds = matches!(node.op.name, "elemwise_add" | "broadcast_add");
    (adds && types.get(&a).is_some() && types.get(&a) == types.get(&b)).then_some([a, b])
}

fn activation_of(node: &GraphNode) -> Option<Activation> {
    match node.op.name {
        "Activation" if node.attrs.str("act_type") == "relu" => Some(Activation::Relu),
        "relu" => Some(Activation::Relu),
        "clip" => Some(Activation::Clip(node.attr("a_min")?.to_owned(), node.attr("a_max")?.to_owned())),
        "LeakyReLU" if node.attrs.str("act_type") == "leaky" => {
            // The larger of a value and its part: what other slopes mean cannot be said so.
            let slope = node.attrs.float("slope");
            (0.0 < slope && slope < 1.0).then(|| Activation::Leaky(slope.to_string()))
        }
        _ => None,
    }
}

fn fused_node(graph: &Graph, new: &Rewriter, fused: &FusedLayer) -> Result<GraphNode, OpError> {
    let layer = &graph.nodes[fused.layer];
    let op = fused_operator(layer).unwrap_or(layer.op.name);
    let mut attrs = layer.attr_text.to_vec();
    let mut set = |key: &str, value: &str| attrs.push((key.to_owned(), value.to_owned()));
    set("with_residual", if fused.residual.is_some() { "True" } else { "False" });
    match &fused.activation {
        None => {}
        Some(Activation::Relu) => set("act_type", "relu"),
        Some(Activation::Clip(low, high)) => {
            set("act_type", "clip");
            set("act_min", low);
            set("act_max", high);
        }
        Some(Activation::Leaky(slope)) => {
            set("act_type", "leaky");
            set("act_slope", slope);
        }
    }
    let mut inputs = new.values(&layer.inputs);
    inputs.extend(fused.residual.map(|v| new.value(v)));
    Ok(GraphNode::new(op, Arc::clone(&layer.name), attrs, inputs)?.standing_for(layer))
}
