//! DLPack, memory shared between processes and the objects of the profiler, from C.

use crate::common::{Arguments, ENGINES, check_program};

#[test]
fn a_c_program_shares_memory_and_records_what_it_does() {
    check_program("exchange", Arguments::Folder, ENGINES);
}
