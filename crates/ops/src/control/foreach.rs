//! `_foreach`: a graph run for every row of its data.

use super::{BASE, NUM_OUTPUTS};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_foreach",
    doc: "Runs a graph for every row of the data: some of its outputs are stacked, the others are \
        the states that the next row begins with.",
    attrs: &[
        AttrDef::required("num_args", AttrKind::IntFrom(1), "Number of inputs, the graph included."),
        NUM_OUTPUTS,
        AttrDef::required("num_out_data", AttrKind::IntFrom(0), "Number of outputs that are stacked."),
        AttrDef::required("in_state_locs", AttrKind::Shape, "Which inputs of the graph are the states.").wide(),
        AttrDef::required("in_data_locs", AttrKind::Shape, "Which inputs of the graph are rows of the data.").wide(),
        AttrDef::required("remain_locs", AttrKind::Shape, "Which inputs of the graph are the other arrays.").wide(),
    ],
    ..BASE
}];
