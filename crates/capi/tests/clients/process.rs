//! Processes load the library, fork while its threads run, and end while it works.

use crate::common::{Directory, compile_test, digits, exit_code, has_own_allocator, library};

/// The exit status of the programs if all is well.
const WELL: Option<i32> = Some(5);
/// Times that a race is tried.
const TRIES: usize = 10;

#[test]
fn a_process_exits_while_calls_run_with_the_programs_own_code() {
    let directory = Directory::new("process-exit");
    let program = compile_test("process", &directory);
    let [symbol, params, ..] = digits();
    for mode in ["exit", "exit-of-a-thread"] {
        for _ in 0..TRIES {
            let (code, text) = exit_code(&program, &[mode, &symbol, &params]);
            assert_eq!((code, text.as_str()), (WELL, ""), "{mode}");
        }
    }
}

#[test]
fn children_that_are_forked_beside_calls_go_on() {
    if has_own_allocator() {
        return;
    }
    let directory = Directory::new("process-fork");
    let program = compile_test("process", &directory);
    let [symbol, params, ..] = digits();
    assert_eq!(exit_code(&program, &["fork", &symbol, &params]), (WELL, String::new()));
}

#[test]
fn threads_that_end_leave_no_error_text() {
    if has_own_allocator() {
        return;
    }
    let directory = Directory::new("process-threads");
    let program = compile_test("process", &directory);
    assert_eq!(exit_code(&program, &["threads"]), (WELL, String::new()));
}

#[test]
fn sixteen_predictors_hold_one_copy_of_the_parameters() {
    let directory = Directory::new("process-share");
    let program = compile_test("process", &directory);
    let file = directory.0.join("share.params");
    assert_eq!(exit_code(&program, &["share", file.to_str().expect("UTF-8")]), (WELL, String::new()));
}

#[test]
fn the_library_is_loaded_and_closed_again_and_again() {
    let directory = Directory::new("process-load");
    let program = compile_test("load", &directory);
    let library = library().join("libmxrt_capi.so");
    assert_eq!(exit_code(&program, &[library.to_str().expect("UTF-8")]), (WELL, String::new()));
}
