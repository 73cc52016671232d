//! The scenarios of the simulated device, in one program, which is linked once. Files next to this
//! folder are programs of their own: their tests fork the process, or use its profiler.

#[path = "../common/mod.rs"]
mod common;

mod checker;
mod drivers;
mod errors;
mod exchange;
mod host;
mod lifecycle;
mod memory;
mod order;
mod own_kernels;
mod programs;
mod staging;
mod threads;
