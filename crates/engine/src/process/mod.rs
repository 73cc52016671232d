//! Threads and forks: the state of every thread that uses the engine, what it runs now, and how a
//! process forks without leaving a lock held in the child; how threads start, how they compute with
//! denormal numbers, and what stack they have.

pub(crate) mod denormals;
pub(crate) mod fork;
pub(crate) mod fork_gate;
pub(crate) mod locks;
#[cfg(all(target_os = "linux", not(miri), not(loom)))]
mod room;
pub(crate) mod running;
pub(crate) mod slot;
pub(crate) mod stack;
pub(crate) mod start;
