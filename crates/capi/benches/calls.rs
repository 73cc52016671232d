//! Measures the cost of calls through the C interface, from this program.
//!
//! `cargo bench -p mxrt-capi --bench calls -- [PREFIX N,C,H,W]`
//!
//! * One small operator by a CachedOp: an array made, filled, read by the operator, the result
//!   read, all freed. Nanoseconds, the median of batches of a thousand.
//! * Handles: sixteen threads make and free a million arrays, and look one array up. Nanoseconds
//!   for each, and the growth of the process's memory.
//! * With PREFIX a model, by the predict interface and by `mxrt::Model`, interleaved, each with an
//!   input that is set and an output that is read: medians and their ratio.

use mxrt_capi::*;
use std::error::Error;
use std::ffi::{CString, c_int, c_void};
use std::ptr::null_mut;
use std::time::Instant;

type Outcome<T> = Result<T, Box<dyn Error>>;

const BATCH: u32 = 1000;
const THREADS: usize = 16;
const HANDLES: usize = 1_000_000;
const TURNS: usize = 60;

const RELU: &str = r#"{"nodes": [{"op": "null", "name": "x", "inputs": []},
    {"op": "relu", "name": "y", "inputs": [[0, 0, 0]]}], "arg_nodes": [0], "heads": [[1, 0, 0]]}"#;

fn ok(code: c_int) -> Outcome<()> {
    if code == 0 {
        return Ok(());
    }
    // SAFETY: the function gives a text.
    let message = unsafe { std::ffi::CStr::from_ptr(MXGetLastError()) };
    Err(message.to_string_lossy().into_owned().into())
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn array() -> Outcome<NDArrayHandle> {
    let (shape, mut made) = ([8u32], null_mut());
    // SAFETY: the pointers are those of places and lists of the right length, here and below.
    ok(unsafe { MXNDArrayCreate(shape.as_ptr(), 1, 1, 0, 0, &mut made) })?;
    Ok(made)
}

fn small_operator() -> Outcome<()> {
    let (json, mut symbol, mut op) = (CString::new(RELU)?, null_mut(), null_mut());
    // SAFETY: as above.
    unsafe {
        ok(MXSymbolCreateFromJSON(json.as_ptr(), &mut symbol))?;
        ok(MXCreateCachedOp(symbol, &mut op))?;
    }
    let values = [1.0f32; 8];
    let mut read = [0.0f32; 8];
    let mut call = || -> Outcome<()> {
        let (x, mut number, mut outputs) = (array()?, 0, null_mut());
        // SAFETY: as above.
        unsafe {
            ok(MXNDArraySyncCopyFromCPU(x, values.as_ptr().cast(), 8))?;
            ok(MXInvokeCachedOp(op, 1, &x, &mut number, &mut outputs))?;
            let y = *outputs;
            ok(MXNDArraySyncCopyToCPU(y, read.as_mut_ptr().cast(), 8))?;
            ok(MXNDArrayFree(y))?;
        }
        ok(MXNDArrayFree(x))
    };
    let mut times = Vec::new();
    for _ in 0..100 {
        let begin = Instant::now();
        (0..BATCH).try_for_each(|_| call())?;
        times.push(begin.elapsed().as_nanos() as f64 / f64::from(BATCH));
    }
    println!("one small operator through a CachedOp: {:.0} ns", median(times));
    Ok(())
}

/// Kilobytes that the process has in memory.
fn resident() -> Outcome<usize> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// Nanoseconds for each of `HANDLES` calls, which sixteen threads share.
fn shared(work: impl Fn() + Sync) -> f64 {
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| (0..HANDLES / THREADS).for_each(|_| work()));
        }
    });
    begin.elapsed().as_nanos() as f64 / HANDLES as f64
}

fn handles() -> Outcome<()> {
    let make_and_free = || {
        let made = array().expect("an array");
        ok(MXNDArrayFree(made)).expect("freed");
    };
    shared(make_and_free);
    let before = resident()?;
    let times = (0..5).map(|_| shared(make_and_free)).collect();
    let grown = resident()?.saturating_sub(before);
    println!(
        "an array made and freed, {THREADS} threads: {:.0} ns; {grown} kB more after 5 x {HANDLES}",
        median(times)
    );
    let one = array()?.addr();
    let look = || {
        let mut code = 0;
        let handle: *mut c_void = std::ptr::without_provenance_mut(one);
        // SAFETY: as above.
        assert_eq!(unsafe { MXNDArrayGetDType(handle, &mut code) }, 0);
    };
    println!("a lookup of one handle, {THREADS} threads: {:.0} ns", median((0..5).map(|_| shared(look)).collect()));
    let begin = Instant::now();
    (0..HANDLES).for_each(|_| look());
    println!("a lookup of one handle, one thread: {:.0} ns", begin.elapsed().as_nanos() as f64 / HANDLES as f64);
    Ok(())
}

fn predict(prefix: &str, dims: &[u32]) -> Outcome<()> {
    let symbol = std::fs::read_to_string(format!("{prefix}-symbol.json"))?;
    let params = std::fs::read(format!("{prefix}-0000.params"))?;
    let (json, key) = (CString::new(symbol)?, CString::new("data")?);
    let (keys, ends, mut predictor) = ([key.as_ptr()], [0, dims.len() as u32], null_mut());
    let size: usize = dims.iter().map(|n| *n as usize).product();
    let image: Vec<f32> = (0..size).map(|i| (i % 255) as f32 / 255.0).collect();
    // SAFETY: as above.
    let outputs = unsafe {
        let bytes = params.as_ptr().cast();
        let (keys, ends) = (keys.as_ptr(), ends.as_ptr());
        ok(MXPredCreate(
            json.as_ptr(),
            bytes,
            params.len() as c_int,
            1,
            0,
            1,
            keys,
            ends,
            dims.as_ptr(),
            &mut predictor,
        ))?;
        let (mut shape, mut rank) = (null_mut(), 0);
        ok(MXPredGetOutputShape(predictor, 0, &mut shape, &mut rank))?;
        std::slice::from_raw_parts(shape, rank as usize).iter().map(|n| *n as usize).product::<usize>()
    };
    let mut out = vec![0.0f32; outputs];
    let by_c = |out: &mut [f32]| -> Outcome<()> {
        // SAFETY: as above.
        unsafe {
            ok(MXPredSetInput(predictor, key.as_ptr(), image.as_ptr(), size as u32))?;
            ok(MXPredForward(predictor))?;
            ok(MXPredGetOutput(predictor, 0, out.as_mut_ptr(), outputs as u32))
        }
    };
    // The engine of the C interface, so that both have the same threads.
    let engine = mxrt::internal::Process::get().map_err(String::as_str)?.engine;
    let model = mxrt::Model::builder().engine(engine).load(prefix, 0)?;
    let shape: Vec<usize> = dims.iter().map(|n| *n as usize).collect();
    let by_rust = || -> Outcome<Vec<f32>> { Ok(model.run([("data", (&shape[..], &image))])?[0].to_vec::<f32>()?) };
    let (mut c, mut rust) = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        let begin = Instant::now();
        by_c(&mut out)?;
        let middle = begin.elapsed().as_secs_f64() * 1e3;
        let begin = Instant::now();
        let answer = by_rust()?;
        // The first turns make plans.
        if turn >= TURNS / 10 {
            c.push(middle);
            rust.push(begin.elapsed().as_secs_f64() * 1e3);
        }
        if answer != out {
            return Err("the answers differ".into());
        }
    }
    let ratio = median(c.iter().zip(&rust).map(|(c, rust)| c / rust).collect());
    println!(
        "{prefix}: {:.2} ms by the predict interface, {:.2} ms in Rust, ratio {ratio:.3}",
        median(c),
        median(rust)
    );
    Ok(())
}

fn main() -> Outcome<()> {
    // cargo adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    small_operator()?;
    handles()?;
    if let [prefix, dims] = &arguments[..] {
        predict(prefix, &dims.split(',').map(str::parse).collect::<Result<Vec<u32>, _>>()?)?;
    }
    Ok(())
}
