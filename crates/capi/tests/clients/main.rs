//! Programs in C and C++ that use the library, and its headers and names, in one test program.

#[path = "../common/mod.rs"]
mod common;

mod bad_input;
mod c_program;
mod cpp;
mod engine;
mod exchange;
mod exports;
mod graphs;
mod managed;
mod predict;
mod process;
mod signatures;
mod sparse;
