//! What the targets share.

use libfuzzer_sys::arbitrary::Unstructured;
use mxrt::io::iterators::IterDef;
use mxrt::{Config, Engine};
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One engine for all inputs.
pub static ENGINE: LazyLock<&'static Engine> = LazyLock::new(|| Engine::start(Config::default()).expect("an engine"));

/// What reading a file may allocate beyond the file's size.
const ROOM: usize = 64 << 20;

/// Bytes that are allocated, and the most that were since [`bounded`] began.
static LIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: all is done by the system's allocator; counting touches no memory of its own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: what the caller promises.
        let made = unsafe { System.alloc(layout) };
        if !made.is_null() {
            let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
            MOST.fetch_max(live, Ordering::Relaxed);
        }
        made
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: what the caller promises.
        unsafe { System.dealloc(pointer, layout) };
    }
}

/// Reads a file of this many bytes: that may allocate as much and [`ROOM`].
pub fn bounded(bytes: usize, read: impl FnOnce()) {
    let before = LIVE.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    read();
    let most = MOST.load(Ordering::Relaxed).saturating_sub(before);
    assert!(most <= bytes + ROOM, "a file of {bytes} bytes made {most} be allocated");
}

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

    /// Its path.
    pub fn path(&self) -> &str {
        self.0.to_str().expect("a name of letters")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A number below this one, which is not 0. When the bytes have ended it is the last, with which
/// nothing is repeated.
pub fn below(bytes: &mut Unstructured<'_>, bound: usize) -> usize {
    if bytes.is_empty() { bound - 1 } else { bytes.int_in_range(0..=bound - 1).unwrap_or(bound - 1) }
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
