//! Constants of the outer graph in an inner one.
//!
//! What a graph inside a node captures from outside and is constant there (a parameter, a folded
//! weight) is constant inside as well. The expressions of such values move into the inner graph,
//! down to the parameters, so that its plan folds and packs them as any plan does: once for each
//! version of the parameters, not in every iteration.

use super::Flow;
use crate::compile::build::PlanBuilder;
use crate::ir::{Graph, GraphInput, Value};
use mxrt_engine::OpError;
use mxrt_tensor::TensorType;
use std::collections::HashMap;

/// Where an input of an inner graph comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InnerSource {
    /// a row of this operand of the step, another one in each iteration
    Row(usize),
    /// a state, by number
    State(usize),
    /// this operand of the step
    Whole(usize),
    /// this input of the outer graph, a parameter
    Constant(usize),
    /// nothing reads it: its expression stands in the graph
    Expression,
}

/// An inner graph with the constants that it captures.
pub(crate) struct InnerGraph {
    pub graph: Graph,
    pub types: Vec<TensorType>,
    pub sources: Vec<InnerSource>,
    /// the captured constants, spelt out
    pub constants: String,
}

/// The type of one row.
fn row_type(tensor: &TensorType) -> TensorType {
    let row: &[usize] = if tensor.shape.len() < 2 { &[1] } else { &tensor.shape[1..] };
    TensorType::new(tensor.dtype, row)
}

/// Graph number `g` of a node that reads `reads`; `operands` says which of these are operands of
/// the step, and which.
pub(crate) fn inner_graph(
    outer: &PlanBuilder<'_>,
    flow: &Flow,
    g: usize,
    reads: &[Value],
    operands: &[Option<usize>],
) -> Result<InnerGraph, OpError> {
    let (inner, wiring) = (&flow.graphs[g], &flow.wiring);
    let graph = Graph { inputs: inner.inputs.clone(), ..Graph::default() };
    let made = InnerGraph { graph, types: Vec::new(), sources: Vec::new(), constants: String::new() };
    let mut import = Import { outer, made, nodes: HashMap::new() };
    let mut expressions: Vec<(usize, Value)> = Vec::new();
    for (j, k) in wiring.inputs[g].iter().enumerate() {
        let value = outer.root(reads[*k]);
        let input = &mut import.made.graph.inputs[j];
        input.constant = false;
        let source = match (operands[*k], wiring.state_of(*k), value) {
            (Some(operand), _, _) if *k < wiring.rows => InnerSource::Row(operand),
            (Some(_), Some(state), _) => InnerSource::State(state),
            (Some(operand), None, _) => InnerSource::Whole(operand),
            (None, _, Value::Input(i)) => {
                *input = GraphInput { name: input.name.clone(), ..outer.graph.inputs[i].clone() };
                InnerSource::Constant(i)
            }
            (None, _, Value::Node(..)) => {
                expressions.push((j, value));
                InnerSource::Expression
            }
        };
        if operands[*k].is_none() {
            import.made.constants += &format!("{j}: {:?}; ", outer.expression(value));
        }
        let tensor = outer.type_of(reads[*k])?;
        let row = matches!(source, InnerSource::Row(_)).then(|| row_type(tensor));
        import.made.types.push(row.unwrap_or_else(|| tensor.clone()));
        import.made.sources.push(source);
    }
    let mut replaced: HashMap<usize, Value> = HashMap::new();
    for (j, value) in expressions {
        replaced.insert(j, import.value(value)?);
    }
    let mut made = import.made;
    let shift = made.graph.nodes.len();
    let moved = |value: &Value| match value {
        Value::Input(j) => replaced.get(j).copied().unwrap_or(*value),
        Value::Node(n, o) => Value::Node(n + shift, *o),
    };
    for node in &inner.nodes {
        let mut node = node.clone();
        node.inputs.iter_mut().for_each(|value| *value = moved(value));
        made.graph.nodes.push(node);
    }
    made.graph.outputs = inner.outputs.iter().map(moved).collect();
    Ok(made)
}

/// Moves constant expressions of the outer graph into an inner one.
struct Import<'a, 'b> {
    outer: &'a PlanBuilder<'b>,
    made: InnerGraph,
    /// nodes of the outer graph that are there
    nodes: HashMap<usize, usize>,
}

impl Import<'_, '_> {
    fn value(&mut self, value: Value) -> Result<Value, OpError> {
        match self.outer.root(value) {
            Value::Input(i) => self.input(i),
            Value::Node(n, output) => Ok(Value::Node(self.node(n)?, output)),
        }
    }

    fn input(&mut self, i: usize) -> Result<Value, OpError> {
        let source = InnerSource::Constant(i);
        if let Some(at) = self.made.sources.iter().position(|have| *have == source) {
            return Ok(Value::Input(at));
        }
        self.made.graph.inputs.push(self.outer.graph.inputs[i].clone());
        self.made.types.push(self.outer.type_of(Value::Input(i))?.clone());
        self.made.sources.push(source);
        Ok(Value::Input(self.made.sources.len() - 1))
    }

    /// Chains of constant nodes are short: folding makes one or two.
    fn node(&mut self, n: usize) -> Result<usize, OpError> {
        if let Some(at) = self.nodes.get(&n) {
            return Ok(*at);
        }
        let mut node = self.outer.graph.nodes[n].clone();
        for value in &mut node.inputs {
            *value = self.value(*value)?;
        }
        self.made.graph.nodes.push(node);
        self.nodes.insert(n, self.made.graph.nodes.len() - 1);
        Ok(self.made.graph.nodes.len() - 1)
    }
}
