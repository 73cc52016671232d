//! Operators, symbols, executors, views of arrays and operators of the program from C.

use crate::common::{Arguments, ENGINES, check_program};

#[test]
fn a_c_program_makes_symbols_binds_them_and_shares_memory() {
    check_program("graphs", Arguments::None, ENGINES);
}

#[test]
fn a_c_program_computes_as_in_training() {
    check_program("training", Arguments::None, ENGINES);
}

#[test]
fn results_go_into_the_arrays_of_a_c_program_as_with_mxnets_library() {
    check_program("results", Arguments::None, ENGINES);
}

#[test]
fn a_c_program_reads_what_files_hold_by_path_and_by_address() {
    check_program("files", Arguments::Folder, &ENGINES[..1]);
}

#[test]
fn executors_of_a_c_program_share_arrays_and_are_monitored_as_with_mxnets_library() {
    check_program("executors", Arguments::None, ENGINES);
}

#[test]
fn arrays_of_a_c_program_take_other_shapes_and_lie_in_shared_memory_as_with_mxnets_library() {
    check_program("arrays", Arguments::None, &ENGINES[..1]);
}

#[test]
fn a_list_stays_until_the_same_function_is_called_again() {
    check_program("places", Arguments::Folder, &ENGINES[..1]);
}

#[test]
fn an_operator_of_a_c_program_runs_in_graphs_from_many_threads() {
    check_program("custom", Arguments::None, &ENGINES[..1]);
}
