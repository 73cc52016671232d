//! From a symbol to answers: graph → passes → plan → [`CachedOp`].
//!
//! A [`Plan`] is immutable and belongs to one signature (types of the inputs). Everything that a single request needs
//! — inputs, outputs, arena — is handed to it when it runs, so any number of requests run one plan at a time.

mod arena;
mod bound;
mod build;
mod cached_op;
mod consts;
mod describe;
mod flags;
mod infer;
mod inputs;
mod ir;
mod join;
mod memory;
mod on_device;
pub mod passes;
mod plan_cache;
mod program;
mod rows;
mod run;
mod step;
mod stow;
mod text;
mod unfold;

pub use bound::BoundOp;
pub use build::{BuildOptions, CacheLimit, Plan};
pub use cached_op::{CachedOp, CallOptions};
pub use describe::{BatchParts, PlanReport, StepReport};
pub use flags::CachedOpFlags;
pub use infer::{Types, infer};
pub use ir::{Graph, GraphInput, GraphNode, Value};
pub use passes::PassChoice;
pub use plan_cache::CacheStats;
