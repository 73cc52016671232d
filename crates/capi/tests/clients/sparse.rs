//! Sparse arrays from C.

use crate::common::{Arguments, ENGINES, check_program};

#[test]
fn a_c_program_makes_sparse_arrays_and_computes_with_them() {
    check_program("sparse", Arguments::Folder, ENGINES);
}
