//! The rewrites of an operator: graph passes may fuse it with others into one loop, give it another
//! layout, divide its batch, leave it out.

mod elementwise;
mod layout;
mod rewrites;
mod rows;
#[cfg(test)]
mod rows_tests;

pub(crate) use elementwise::prelu_gamma;
pub use elementwise::{Elementwise, ElementwiseProgram, MAX_PROGRAM_STEPS, OperandBroadcast, StepInput, program_step};
pub use layout::{BlockedForm, BlockedLayout, Layout, Lines, LinesForm, layout_attrs, layouts};
pub(crate) use layout::{LAYOUTS, OUT_LAYOUT};
pub use rewrites::{ConcatenatedInput, Rewrites, ShapesOfContents};
pub(crate) use rows::{is_within_rows, rows_of_data};
