//! Operators, symbols, executors and views of arrays from C.

mod common;

use common::{Directory, compile_test, run};

#[test]
fn a_c_program_makes_symbols_binds_them_and_shares_memory() {
    let directory = Directory::new("graphs-api");
    let program = compile_test("graphs", &directory);
    for kind in ["ThreadedEnginePerDevice", "NaiveEngine"] {
        let (success, text) = run(&program, &[], &[("MXNET_ENGINE_TYPE", kind)]);
        assert!(success && text.contains(" checks"), "{kind}: {text}");
    }
}
