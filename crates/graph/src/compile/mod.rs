//! Building: from a graph and the types of its inputs to a [`Plan`].

pub(crate) mod build;
pub(crate) mod flags;
pub(crate) mod interrupt;
pub(crate) mod join;
pub(crate) mod report;
pub(crate) mod step;

pub use build::{BuildOptions, CacheLimit, Plan};
pub use flags::CachedOpFlags;
pub use interrupt::Interrupter;
pub use report::{BatchParts, PlanReport, StepReport};
