//! The table of operators, which `build.rs` writes: one row for every file with a
//! `pub static OPS: &[OpDef]`.

use crate::definition::OpDef;

/// Every operator of this build. A file that is no `mod` of its family fails to compile here.
pub static TABLE: &[&[OpDef]] = include!(concat!(env!("OUT_DIR"), "/table.rs"));
