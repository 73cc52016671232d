//! Symbol files made by structure: any bytes give results of the graph or an error.
#![no_main]

#[allow(dead_code, reason = "of what is made by structure this target needs a part")]
#[path = "../../crates/mxrt/tests/structured/mod.rs"]
mod structured;

use libfuzzer_sys::{arbitrary::Unstructured, fuzz_target};
use mxrt_fuzz::below;
use structured::{Choices, graphs};

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = Unstructured::new(bytes);
    let mut decide = |bound: usize| below(&mut bytes, bound);
    let choices = &mut Choices(&mut decide);
    let text = graphs::text(choices);
    graphs::use_text(choices, &text);
});
