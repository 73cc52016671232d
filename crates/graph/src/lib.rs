//! Symbols, graph passes, plans and [`CachedOp`].
#![forbid(unsafe_code)]

pub mod plan;
pub mod symbol;

pub use plan::{CachedOp, CachedOpFlags, Plan};
