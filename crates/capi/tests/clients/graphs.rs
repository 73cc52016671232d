//! Operators, symbols, executors, views of arrays and operators of the program from C.

use crate::common::{Directory, compile_test, run};

#[test]
fn a_c_program_makes_symbols_binds_them_and_shares_memory() {
    let directory = Directory::new("graphs-api");
    let program = compile_test("graphs", &directory);
    for kind in ["ThreadedEnginePerDevice", "NaiveEngine"] {
        let (success, text) = run(&program, &[], &[("MXNET_ENGINE_TYPE", kind)]);
        assert!(success && text.contains(" checks"), "{kind}: {text}");
    }
}

#[test]
fn a_c_program_computes_as_in_training() {
    let directory = Directory::new("training-api");
    let program = compile_test("training", &directory);
    for kind in ["ThreadedEnginePerDevice", "NaiveEngine"] {
        let (success, text) = run(&program, &[], &[("MXNET_ENGINE_TYPE", kind)]);
        assert!(success && text.contains(" checks"), "{kind}: {text}");
    }
}

#[test]
fn results_go_into_the_arrays_of_a_c_program_as_with_mxnets_library() {
    let directory = Directory::new("results-api");
    let program = compile_test("results", &directory);
    for kind in ["ThreadedEnginePerDevice", "NaiveEngine"] {
        let (success, text) = run(&program, &[], &[("MXNET_ENGINE_TYPE", kind)]);
        assert!(success && text.contains(" checks"), "{kind}: {text}");
    }
}

#[test]
fn a_c_program_reads_what_files_hold_by_path_and_by_address() {
    let directory = Directory::new("files-api");
    let program = compile_test("files", &directory);
    let (success, text) = run(&program, &[directory.0.to_str().expect("UTF-8")], &[]);
    assert!(success && text.contains(" checks"), "{text}");
}

#[test]
fn executors_of_a_c_program_share_arrays_and_are_monitored_as_with_mxnets_library() {
    let directory = Directory::new("executors-api");
    let program = compile_test("executors", &directory);
    for kind in ["ThreadedEnginePerDevice", "NaiveEngine"] {
        let (success, text) = run(&program, &[], &[("MXNET_ENGINE_TYPE", kind)]);
        assert!(success && text.contains(" checks"), "{kind}: {text}");
    }
}

#[test]
fn arrays_of_a_c_program_take_other_shapes_and_lie_in_shared_memory_as_with_mxnets_library() {
    let directory = Directory::new("arrays-api");
    let program = compile_test("arrays", &directory);
    let (success, text) = run(&program, &[], &[]);
    assert!(success && text.contains(" checks"), "{text}");
}

#[test]
fn a_list_stays_until_the_same_function_is_called_again() {
    let directory = Directory::new("places-api");
    let program = compile_test("places", &directory);
    let (success, text) = run(&program, &[directory.0.to_str().expect("UTF-8")], &[]);
    assert!(success && text.contains(" checks"), "{text}");
}

#[test]
fn an_operator_of_a_c_program_runs_in_graphs_from_many_threads() {
    let directory = Directory::new("custom-api");
    let program = compile_test("custom", &directory);
    let (success, text) = run(&program, &[], &[]);
    assert!(success && text.contains(" checks"), "{text}");
}
