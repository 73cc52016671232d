//! `CSVIter` over parts of files: any bytes give batches or an error; parts of a file have the rows of all of it.

use crate::support::{Scratch, rows};

pub(super) fn run(bytes: &[u8]) {
    let file = Scratch::new("csv-parts", bytes);
    let all = rows("CSVIter", &[("data_csv", file.path()), ("data_shape", "(3,)"), ("on_error", "skip")]);
    let mut parts = Vec::new();
    for part in ["0", "1", "2"] {
        let given = [("data_csv", file.path()), ("data_shape", "(3,)"), ("on_error", "skip")];
        parts.extend(rows("CSVIter", &[&given[..], &[("num_parts", "3"), ("part_index", part)]].concat()));
    }
    assert_eq!(parts, all);
    rows("CSVIter", &[("data_csv", file.path()), ("data_shape", "(3,)")]);
}
