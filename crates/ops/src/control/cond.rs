//! `_cond`: one of two graphs.

use super::{BASE, NUM_OUTPUTS};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_cond",
    doc: "Runs one of two graphs, as a third graph says.",
    attrs: &[
        AttrDef::required("num_args", AttrKind::IntFrom(3), "Number of inputs, the three graphs included."),
        NUM_OUTPUTS,
        AttrDef::required("cond_input_locs", AttrKind::Shape, "Which inputs the condition takes.").wide(),
        AttrDef::required("then_input_locs", AttrKind::Shape, "Which inputs the first graph takes.").wide(),
        AttrDef::required("else_input_locs", AttrKind::Shape, "Which inputs the second graph takes.").wide(),
    ],
    ..BASE
}];
