//! `_while_loop`: a graph run while a condition holds.

use super::{BASE, NUM_OUTPUTS};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_while_loop",
    doc: "Runs a graph while another graph says so: some of its outputs are stacked, the others \
        are the values that the next step begins with.\n\n\
        Stacked outputs have `max_iterations` rows; those of steps that were not taken are zero.",
    attrs: &[
        AttrDef::required("num_args", AttrKind::IntFrom(2), "Number of inputs, the two graphs included."),
        NUM_OUTPUTS,
        AttrDef::required("num_out_data", AttrKind::IntFrom(0), "Number of outputs that are stacked."),
        AttrDef::required("max_iterations", AttrKind::IntFrom(1), "Most steps that are taken."),
        AttrDef::required("cond_input_locs", AttrKind::Shape, "Which inputs the condition takes.").wide(),
        AttrDef::required("func_input_locs", AttrKind::Shape, "Which inputs the step takes.").wide(),
        AttrDef::required("func_var_locs", AttrKind::Shape, "Which inputs of the step are the loop's variables.")
            .wide(),
    ],
    ..BASE
}];
