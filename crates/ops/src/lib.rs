//! The operators: one file and one row of [`table`] each.
//!
//! An operator joins attribute parsing, shape and type inference and kernels; from its definition come `mx.nd.*`,
//! `mx.sym.*`, signatures, docstrings and type stubs. It knows nothing of graphs, files or Python.
#![forbid(unsafe_code)]

pub mod core;
mod table;

mod blocked;
mod create;
mod graph;
mod index;
mod math;
mod nn;
mod random;
mod sequence;
mod shape;

#[cfg(test)]
mod testing;

pub use crate::blocked::convolution::with_pooling;
pub use crate::core::*;
