//! Softmax and pooling of plain arrays on one core: processor time, and GB/s of what is read and
//! written.
//!
//! `cargo bench -p mxrt-kernels --bench plain [-- FILTER]`. Best / median.

use half::f16;
use mxrt_kernels::Element;
use mxrt_kernels::par::ReusedScratch;
use mxrt_kernels::pool::{Convention, PoolKind, PoolParams, pool, pooled_size};
use mxrt_kernels::softmax::{SoftmaxParams, softmax};

/// Seconds and rounds for each line, whichever takes longer.
const SECONDS: f64 = 0.4;
const ROUNDS: usize = 15;

/// Rows and columns.
const SOFTMAX: [[usize; 2]; 15] = [
    [1, 10],
    [1, 64],
    [65536, 8],
    [65536, 10],
    [65536, 16],
    [65536, 21],
    [256, 64],
    [65536, 64],
    [65536, 100],
    [65536, 128],
    [65536, 256],
    [256, 256],
    [16384, 512],
    [256, 1000],
    [16384, 1000],
];

/// Channels, side, window, stride, padding.
const POOLS: [[usize; 5]; 8] = [
    [64, 112, 3, 2, 1],
    [8, 112, 3, 2, 1],
    [8, 112, 3, 1, 1],
    [64, 112, 2, 2, 0],
    [64, 112, 3, 1, 1],
    [192, 35, 3, 1, 1],
    [512, 7, 7, 1, 0],
    [64, 112, 5, 3, 0],
];

fn main() {
    let filter = std::env::args().skip(1).find(|arg| arg != "--bench").unwrap_or_default();
    println!("{:<40} {:>19} {:>7}", "", "us", "GB/s");
    for [rows, n] in SOFTMAX {
        for log in [false, true] {
            let name = if log { "log_softmax" } else { "softmax" };
            let params = SoftmaxParams { log, ..Default::default() };
            softmaxes::<f32>(&filter, &format!("{name} {rows}x{n} f32"), params, rows, n);
        }
        softmaxes::<f16>(&filter, &format!("softmax {rows}x{n} f16"), SoftmaxParams::default(), rows, n);
    }
    for layer in POOLS {
        for (kind, name) in [(PoolKind::Max, "max"), (PoolKind::Avg { count_include_pad: true }, "avg")] {
            let [channels, side, kernel, stride, _] = layer;
            let name = format!("{name} {kernel}x{kernel}/{stride} {channels}@{side}");
            pooling::<f32>(&filter, &format!("{name} f32"), kind, layer);
            pooling::<f16>(&filter, &format!("{name} f16"), kind, layer);
            pooling::<f64>(&filter, &format!("{name} f64"), kind, layer);
            pooling::<i32>(&filter, &format!("{name} i32"), kind, layer);
            pooling::<i8>(&filter, &format!("{name} i8"), kind, layer);
        }
    }
}

fn softmaxes<T: Element>(filter: &str, name: &str, params: SoftmaxParams, rows: usize, n: usize)
where
    T::Acc: mxrt_kernels::cast::CastTo<T>,
{
    let x: Vec<T> = values(rows * n);
    let mut out = vec![T::ZERO; x.len()];
    let par = ReusedScratch::default();
    measure(filter, name, 2 * size_of_val(&x[..]), || softmax(&par, params, &x, [rows, n, 1], None, &mut out));
}

fn pooling<T: Element>(filter: &str, name: &str, kind: PoolKind, [channels, side, kernel, stride, pad]: [usize; 5]) {
    let windows = pooled_size(side, kernel, stride, pad, Convention::Valid).expect("a sound pooling");
    let params = PoolParams { kind, kernel: &[kernel; 2], stride: &[stride; 2], pad: &[pad; 2], channels_last: false };
    let x: Vec<T> = values(channels * side * side);
    let mut out = vec![T::ZERO; channels * windows * windows];
    let par = ReusedScratch::default();
    let bytes = size_of_val(&x[..]) + size_of_val(&out[..]);
    let (shape, out_shape) = ([1, channels, side, side], [1, channels, windows, windows]);
    measure(filter, name, bytes, || pool(&par, params, &x, &shape, &mut out, &out_shape));
}

/// Values between -8 and 8 without a pattern that matters.
fn values<T: Element>(n: usize) -> Vec<T> {
    (0..n).map(|i| T::from_f64((i * 7919 % 2003) as f64 / 125.0 - 8.0)).collect()
}

fn measure(filter: &str, name: &str, bytes: usize, mut call: impl FnMut()) {
    if !name.contains(filter) {
        return;
    }
    call();
    let (begin, mut times) = (processor_time(), Vec::new());
    while times.len() < ROUNDS || processor_time() - begin < SECONDS * 1e6 {
        let start = processor_time();
        call();
        times.push(processor_time() - start);
    }
    times.sort_by(f64::total_cmp);
    let (best, median) = (times[0], times[times.len() / 2]);
    println!("{name:<40} {best:9.2} /{median:8.2} {:7.1}", 1e-3 * bytes as f64 / best);
}

/// Microseconds.
fn processor_time() -> f64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a timespec that the call may write.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    now.tv_sec as f64 * 1e6 + now.tv_nsec as f64 * 1e-3
}
