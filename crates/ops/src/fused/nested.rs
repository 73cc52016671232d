//! Nested graphs as attributes: written by who reads files, parsed here.

use super::NESTED;
use crate::definition::{Attrs, DTypes, OpDef, Shapes, registry, value_error};
use mxrt_engine::OpError;
use mxrt_kernels::int8::Function;
use mxrt_tensor::attrs::ParsedObject;
use mxrt_tensor::{DType, PartialShape};
use std::sync::Arc;

/// Ends a field.
const FIELD: char = '\u{1f}';
/// Ends a node.
const RECORD: char = '\u{1e}';
/// Nodes that a nested graph may have; MXNet makes five at most.
const MAX_NODES: usize = 64;

/// A value inside of a nested graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InnerValue {
    /// input of the graph, by number
    Input(usize),
    /// output of an earlier node
    Node(usize, usize),
}

/// An operator inside of a nested graph.
#[derive(Debug)]
pub struct NestedNode {
    /// operator
    pub op: &'static OpDef,
    /// attributes as text
    pub attr_text: Vec<(String, String)>,
    /// attributes
    pub attrs: Attrs,
    /// values that it reads
    pub inputs: Vec<InnerValue>,
}

impl NestedNode {
    /// The function that it computes, if it is one that MXNet fuses.
    pub(crate) fn function(&self) -> Option<Function> {
        let attrs = &self.attrs;
        Some(match self.op.name {
            "Activation" => match attrs.str("act_type") {
                "relu" => Function::Relu,
                "sigmoid" => Function::Sigmoid,
                "tanh" => Function::Tanh,
                "softrelu" => Function::Softrelu,
                _ => Function::Softsign,
            },
            "LeakyReLU" => match attrs.str("act_type") {
                "leaky" => Function::Leaky(attrs.float("slope") as f32),
                "gelu" => Function::Gelu,
                "elu" => Function::Elu(attrs.float("slope") as f32),
                _ => return None,
            },
            "clip" => Function::Clip(attrs.float("a_min") as f32, attrs.float("a_max") as f32),
            "relu" => Function::Relu,
            "square" => Function::Square,
            "sqrt" => Function::Sqrt,
            "exp" => Function::Exp,
            "abs" => Function::Abs,
            _ => return None,
        })
    }
}

/// The graph that a fused node stands for, with one output.
#[derive(Debug)]
pub struct NestedGraph {
    /// number of inputs
    pub inputs: usize,
    /// nodes; each reads inputs and earlier nodes
    pub nodes: Vec<NestedNode>,
    /// the output
    pub output: InnerValue,
}

/// Writes a nested graph as the text of an attribute.
#[derive(Default)]
pub struct NestedWriter {
    text: String,
}

impl NestedWriter {
    /// Starts with the number of inputs and the output.
    pub fn new(inputs: usize, output: InnerValue) -> NestedWriter {
        NestedWriter { text: format!("{inputs}{FIELD}{}{RECORD}", write_value(output)) }
    }

    /// Adds a node.
    pub fn node<'a>(&mut self, op: &str, inputs: &[InnerValue], attrs: impl Iterator<Item = (&'a str, &'a str)>) {
        let inputs = inputs.iter().map(|v| write_value(*v)).collect::<Vec<String>>().join(" ");
        let fields = [op, inputs.as_str()].into_iter().chain(attrs.flat_map(|(k, v)| [k, v]));
        let plain = fields.map(|field| field.replace([FIELD, RECORD], " "));
        self.text.push_str(&plain.collect::<Vec<String>>().join(&FIELD.to_string()));
        self.text.push(RECORD);
    }

    /// The text.
    pub fn finish(self) -> String {
        self.text
    }
}

fn write_value(value: InnerValue) -> String {
    match value {
        InnerValue::Input(i) => format!("i{i}"),
        InnerValue::Node(n, output) => format!("n{n}.{output}"),
    }
}

fn damaged(what: &str) -> OpError {
    value_error(format!("the nested graph is damaged: {what}; save the model again with MXNet's optimize_for"))
}

fn read_value(text: &str) -> Option<InnerValue> {
    if let Some(input) = text.strip_prefix('i') {
        return input.parse().ok().map(InnerValue::Input);
    }
    let (node, output) = text.strip_prefix('n')?.split_once('.')?;
    Some(InnerValue::Node(node.parse().ok()?, output.parse().ok()?))
}

impl NestedGraph {
    /// Finds the nested graph among the attributes of a node.
    pub(super) fn parse(given: &[(&str, &str)]) -> ParsedObject {
        let Some((_, text)) = given.iter().find(|(key, _)| *key == NESTED) else {
            return Err(value_error(
                "the node has no nested graph: it comes with files that MXNet saved after optimize_for, and cannot \
                 be made by a call",
            ));
        };
        NestedGraph::read(text).map(|graph| Arc::new(graph) as _)
    }

    fn read(text: &str) -> Result<NestedGraph, OpError> {
        let mut records = text.split_terminator(RECORD).map(|r| r.split(FIELD));
        let mut head = records.next().ok_or_else(|| damaged("it is empty"))?;
        let inputs = head.next().and_then(|n| n.parse().ok()).ok_or_else(|| damaged("it does not count its inputs"))?;
        let output = head.next().and_then(read_value).ok_or_else(|| damaged("it has no output"))?;
        let mut graph = NestedGraph { inputs, nodes: Vec::new(), output };
        for record in records {
            if graph.nodes.len() == MAX_NODES {
                return Err(damaged("it has more nodes than MXNet fuses"));
            }
            let node = graph.read_node(record)?;
            graph.nodes.push(node);
        }
        graph.check(output, "the output")?;
        Ok(graph)
    }

    fn read_node<'a>(&self, mut fields: impl Iterator<Item = &'a str>) -> Result<NestedNode, OpError> {
        let name = fields.next().unwrap_or_default();
        let op = registry().get(name).filter(|op| !op.internal && !super::has_nested_graph(op));
        let op = op.ok_or_else(|| damaged(&format!("it has a node '{name}', which cannot be part of one")))?;
        let inputs = fields.next().unwrap_or_default().split_whitespace().map(read_value).collect::<Option<Vec<_>>>();
        let inputs = inputs.ok_or_else(|| damaged(&format!("the inputs of {name} cannot be read")))?;
        inputs.iter().try_for_each(|value| self.check(*value, name))?;
        let mut attr_text = Vec::new();
        while let (Some(key), value) = (fields.next(), fields.next()) {
            attr_text.push((key.to_owned(), value.unwrap_or_default().to_owned()));
        }
        let attrs = op.parse_attrs(attr_text.iter().map(|(k, v)| (k.as_str(), v.as_str())));
        let attrs = attrs.map_err(|e| damaged(&format!("{name}: {}", e.message)))?;
        if op.num_inputs(&attrs) != inputs.len() {
            let want = op.num_inputs(&attrs);
            return Err(damaged(&format!("{name} has {} inputs and needs {want}", inputs.len())));
        }
        Ok(NestedNode { op, attr_text, attrs, inputs })
    }

    fn check(&self, value: InnerValue, who: &str) -> Result<(), OpError> {
        let exists = match value {
            InnerValue::Input(i) => i < self.inputs,
            InnerValue::Node(n, output) => self.nodes.get(n).is_some_and(|n| output < n.op.num_outputs(&n.attrs)),
        };
        if exists { Ok(()) } else { Err(damaged(&format!("{who} reads a value that no earlier node makes"))) }
    }

    /// The only node of an operator; none or more than one give `None`.
    pub(crate) fn only(&self, op: &str) -> Option<&NestedNode> {
        let mut found = self.nodes.iter().filter(|node| node.op.name == op);
        found.next().filter(|_| found.next().is_none())
    }

    /// Inputs that are auxiliary states of a node.
    pub(crate) fn states(&self) -> impl Iterator<Item = usize> {
        self.nodes.iter().flat_map(|node| {
            let states = node.op.states(&node.attrs).into_iter();
            states.filter_map(|i| match node.inputs.get(i) {
                Some(InnerValue::Input(input)) => Some(*input),
                _ => None,
            })
        })
    }

    /// Infers shapes through the nodes. `inputs` and `outputs` may hold more than the graph has.
    pub(crate) fn infer_shape(&self, inputs: &mut [PartialShape], outputs: &mut [PartialShape]) -> Result<(), OpError> {
        let makes = |node: &NestedNode| vec![PartialShape::UNKNOWN; node.op.num_outputs(&node.attrs)];
        let mut values: Vec<Vec<PartialShape>> = self.nodes.iter().map(makes).collect();
        if let (InnerValue::Node(n, o), Some(out)) = (self.output, outputs.first()) {
            values[n][o] = out.clone();
        }
        // What a node learns of its inputs reaches the nodes before it in the second round.
        for _ in 0..2 {
            for (n, node) in self.nodes.iter().enumerate() {
                let read = |value: &InnerValue| match value {
                    InnerValue::Input(i) => inputs.get(*i).cloned().unwrap_or(PartialShape::UNKNOWN),
                    InnerValue::Node(n, o) => values[*n][*o].clone(),
                };
                let mut known: Vec<PartialShape> = node.inputs.iter().map(read).collect();
                let mut made = values[n].clone();
                let mut shapes = Shapes { attrs: &node.attrs, inputs: &mut known, outputs: &mut made };
                (node.op.infer_shape)(&mut shapes).map_err(|e| inside(node, e))?;
                values[n] = made;
                for (value, shape) in node.inputs.iter().zip(known) {
                    match value {
                        InnerValue::Input(i) => inputs.get_mut(*i).into_iter().for_each(|s| *s = shape.clone()),
                        InnerValue::Node(n, o) => values[*n][*o] = shape,
                    }
                }
            }
        }
        if let (InnerValue::Node(n, o), Some(out)) = (self.output, outputs.first_mut()) {
            *out = values[n][o].clone();
        }
        Ok(())
    }

    /// Infers element types through the nodes.
    pub(crate) fn infer_dtype(
        &self,
        inputs: &mut [Option<DType>],
        outputs: &mut [Option<DType>],
    ) -> Result<(), OpError> {
        let makes = |node: &NestedNode| vec![None; node.op.num_outputs(&node.attrs)];
        let mut values: Vec<Vec<Option<DType>>> = self.nodes.iter().map(makes).collect();
        for _ in 0..2 {
            for (n, node) in self.nodes.iter().enumerate() {
                let read = |value: &InnerValue| match value {
                    InnerValue::Input(i) => inputs.get(*i).copied().flatten(),
                    InnerValue::Node(n, o) => values[*n][*o],
                };
                let mut known: Vec<Option<DType>> = node.inputs.iter().map(read).collect();
                let mut made = values[n].clone();
                let mut dtypes = DTypes { attrs: &node.attrs, inputs: &mut known, outputs: &mut made };
                (node.op.infer_dtype)(&mut dtypes).map_err(|e| inside(node, e))?;
                values[n] = made;
                for (value, dtype) in node.inputs.iter().zip(known) {
                    match value {
                        InnerValue::Input(i) => inputs.get_mut(*i).into_iter().for_each(|d| *d = dtype),
                        InnerValue::Node(n, o) => values[*n][*o] = dtype,
                    }
                }
            }
        }
        if let (InnerValue::Node(n, o), Some(out)) = (self.output, outputs.first_mut()) {
            *out = values[n][o];
        }
        Ok(())
    }
}

fn inside(node: &NestedNode, error: OpError) -> OpError {
    let message = format!("{} inside: {}", node.op.name, error.message);
    OpError::new(error.kind, message)
}
