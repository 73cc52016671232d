//! Fuzz targets: what reads files, and calls of operators. Any bytes give an answer or an error.

mod memory;
#[allow(dead_code, reason = "of what is made by structure the targets need a part")]
#[path = "../../crates/mxrt/tests/structured/mod.rs"]
mod structured;
mod support;
mod targets;

use std::io;
use std::path::{Path, PathBuf};
pub use targets::TARGETS;

/// One thing that is fuzzed.
#[derive(Debug)]
pub struct Target {
    /// Name of the target, which is that of its file.
    pub name: &'static str,
    /// Tries these bytes.
    pub run: fn(&[u8]),
    /// Whether it reads a file, so that its allocations are bounded by the file's size.
    pub bounded: bool,
    /// The inputs that fuzzing begins with.
    pub seeds: Seeds,
}

/// The source of the inputs with which fuzzing begins.
#[derive(Debug)]
pub enum Seeds {
    /// Random bytes, since any bytes make something.
    Made,
    /// The files of `fuzz/seeds/NAME`.
    Own,
    /// Files of the tests: folders, and how the names of the files there end.
    OfTests(&'static [(&'static str, &'static str)]),
}

/// Inputs that are made for a target without files, and their bytes.
const MADE: (u64, usize) = (100, 256);

impl Target {
    /// The target of this name.
    pub fn find(name: &str) -> Option<&'static Target> {
        TARGETS.iter().find(|target| target.name == name)
    }

    /// Tries these bytes; what must not be is a panic.
    pub fn check(&self, bytes: &[u8]) {
        match self.bounded {
            true => memory::bounded(bytes.len(), || (self.run)(bytes)),
            false => (self.run)(bytes),
        }
    }

    /// The inputs that fuzzing begins with, and a name for each.
    pub fn inputs(&self) -> io::Result<Vec<(String, Vec<u8>)>> {
        match self.seeds {
            Seeds::Made => {
                let (count, bytes) = MADE;
                Ok((0..count).map(|seed| (format!("made-{seed}"), random_bytes(seed, bytes))).collect())
            }
            Seeds::Own => files(&root().join("fuzz/seeds").join(self.name), ""),
            Seeds::OfTests(folders) => {
                let found = folders.iter().map(|(folder, ending)| files(&root().join(folder), ending));
                Ok(found.collect::<io::Result<Vec<_>>>()?.concat())
            }
        }
    }

    /// The findings of earlier runs: inputs that broke the target and, if `MXRT_FUZZ_CORPUS` is
    /// set, those that were new to it.
    pub fn findings(&self) -> io::Result<Vec<(String, Vec<u8>)>> {
        let mut found = Vec::new();
        let corpus = std::env::var_os("MXRT_FUZZ_CORPUS").map(|_| "corpus");
        for folder in corpus.into_iter().chain(["artifacts"]) {
            let folder = root().join("fuzz").join(folder).join(self.name);
            if folder.is_dir() {
                found.extend(files(&folder, "")?);
            }
        }
        Ok(found)
    }
}

/// The folder of the repository.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Names and contents of the files of a folder whose names end so.
fn files(folder: &Path, ending: &str) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(ending) && path.is_file() {
            found.push((name, std::fs::read(path)?));
        }
    }
    found.sort();
    Ok(found)
}

/// SplitMix64 (Steele, Lea, Flood 2014).
fn random_bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    (0..count.div_ceil(8)).flat_map(|_| next().to_le_bytes()).take(count).collect()
}
