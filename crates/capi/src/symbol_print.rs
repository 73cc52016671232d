//! Symbols as text for people, in MXNet's words.

use crate::border::{Error, c_functions};
use crate::handles::{SymbolHandle, get};
use crate::pointers::put;
use crate::returned::{self, ResultPlace};
use crate::symbol::{State, SymbolCell};
use mxrt::Symbol;
use mxrt::internal::symbol::Node;
use std::ffi::c_char;
use std::fmt::{self, Write};

/// The text of a symbol.
pub(crate) fn described(symbol: &Symbol) -> String {
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

fn text_of(handle: SymbolHandle) -> Result<String, Error> {
    Ok(match get::<SymbolCell>(handle)?.state() {
        State::Graph(symbol) => described(&symbol),
        State::Operator { def, .. } => format!("AtomicFunctor  Op:{}\n", def.name),
    })
}

c_functions! {
    /// The graph as text, in memory that belongs to the thread.
    fn MXSymbolPrint(symbol: SymbolHandle, out_str: *mut *const c_char) {
        put(out_str, returned::text(ResultPlace::of("MXSymbolPrint"), text_of(symbol)?)?, "out_str")
    }

    /// Alias of `MXSymbolPrint`.
    fn NNSymbolPrint(symbol: SymbolHandle, out_str: *mut *const c_char) {
        put(out_str, returned::text(ResultPlace::of("NNSymbolPrint"), text_of(symbol)?)?, "out_str")
    }
}
