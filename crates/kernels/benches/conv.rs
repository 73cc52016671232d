//! One convolution of every kind, best and median of repeated calls on one thread.
//!
//! `cargo bench -p mxrt-kernels --bench conv [-- FILTER]`: only rows whose text contains FILTER. Compare rows of one run with each
//! other: absolute numbers depend on what else the machine does.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use mxrt_kernels::aligned::AlignedVec;
use mxrt_kernels::conv_fast::{
    Blocked, BlockedMut, BlockedShape, Conv2dParams, ConvEpilogue, ConvKernel, ConvOptions, Halo, Winograd,
    from_blocked, to_blocked,
};
use mxrt_kernels::gemm::{Epilogue, Matrix, PackedB, multiply_rows};
use mxrt_kernels::isa::Isa;
use mxrt_kernels::par::Par;

/// How long every row is measured.
const BUDGET: Duration = Duration::from_millis(150);

fn main() {
    let filter = std::env::args().skip(1).find(|a| !a.starts_with("--")).unwrap_or_default();
    println!("{:<40} {:<50} {:>9} {:>9} {:>9}", "layer", "kernel", "best us", "median us", "GFLOP/s");
    for (what, params, size) in layers() {
        for isa in [Isa::Avx512, Isa::Avx2, Isa::Portable] {
            let mut done = Vec::new();
            for winograd in [Winograd::Off, Winograd::F2, Winograd::F4] {
                if isa.is_available() {
                    convolution(&filter, what, params, size, isa, winograd, &mut done);
                }
            }
        }
    }
    Isa::ALL.into_iter().filter(|isa| isa.is_available()).for_each(|isa| conversions(&filter, isa));
    for (m, n, k) in
        [(1, 1000, 512), (1, 4096, 9216), (8, 3072, 768), (128, 768, 768), (128, 3072, 768), (1024, 512, 512)]
    {
        for isa in [Isa::Avx512, Isa::Avx2] {
            if isa.is_available() {
                product(&filter, m, n, k, isa);
                if m <= 8 {
                    unpacked(&filter, [m, n, k], isa);
                }
            }
        }
    }
}

/// Conversions of a tensor of 64 channels; "GFLOP/s" are elements in and out.
fn conversions(filter: &str, isa: Isa) {
    let shape = BlockedShape::new(1, 64, 56, 56, Halo { top: 1, left: 1, bottom: 1, right: 1 });
    let (mut planes, mut data) = (AlignedVec::zeroed(64 * 56 * 56), AlignedVec::zeroed(shape.len()));
    let (par, elements) = (OneThread::default(), planes.len());
    let name = format!("{isa}");
    if format!("convert 64 at 56 {name}").contains(filter) {
        let time = measure(|| to_blocked(isa, &planes, &mut BlockedMut::new(shape, &mut data), &par));
        report("convert 64 at 56, NCHW to blocked", &name, time, elements);
        let time = measure(|| from_blocked(isa, Blocked::new(shape, &data), &mut planes, &par));
        report("convert 64 at 56, blocked to NCHW", &name, time, elements);
    }
}

fn layers() -> Vec<(&'static str, Conv2dParams, usize)> {
    let square = Conv2dParams::square;
    let padded = |i, o| Conv2dParams { pad: [1, 1], ..square(i, o, 3) };
    vec![
        ("3x3 64 at 56", padded(64, 64), 56),
        ("3x3 128 at 28", padded(128, 128), 28),
        ("3x3 256 at 14", padded(256, 256), 14),
        ("3x3 512 at 7", padded(512, 512), 7),
        ("3x3/2 64-128 at 56", Conv2dParams { stride: [2, 2], ..padded(64, 128) }, 56),
        ("7x7/2 3-64 at 224", Conv2dParams { stride: [2, 2], pad: [3, 3], ..square(3, 64, 7) }, 224),
        ("1x1 64-256 at 56", square(64, 256, 1), 56),
        ("1x1 1024-256 at 14", square(1024, 256, 1), 14),
        ("1x1 512-2048 at 7", square(512, 2048, 1), 7),
        ("grouped 32x4 3x3 at 56", Conv2dParams { groups: 32, ..padded(128, 128) }, 56),
        ("depthwise 3x3 128 at 56", Conv2dParams { groups: 128, ..padded(128, 128) }, 56),
        ("depthwise 3x3/2 128 at 56", Conv2dParams { groups: 128, stride: [2, 2], ..padded(128, 128) }, 56),
        ("depthwise 3x3 1024 at 7", Conv2dParams { groups: 1024, ..padded(1024, 1024) }, 7),
    ]
}

fn convolution(
    filter: &str,
    what: &str,
    params: Conv2dParams,
    size: usize,
    isa: Isa,
    winograd: Winograd,
    done: &mut Vec<String>,
) {
    let shape = [1, params.in_channels, size, size];
    let kernel = ConvKernel::select(params, shape, isa, ConvOptions { winograd }).expect("a sound convolution");
    let name = kernel.name();
    if done.contains(&name) || !format!("{what} {name}").contains(filter) {
        return;
    }
    let mut packed = AlignedVec::zeroed(kernel.packed_len());
    kernel.pack(&ramp(params.weight_len()), &mut packed);
    let (xs, ys) = (kernel.input_shape(), kernel.output_shape());
    let (mut x, mut y) = (AlignedVec::zeroed(xs.len()), AlignedVec::zeroed(ys.len()));
    let input = ramp(shape.iter().product());
    to_blocked(isa, &input, &mut BlockedMut::new(xs, &mut x), &OneThread::default());
    let mut scratch = AlignedVec::zeroed(kernel.scratch_len());
    let par = OneThread::default();
    let time = measure(|| {
        kernel.run(
            Blocked::new(xs, &x),
            &packed,
            ConvEpilogue::default(),
            &mut BlockedMut::new(ys, &mut y),
            &mut scratch,
            &par,
        )
    });
    report(what, &name, time, params.weight_len() * ys.h * ys.w);
    done.push(name);
}

fn product(filter: &str, m: usize, n: usize, k: usize, isa: Isa) {
    let (what, name) = (format!("product {m}x{n}x{k}"), format!("tiles {isa}"));
    if !format!("{what} {name}").contains(filter) {
        return;
    }
    let packed = PackedB::pack(&ramp(k * n), k, n, false, isa);
    let (a, mut c) = (ramp(m * k), AlignedVec::zeroed(m * n));
    let par = OneThread::default();
    let time = measure(|| packed.multiply(m, Matrix::rows(&a, k), Epilogue::default(), &mut c, &par));
    report(&what, &name, time, m * n * k);
}

/// A fully connected layer from weights as they are.
fn unpacked(filter: &str, [m, n, k]: [usize; 3], isa: Isa) {
    let (what, name) = (format!("product {m}x{n}x{k}"), format!("unpacked {isa}"));
    if !format!("{what} {name}").contains(filter) {
        return;
    }
    let (w, a, mut c, par) = (ramp(k * n), ramp(m * k), AlignedVec::zeroed(m * n), OneThread::default());
    let time = measure(|| multiply_rows(isa, [m, n, k], Matrix::rows(&a, k), &w, Epilogue::default(), &mut c, n, &par));
    report(&what, &name, time, m * n * k);
}

/// Best and median seconds of a call.
fn measure(mut f: impl FnMut()) -> (f64, f64) {
    let start = Instant::now();
    let mut times = Vec::new();
    while times.len() < 5 || start.elapsed() < BUDGET {
        let t = Instant::now();
        f();
        times.push(t.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    (times[0], times[times.len() / 2])
}

fn report(what: &str, name: &str, (best, median): (f64, f64), multiply_adds: usize) {
    let rate = 2.0 * multiply_adds as f64 / best / 1e9;
    println!("{what:<40} {name:<50} {:>9.1} {:>9.1} {rate:>9.1}", best * 1e6, median * 1e6);
}

/// Runs chunks in order and keeps its scratch, as a worker does; fresh memory for every call would be measured with it.
#[derive(Default)]
struct OneThread(Mutex<Vec<[u128; 4]>>);

impl Par for OneThread {
    fn run(&self, chunks: usize, scratch_bytes: usize, body: &(dyn Fn(usize, &mut [u8]) + Sync)) {
        let mut memory = self.0.lock().expect("no chunk panicked");
        let need = scratch_bytes / 64 + 2;
        if memory.len() < need {
            memory.resize(need, [0; 4]);
        }
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut memory);
        let at = bytes.as_ptr().align_offset(64);
        for chunk in 0..chunks {
            body(chunk, &mut bytes[at..at + scratch_bytes]);
        }
    }
}

/// Values between -1 and 1 without a pattern that matters.
fn ramp(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i * 7919 % 2003) as f32 / 1001.5 - 1.0).collect()
}
