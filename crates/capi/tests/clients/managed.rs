//! The calls of an engine for Java, from C: numpy shapes for the whole process, arrays that other
//! threads free, graphs from many threads, and an end without clearing up.

use crate::common::{Arguments, Directory, ENGINES, check_program, compile_test, exit_code};

#[test]
fn a_c_program_makes_the_calls_of_an_engine_with_a_garbage_collector() {
    check_program("managed", Arguments::Digits, ENGINES);
}

#[test]
fn a_process_that_leaves_work_and_arrays_behind_ends_well() {
    let directory = Directory::new("managed-leave");
    let program = compile_test("managed", &directory);
    let (code, text) = exit_code(&program, &["leave"]);
    assert_eq!((code, text.as_str()), (Some(0), "left\n"));
}
