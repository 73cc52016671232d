//! Tests of graphs, in one program, which is linked to all operators once.

#[path = "../common/mod.rs"]
mod common;

mod accuracy;
mod attention;
mod cached_op;
mod calls;
mod chains;
mod control_flow;
mod custom;
mod data_dependent;
mod divided_batches;
mod hostile;
mod infer;
mod json;
mod labels;
mod long_graphs;
mod plans;
mod random_graphs;
mod recorded;
mod scalars;
mod shared_constants;
mod small_weights;
mod symbol;
mod training;
