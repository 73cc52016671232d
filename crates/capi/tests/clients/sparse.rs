//! Sparse arrays from C.

use crate::common::{Directory, compile_test, run};

#[test]
fn a_c_program_makes_sparse_arrays_and_computes_with_them() {
    let directory = Directory::new("sparse-api");
    let program = compile_test("sparse", &directory);
    let folder = directory.0.to_str().expect("UTF-8");
    for kind in ["ThreadedEnginePerDevice", "NaiveEngine"] {
        let (success, text) = run(&program, &[folder], &[("MXNET_ENGINE_TYPE", kind)]);
        assert!(success && text.contains(" checks"), "{kind}: {text}");
    }
}
