//! Symbols, graph passes, plans and [`CachedOp`].
//!
//! A graph knows operators only through their definitions; it reads no files but the text of symbols.
#![forbid(unsafe_code)]

pub mod json;
pub mod plan;
pub mod symbol;

pub use json::{LoadOptions, Loaded};
pub use plan::{BoundOp, BuildOptions, CachedOp, CachedOpFlags, CallOptions, Graph, Plan, passes};
pub use symbol::{Entry, GraphError, InferredShapes, InferredTypes, Node, Symbol};
