//! Putting symbols in the place of variables.

use super::create::versioned;
use super::{GraphError, Node, NodeEntry, NodeParts, Symbol};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

impl Symbol {
    /// The attribute by which nodes of a subgraph are told from those around it.
    pub const SUBGRAPH_NAME: &str = "__subgraph_name__";

    /// A copy with nodes of its own: attributes set on one are not seen by the other.
    pub fn deep_copy(&self) -> Symbol {
        let mut copies: HashMap<*const Node, Arc<Node>> = HashMap::new();
        for node in self.topo() {
            let inputs = node.inputs.iter().map(|e| moved(e, &copies)).collect();
            let deps = node.control_deps.iter().map(|d| copies[&Arc::as_ptr(d)].clone()).collect();
            copies.insert(Arc::as_ptr(&node), node.with_inputs(node.name.clone(), inputs, deps));
        }
        Symbol::from_entries(self.outputs().iter().map(|e| moved(e, &copies)).collect())
    }

    /// A copy whose operators read what `amp_cast` and `amp_multicast` would convert. Outputs of the
    /// symbol that are made by these stay, as in MXNet.
    pub fn without_amp_casts(&self) -> Symbol {
        let mut copies: HashMap<*const Node, Arc<Node>> = HashMap::new();
        for node in self.topo() {
            // Inputs come before the nodes that read them, so a cast reads no other cast.
            let source = |e: &NodeEntry| {
                let read = moved(e, &copies);
                let casts = read.node.op.is_some_and(|op| matches!(op.name, "amp_cast" | "amp_multicast"));
                read.node.inputs.get(read.index).filter(|_| casts).cloned().unwrap_or(read)
            };
            let inputs = node.inputs.iter().map(source).collect();
            let deps = node.control_deps.iter().map(|d| copies[&Arc::as_ptr(d)].clone()).collect();
            copies.insert(Arc::as_ptr(&node), node.with_inputs(node.name.clone(), inputs, deps));
        }
        Symbol::from_entries(self.outputs().iter().map(|e| moved(e, &copies)).collect())
    }

    /// The nodes whose attribute `__subgraph_name__` is `name`, as a graph of their own, and what
    /// they read from outside: each such value is a variable of the new graph, with the name of the
    /// output that it stands for.
    pub fn cut_subgraph(&self, name: &str) -> (Symbol, Vec<NodeEntry>) {
        let inside = |node: &Node| node.attr(Symbol::SUBGRAPH_NAME).is_some_and(|n| n == name);
        let mut copies: HashMap<*const Node, Arc<Node>> = HashMap::new();
        let mut cut: Vec<(NodeEntry, NodeEntry)> = Vec::new();
        let mut variable = |entry: &NodeEntry| {
            let same =
                |(have, _): &&(NodeEntry, NodeEntry)| Arc::ptr_eq(&have.node, &entry.node) && have.index == entry.index;
            if let Some((_, made)) = cut.iter().find(same) {
                return made.clone();
            }
            let made = NodeEntry::new(Node::variable(entry.node.output_name(entry.index), BTreeMap::new()), 0);
            cut.push((entry.clone(), made.clone()));
            made
        };
        for node in self.topo().into_iter().filter(|node| inside(node)) {
            let read = |e: &NodeEntry| if inside(&e.node) { moved(e, &copies) } else { variable(e) };
            let inputs = node.inputs.iter().map(read).collect();
            copies.insert(Arc::as_ptr(&node), node.with_inputs(node.name.clone(), inputs, Vec::new()));
        }
        let output = |e: &NodeEntry| if inside(&e.node) { moved(e, &copies) } else { variable(e) };
        let outputs = self.outputs().iter().map(output).collect();
        (Symbol::from_entries(outputs), cut.into_iter().map(|(outer, _)| outer).collect())
    }

    /// A copy in which the named variables are replaced, as `sym(x=other)` makes it. `name` renames
    /// the first output's node.
    pub fn compose(&self, name: Option<&str>, arguments: Vec<(Option<String>, Symbol)>) -> Result<Symbol, GraphError> {
        let replacements = named(self, arguments)?;
        let head = self.outputs().first().map(|e| Arc::as_ptr(&e.node));
        let mut copies: HashMap<*const Node, Arc<Node>> = HashMap::new();
        let mut replaced: HashMap<*const Node, NodeEntry> = HashMap::new();
        for node in self.topo() {
            let key = Arc::as_ptr(&node);
            if node.is_variable()
                && let Some(entry) = replacements.get(&node.name)
            {
                replaced.insert(key, entry.clone());
            }
            let touched = node.inputs.iter().any(|e| replaced.contains_key(&Arc::as_ptr(&e.node)));
            let inputs: Vec<NodeEntry> = node
                .inputs
                .iter()
                .map(|e| replaced.get(&Arc::as_ptr(&e.node)).cloned().unwrap_or_else(|| moved(e, &copies)))
                .collect();
            let deps: Vec<Arc<Node>> = node.control_deps.iter().map(|d| copies[&Arc::as_ptr(d)].clone()).collect();
            let new_name = name.filter(|n| !n.is_empty() && head == Some(key)).unwrap_or(&node.name).to_owned();
            let copy = if touched {
                let (op, attrs, subgraphs) = (node.op, node.attrs(), node.subgraphs.clone());
                let parsed = op.map(|_| node.parsed().clone());
                let parts = NodeParts { op, name: new_name, attrs, parsed, inputs, control_deps: deps, subgraphs };
                Node::from_parts(versioned(parts)?)?
            } else {
                node.with_inputs(new_name, inputs, deps)
            };
            copies.insert(key, copy);
        }
        let head_entry =
            |e: &NodeEntry| replaced.get(&Arc::as_ptr(&e.node)).cloned().unwrap_or_else(|| moved(e, &copies));
        Ok(Symbol::from_entries(self.outputs().iter().map(head_entry).collect()))
    }
}

fn moved(entry: &NodeEntry, copies: &HashMap<*const Node, Arc<Node>>) -> NodeEntry {
    let node = copies[&Arc::as_ptr(&entry.node)].clone();
    NodeEntry { node, index: entry.index, version: entry.version }
}

/// Checks the arguments of a composition and lists them by name.
fn named(symbol: &Symbol, arguments: Vec<(Option<String>, Symbol)>) -> Result<HashMap<String, NodeEntry>, GraphError> {
    let known = symbol.list_inputs();
    let names: HashSet<&str> = known.iter().map(String::as_str).collect();
    let mut entries = HashMap::new();
    for (position, (keyword, argument)) in arguments.into_iter().enumerate() {
        let Some(keyword) = keyword else { return Err(positional(symbol, position, &argument)) };
        if !names.contains(keyword.as_str()) {
            return Err(GraphError::UnknownArgument { context: "Symbol.Compose", name: keyword, known });
        }
        let [entry] = argument.outputs() else {
            let n = argument.outputs().len();
            let message = format!("Keyword Argument {keyword} is a tuple of {n} outputs, single value is required");
            return Err(GraphError::Value(message));
        };
        if entries.insert(keyword.clone(), entry.clone()).is_some() {
            return Err(GraphError::Value(format!("Keyword Argument {keyword} is given twice")));
        }
    }
    Ok(entries)
}

fn positional(symbol: &Symbol, position: usize, argument: &Symbol) -> GraphError {
    let quoted = |one: &Symbol| one.name().map_or_else(|| "a group".to_owned(), |name| format!("'{name}'"));
    let known = symbol.list_inputs();
    GraphError::Value(format!(
        "General composition only support kwargs for now: argument {position} of {}, {}, names no variable that it is \
         to replace; the variables are {}",
        quoted(symbol),
        quoted(argument),
        first_names(&known)
    ))
}

/// Names for a message: the first of many.
pub(crate) fn first_names<S: AsRef<str>>(names: &[S]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<&str> = names.iter().take(SHOWN).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{}, and {more} more", shown.join(", ")),
    }
}
