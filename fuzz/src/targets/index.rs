//! Indices of files of records: any bytes give keys and positions, or an error.

use crate::support::Scratch;
use mxrt::internal::io::recordio::{index_line, read_index};

pub(super) fn run(bytes: &[u8]) {
    let file = Scratch::new("index", bytes);
    let Ok(index) = read_index(file.path()) else { return };
    let written: String = index.iter().map(|(key, position)| index_line(*key, *position)).collect();
    let copy = Scratch::new("index-copy", written.as_bytes());
    assert_eq!(read_index(copy.path()).expect("read again"), index);
}
