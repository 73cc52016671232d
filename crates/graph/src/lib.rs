//! Graphs: [`Symbol`], its JSON form, and what is inferred about it.
//!
//! A graph knows operators only through their definitions; it calls no kernel and reads no files.
#![forbid(unsafe_code)]

mod json;
mod symbol;

pub use json::{LoadOptions, Loaded};
pub use symbol::{
    Entry, GraphError, Inferred, InferredShapes, InferredTypes, MAX_OUTPUTS, Node, Symbol, UnknownOperator, text,
};
