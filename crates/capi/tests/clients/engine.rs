//! Functions under the engine's order, iterators, files of records and the profiler from C.

use crate::common::{Directory, compile_test, run};

#[test]
fn a_c_program_pushes_functions_and_reads_and_writes_data() {
    let directory = Directory::new("engine-api");
    let program = compile_test("engine", &directory);
    let files = directory.0.to_str().expect("UTF-8");
    let (success, text) = run(&program, &[files], &[]);
    assert!(success && text.contains(" checks"), "{text}");
}
