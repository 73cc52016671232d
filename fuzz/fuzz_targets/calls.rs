//! Calls of operators, with attributes and shapes that the table of operators tells: any bytes give
//! results or errors.
#![no_main]

#[allow(dead_code, reason = "of what is made by structure this target needs a part")]
#[path = "../../crates/mxrt/tests/structured/mod.rs"]
mod structured;

use libfuzzer_sys::{arbitrary::Unstructured, fuzz_target};
use mxrt_fuzz::below;
use structured::{Choices, calls};

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = Unstructured::new(bytes);
    let mut decide = |bound: usize| below(&mut bytes, bound);
    let choices = &mut Choices(&mut decide);
    let op = choices.pick(&calls::operators());
    calls::call(choices, op);
});
