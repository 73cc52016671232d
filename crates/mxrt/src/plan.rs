//! Plans of models: what [`Model::plan`](crate::Model::plan) reports, and how many a model keeps.

pub use mxrt_graph::{CacheLimit, PlanReport, StepReport};
