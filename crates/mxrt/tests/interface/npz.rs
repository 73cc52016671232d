//! Archives of arrays, as numpy writes them.

use mxrt::internal::Engine;
use mxrt::types::TensorType;
use mxrt::{Context, DType, NDArray, Shape};
use std::collections::HashMap;
use std::path::Path;

/// The arrays of an archive by name.
pub fn load(engine: &'static Engine, path: &Path) -> HashMap<String, NDArray> {
    let file = std::fs::read(path).expect("the archive is there");
    let number = |at: usize, bytes: usize| (0..bytes).fold(0, |n, i| n | usize::from(file[at + i]) << (8 * i));
    // The directory stands at the end of the file, where its last record says.
    let end = (0..file.len() - 3).rev().find(|i| file[*i..].starts_with(b"PK\x05\x06")).expect("an archive");
    let mut entry = number(end + 16, 4);
    let mut arrays = HashMap::new();
    for _ in 0..number(end + 10, 2) {
        let (packed, name, more, note) =
            (number(entry + 20, 4), number(entry + 28, 2), number(entry + 30, 2), number(entry + 32, 2));
        let title = std::str::from_utf8(&file[entry + 46..entry + 46 + name]).expect("a name").to_owned();
        let head = number(entry + 42, 4);
        let content = head + 30 + number(head + 26, 2) + number(head + 28, 2);
        let bytes = miniz_oxide::inflate::decompress_to_vec(&file[content..content + packed]).expect("deflated");
        arrays.insert(title.trim_end_matches(".npy").to_owned(), array(engine, &bytes));
        entry += 46 + name + more + note;
    }
    arrays
}

/// An array of the format `.npy`, row-major.
fn array(engine: &'static Engine, bytes: &[u8]) -> NDArray {
    let header = usize::from(bytes[8]) + 256 * usize::from(bytes[9]);
    let (text, content) = (std::str::from_utf8(&bytes[10..10 + header]).expect("a header"), &bytes[10 + header..]);
    let value = |key: &str, end: char| {
        let rest = text.split_once(key).expect("a key").1.trim_start_matches([':', ' ', '(', '\'']);
        rest.split(end).next().expect("a value").to_owned()
    };
    let dtype = match value("'descr'", '\'').as_str() {
        "<f4" => DType::F32,
        "<f2" => DType::F16,
        "<i4" => DType::I32,
        "<i8" => DType::I64,
        other => panic!("an array of {other}"),
    };
    let shape: Shape = value("'shape'", ')').split(',').filter_map(|n| n.trim().parse().ok()).collect();
    NDArray::from_bytes(engine, Context::cpu(0), TensorType::new(dtype, shape), content).expect("the array is made")
}
