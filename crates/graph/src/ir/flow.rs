//! The graphs that a control-flow node runs.

use super::{Graph, GraphNode, Value};
use crate::control_flow::Wiring;

/// The graphs of a node, and how they are fed.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub wiring: Wiring,
    pub graphs: Vec<Graph>,
}

impl Flow {
    /// The nodes of all graphs.
    pub fn nodes(&self) -> impl Iterator<Item = &GraphNode> {
        self.graphs.iter().flat_map(|graph| &graph.nodes)
    }

    /// The inputs of the node that its graphs change, by number, each once.
    pub fn changed_inputs(&self) -> Vec<usize> {
        let mut changed = Vec::new();
        for (graph, feeds) in self.graphs.iter().zip(&self.wiring.inputs) {
            for k in graph.changed_inputs().into_iter().map(|j| feeds[j]) {
                if !changed.contains(&k) {
                    changed.push(k);
                }
            }
        }
        changed
    }

    /// Whether a graph reads this input of the node, or each iteration takes a part of it.
    pub fn reads(&self, k: usize) -> bool {
        let reads = |(graph, feeds): (&Graph, &Vec<usize>)| {
            let values = graph.nodes.iter().flat_map(|node| &node.inputs).chain(&graph.outputs);
            values.into_iter().any(|value| matches!(value, Value::Input(j) if feeds[*j] == k))
        };
        !self.wiring.is_captured(k) || self.graphs.iter().zip(&self.wiring.inputs).any(reads)
    }

    /// Whether any of the graphs draws random numbers.
    pub fn is_random(&self) -> bool {
        self.nodes().any(GraphNode::is_random)
    }
}
