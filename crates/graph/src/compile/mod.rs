//! Building: from a graph and the types of its inputs to a [`Plan`](crate::plan::Plan), or to the
//! steps of another target.

pub(crate) mod flags;
mod float_steps;
mod host;
mod inner;
pub(crate) mod interrupt;
pub(crate) mod lower;
pub(crate) mod options;
pub(crate) mod report;
pub(crate) mod values;

pub use flags::CachedOpFlags;
pub(crate) use inner::InnerPlans;
pub use interrupt::Interrupter;
pub use options::{BuildOptions, CacheLimit};
pub use report::{BatchParts, PlanReport, StepReport};
