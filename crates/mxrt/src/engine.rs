//! The engine that runs calls: its kinds, and denormal numbers.

pub use mxrt_engine::{EngineKind, flushes_denormals, set_flush_denormals};
