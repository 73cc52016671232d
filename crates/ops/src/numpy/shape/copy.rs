//! `_np_copy`.

use super::IDENTITY;
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] =
    &[OpDef { name: "_np_copy", doc: "A copy of the input.", ignores_unknown_attrs: true, ..IDENTITY }];
