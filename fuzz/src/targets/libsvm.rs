//! `LibSVMIter`: any bytes give batches or an error; parts of a file have the rows of all of it.

use crate::support::{Scratch, rows};

pub(super) fn run(bytes: &[u8]) {
    let file = Scratch::new("libsvm", bytes);
    let all = rows("LibSVMIter", &[("data_libsvm", file.path()), ("data_shape", "(3,)"), ("on_error", "skip")]);
    let mut parts = Vec::new();
    for part in ["0", "1", "2"] {
        let given = [("data_libsvm", file.path()), ("data_shape", "(3,)"), ("on_error", "skip")];
        parts.extend(rows("LibSVMIter", &[&given[..], &[("num_parts", "3"), ("part_index", part)]].concat()));
    }
    assert_eq!(parts, all);
    rows("LibSVMIter", &[("data_libsvm", file.path()), ("data_shape", "(3,)")]);
}
