//! Calls of operators, with attributes and shapes that the table of operators tells: any bytes give
//! results or errors.

use crate::structured::{Choices, calls};
use crate::support::decisions;

pub(super) fn run(bytes: &[u8]) {
    let mut decide = decisions(bytes);
    let choices = &mut Choices(&mut decide);
    let op = choices.pick(&calls::operators());
    calls::call(choices, op);
}
