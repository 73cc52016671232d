//! Graphs that compute as in training.

mod forms;

use super::{Node, NodeEntry, NodeParts, Symbol};
use mxrt_engine::OpError;
use mxrt_ops::{Attrs, OpDef};
use std::collections::HashMap;
use std::sync::Arc;

pub use forms::CUSTOM_TRAINS;

/// The parts of a graph that compute as in training. For executors of MXNet their argument decides
/// outside loops and branches, and the mode of the thread inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TrainingScope {
    /// operators outside loops and branches
    pub outside: bool,
    /// operators inside them
    pub inside: bool,
}

impl TrainingScope {
    /// The whole graph.
    pub const WHOLE: TrainingScope = TrainingScope { outside: true, inside: true };
    /// Inference.
    pub const NOTHING: TrainingScope = TrainingScope { outside: false, inside: false };
}

/// Whether an operator ever computes something else in training.
pub fn may_differ_in_training(op: &OpDef) -> bool {
    forms::of(op).is_some()
}

/// Whether an operator with these attributes computes something else in training.
pub fn differs_in_training(op: &OpDef, attrs: &Attrs) -> bool {
    forms::of(op).is_some_and(|form| (form.differs)(attrs))
}

impl Symbol {
    /// A graph that computes what this one computes while training. `None` where that is the same.
    pub fn in_training(&self, scope: TrainingScope) -> Result<Option<Symbol>, OpError> {
        if !differs(self, scope) {
            return Ok(None);
        }
        Ok(Some(rewritten(self, scope, Place::Outside)?))
    }
}

/// Position of a graph: that of a caller, or one that a node runs.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Outside,
    Inside,
}

/// The graphs of a loop or branch. Those of fused nodes stay unchanged.
fn inner(node: &Node) -> &[Symbol] {
    if node.wiring().is_some() { &node.subgraphs } else { &[] }
}

fn node_differs(node: &Node) -> bool {
    node.op.is_some_and(|op| differs_in_training(op, node.parsed()))
}

fn differs(symbol: &Symbol, scope: TrainingScope) -> bool {
    let within = TrainingScope { outside: scope.inside, ..scope };
    symbol.topo().iter().any(|node| {
        (scope.outside && node_differs(node))
            || (scope.inside && inner(node).iter().any(|graph| differs(graph, within)))
    })
}

/// The graph with other nodes for those that differ.
fn rewritten(symbol: &Symbol, scope: TrainingScope, place: Place) -> Result<Symbol, OpError> {
    // The outputs of each node in the new graph.
    let mut made: HashMap<*const Node, Vec<NodeEntry>> = HashMap::new();
    let moved = |made: &HashMap<*const Node, Vec<NodeEntry>>, entry: &NodeEntry| match entry.node.is_variable() {
        true => entry.clone(),
        false => made[&Arc::as_ptr(&entry.node)][entry.index].clone(),
    };
    let trains = if place == Place::Outside { scope.outside } else { scope.inside };
    for node in symbol.topo().iter().filter(|node| !node.is_variable()) {
        let inputs = node.inputs.iter().map(|entry| moved(&made, entry)).collect();
        let waits = node.control_deps.iter().map(|node| last_of(&made, node)).collect();
        let outputs = match node.op.and_then(forms::of).filter(|_| trains && node_differs(node)) {
            Some(form) => (form.make)(node, inputs, place)?,
            None => outputs_of(&copied(node, inputs, waits, scope)?),
        };
        made.insert(Arc::as_ptr(node), outputs);
    }
    Ok(Symbol::from_entries(symbol.outputs().iter().map(|entry| moved(&made, entry)).collect()))
}

/// The node that another one waits for.
fn last_of(made: &HashMap<*const Node, Vec<NodeEntry>>, node: &Arc<Node>) -> Arc<Node> {
    made.get(&Arc::as_ptr(node)).and_then(|outputs| outputs.first()).map_or_else(|| node.clone(), |o| o.node.clone())
}

/// The node over other inputs; loops and branches with the graphs of training.
fn copied(
    node: &Arc<Node>,
    inputs: Vec<NodeEntry>,
    control_deps: Vec<Arc<Node>>,
    scope: TrainingScope,
) -> Result<Arc<Node>, OpError> {
    if !scope.inside || inner(node).is_empty() {
        return Ok(node.with_inputs(node.name.clone(), inputs, control_deps));
    }
    let subgraphs = inner(node).iter().map(|graph| rewritten(graph, scope, Place::Inside));
    Node::from_parts(NodeParts {
        op: node.op,
        name: node.name.clone(),
        attrs: node.attrs(),
        parsed: Some(node.parsed().clone()),
        inputs,
        control_deps,
        subgraphs: subgraphs.collect::<Result<_, _>>()?,
    })
}

fn outputs_of(node: &Arc<Node>) -> Vec<NodeEntry> {
    (0..node.num_outputs()).map(|i| NodeEntry::new(node.clone(), i)).collect()
}
