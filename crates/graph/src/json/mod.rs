//! Symbol JSON: reads the formats of all MXNet versions, and writes that of MXNet 1.9.1.

mod build;
mod read;
mod upgrade;
mod write;

use crate::symbol::{GraphError, Symbol};
use mxrt_engine::{MemoryPool, OpError, reserve};
use std::borrow::Cow;

/// Approximate limit of the memory that reading takes for each byte of the text.
const MEMORY_PER_BYTE: usize = 24;

/// Options for reading a symbol.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadOptions {
    /// whether the caller uses numpy's shape semantics, so that hints of older files are translated
    pub np_shape: bool,
    /// limit of the number of nodes, those of inner graphs included; `None` for no limit
    pub max_nodes: Option<usize>,
    /// pool whose limit bounds the memory that reading takes
    pub memory: Option<&'static MemoryPool>,
}

/// A symbol that was read.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// the graph
    pub symbol: Symbol,
    /// warnings for the user, in order
    pub warnings: Vec<String>,
}

impl Symbol {
    /// Reads a symbol from its JSON text.
    pub fn load_json(text: &str) -> Result<Loaded, GraphError> {
        Symbol::load_json_with(text, LoadOptions::default())
    }

    /// [`Symbol::load_json`] with options.
    pub fn load_json_with(text: &str, options: LoadOptions) -> Result<Loaded, GraphError> {
        // Nodes as they are read and as they are built.
        let bytes = text.len().saturating_mul(MEMORY_PER_BYTE);
        let _charge = options.memory.map(|pool| pool.charge(bytes)).transpose().map_err(OpError::from)?;
        reserve::check_room(bytes).map_err(OpError::from)?;
        let text = escape_controls(text);
        let mut graph = read::read(&text)?;
        check_size(&graph, options.max_nodes)?;
        build::check_operators(&graph)?;
        let warnings = upgrade::upgrade(&mut graph, options)?;
        let symbol = build::build(graph)?;
        Ok(Loaded { symbol, warnings })
    }
}

fn check_size(graph: &read::RawGraph, max_nodes: Option<usize>) -> Result<(), GraphError> {
    fn count(graph: &read::RawGraph) -> usize {
        graph.nodes.len() + graph.nodes.iter().flat_map(|node| &node.subgraphs).map(count).sum::<usize>()
    }
    let Some(limit) = max_nodes else { return Ok(()) };
    let nodes = count(graph);
    if nodes > limit {
        return Err(GraphError::TooLarge { nodes, limit });
    }
    Ok(())
}

/// Escapes control characters inside strings. MXNet writes them unescaped, which JSON forbids.
fn escape_controls(text: &str) -> Cow<'_, str> {
    let is_control = |b: u8| b < 0x20 && b != b'\n' && b != b'\r';
    if !text.bytes().any(is_control) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 64);
    let (mut in_string, mut escaped) = (false, false);
    for c in text.chars() {
        if in_string && c.is_ascii() && is_control(c as u8) {
            out.push_str(&format!("\\u{:04x}", c as u32));
            escaped = false;
            continue;
        }
        match c {
            '"' if !escaped => in_string = !in_string,
            _ => {}
        }
        escaped = in_string && c == '\\' && !escaped;
        out.push(c);
    }
    Cow::Owned(out)
}
