//! The rules of the engine, in one program, which is linked once. Files next to this folder are
//! programs of their own: their tests count, change, watch or fork what belongs to the process.

#[path = "../common/mod.rs"]
mod common;

mod basics;
mod bulk;
mod core_limit;
mod corner_cases;
mod failures;
mod guards;
mod guests;
mod late_and_cancelled;
mod memory;
mod order;
mod parameter_gate;
mod races;
mod resumable;
mod small_stack;
mod waiting;
