//! A stable text form of graphs, for tests of passes and for readers.

use super::{Node, NodeEntry, Symbol};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;

/// The graph with one operator a line: `%3 = Convolution(data, w, b) {kernel=(3, 3)} 'conv0'`.
///
/// Variables stand by their names; `%3.1` is the second output of `%3`. Hidden attributes are left
/// out. The last line says what the graph returns.
pub fn text(symbol: &Symbol) -> String {
    let mut out = String::new();
    write_graph(symbol, 0, &mut out);
    out
}

fn write_graph(symbol: &Symbol, indent: usize, out: &mut String) {
    let nodes = symbol.topo();
    let labels = labels(&nodes);
    let pad = " ".repeat(indent);
    for node in &nodes {
        let Some(op) = node.op else { continue };
        let label = &labels[&Arc::as_ptr(node)];
        let _ = write!(out, "{pad}{label} = {}({})", op.name, list(&node.inputs, &labels));
        let attrs: Vec<String> =
            node.attrs().iter().filter(|(k, _)| !k.starts_with("__")).map(|(k, v)| format!("{k}={v}")).collect();
        if !attrs.is_empty() {
            let _ = write!(out, " {{{}}}", attrs.join(", "));
        }
        let _ = write!(out, " '{}'", node.name);
        if !node.control_deps.is_empty() {
            let after: Vec<&str> = node.control_deps.iter().map(|n| labels[&Arc::as_ptr(n)].as_str()).collect();
            let _ = write!(out, " after {}", after.join(", "));
        }
        out.push('\n');
        for graph in &node.subgraphs {
            let _ = writeln!(out, "{pad}  graph");
            write_graph(graph, indent + 4, out);
        }
    }
    let _ = writeln!(out, "{pad}return {}", list(symbol.outputs(), &labels));
}

/// Operators are numbered; variables are called by name, with a number where several share one.
fn labels(nodes: &[Arc<Node>]) -> HashMap<*const Node, String> {
    let mut taken: HashSet<String> = HashSet::new();
    let mut operators = 0;
    let mut labels = HashMap::new();
    for node in nodes {
        let label = if node.is_variable() {
            let plain = !node.name.is_empty() && !node.name.contains([' ', ',', '(', ')', '%', '\'', '\n', '\t']);
            let name = if plain { node.name.clone() } else { format!("{:?}", node.name) };
            let mut label = name.clone();
            let mut n = 1;
            while !taken.insert(label.clone()) {
                n += 1;
                label = format!("{name}#{n}");
            }
            label
        } else {
            operators += 1;
            format!("%{}", operators - 1)
        };
        labels.insert(Arc::as_ptr(node), label);
    }
    labels
}

fn list(entries: &[NodeEntry], labels: &HashMap<*const Node, String>) -> String {
    let one = |e: &NodeEntry| {
        let label = &labels[&Arc::as_ptr(&e.node)];
        if e.index == 0 { label.clone() } else { format!("{label}.{}", e.index) }
    };
    entries.iter().map(one).collect::<Vec<_>>().join(", ")
}
