//! The dependency engine of mxrt.
//!
//! An [`Engine`] runs closures ("ops") in an order given by the variables they read and write. A
//! [`Var`] stands for whatever the caller guards by it: the engine knows no tensors. Per variable,
//! reads between two writes run in any order, writes run alone, all in the order of their pushes; a
//! push over several variables is atomic with respect to others, so threads that push over the same
//! variables cannot block each other.
//!
//! An op that fails leaves a [`Failure`] on what it writes. Ops that read it do not run and pass
//! the same event on; a wait returns it, every time, until the variable is written as a whole.
//! Panics are failures too.
//!
//! A thread computes only while it holds one of `cores` tokens. A long op may split its loops over
//! idle cores by [`RunCtx::split`].
//!
//! ```
//! use mxrt_engine::{Access, Config, Engine, OpSpec};
//! use std::sync::atomic::{AtomicU32, Ordering};
//!
//! static VALUE: AtomicU32 = AtomicU32::new(0);
//! let engine = Engine::start(Config::default()).unwrap();
//! let var = engine.new_var();
//! engine.push(OpSpec::new("set", &[(&var, Access::Write)]), |_| Ok(VALUE.store(20, Ordering::Relaxed)));
//! engine.push(OpSpec::new("add", &[(&var, Access::Update)]), |_| {
//!     VALUE.fetch_add(22, Ordering::Relaxed);
//!     Ok(())
//! });
//! engine.wait_to_read(&var).unwrap();
//! assert_eq!(VALUE.load(Ordering::Relaxed), 42);
//! ```

pub mod cache;
mod config;
pub mod device;
mod engine;
mod failure;
pub mod memory;
#[cfg(all(test, loom))]
mod models;
mod op;
mod process;
pub mod profile;
mod push;
mod sched;
mod sync;
mod team;
#[cfg(debug_assertions)]
#[doc(hidden)]
pub mod testing;
mod var;
mod wait;

pub use config::{Config, EngineError, EngineKind, MAX_CORES};
pub use device::{DeviceCtx, DevicePtr, DeviceStats, KernelCtx, MemoryPlace};
pub use engine::Engine;
pub use failure::{Cause, Details, Failure, FailureKind, OpError, WaitError, WrongInput};
pub use memory::{Block, Charge, MemoryPool, MemoryStats, OutOfMemory, reserve};
pub use op::cancel::CancelHandle;
pub use op::ctx::{OnComplete, RunCtx};
pub use op::origin::{PushSite, RequestScope};
pub use op::spec::{Access, Cost, DeviceId, DeviceKind, Lane, OpKind, OpName, OpSpec};
pub use process::denormals::{flushes_denormals, set_flush_denormals};
pub use process::fork::set_fork_patience;
pub use process::locks::{ForkSafeGuard, ForkSafeLazy, ForkSafeMutex, ForkSafeOnce, ForkSafeRwLock};
pub use process::slot::{op_blocks, prepare_thread, set_inside_call};
pub use process::stack::{STACK_NEEDED, has_stack};
pub use process::start::{StartedThread, start_thread};
pub use profile::dump::dump_on_sigusr1;
pub use push::resumable::{PartStatus, Resume};
pub use sched::{holds_core, set_give_back_after};
pub use team::{CoreLimit, Limited};
pub use var::parameter_gate::ParameterGate;
pub use var::{Var, live_vars};
pub use wait::access_guard::ReadGuard;
