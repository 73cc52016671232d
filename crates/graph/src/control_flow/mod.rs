//! Nodes that run graphs: `_foreach`, `_while_loop` and `_cond`.
//!
//! | module | does |
//! | --- | --- |
//! | `wiring` | which array of the node is which input of which graph |
//! | `infer` | types around the node, through its graphs in both directions |
//! | `capture` | constants of the outer graph become constants of an inner one |
//! | `hoist` | what is the same in all iterations is computed before the first one |
//! | `compile` | the graphs become plans, shared by all plans that need the same |
//! | `run` | iterations, one inner plan after the other in the step's scratch memory |

mod capture;
mod compile;
mod hoist;
mod infer;
mod run;
mod wiring;

pub(crate) use capture::row_type;
pub(crate) use compile::{ControlFlow, FlowKernel, InnerPlans};
pub(crate) use infer::InnerGraphs;
pub(crate) use run::{FlowCall, failed_in, is_true};
pub use wiring::number_of_graphs;
pub(crate) use wiring::{FlowKind, Wiring};

use crate::ir::{Graph, GraphNode, Value};
use crate::passes::{self, PassChoice};
use mxrt_engine::OpError;

/// Graphs inside graphs go no deeper.
pub(crate) const MAX_DEPTH: usize = 8;

/// The graphs of a node, and how they are fed.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub wiring: Wiring,
    pub graphs: Vec<Graph>,
}

impl Flow {
    /// Runs the passes on the graphs. Inputs that the node captures are constant where `constant`
    /// says so of the values that it reads.
    pub fn with_passes(
        mut self,
        reads: &[Value],
        constant: &dyn Fn(Value) -> bool,
        choice: PassChoice,
    ) -> Result<Flow, OpError> {
        for (graph, feeds) in self.graphs.iter_mut().zip(&self.wiring.inputs) {
            for (input, k) in graph.inputs.iter_mut().zip(feeds) {
                input.constant = self.wiring.is_captured(*k) && constant(reads[*k]);
            }
            *graph = passes::run_all(std::mem::take(graph), choice)?;
        }
        Ok(self)
    }

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
