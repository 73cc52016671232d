//! Symbol files made by structure: any bytes give results of the graph or an error.

use crate::structured::{Choices, graphs};
use crate::support::decisions;

pub(super) fn run(bytes: &[u8]) {
    let mut decide = decisions(bytes);
    let choices = &mut Choices(&mut decide);
    let text = graphs::text(choices);
    graphs::use_text(choices, &text);
}
