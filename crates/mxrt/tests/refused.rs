//! The main flows where the system refuses each n-th allocation: an error or an answer.

use mxrt::internal::reserve::ReservingAllocator;
use mxrt::internal::{CachedOp, CachedOpFlags, Config, Engine, Interrupter, io};
use mxrt::types::TensorType;
use mxrt::{CallOptions, Context, DType, NDArray, Symbol, params};
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system, which refuses some allocations of at least a given size.
struct Refusing;

static EVERY: AtomicUsize = AtomicUsize::new(0);
static LEAST: AtomicUsize = AtomicUsize::new(0);
static ASKED: AtomicUsize = AtomicUsize::new(0);
static REFUSED: AtomicUsize = AtomicUsize::new(0);

fn refuses(bytes: usize) -> bool {
    let every = EVERY.load(Ordering::Relaxed);
    let refuses = every > 0
        && bytes >= LEAST.load(Ordering::Relaxed)
        && ASKED.fetch_add(1, Ordering::Relaxed) % every == every - 1;
    REFUSED.fetch_add(usize::from(refuses), Ordering::Relaxed);
    refuses
}

// SAFETY: the system's allocator, or null.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        if refuses(layout.size()) { std::ptr::null_mut() } else { unsafe { System.alloc(layout) } }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        if refuses(new_size) { std::ptr::null_mut() } else { unsafe { System.realloc(ptr, layout, new_size) } }
    }
}

#[global_allocator]
static ALLOCATOR: ReservingAllocator<Refusing> = ReservingAllocator(Refusing);

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn read(array: &NDArray) -> Outcome<Vec<u8>> {
    Ok(array.to_bytes()?)
}

/// A model from its text and its parameters.
fn model(engine: &'static Engine, folder: &Path) -> Outcome<Vec<u8>> {
    let symbol = Symbol::load_json(&io::read_text(folder.join("digits_cnn-symbol.json"))?)?.symbol;
    let loaded = params::load(engine, folder.join("digits_cnn-0000.params"), params::NpShape::Off)?;
    let params::Params::Named(loaded) = loaded else { return Err("parameters have names".into()) };
    let data = NDArray::from_slice(engine, Context::cpu(0), [5, 1, 8, 8], &[0.5f32; 5 * 64])?;
    let mut inputs = Vec::new();
    for name in symbol.list_inputs() {
        let found = loaded.iter().find(|(key, _)| key.split_once(':').is_some_and(|(_, key)| key == name));
        inputs.push(if name == "data" { &data } else { &found.ok_or("every parameter is there")?.1 });
    }
    let op = CachedOp::new(engine, &symbol, &CachedOpFlags::default())?;
    let out = op.call(&inputs, None, &CallOptions::default(), &mut Interrupter::never())?.arrays()?;
    read(&out[0])
}

/// Arrays written to a file, and read again.
fn files(engine: &'static Engine, folder: &Path) -> Outcome<Vec<u8>> {
    let array = NDArray::from_slice(engine, Context::cpu(0), [100_000], &[1.5f32; 100_000])?;
    let path = folder.join("arrays.params");
    params::save(&path, &params::Params::List(vec![array]), params::NpShape::Off, &mut || true)?;
    match params::load(engine, &path, params::NpShape::Off)? {
        params::Params::List(arrays) => read(&arrays[0]),
        params::Params::Named(_) => Err("no names were saved".into()),
    }
}

/// Batches of a text file.
fn csv(engine: &'static Engine, folder: &Path) -> Outcome<Vec<u8>> {
    let path = folder.join("numbers.csv");
    let given = [("data_csv", path.to_str().unwrap_or_default()), ("data_shape", "(4,)"), ("batch_size", "1000")];
    let iterator = io::iterators::IterDef::find("CSVIter").ok_or("there is such an iterator")?.start(engine, given)?;
    let mut all = Vec::new();
    while let Some(batch) = iterator.next()? {
        all.extend(read(&batch.data)?);
    }
    Ok(all)
}

/// Arrays that are made and read.
fn arrays(engine: &'static Engine, _: &Path) -> Outcome<Vec<u8>> {
    let mut all = Vec::new();
    for i in 0..300 {
        let array = NDArray::from_slice(engine, Context::cpu(0), [i + 1], &vec![1i64; i + 1])?;
        all.extend(read(&array)?);
    }
    let large = NDArray::new(engine, Context::cpu(0), TensorType::new(DType::F32, [1 << 20]))?;
    all.extend(&read(&large)?[..4]);
    Ok(all)
}

#[test]
fn a_refused_allocation_is_an_error_or_goes_unnoticed() {
    let engine = Engine::start(Config::default()).expect("the engine starts");
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/models/digits_cnn");
    let folder = std::env::temp_dir().join(format!("mxrt-refused-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("there is room for files");
    std::fs::write(folder.join("numbers.csv"), "1,2,3,4\n".repeat(5000)).expect("there is room for files");
    type Flow = fn(&'static Engine, &Path) -> Outcome<Vec<u8>>;
    let flows: [(Flow, &Path); 4] = [(model, &models), (files, &folder), (csv, &folder), (arrays, &folder)];
    let (mut errors, mut answers) = (0, 0);
    for (flow, place) in flows {
        let wanted = flow(engine, place).expect("with all its memory it works");
        for least in [1, 4 << 10, 64 << 10] {
            for every in (1..12).chain([17, 29, 51, 101, 211]) {
                // Of small ones nearly all may be refused, but not for long: the reserve is finite.
                if least == 1 && every < 3 {
                    continue;
                }
                LEAST.store(least, Ordering::Relaxed);
                EVERY.store(every, Ordering::Relaxed);
                let outcome = flow(engine, place);
                let _ = engine.wait_all();
                EVERY.store(0, Ordering::Relaxed);
                match outcome {
                    Ok(bytes) => {
                        assert!(bytes == wanted, "each {every}th of {least} bytes or more: another answer");
                        answers += 1;
                    }
                    Err(_) => errors += 1,
                }
            }
        }
        assert!(flow(engine, place).is_ok_and(|bytes| bytes == wanted), "and afterwards it works again");
    }
    let _ = std::fs::remove_dir_all(&folder);
    assert!(REFUSED.load(Ordering::Relaxed) > 1000 && errors > 0 && answers > 20, "{errors} errors, {answers} answers");
}
