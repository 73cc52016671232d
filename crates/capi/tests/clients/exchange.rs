//! DLPack, memory shared between processes and the objects of the profiler, from C.

use crate::common::{Directory, compile_test, run};

#[test]
fn a_c_program_shares_memory_and_records_what_it_does() {
    let directory = Directory::new("exchange-api");
    let program = compile_test("exchange", &directory);
    let folder = directory.0.to_str().expect("UTF-8");
    for kind in ["ThreadedEnginePerDevice", "NaiveEngine"] {
        let (success, text) = run(&program, &[folder], &[("MXNET_ENGINE_TYPE", kind)]);
        assert!(success && text.contains(" checks"), "{kind}: {text}");
    }
}
