//! Symbols: named outputs over a graph of shared nodes.

mod as_mxnet;
mod attributes;
mod compose;
mod create;
mod described;
mod error;
mod infer;
mod labels;
mod node;
mod print;
mod training;
mod watched;

pub use described::described;
pub use error::{GraphError, UnknownOperator};
pub use infer::{Inferred, InferredShapes, InferredTypes};
pub use node::{Node, NodeEntry};
pub use print::text;
pub use training::{CUSTOM_TRAINS, TrainingScope, differs_in_training, may_differ_in_training};
pub use watched::{Listener, WatchedGraph, WatchedSource, WatchedValue, names_outputs};

pub(crate) use attributes::HIDDEN_KEYS;
pub(crate) use create::{input_init, variable_name};
pub(crate) use error::attr_error;
pub(crate) use node::{NodeParts, post_order};

pub(crate) use compose::first_names;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// The most outputs that a node may have, and that all nodes of a graph together may have beyond
/// one each. A file with more is damaged.
pub use mxrt_ops::MAX_OUTPUTS;

/// A list of outputs over a graph. Clones share the nodes.
#[derive(Clone)]
pub struct Symbol {
    outputs: Arc<[NodeEntry]>,
}

impl Symbol {
    /// A symbol with these outputs.
    pub fn from_entries(outputs: Vec<NodeEntry>) -> Symbol {
        Symbol { outputs: outputs.into() }
    }

    /// All outputs of several symbols.
    pub fn group(symbols: &[Symbol]) -> Symbol {
        Symbol::from_entries(symbols.iter().flat_map(|s| s.outputs.iter().cloned()).collect())
    }

    /// The outputs.
    pub fn outputs(&self) -> &[NodeEntry] {
        &self.outputs
    }

    pub(crate) fn into_entries(self) -> Vec<NodeEntry> {
        self.outputs.to_vec()
    }

    /// All nodes, inputs before their users, in the order in which MXNet writes them.
    pub fn topo(&self) -> Vec<Arc<Node>> {
        post_order(&self.outputs)
    }

    /// The node that makes all outputs, if it is one.
    pub(crate) fn single_node(&self) -> Option<&Arc<Node>> {
        let first = &self.outputs.first()?.node;
        self.outputs.iter().all(|e| Arc::ptr_eq(&e.node, first)).then_some(first)
    }

    /// The name of the node, unless the symbol is a group of several.
    pub fn name(&self) -> Option<String> {
        self.single_node().map(|n| n.name.clone())
    }

    /// Names of all variables, in the order of first use.
    pub fn list_inputs(&self) -> Vec<String> {
        self.input_nodes().into_iter().map(|n| n.name.clone()).collect()
    }

    /// Names of the variables that no operator counts as its state.
    pub fn list_arguments(&self) -> Vec<String> {
        self.variables_by_aux(false)
    }

    /// Names of the variables that some operator counts as its state.
    pub fn list_auxiliary_states(&self) -> Vec<String> {
        self.variables_by_aux(true)
    }

    /// Names of the outputs.
    pub fn list_outputs(&self) -> Vec<String> {
        self.outputs.iter().map(|e| e.node.output_name(e.index)).collect()
    }

    /// The variables, in the order of [`Symbol::list_inputs`].
    pub fn input_nodes(&self) -> Vec<Arc<Node>> {
        let mut nodes = self.topo();
        nodes.retain(|n| n.is_variable());
        nodes
    }

    fn variables_by_aux(&self, want_aux: bool) -> Vec<String> {
        let nodes = self.topo();
        let aux = aux_of(&nodes);
        let variables = nodes.iter().filter(|n| n.is_variable());
        variables.filter(|n| aux.contains(&Arc::as_ptr(n)) == want_aux).map(|n| n.name.clone()).collect()
    }

    /// All outputs of all nodes.
    pub fn get_internals(&self) -> Symbol {
        let nodes = self.topo();
        let outputs = nodes.iter().flat_map(|n| (0..n.num_outputs()).map(|i| NodeEntry::new(n.clone(), i)));
        Symbol::from_entries(outputs.collect())
    }

    /// The inputs of the nodes that make the outputs; `None` when they have none.
    pub fn get_children(&self) -> Option<Symbol> {
        let mut seen = HashSet::new();
        let nodes = self.outputs.iter().map(|e| &e.node).filter(|n| seen.insert(Arc::as_ptr(n)));
        let inputs: Vec<NodeEntry> = nodes.flat_map(|n| n.inputs.iter().cloned()).collect();
        (!inputs.is_empty()).then(|| Symbol::from_entries(inputs))
    }

    /// One output.
    pub fn output(&self, index: usize) -> Option<Symbol> {
        self.outputs.get(index).map(|e| Symbol::from_entries(vec![e.clone()]))
    }

    /// The first output with this name.
    pub fn output_named(&self, name: &str) -> Option<Symbol> {
        let entry = self.outputs.iter().find(|e| e.node.output_name(e.index) == name);
        entry.map(|e| Symbol::from_entries(vec![e.clone()]))
    }

    /// The only output with this name; an error says whether there is none or more than one.
    pub fn find_output(&self, name: &str) -> Result<Symbol, GraphError> {
        let mut found = self.outputs.iter().filter(|e| e.node.output_name(e.index) == name);
        match (found.next(), found.next()) {
            (Some(entry), None) => Ok(Symbol::from_entries(vec![entry.clone()])),
            (None, _) => Err(GraphError::Value(format!("Cannot find output that matches name \"{name}\""))),
            (Some(_), Some(_)) => Err(GraphError::Value(format!("There are multiple outputs with name \"{name}\""))),
        }
    }
}

/// The nodes that some operator among `nodes` counts as its state.
pub(crate) fn aux_of(nodes: &[Arc<Node>]) -> HashSet<*const Node> {
    nodes.iter().flat_map(|n| n.aux_inputs()).map(|e| Arc::as_ptr(&e.node)).collect()
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "<Symbol {name}>"),
            None => write!(f, "<Symbol group [{}]>", self.list_outputs().join(", ")),
        }
    }
}
