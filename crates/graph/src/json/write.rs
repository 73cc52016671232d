//! Writing symbol JSON in MXNet's own layout, byte for byte.

use crate::symbol::{Node, NodeEntry, Symbol};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::Arc;

/// The version that written files claim: the format is that of MXNet 1.9.1.
pub(super) const VERSION: i64 = 10901;

/// Arrays of numbers and of edges go over several lines when they are longer than this.
const MAX_IN_LINE: usize = 10;

impl Symbol {
    /// The graph as MXNet 1.9.1 writes it.
    pub fn to_json(&self) -> String {
        self.write_json(false)
    }

    /// [`Symbol::to_json`] with the mark that shapes follow numpy's semantics.
    pub fn to_json_np_shape(&self) -> String {
        self.write_json(true)
    }

    fn write_json(&self, np_shape: bool) -> String {
        let mut writer = JsonWriter { out: String::new(), indent: 0 };
        let version = format!("\"mxnet_version\": [\"int\", {VERSION}]");
        let attrs = if np_shape { vec!["\"is_np_shape\": [\"int\", 1]".to_owned(), version] } else { vec![version] };
        writer.graph(self, Some(attrs));
        writer.out
    }
}

struct JsonWriter {
    out: String,
    indent: usize,
}

impl JsonWriter {
    /// Writes ready-made items between brackets: on one line, or each on a line of its own.
    fn items(&mut self, brackets: [char; 2], items: &[String], lines: bool) {
        self.out.push(brackets[0]);
        let lines = lines && !items.is_empty();
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            if lines {
                self.new_line(1);
            }
            self.out.push_str(item);
        }
        if lines {
            self.new_line(0);
        }
        self.out.push(brackets[1]);
    }

    fn list(&mut self, items: Vec<String>) {
        let lines = items.len() > MAX_IN_LINE;
        self.items(['[', ']'], &items, lines);
    }

    fn new_line(&mut self, deeper: usize) {
        self.out.push('\n');
        for _ in 0..self.indent + deeper {
            self.out.push_str("  ");
        }
    }

    /// Starts the next `"key": ` of an object over several lines.
    fn key(&mut self, first: bool, key: &str) {
        if !first {
            self.out.push_str(", ");
        }
        self.new_line(0);
        let _ = write!(self.out, "\"{key}\": ");
    }

    fn graph(&mut self, symbol: &Symbol, attrs: Option<Vec<String>>) {
        let nodes = symbol.topo();
        let ids: HashMap<*const Node, usize> = nodes.iter().enumerate().map(|(i, n)| (Arc::as_ptr(n), i)).collect();
        self.out.push('{');
        self.indent += 1;
        self.key(true, "nodes");
        self.out.push('[');
        self.indent += 1;
        for (i, node) in nodes.iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            self.new_line(0);
            self.node(node, &ids);
        }
        self.indent -= 1;
        if !nodes.is_empty() {
            self.new_line(0);
        }
        self.out.push(']');
        self.key(false, "arg_nodes");
        let variables = nodes.iter().enumerate().filter(|(_, n)| n.is_variable());
        self.list(variables.map(|(i, _)| i.to_string()).collect());
        self.key(false, "node_row_ptr");
        let mut total = 0;
        let rows = std::iter::once(0).chain(nodes.iter().map(|n| {
            total += n.total_outputs();
            total
        }));
        self.list(rows.map(|n| n.to_string()).collect());
        self.key(false, "heads");
        self.list(edges(symbol.outputs(), &ids));
        if let Some(attrs) = attrs {
            self.key(false, "attrs");
            self.items(['{', '}'], &attrs, attrs.len() > 1);
        }
        self.indent -= 1;
        self.new_line(0);
        self.out.push('}');
    }

    fn node(&mut self, node: &Arc<Node>, ids: &HashMap<*const Node, usize>) {
        self.out.push('{');
        self.indent += 1;
        self.key(true, "op");
        self.out.push_str(&quoted(node.op.map_or("null", |op| op.name)));
        self.key(false, "name");
        self.out.push_str(&quoted(&node.name));
        let attrs: BTreeMap<String, String> = node.attrs();
        if !attrs.is_empty() {
            self.key(false, "attrs");
            let items: Vec<String> = attrs.iter().map(|(k, v)| format!("{}: {}", quoted(k), quoted(v))).collect();
            self.items(['{', '}'], &items, items.len() > 1);
        }
        self.key(false, "inputs");
        self.list(edges(&node.inputs, ids));
        if !node.control_deps.is_empty() {
            self.key(false, "control_deps");
            self.list(node.control_deps.iter().map(|n| ids[&Arc::as_ptr(n)].to_string()).collect());
        }
        if !node.subgraphs.is_empty() {
            self.key(false, "subgraphs");
            self.out.push('[');
            self.indent += 1;
            for (i, graph) in node.subgraphs.iter().enumerate() {
                if i > 0 {
                    self.out.push_str(", ");
                }
                self.new_line(0);
                self.graph(graph, None);
            }
            self.indent -= 1;
            self.new_line(0);
            self.out.push(']');
        }
        self.indent -= 1;
        self.new_line(0);
        self.out.push('}');
    }
}

fn edges(entries: &[NodeEntry], ids: &HashMap<*const Node, usize>) -> Vec<String> {
    entries.iter().map(|e| format!("[{}, {}, {}]", ids[&Arc::as_ptr(&e.node)], e.index, e.version)).collect()
}

/// A JSON string with the escapes that MXNet writes, and no others.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '\r' => out.push_str("\\r"),
            '\n' => out.push_str("\\n"),
            '\\' => out.push_str("\\\\"),
            '\t' => out.push_str("\\t"),
            '"' => out.push_str("\\\""),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
