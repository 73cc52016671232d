//! The C interface: the functions of MXNet's C API that inference needs, under MXNet's names.
//!
//! Functions return 0, or -1 with a message for [`MXGetLastError`]. They may be called from any
//! thread. Objects are numbers in a table, not addresses: a handle that was freed, or never was
//! one, is an error like any other.
//!
//! Everything unsafe is in `pointers`, where addresses given by the caller are read and written,
//! and in one line at each such use. `include/mxrt.h` states once what the caller must promise.
#![allow(non_snake_case, reason = "the names are those of MXNet's C interface")]
#![allow(clippy::missing_safety_doc, reason = "include/mxrt.h says for all functions what pointers must be")]

use std::alloc::System;

/// Small allocations come from a reserve where the system refuses memory.
#[global_allocator]
static ALLOCATOR: mxrt::internal::reserve::ReservingAllocator = mxrt::internal::reserve::ReservingAllocator(System);

mod absent;
mod arguments;
mod border;
mod cached_op;
mod callbacks;
mod custom;
mod dlpack;
mod engine;
mod executor;
mod handles;
mod images;
mod iterators;
mod model;
mod ndarray;
mod operators;
mod outputs;
mod params;
mod pointers;
mod predict;
mod process;
mod profiler;
mod profiler_objects;
mod readiness;
mod records;
mod returned;
mod runtime;
mod shared_memory;
mod sparse;
mod symbol;
mod symbol_infer;
mod symbol_make;
mod symbol_print;
mod training;
mod unfinished;
mod views;

pub use absent::*;
pub use border::{MXGetLastError, MXRTGetLastError, NNAPISetLastError, NNGetLastError};
pub use cached_op::*;
pub use callbacks::MXCallbackList;
pub use custom::*;
pub use dlpack::*;
pub use engine::*;
pub use executor::*;
pub use handles::{
    CachedOpHandle, DataIterHandle, ExecutorHandle, ModelHandle, NDArrayHandle, NDListHandle, OpHandle,
    PredictorHandle, RecordIOHandle, SymbolHandle,
};
pub use images::*;
pub use iterators::*;
pub use model::*;
pub use ndarray::*;
pub use operators::*;
pub use params::*;
pub use pointers::MonitorCallback;
pub use predict::*;
pub use process::*;
pub use profiler::*;
pub use profiler_objects::*;
pub use readiness::*;
pub use records::*;
pub use runtime::*;
pub use shared_memory::*;
pub use sparse::*;
pub use symbol::*;
pub use symbol_infer::*;
pub use symbol_make::*;
pub use symbol_print::*;
pub use views::*;
