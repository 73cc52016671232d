//! Graphs as MXNet's `debug_str` and `MXSymbolPrint` write them.

use super::{Node, Symbol};
use std::fmt::{self, Write};

/// The text of a graph for people, in MXNet's words.
pub fn described(symbol: &Symbol) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = describe(symbol, &mut text);
    text
}

fn describe(symbol: &Symbol, text: &mut String) -> fmt::Result {
    if let [only] = symbol.outputs()
        && only.node.inputs.is_empty()
        && only.node.control_deps.is_empty()
    {
        return match only.node.op {
            Some(op) => writeln!(text, "AtomicFunctor  Op:{}", op.name),
            None => writeln!(text, "Variable:{}", only.node.name),
        };
    }
    writeln!(text, "Symbol Outputs:")?;
    for (i, entry) in symbol.outputs().iter().enumerate() {
        writeln!(text, "\toutput[{i}]={}({})", entry.node.name, entry.index)?;
    }
    symbol.topo().iter().try_for_each(|node| describe_node(node, text))
}

fn describe_node(node: &Node, text: &mut String) -> fmt::Result {
    let Some(op) = node.op else { return writeln!(text, "Variable:{}", node.name) };
    writeln!(text, "--------------------\nOp:{}, Name={}\nInputs:", op.name, node.name)?;
    for (i, entry) in node.inputs.iter().enumerate() {
        write!(text, "\targ[{i}]={}({})", entry.node.name, entry.index)?;
        match entry.node.is_variable() {
            true => writeln!(text, " version={}", entry.version)?,
            false => writeln!(text)?,
        }
    }
    let attrs = node.attrs();
    if !attrs.is_empty() {
        writeln!(text, "Attrs:")?;
    }
    for (key, value) in attrs {
        writeln!(text, "\t{key}={value}")?;
    }
    if !node.control_deps.is_empty() {
        writeln!(text, "Control deps:")?;
    }
    node.control_deps.iter().enumerate().try_for_each(|(i, other)| writeln!(text, "\tcdep[{i}]={}", other.name))
}
