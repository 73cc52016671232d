//! The exported functions, called from Rust, in one program, which is linked to the library once.

#[path = "../common/mod.rs"]
mod common;

mod answers;
mod arguments;
mod contract;
mod memory;
