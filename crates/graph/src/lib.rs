//! Compiles and runs graphs: symbol → graph → passes → plan → [`CachedOp`].
//!
//! A graph knows operators only through their definitions. The crate reads no files except the text
//! of symbols.
//!
//! | module | does |
//! | --- | --- |
//! | `symbol`, `json` | the user's graph, and its text |
//! | `control_flow` | how loops and branches feed the graphs that they run |
//! | `ir` | the graph that passes rewrite, and its types |
//! | `passes` | rewrites, in one list |
//! | `plan` | what a plan consists of |
//! | `memory` | where a plan's values, constants and raw weights are stored |
//! | `execute` | runs the steps of a plan |
//! | `compile` | a graph and a signature become a plan, or the steps of another target |
//! | `run` | calls: plans by signature, batches in parts, requests on host and devices |
//!
//! A [`Plan`] is immutable and belongs to one signature (types of the inputs). A request brings its
//! own inputs, outputs and arena, so any number of requests run one plan concurrently.
#![forbid(unsafe_code)]

mod compile;
mod control_flow;
mod execute;
pub mod ir;
pub mod json;
mod memory;
pub mod passes;
mod plan;
mod run;
pub mod symbol;

pub use compile::{BatchParts, BuildOptions, CacheLimit, CachedOpFlags, Interrupter, PlanReport, StepReport};
pub use control_flow::number_of_graphs;
pub use ir::{Graph, GraphInput, GraphNode, Types, Value, ValueMap, infer};
pub use json::{LoadOptions, Loaded};
pub use memory::share_weights;
pub use passes::PassChoice;
pub use plan::Plan;
pub use run::{
    BoundOp, CALL_OPTIONS, CacheStats, CachedOp, CallOption, CallOptions, CallValue, Executor, ExecutorSite,
    JoinedRows, Reshaping, SharedArrays, Started, TrainingOp, TwoModeOp, Watch, WatchCallback, invoke, invoke_custom,
};
pub use symbol::{GraphError, InferredShapes, InferredTypes, Node, NodeEntry, Symbol, TrainingScope};
