//! Graphs as text, for tests of passes and for `plan()`.

use super::{Graph, Value};
use std::fmt;

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Input(i) => write!(f, "in{i}"),
            Value::Node(n, 0) => write!(f, "%{n}"),
            Value::Node(n, o) => write!(f, "%{n}.{o}"),
        }
    }
}

fn joined(values: &[Value], graph: &Graph) -> String {
    let name = |v: &Value| match v {
        Value::Input(i) => graph.inputs.get(*i).map_or_else(|| v.to_string(), |x| x.name.to_string()),
        _ => v.to_string(),
    };
    values.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Writes one node per line: `%3 = Convolution(data, w) {kernel=(3, 3)} 'conv0'`, then `return %3`.
/// `once` marks nodes without inputs that are computed once.
impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, node) in self.nodes.iter().enumerate() {
            write!(f, "%{i} = {}({})", node.op.name, joined(&node.inputs, self))?;
            if !node.attr_text.is_empty() {
                let attrs: Vec<String> = node.attr_text.iter().map(|(k, v)| format!("{k}={v}")).collect();
                write!(f, " {{{}}}", attrs.join(", "))?;
            }
            let once = if node.made_once { " once" } else { "" };
            writeln!(f, " '{}'{once}", node.name)?;
        }
        writeln!(f, "return {}", joined(&self.outputs, self))
    }
}
