//! Calls: programs by signature, requests on the host and on devices, batches in parts.

mod bound_op;
mod build_turn;
mod cached_op;
mod call;
mod call_options;
mod device_program;
mod executable;
pub(crate) mod executor;
mod explain;
mod host_site;
pub(crate) mod inputs;
mod invoke;
mod lacking;
mod launch;
mod measure;
mod on_device;
mod placed;
mod plan_cache;
mod prepared;
mod program;
mod rows;
mod segment;
mod staged;
mod staged_graph;
mod started;
mod state_updates;
mod stored;
mod watch;

pub use bound_op::BoundOp;
pub use cached_op::{CachedOp, JoinedRows};
pub use call_options::{CALL_OPTIONS, CallOption, CallOptions, CallValue};
pub use executor::{Executor, ExecutorSite, Reshaping, WatchCallback};
pub use invoke::{invoke, invoke_custom};
pub use plan_cache::CacheStats;
pub use started::Started;
pub use watch::Watch;
