//! Helpers of the targets.

use arbitrary::Unstructured;
use mxrt::internal::io::iterators::IterDef;
use mxrt::internal::{Config, Engine};
use std::path::PathBuf;
use std::sync::LazyLock;

/// One engine for all inputs.
pub static ENGINE: LazyLock<&'static Engine> = LazyLock::new(|| Engine::start(Config::default()).expect("an engine"));

/// A file with this content, which goes with this value.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Writes the file, in memory where the system has such a folder.
    pub fn new(name: &str, content: &[u8]) -> Scratch {
        let memory = PathBuf::from("/dev/shm");
        let folder = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let path = folder.join(format!("mxrt-fuzz-{}-{name}", std::process::id()));
        std::fs::write(&path, content).expect("a file");
        Scratch(path)
    }

    /// The path of the file.
    pub fn path(&self) -> &str {
        self.0.to_str().expect("a name of letters")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Decisions from bytes: each a number below the one that is asked for, which is not 0. When the
/// bytes have ended it is the last, with which nothing is repeated.
pub fn decisions(bytes: &[u8]) -> impl FnMut(usize) -> usize {
    let mut bytes = Unstructured::new(bytes);
    move |bound| match bytes.is_empty() {
        true => bound - 1,
        false => bytes.int_in_range(0..=bound - 1).unwrap_or(bound - 1),
    }
}

/// The samples of an iterator up to the first error, as bytes.
pub fn rows(iterator: &str, given: &[(&str, &str)]) -> Vec<Vec<u8>> {
    let definition = IterDef::find(iterator).expect("an iterator");
    let one = [("batch_size", "1"), ("prefetch_buffer", "1")];
    let mut found = Vec::new();
    let Ok(iter) = definition.start(*ENGINE, given.iter().chain(&one).copied()) else { return found };
    while let Ok(Some(batch)) = iter.next() {
        let bytes = |array: mxrt::NDArray| array.to_bytes().expect("a value");
        found.push([bytes(batch.data), bytes(batch.label)].concat());
    }
    found
}
