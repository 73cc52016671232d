//! The table of operators: one row per file.

use crate::core::OpDef;

/// Every operator of this build.
pub static TABLE: &[&[OpDef]] = &[crate::activation::OPS];
