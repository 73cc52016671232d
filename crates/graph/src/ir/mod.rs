//! The graph that passes rewrite: a list of operator nodes in execution order.

mod flow;
mod infer;
mod text;
mod value;

pub(crate) use infer::infer_checked;
pub(crate) use infer::infer_node;
pub use infer::{PartialType, Types, infer, infer_inputs};
pub use value::{Value, ValueMap};

pub(crate) use flow::Flow;

use crate::control_flow::Wiring;
use crate::symbol::Symbol;
use mxrt_engine::{FailureKind, OpError};
use mxrt_ops::{Attrs, Callback, InnerValue, Inputs, NestedGraph, OpDef, callback, registry, unfolded};
use mxrt_tensor::{TensorType, describe_inputs};
use std::collections::HashMap;
use std::sync::Arc;

/// One operator with parsed attributes.
#[derive(Clone, Debug)]
pub struct GraphNode {
    /// operator
    pub op: &'static OpDef,
    /// operator in the user's symbol whose name messages use
    pub stands_for: &'static str,
    /// name in the user's symbol; fused nodes keep the name of the one that does the work
    pub name: Arc<str>,
    /// attributes, as text
    pub attr_text: Arc<Vec<(String, String)>>,
    /// attributes, parsed
    pub attrs: Arc<Attrs>,
    /// values that the node reads
    pub inputs: Vec<Value>,
    /// whether the node reads nothing and makes the same values for every call and all types of
    /// inputs
    pub made_once: bool,
    /// graphs that the node runs, if it is control flow
    pub(crate) flow: Option<Arc<Flow>>,
}

impl GraphNode {
    /// A node of a (usually internal) operator made by a pass.
    pub fn new(
        op: &str,
        name: Arc<str>,
        attr_text: Vec<(String, String)>,
        inputs: Vec<Value>,
    ) -> Result<GraphNode, OpError> {
        let op = registry().get(op).ok_or_else(|| {
            OpError::new(FailureKind::NotImplemented, format!("operator {op} is not registered")).node(&*name)
        })?;
        let attrs =
            op.parse_attrs(attr_text.iter().map(|(k, v)| (k.as_str(), v.as_str()))).map_err(|e| e.node(&*name))?;
        let (attr_text, attrs) = (Arc::new(attr_text), Arc::new(attrs));
        Ok(GraphNode { op, stands_for: op.name, name, attr_text, attrs, inputs, made_once: false, flow: None })
    }

    /// Whether the node, or a graph that it runs, draws random numbers.
    pub fn is_random(&self) -> bool {
        self.op.random || self.flow.as_ref().is_some_and(|flow| flow.is_random())
    }

    /// The callback operator that computes the node, if it is one.
    pub fn callback(&self) -> Option<Callback> {
        if matches!(self.op.inputs, Inputs::Computed { .. }) { callback(&self.attrs) } else { None }
    }

    /// Whether no plan can hold the node, because it is a callback, is data-dependent, or runs
    /// graphs with such operators.
    pub fn is_stage(&self) -> bool {
        let inside = |flow: &Arc<Flow>| flow.nodes().any(GraphNode::is_stage);
        self.op.is_data_dependent() || self.flow.as_ref().is_some_and(inside) || self.callback().is_some()
    }

    /// Whether shapes of its outputs may follow from contents of its inputs.
    pub fn is_data_dependent(&self) -> bool {
        let inside = |flow: &Arc<Flow>| flow.nodes().any(GraphNode::is_data_dependent);
        self.op.is_data_dependent() || self.flow.as_ref().is_some_and(inside)
    }

    /// Numbers of the inputs that the node changes, which are auxiliary states of callbacks.
    pub fn changed_inputs(&self) -> Vec<usize> {
        if let Some(flow) = &self.flow {
            return flow.changed_inputs();
        }
        let is_callback = matches!(self.op.inputs, Inputs::Computed { .. });
        if is_callback { self.op.states(&self.attrs).to_vec() } else { Vec::new() }
    }

    /// Number of outputs.
    pub fn num_outputs(&self) -> usize {
        self.op.num_outputs(&self.attrs)
    }

    /// Number of values that the node makes: its outputs, and after those of control flow the new
    /// states of callbacks.
    pub fn values(&self) -> usize {
        self.num_outputs() + self.flow.as_ref().map_or(0, |flow| flow.changed_inputs().len())
    }

    /// The values that the node reads. Its graphs may read fewer than its inputs.
    pub fn inputs_read(&self) -> impl Iterator<Item = Value> {
        let read = |k: &usize| self.flow.as_ref().is_none_or(|flow| flow.reads(*k));
        (0..self.inputs.len()).filter(read).map(|k| self.inputs[k])
    }

    /// Gives this node the operator name of `node` in messages, because it replaces `node`.
    pub fn standing_for(mut self, node: &GraphNode) -> GraphNode {
        self.stands_for = node.stands_for;
        self
    }

    /// Makes this node an application of another operator that takes the same attributes. They are
    /// not parsed again.
    pub fn as_operator(mut self, op: &str) -> Result<GraphNode, OpError> {
        let missing = || OpError::new(FailureKind::NotImplemented, format!("operator {op} is not registered"));
        self.op = registry().get(op).ok_or_else(missing)?;
        Ok(self)
    }

    /// Text of an attribute, if it was given.
    pub fn attr(&self, name: &str) -> Option<&str> {
        self.attr_text.iter().find(|(k, _)| k == name).map(|(_, v)| v.as_str())
    }
}

/// Adds to an error the operator and name of a node in the user's symbol, its attributes, and the
/// types of its inputs.
pub(crate) fn describe<'a>(
    error: OpError,
    (op, name, attrs): (&str, &str, &[(String, String)]),
    inputs: impl Iterator<Item = &'a TensorType> + Clone,
) -> OpError {
    describe_inputs(error.op(op).node(name).attrs(attrs.to_vec()), inputs)
}

/// An input of the graph.
#[derive(Clone, Debug)]
pub struct GraphInput {
    /// name of the variable
    pub name: Arc<str>,
    /// whether the input is a parameter; values that depend on parameters alone are computed once
    pub constant: bool,
    /// whether the input has the same value in all iterations of the loop that runs the graph
    pub captured: bool,
    /// number of the input in the outermost graph; it gives equal constants of inner and outer
    /// graphs equal names
    pub(crate) origin: usize,
}

/// A list of nodes in execution order (a node reads only inputs and earlier nodes), with the values
/// that are the results.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// inputs, in the order of the caller's arguments
    pub inputs: Vec<GraphInput>,
    /// operators
    pub nodes: Vec<GraphNode>,
    /// results
    pub outputs: Vec<Value>,
}

/// Uses of an input of a graph: as a parameter and in other ways.
#[derive(Clone, Copy, Default)]
struct ParameterUses {
    as_parameter: bool,
    otherwise: bool,
}

impl GraphNode {
    /// The uses that the node makes of each of its inputs.
    fn parameter_slots(&self) -> Vec<ParameterUses> {
        let Some(flow) = &self.flow else {
            let names = self.op.input_names(&self.attrs);
            let slot = |i: usize| names.get(i).is_some_and(|n| PARAMETER_SLOTS.contains(&n.as_ref()));
            let uses = |i| ParameterUses { as_parameter: slot(i), otherwise: !slot(i) };
            return (0..self.inputs.len()).map(uses).collect();
        };
        let mut slots = vec![ParameterUses::default(); self.inputs.len()];
        for (graph, feeds) in flow.graphs.iter().zip(&flow.wiring.inputs) {
            for (k, inner) in feeds.iter().zip(graph.parameter_uses()) {
                slots[*k].as_parameter |= inner.as_parameter;
                slots[*k].otherwise |= inner.otherwise || !flow.wiring.is_captured(*k);
            }
        }
        slots
    }
}

/// Names under which operators take parameters, for callers that did not name the inputs that are
/// parameters.
const PARAMETER_SLOTS: &[&str] = &[
    "weight",
    "bias",
    "gamma",
    "beta",
    "mean",
    "var",
    "moving_mean",
    "moving_var",
    "running_mean",
    "running_var",
    "parameters",
];

/// First values of the nodes of a symbol.
#[derive(Default)]
struct NodeValues(HashMap<*const crate::symbol::Node, Value>);

impl NodeValues {
    fn of(&self, entries: &[crate::symbol::NodeEntry]) -> Result<Vec<Value>, OpError> {
        let value = |entry: &crate::symbol::NodeEntry| match self.0.get(&Arc::as_ptr(&entry.node)) {
            Some(Value::Node(n, _)) => Ok(Value::Node(*n, entry.index)),
            Some(input) => Ok(*input),
            None => {
                Err(OpError::new(FailureKind::Value, format!("node '{}' is used before it is made", entry.node.name)))
            }
        };
        entries.iter().map(value).collect()
    }
}

impl Graph {
    /// Name of the input, or of the node that makes the value.
    pub fn name_of(&self, value: Value) -> &str {
        match value {
            Value::Input(i) => &self.inputs[i].name,
            Value::Node(n, _) => &self.nodes[n].name,
        }
    }

    /// Makes the graph of a symbol. No input is constant yet.
    pub fn from_symbol(symbol: &Symbol) -> Result<Graph, OpError> {
        let mut graph = Graph::default();
        let mut values = NodeValues::default();
        for node in symbol.topo() {
            let value = match node.op {
                None => {
                    let origin = graph.inputs.len();
                    let name = node.name.as_str().into();
                    graph.inputs.push(GraphInput { name, constant: false, captured: false, origin });
                    Value::Input(origin)
                }
                Some(op) => {
                    let inputs = values.of(&node.inputs)?;
                    if let Some(nested) = unfolded(op, node.parsed()) {
                        values.0.insert(Arc::as_ptr(&node), graph.unfold(nested, (op.name, &node.name), &inputs)?);
                        continue;
                    }
                    graph.nodes.push(GraphNode {
                        op,
                        stands_for: op.name,
                        name: node.name.as_str().into(),
                        attr_text: Arc::new(node.attr_text()),
                        attrs: Arc::new(node.parsed().clone()),
                        inputs,
                        made_once: false,
                        flow: flow(&node)?,
                    });
                    Value::Node(graph.nodes.len() - 1, 0)
                }
            };
            values.0.insert(Arc::as_ptr(&node), value);
        }
        graph.outputs = values.of(symbol.outputs())?;
        Ok(graph)
    }

    /// Puts the nodes of a nested graph in the place of the node that stands for them; returns their
    /// output.
    fn unfold(
        &mut self,
        nested: &NestedGraph,
        (stands_for, name): (&'static str, &str),
        inputs: &[Value],
    ) -> Result<Value, OpError> {
        let first = self.nodes.len();
        let missing = || OpError::new(FailureKind::Value, "the nested graph has more inputs than the node").node(name);
        let place = |value: &InnerValue| match value {
            InnerValue::Input(i) => inputs.get(*i).copied().ok_or_else(missing),
            InnerValue::Node(n, output) => Ok(Value::Node(first + n, *output)),
        };
        for node in &nested.nodes {
            let inputs = node.inputs.iter().map(place).collect::<Result<_, _>>()?;
            let node = GraphNode::new(node.op.name, name.into(), node.attr_text.clone(), inputs)?;
            self.nodes.push(GraphNode { stands_for, ..node });
        }
        place(&nested.output)
    }

    /// Marks as constant every input that is only ever read as a weight, bias or statistic.
    pub fn guess_constants(&mut self) {
        let uses = self.parameter_uses();
        for (input, uses) in self.inputs.iter_mut().zip(uses) {
            input.constant = uses.as_parameter && !uses.otherwise;
        }
    }

    /// The uses of the inputs, here and in the graphs of nodes.
    fn parameter_uses(&self) -> Vec<ParameterUses> {
        let mut uses = vec![ParameterUses::default(); self.inputs.len()];
        for node in &self.nodes {
            let slots = node.parameter_slots();
            for (value, slot) in node.inputs.iter().zip(slots) {
                if let Value::Input(input) = value {
                    uses[*input].as_parameter |= slot.as_parameter;
                    uses[*input].otherwise |= slot.otherwise;
                }
            }
        }
        for value in &self.outputs {
            if let Value::Input(input) = value {
                uses[*input].otherwise = true;
            }
        }
        uses
    }

    /// Decides for every node whether its values depend on constants alone.
    pub fn constant_nodes(&self) -> Vec<bool> {
        let mut constant = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let fixed = node.flow.is_none() && !node.op.random;
            let all = fixed && node.inputs.iter().all(|v| self.is_constant_with(*v, &constant));
            constant.push(all && (node.made_once || !node.inputs.is_empty()));
        }
        constant
    }

    fn is_constant_with(&self, value: Value, nodes: &[bool]) -> bool {
        match value {
            Value::Input(i) => self.inputs.get(i).is_some_and(|i| i.constant),
            Value::Node(n, _) => nodes.get(n).copied().unwrap_or(false),
        }
    }

    /// The inputs that nodes change, by number, each once.
    pub(crate) fn changed_inputs(&self) -> Vec<usize> {
        let mut changed = Vec::new();
        for node in &self.nodes {
            for k in node.changed_inputs() {
                if let Some(Value::Input(i)) = node.inputs.get(k)
                    && !changed.contains(i)
                {
                    changed.push(*i);
                }
            }
        }
        changed
    }

    /// Counts the reads of each value, by nodes and as a result.
    pub fn uses(&self) -> ValueMap<usize> {
        let mut uses = ValueMap::default();
        for value in self.nodes.iter().flat_map(|n| &n.inputs).chain(&self.outputs) {
            *uses.entry(*value).or_insert(0) += 1;
        }
        uses
    }

    /// Whether the other graph has the same nodes and results.
    pub(crate) fn is_same(&self, other: &Graph) -> bool {
        let same = |a: &GraphNode, b: &GraphNode| {
            std::ptr::eq(a.op, b.op)
                && a.inputs == b.inputs
                && Arc::ptr_eq(&a.attr_text, &b.attr_text)
                && a.flow.as_ref().map(Arc::as_ptr) == b.flow.as_ref().map(Arc::as_ptr)
        };
        self.nodes.len() == other.nodes.len()
            && self.outputs == other.outputs
            && self.nodes.iter().zip(&other.nodes).all(|(a, b)| same(a, b))
    }

    /// The node that makes a value, if it is its first output and not an input of the graph.
    pub fn producer(&self, value: Value) -> Option<(usize, &GraphNode)> {
        match value {
            Value::Node(n, 0) => self.nodes.get(n).map(|node| (n, node)),
            _ => None,
        }
    }
}

/// Builds the rewritten graph of a pass node by node, and maps old values to new ones.
pub struct Rewriter {
    /// the graph under construction
    pub graph: Graph,
    moved: ValueMap<Value>,
}

impl Rewriter {
    /// Starts from the inputs of `old`.
    pub fn new(old: &Graph) -> Rewriter {
        Rewriter { graph: Graph { inputs: old.inputs.clone(), ..Graph::default() }, moved: ValueMap::default() }
    }

    /// The new value that stands for an old one.
    pub fn value(&self, old: Value) -> Value {
        match old {
            Value::Input(_) => old,
            _ => self.moved.get(&old).copied().unwrap_or(old),
        }
    }

    /// The new values that stand for old ones.
    pub fn values(&self, old: &[Value]) -> Vec<Value> {
        old.iter().map(|v| self.value(*v)).collect()
    }

    /// Adds a node whose inputs are given as new values; returns its number.
    pub fn push(&mut self, node: GraphNode) -> usize {
        self.graph.nodes.push(node);
        self.graph.nodes.len() - 1
    }

    /// Maps an old value to a new one.
    pub fn replace(&mut self, old: Value, new: Value) {
        self.moved.insert(old, new);
    }

    /// Copies an old node unchanged.
    pub fn keep(&mut self, index: usize, node: &GraphNode) {
        let mut copy = node.clone();
        copy.inputs = self.values(&node.inputs);
        let new = self.push(copy);
        for output in 0..node.op.num_outputs(&node.attrs) {
            self.replace(Value::Node(index, output), Value::Node(new, output));
        }
    }

    /// The finished graph, with the results of `old`.
    pub fn finish(mut self, old: &Graph) -> Graph {
        self.graph.outputs = self.values(&old.outputs);
        self.graph
    }
}

/// The graphs that a node runs.
fn flow(node: &crate::symbol::Node) -> Result<Option<Arc<Flow>>, OpError> {
    let Some(wiring) = node.wiring() else { return Ok(None) };
    let graphs = node.subgraphs.iter().map(Graph::from_symbol).collect::<Result<_, _>>()?;
    Ok(Some(Arc::new(Flow { wiring: Wiring::clone(wiring), graphs })))
}
