//! Constants of the outer graph in an inner one.
//!
//! A graph inside a node may capture values that are constant outside, such as a parameter or a
//! folded weight. They are constant inside as well. The expressions of such values move into the
//! inner graph, down to the parameters, so that its plan folds and packs them as any plan does:
//! once for each version of the parameters, not in every iteration.

use super::super::values::{Expressions, GraphValues};
use crate::control_flow::row_type;
use crate::execute::InnerSource;
use crate::ir::{Flow, Graph, GraphInput, Value};
use mxrt_engine::{FailureKind, OpError};
use mxrt_tensor::TensorType;
use std::collections::{BTreeSet, HashMap};

/// An inner graph with the constants that it captures.
pub(crate) struct InnerGraph {
    pub graph: Graph,
    pub types: Vec<TensorType>,
    pub sources: Vec<InnerSource>,
    /// the expressions of the captured constants, as text
    pub constants: String,
}

impl InnerGraph {
    /// Marks the inputs that have the same value in all iterations.
    pub fn mark_captured(&mut self) {
        for (input, source) in self.graph.inputs.iter_mut().zip(&self.sources) {
            input.captured = matches!(source, InnerSource::Whole(_) | InnerSource::Hoisted(_));
        }
    }
}

/// Builds graph number `g` of a node that reads `reads`. `operands` gives, for each of these, its
/// number among the operands of the step, if it is one.
pub(crate) fn inner_graph(
    (outer, expressions): (&GraphValues<'_>, &Expressions),
    flow: &Flow,
    g: usize,
    reads: &[Value],
    operands: &[Option<usize>],
) -> Result<InnerGraph, OpError> {
    let (inner, wiring) = (&flow.graphs[g], &flow.wiring);
    let graph = Graph { inputs: inner.inputs.clone(), ..Graph::default() };
    let made = InnerGraph { graph, types: Vec::new(), sources: Vec::new(), constants: String::new() };
    let mut import = Import { outer, made, nodes: HashMap::new(), inputs: HashMap::new() };
    let mut computed: Vec<(usize, Value)> = Vec::new();
    for (j, k) in wiring.inputs[g].iter().enumerate() {
        let value = outer.root(reads[*k]);
        import.made.graph.inputs[j].constant = false;
        let source = match (operands[*k], wiring.state_of(*k), value) {
            (Some(operand), _, _) if *k < wiring.rows => InnerSource::Row(operand),
            (Some(_), Some(state), _) => InnerSource::State(state),
            (Some(operand), None, _) => InnerSource::Whole(operand),
            (None, _, Value::Input(i)) => import.parameter(j, i),
            (None, _, Value::Node(..)) => {
                computed.push((j, value));
                InnerSource::Expression
            }
        };
        if operands[*k].is_none() {
            import.made.constants += &format!("{j}: {:?}; ", expressions.of(outer, value));
        }
        let tensor = outer.type_of(reads[*k])?;
        let row = matches!(source, InnerSource::Row(_)).then(|| row_type(tensor));
        import.made.types.push(row.unwrap_or_else(|| tensor.clone()));
        import.made.sources.push(source);
    }
    let replaced = computed.into_iter().map(|(j, value)| Ok((j, import.value(value)?)));
    let replaced = replaced.collect::<Result<HashMap<usize, Value>, OpError>>()?;
    let mut made = import.made;
    append(&mut made.graph, inner, &replaced);
    Ok(made)
}

/// Appends the nodes of a graph, which read other values in the place of some inputs.
fn append(made: &mut Graph, inner: &Graph, replaced: &HashMap<usize, Value>) {
    let shift = made.nodes.len();
    let moved = |value: &Value| match value {
        Value::Input(j) => replaced.get(j).copied().unwrap_or(*value),
        Value::Node(n, o) => Value::Node(n + shift, *o),
    };
    for node in &inner.nodes {
        let mut node = node.clone();
        node.inputs.iter_mut().for_each(|value| *value = moved(value));
        made.nodes.push(node);
    }
    made.outputs = inner.outputs.iter().map(moved).collect();
}

/// Moves constant expressions of the outer graph into an inner one.
struct Import<'a, 'b> {
    outer: &'a GraphValues<'b>,
    made: InnerGraph,
    /// nodes that have been moved: from the outer graph to the inner one
    nodes: HashMap<usize, usize>,
    /// inputs that have been moved: from the outer graph to the inner one
    inputs: HashMap<usize, usize>,
}

impl Import<'_, '_> {
    /// Makes input `j` of the inner graph the parameter that is input `i` of the outer one.
    fn parameter(&mut self, j: usize, i: usize) -> InnerSource {
        let input = &mut self.made.graph.inputs[j];
        *input = GraphInput { name: input.name.clone(), ..self.outer.graph.inputs[i].clone() };
        self.inputs.entry(i).or_insert(j);
        InnerSource::Constant(i)
    }

    /// The value of the inner graph that a constant value of the outer one becomes. A chain of
    /// constant nodes may be as long as a file makes it, so nothing here is recursive.
    fn value(&mut self, value: Value) -> Result<Value, OpError> {
        let outer = self.outer;
        let mut needed = BTreeSet::new();
        let mut open = vec![outer.root(value)];
        while let Some(value) = open.pop() {
            if let Value::Node(n, _) = value
                && !self.nodes.contains_key(&n)
                && needed.insert(n)
            {
                open.extend(outer.graph.nodes[n].inputs.iter().map(|input| outer.root(*input)));
            }
        }
        // A node reads only earlier ones.
        for n in needed {
            let mut node = outer.graph.nodes[n].clone();
            for value in &mut node.inputs {
                *value = self.moved(*value)?;
            }
            self.nodes.insert(n, self.made.graph.nodes.len());
            self.made.graph.nodes.push(node);
        }
        self.moved(value)
    }

    /// The value of the inner graph that a value of the outer one becomes, if its node has been
    /// moved.
    fn moved(&mut self, value: Value) -> Result<Value, OpError> {
        match self.outer.root(value) {
            Value::Input(i) => self.input(i),
            Value::Node(n, output) => match self.nodes.get(&n) {
                Some(at) => Ok(Value::Node(*at, output)),
                None => Err(OpError::new(FailureKind::Operator, "a captured constant is read before it is there")),
            },
        }
    }

    fn input(&mut self, i: usize) -> Result<Value, OpError> {
        if let Some(at) = self.inputs.get(&i) {
            return Ok(Value::Input(*at));
        }
        self.made.graph.inputs.push(self.outer.graph.inputs[i].clone());
        self.made.types.push(self.outer.type_of(Value::Input(i))?.clone());
        self.made.sources.push(InnerSource::Constant(i));
        self.inputs.insert(i, self.made.sources.len() - 1);
        Ok(Value::Input(self.made.sources.len() - 1))
    }
}
