//! Functions under the engine's order, iterators, files of records and the profiler from C.

use crate::common::{Arguments, ENGINES, check_program};

#[test]
fn a_c_program_pushes_functions_and_reads_and_writes_data() {
    check_program("engine", Arguments::Folder, &ENGINES[..1]);
}
