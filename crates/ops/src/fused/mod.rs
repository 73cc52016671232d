//! `_sg_mkldnn_*`: nodes that MXNet made of several, with a nested graph of what they were.
//!
//! A float32 node stands for the nodes of its nested graph, which graphs put in its place
//! ([`unfolded`]). A quantized one is one layer of integers; the nested graph says which.

pub mod attention;
pub mod convolution;
pub mod fully_connected;

mod layer;
mod nested;
mod weights;

pub use nested::{InnerValue, NestedGraph, NestedNode, NestedWriter};

use crate::definition::{AttrDef, AttrKind, Attrs, ObjectParser, OpDef};

/// Name of the attribute that holds the nested graph. Files have it next to the attributes.
pub const NESTED: &str = "subgraph";

/// Declares the nested graph.
pub(crate) const NESTED_ATTR: AttrDef = AttrDef::new(
    NESTED,
    AttrKind::Object(ObjectParser(NestedGraph::parse)),
    "None",
    "The graph that the node stands for, which comes with the node.",
);

/// Whether nodes of an operator have a nested graph that says what they compute.
pub fn has_nested_graph(op: &OpDef) -> bool {
    op.attrs.iter().any(|attr| attr.name == NESTED)
}

/// The nodes in whose place the operator stands, unless it has a kernel of its own.
pub fn unfolded<'a>(op: &OpDef, attrs: &'a Attrs) -> Option<&'a NestedGraph> {
    (has_nested_graph(op) && !attrs.bool("quantized")).then(|| attrs.object(NESTED))
}
