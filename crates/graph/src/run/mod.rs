//! Calls: programs by signature, requests on the host and on devices, batches in parts.

mod bound_op;
mod build_turn;
mod cached_op;
mod call_options;
mod device_program;
pub(crate) mod execute;
mod executor;
mod explain;
pub(crate) mod inputs;
mod invoke;
mod late;
mod launch;
mod measure;
mod on_device;
mod plan_cache;
mod program;
mod program_loop;
mod rows;
mod state_updates;
mod suspended;
mod watch;

pub use bound_op::BoundOp;
pub use cached_op::{CachedOp, JoinedRows};
pub use call_options::{CALL_OPTIONS, CallOption, CallOptions, CallValue};
pub use executor::{Executor, ExecutorSite, Reshaping, WatchCallback};
pub use invoke::invoke_custom;
pub use late::settle;
pub use plan_cache::CacheStats;
pub(crate) use program_loop::ProgramLoop;
pub use watch::Watch;
