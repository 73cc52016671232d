//! Helpers of this crate's tests.
#![allow(dead_code, reason = "each test file uses some of it")]

use mxrt_engine::{Config, Engine};
use mxrt_io::DataError;
use mxrt_io::iterators::IterDef;
use mxrt_io::iterators::batch::BatchIter;
use mxrt_tensor::{Context, DType, NDArray, TensorType};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// One engine for all tests of a file.
pub fn engine() -> &'static Engine {
    static ENGINE: OnceLock<&'static Engine> = OnceLock::new();
    ENGINE.get_or_init(|| Engine::start(Config::default()).expect("an engine"))
}

/// Bytes written as hexadecimal digits; everything else is layout.
pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

pub fn floats(shape: &[usize], values: &[f32]) -> NDArray {
    let tensor = TensorType::new(DType::F32, shape);
    NDArray::from_bytes(engine(), Context::cpu(0), tensor, bytemuck::cast_slice(values)).expect("an array")
}

pub fn values(array: &NDArray) -> Vec<f32> {
    let guard = array.read().expect("a value");
    guard.tensor().as_slice::<f32>().expect("float32").to_vec()
}

/// Parameters of `CSVIter`, by name.
#[derive(Clone)]
pub struct Csv(Vec<(&'static str, String)>);

impl Csv {
    /// Batches of samples with these extents, written like `3,2`.
    pub fn new(files: impl AsRef<Path>, extents: &str, batch_size: usize) -> Csv {
        let csv = Csv(Vec::new()).with("data_csv", files.as_ref().to_string_lossy());
        csv.with("data_shape", format!("({extents},)")).with("batch_size", batch_size.to_string())
    }

    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Csv {
        self.0.push((name, value.into()));
        self
    }

    pub fn start(&self) -> Result<BatchIter, DataError> {
        let definition = IterDef::find("CSVIter").expect("a row for it");
        definition.start(engine(), self.0.iter().map(|(name, value)| (*name, value.as_str())))
    }

    /// An iterator of parameters that can work.
    pub fn iter(&self) -> BatchIter {
        self.start().expect("an iterator")
    }

    /// The error with which it refuses to start.
    pub fn refusal(&self) -> DataError {
        self.start().err().expect("an error")
    }
}

/// A directory that is removed at the end.
pub struct Directory(PathBuf);

impl Directory {
    pub fn new() -> Directory {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("mxrt-io-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Directory(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).expect("a file");
        path
    }

    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(&self.0)
            .expect("a directory")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl AsRef<Path> for Directory {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
