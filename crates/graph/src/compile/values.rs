//! The values of a graph, as every target sees them: types, constants, and which are others under
//! another shape.

use crate::ir::{Graph, Types, Value, ValueMap, describe};
use crate::plan::Fingerprint;
use mxrt_engine::{FailureKind, OpError};
use mxrt_tensor::TensorType;
use std::collections::HashMap;

/// A graph with the types of its values.
pub(crate) struct GraphValues<'a> {
    pub graph: &'a Graph,
    pub types: &'a Types,
    /// nodes that depend on parameters alone
    pub constant: Vec<bool>,
    /// values that are other values under another shape (Reshape, Flatten, Dropout at inference)
    alias: ValueMap<Value>,
}

/// Results by how they are made: by a step where they belong, or as a copy.
pub(crate) struct Results {
    /// number of the result, by the value that a step makes there
    pub in_place: ValueMap<usize>,
    /// number of the result, and the value that it is
    pub copies: Vec<(usize, Value)>,
}

impl<'a> GraphValues<'a> {
    /// `constants` says whether constant values are aliases, too.
    pub fn new(graph: &'a Graph, types: &'a Types, constants: bool) -> GraphValues<'a> {
        let constant = graph.constant_nodes();
        let mut alias: ValueMap<Value> = ValueMap::default();
        for (n, node) in graph.nodes.iter().enumerate() {
            let kept = constant[n] && !constants;
            if (node.op.rewrites.is_identity)(&node.attrs) && !kept && !node.inputs.is_empty() {
                let root = alias.get(&node.inputs[0]).copied().unwrap_or(node.inputs[0]);
                alias.insert(Value::Node(n, 0), root);
            }
        }
        GraphValues { graph, types, constant, alias }
    }

    /// The value whose bytes this one has.
    pub fn root(&self, value: Value) -> Value {
        self.alias.get(&value).copied().unwrap_or(value)
    }

    /// Whether a node only gives a value another shape.
    pub fn is_alias(&self, n: usize) -> bool {
        self.alias.contains_key(&Value::Node(n, 0))
    }

    /// Whether a node is computed by every call.
    pub fn is_step(&self, n: usize) -> bool {
        !self.constant[n] && !self.is_alias(n)
    }

    /// Whether a value depends on parameters alone.
    pub fn is_constant(&self, value: Value) -> bool {
        match self.root(value) {
            Value::Input(i) => self.graph.inputs[i].constant,
            Value::Node(n, _) => self.constant[n],
        }
    }

    /// Whether a value is the same in all iterations.
    pub fn is_captured(&self, value: Value) -> bool {
        matches!(value, Value::Input(i) if self.graph.inputs[i].captured)
    }

    pub fn type_of(&self, value: Value) -> Result<&'a TensorType, OpError> {
        self.types
            .get(&value)
            .ok_or_else(|| OpError::new(FailureKind::Shape, format!("the type of {value} is unknown")))
    }

    /// Types of all results.
    pub fn outputs(&self) -> Result<Vec<TensorType>, OpError> {
        self.graph.outputs.iter().map(|v| self.type_of(*v).cloned()).collect()
    }

    /// The values that a node makes.
    pub fn made_by(&self, n: usize) -> Vec<Value> {
        let node = &self.graph.nodes[n];
        (0..node.op.num_outputs(&node.attrs)).map(|o| Value::Node(n, o)).collect()
    }

    /// Types of the inputs and outputs of a node.
    pub fn signature_types(&self, n: usize) -> Result<(Vec<TensorType>, Vec<TensorType>), OpError> {
        let node = &self.graph.nodes[n];
        let of = |values: &[Value]| values.iter().map(|v| self.type_of(*v).cloned()).collect::<Result<Vec<_>, _>>();
        let (ins, outs) = (of(&node.inputs)?, of(&self.made_by(n))?);
        match outs.iter().find(|t| t.checked_bytes().is_none_or(|bytes| isize::try_from(bytes).is_err())) {
            None => Ok((ins, outs)),
            Some(large) => {
                let message = format!("a value of {large} is larger than the address space");
                let error = OpError::new(FailureKind::Memory, message);
                Err(describe(error, (node.stands_for, &node.name, &node.attr_text), ins.iter()))
            }
        }
    }
}

impl Results {
    /// The results have the bytes of `roots`; `made` says which values steps make.
    pub fn new(roots: &[Value], made: impl Fn(Value) -> bool) -> Results {
        let mut results = Results { in_place: ValueMap::default(), copies: Vec::new() };
        for (j, root) in roots.iter().enumerate() {
            if made(*root) && !results.in_place.contains_key(root) {
                results.in_place.insert(*root, j);
            } else {
                results.copies.push((j, *root));
            }
        }
        results
    }
}

/// Names of what constant values compute of the inputs of the outermost graph, which are the variables.
#[derive(Default)]
pub(crate) struct Expressions {
    of_node: HashMap<usize, Fingerprint>,
}

impl Expressions {
    pub fn new(values: &GraphValues<'_>) -> Expressions {
        let mut expressions = Expressions::default();
        for (n, node) in values.graph.nodes.iter().enumerate().filter(|(n, _)| values.constant[*n]) {
            let inputs: Vec<Fingerprint> = node.inputs.iter().map(|v| expressions.of(values, *v)).collect();
            expressions.of_node.insert(n, Fingerprint::of((node.op.name, &node.attr_text, inputs)));
        }
        expressions
    }

    /// The expression of a constant value.
    pub fn of(&self, values: &GraphValues<'_>, value: Value) -> Fingerprint {
        match values.root(value) {
            Value::Input(i) => Fingerprint::of(values.graph.inputs[i].origin),
            Value::Node(n, o) => Fingerprint::of((self.of_node[&n], o)),
        }
    }
}
