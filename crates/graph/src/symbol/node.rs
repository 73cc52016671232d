//! Nodes of a graph and the edges between them.

use super::error::attr_error;
use super::{MAX_OUTPUTS, Symbol};
use crate::control_flow::{MAX_DEPTH, Wiring};
use mxrt_engine::ForkSafeRwLock as RwLock;
use mxrt_engine::{FailureKind, ForkSafeOnce, OpError};
use mxrt_ops::{Attrs, InnerValue, Inputs, NESTED, NestedWriter, OpDef, has_nested_graph};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// One output of a node, as another node or the caller uses it.
#[derive(Clone)]
pub struct NodeEntry {
    /// the node that makes the value
    pub node: Arc<Node>,
    /// number of the output
    pub index: usize,
    /// number of times the variable had been mutated before this use; only files show it
    pub version: u32,
}

impl NodeEntry {
    /// Output `index` of `node`.
    pub fn new(node: Arc<Node>, index: usize) -> NodeEntry {
        let version = node.mutations();
        NodeEntry { node, index, version }
    }
}

impl fmt::Debug for NodeEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.node.name, self.index)
    }
}

/// A variable or an application of an operator. The structure never changes; attributes that no
/// operator parses may change.
pub struct Node {
    /// the operator, `None` for a variable
    pub op: Option<&'static OpDef>,
    /// name, not necessarily unique
    pub name: String,
    /// inputs in the operator's order
    pub inputs: Vec<NodeEntry>,
    /// nodes that must run before this one, without giving it a value
    pub control_deps: Vec<Arc<Node>>,
    /// graphs that the operator runs (control flow, fused nodes)
    pub subgraphs: Vec<Symbol>,
    attrs: RwLock<BTreeMap<String, String>>,
    parsed: Option<Attrs>,
    /// connection of the node's inputs with its graphs
    wiring: Option<Arc<Wiring>>,
    mutations: AtomicU32,
}

/// Parts from which a node is made.
pub(crate) struct NodeParts {
    pub op: Option<&'static OpDef>,
    pub name: String,
    pub attrs: BTreeMap<String, String>,
    /// the parsed attributes, if they were parsed before
    pub parsed: Option<Attrs>,
    pub inputs: Vec<NodeEntry>,
    pub control_deps: Vec<Arc<Node>>,
    pub subgraphs: Vec<Symbol>,
}

impl Node {
    /// A variable.
    pub fn variable(name: impl Into<String>, attrs: BTreeMap<String, String>) -> Arc<Node> {
        Arc::new(Node {
            op: None,
            name: name.into(),
            inputs: Vec::new(),
            control_deps: Vec::new(),
            subgraphs: Vec::new(),
            attrs: RwLock::new(attrs),
            parsed: None,
            wiring: None,
            mutations: AtomicU32::new(0),
        })
    }

    /// Applies an operator to all of its inputs. [`Symbol::create`] composes with automatic
    /// variables.
    pub fn operator(
        op: &'static OpDef,
        name: impl Into<String>,
        attrs: BTreeMap<String, String>,
        inputs: Vec<NodeEntry>,
    ) -> Result<Arc<Node>, OpError> {
        let (control_deps, subgraphs) = (Vec::new(), Vec::new());
        let (op, name, parsed) = (Some(op), name.into(), None);
        Node::from_parts(NodeParts { op, name, attrs, parsed, inputs, control_deps, subgraphs })
    }

    /// Parses the attributes and checks that the inputs fit the operator.
    pub(crate) fn from_parts(mut parts: NodeParts) -> Result<Arc<Node>, OpError> {
        let parsed = match (parts.op, parts.parsed.take()) {
            (None, _) => None,
            (_, Some(parsed)) => Some(parsed),
            (Some(op), None) => Some(parse(op, &parts.name, &*with_nested(op, &parts)?)?),
        };
        let wiring = match (parts.op, &parsed) {
            (Some(op), Some(attrs)) => wiring(op, attrs, &parts)?,
            _ => None,
        };
        let node = Node {
            op: parts.op,
            name: parts.name,
            inputs: parts.inputs,
            control_deps: parts.control_deps,
            subgraphs: parts.subgraphs,
            attrs: RwLock::new(parts.attrs),
            parsed,
            wiring,
            mutations: AtomicU32::new(0),
        };
        node.check_inputs()?;
        Ok(Arc::new(node))
    }

    /// Copies the node over other inputs, under another name.
    pub(crate) fn with_inputs(&self, name: String, inputs: Vec<NodeEntry>, control_deps: Vec<Arc<Node>>) -> Arc<Node> {
        Arc::new(Node {
            op: self.op,
            name,
            inputs,
            control_deps,
            subgraphs: self.subgraphs.clone(),
            attrs: RwLock::new(self.attrs()),
            parsed: self.parsed.clone(),
            wiring: self.wiring.clone(),
            mutations: AtomicU32::new(self.mutations()),
        })
    }

    /// True for variables: arguments and auxiliary states.
    pub fn is_variable(&self) -> bool {
        self.op.is_none()
    }

    /// The attributes as they were given, hidden ones included.
    pub fn attrs(&self) -> BTreeMap<String, String> {
        self.attrs.read().clone()
    }

    /// One attribute as it was given.
    pub fn attr(&self, key: &str) -> Option<String> {
        self.attrs.read().get(key).cloned()
    }

    /// The attributes that say what the node computes: those without hidden ones, and the nested
    /// graph of a fused node.
    pub(crate) fn attr_text(&self) -> Vec<(String, String)> {
        let nested = self.op.filter(|op| has_nested_graph(op)).and_then(|_| self.subgraphs.first());
        let nested = nested.map(|graph| (NESTED.to_owned(), nested_text(graph)));
        self.attrs().into_iter().filter(|(k, _)| !k.starts_with("__")).chain(nested).collect()
    }

    /// Sets an attribute that no operator parses.
    pub(crate) fn put_attr(&self, key: &str, value: &str) {
        self.attrs.write().insert(key.to_owned(), value.to_owned());
    }

    /// The operator's parsed attributes; empty for a variable.
    pub fn parsed(&self) -> &Attrs {
        static NONE: ForkSafeOnce<Attrs> = ForkSafeOnce::new();
        self.parsed.as_ref().unwrap_or_else(|| {
            NONE.get_or_init(|| match Attrs::parse(&[], std::iter::empty()) {
                Ok(attrs) => attrs,
                Err(_) => unreachable!("nothing is declared and nothing is given"),
            })
        })
    }

    /// How the operator feeds its graphs, if it runs any.
    pub(crate) fn wiring(&self) -> Option<&Arc<Wiring>> {
        self.wiring.as_ref()
    }

    /// How many graphs lie inside each other here.
    fn depth(&self) -> usize {
        let inner = self.subgraphs.iter().flat_map(|graph| graph.topo());
        inner.map(|node| 1 + node.depth()).max().unwrap_or(0)
    }

    /// Number of outputs that can be used: 1 for a variable.
    pub fn num_outputs(&self) -> usize {
        self.op.map_or(1, |op| op.num_outputs(self.parsed()))
    }

    /// Number of outputs as files count them, hidden ones included.
    pub fn total_outputs(&self) -> usize {
        self.op.map_or(1, |op| op.total_outputs(self.parsed()))
    }

    /// The name of one output: the node's own for a variable, else `<node>_<output>`.
    pub fn output_name(&self, index: usize) -> String {
        let Some(op) = self.op else { return self.name.clone() };
        let output = op.output_name(self.parsed(), index);
        if self.name.is_empty() { output.into_owned() } else { format!("{}_{output}", self.name) }
    }

    /// Names of the inputs in the operator's order.
    pub fn input_names(&self) -> Vec<String> {
        self.op.map_or_else(Vec::new, |op| op.input_names(self.parsed()).into_iter().map(|n| n.into_owned()).collect())
    }

    /// The variables that the operator counts as its state.
    pub fn aux_inputs(&self) -> impl Iterator<Item = &NodeEntry> {
        let states = self.op.map(|op| op.states(self.parsed())).unwrap_or_default();
        states.into_iter().filter_map(|i| self.inputs.get(i))
    }

    pub(crate) fn mutations(&self) -> u32 {
        self.mutations.load(Ordering::Relaxed)
    }

    pub(crate) fn mutate(&self) -> u32 {
        self.mutations.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// An error about this node: operator, node and attributes filled in.
    pub(crate) fn error(&self, kind: FailureKind, message: impl Into<String>) -> OpError {
        self.describe_in(OpError::new(kind, message))
    }

    /// Adds operator, node and attributes to an error.
    pub(crate) fn describe_in(&self, error: OpError) -> OpError {
        let error = match self.op {
            Some(op) => error.op(op.name),
            None => error,
        };
        error.node(self.name.clone()).attrs(self.attrs().into_iter().collect())
    }

    fn check_inputs(&self) -> Result<(), OpError> {
        let Some(op) = self.op else { return Ok(()) };
        let want = op.num_inputs(self.parsed());
        let have = self.inputs.len();
        // Control flow counts its graphs among its arguments.
        let graphs = if self.wiring.is_some() { self.subgraphs.len() } else { 0 };
        if want != have && want != have + graphs {
            let names = match op.inputs {
                Inputs::Variadic { count, .. } => format!("{count}={want}"),
                Inputs::Ranged { count, .. } => format!("three for each that {count} counts"),
                _ => op.input_names(self.parsed()).join(", "),
            };
            let message = format!(
                "Operator {} expects {want} inputs ({names}), but got {have} instead: node '{}'",
                op.name, self.name
            );
            return Err(self.error(FailureKind::Value, message));
        }
        for (i, entry) in self.inputs.iter().enumerate() {
            entry
                .check()
                .map_err(|what| self.error(FailureKind::Index, format!("input {i} of '{}': {what}", self.name)))?;
        }
        if self.total_outputs() > MAX_OUTPUTS {
            let message = format!(
                "node '{}' has {} outputs; at most {MAX_OUTPUTS} are possible",
                self.name,
                self.total_outputs()
            );
            return Err(self.error(FailureKind::Value, message));
        }
        Ok(())
    }
}

impl NodeEntry {
    /// Checks that the node has this output. The error says what is wrong.
    pub(crate) fn check(&self) -> Result<(), String> {
        let visible = self.node.num_outputs();
        if self.index < visible {
            return Ok(());
        }
        let hidden = if self.index < self.node.total_outputs() { " that can be used; this one is hidden" } else { "" };
        let plural = if visible == 1 { "output" } else { "outputs" };
        Err(format!("output {} of '{}' does not exist: it has {visible} {plural}{hidden}", self.index, self.node.name))
    }
}

/// The attributes, and the nested graph of a fused node as one of them.
fn with_nested<'a>(op: &OpDef, parts: &'a NodeParts) -> Result<Cow<'a, BTreeMap<String, String>>, OpError> {
    if !has_nested_graph(op) {
        return Ok(Cow::Borrowed(&parts.attrs));
    }
    let [graph] = &parts.subgraphs[..] else {
        let message = format!(
            "node '{}' has {} nested graphs and needs one: it comes with files that MXNet saved after optimize_for",
            parts.name,
            parts.subgraphs.len()
        );
        return Err(OpError::new(FailureKind::Value, message).op(op.name).node(parts.name.as_str()));
    };
    let mut attrs = parts.attrs.clone();
    attrs.insert(NESTED.to_owned(), nested_text(graph));
    Ok(Cow::Owned(attrs))
}

/// A nested graph as text: what it computes, without names.
fn nested_text(graph: &Symbol) -> String {
    let nodes = graph.topo();
    let (mut inputs, mut operators) = (0, 0);
    let mut places: HashMap<*const Node, InnerValue> = HashMap::new();
    for node in &nodes {
        let count = if node.is_variable() { &mut inputs } else { &mut operators };
        let place = if node.is_variable() { InnerValue::Input(*count) } else { InnerValue::Node(*count, 0) };
        places.insert(Arc::as_ptr(node), place);
        *count += 1;
    }
    let place = |entry: &NodeEntry| match places[&Arc::as_ptr(&entry.node)] {
        InnerValue::Node(node, _) => InnerValue::Node(node, entry.index),
        input => input,
    };
    // A head that does not exist is an error of the reader.
    let output = graph.outputs().first().map_or(InnerValue::Input(usize::MAX), place);
    let mut writer = NestedWriter::new(inputs, output);
    for node in nodes.iter().filter(|node| !node.is_variable()) {
        let values: Vec<InnerValue> = node.inputs.iter().map(place).collect();
        let attrs = node.attrs();
        let shown = attrs.iter().filter(|(k, _)| !k.starts_with("__")).map(|(k, v)| (k.as_str(), v.as_str()));
        writer.node(node.op.map_or("", |op| op.name), &values, shown);
    }
    writer.finish()
}

/// Parses an operator's attributes; errors name operator and node.
fn parse(op: &'static OpDef, name: &str, attrs: &BTreeMap<String, String>) -> Result<Attrs, OpError> {
    let fail = |e: OpError| attr_error(e, op, name, attrs);
    let parsed = op.parse_attrs(attrs.iter().map(|(k, v)| (k.as_str(), v.as_str()))).map_err(fail)?;
    if let Inputs::Variadic { count, .. } | Inputs::Ranged { count, .. } = op.inputs {
        let given = parsed.opt_int(count).unwrap_or(-1);
        if !usize::try_from(given).is_ok_and(|n| n <= MAX_OUTPUTS) {
            let message = format!("value {given} for Parameter {count} should be between 0 and {MAX_OUTPUTS}");
            return Err(fail(OpError::new(FailureKind::Value, message)));
        }
    }
    Ok(parsed)
}

/// How the operator feeds its graphs; an error where they do not fit its attributes.
fn wiring(op: &'static OpDef, attrs: &Attrs, parts: &NodeParts) -> Result<Option<Arc<Wiring>>, OpError> {
    let fail = |e: OpError| attr_error(e, op, &parts.name, &parts.attrs);
    let sizes: Vec<_> = parts.subgraphs.iter().map(|g| (g.input_nodes().len(), g.outputs().len())).collect();
    let found = Wiring::new(op, attrs, parts.inputs.len(), &sizes).map_err(fail)?;
    let nodes = parts.subgraphs.iter().flat_map(Symbol::topo);
    if nodes.map(|node| 1 + node.depth()).max().unwrap_or(0) > MAX_DEPTH {
        let message = format!("graphs inside graphs go deeper than {MAX_DEPTH}");
        return Err(fail(OpError::new(FailureKind::Value, message)));
    }
    Ok(found.map(Arc::new))
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.op.map_or("Variable", |op| op.name), self.name)
    }
}

/// Long chains are taken apart in a loop: a recursive drop would overflow the stack.
impl Drop for Node {
    fn drop(&mut self) {
        let mut pending: Vec<Arc<Node>> = Vec::new();
        self.release(&mut pending);
        while let Some(node) = pending.pop() {
            if let Some(mut node) = Arc::into_inner(node) {
                node.release(&mut pending);
            }
        }
    }
}

impl Node {
    fn release(&mut self, pending: &mut Vec<Arc<Node>>) {
        pending.extend(self.inputs.drain(..).map(|e| e.node));
        pending.append(&mut self.control_deps);
        for graph in self.subgraphs.drain(..) {
            pending.extend(graph.into_entries().into_iter().map(|e| e.node));
        }
    }
}

/// Nodes reachable from the entries, inputs before their users, in the order in which MXNet writes
/// and lists them.
pub(crate) fn post_order(heads: &[NodeEntry]) -> Vec<Arc<Node>> {
    let mut order = Vec::new();
    let mut seen: HashSet<*const Node> = HashSet::new();
    let mut stack: Vec<(&Arc<Node>, usize)> = Vec::new();
    for head in heads {
        if seen.insert(Arc::as_ptr(&head.node)) {
            stack.push((&head.node, 0));
        }
        while let Some((node, next)) = stack.last_mut() {
            let node = *node;
            let child = node.inputs.get(*next).map(|e| &e.node);
            let child = child.or_else(|| node.control_deps.get(*next - node.inputs.len().min(*next)));
            *next += 1;
            match child {
                Some(child) if seen.insert(Arc::as_ptr(child)) => stack.push((child, 0)),
                Some(_) => {}
                None => {
                    order.push(node.clone());
                    stack.pop();
                }
            }
        }
    }
    order
}
