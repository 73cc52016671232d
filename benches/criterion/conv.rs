//! One convolution of every kind, conversions, pooling and products on one thread.
//!
//! `cargo bench -p mxrt-benches --bench conv [-- FILTER]`. Throughput is in multiply-adds (elements
//! for conversions and pooling). Compare rows of one run with each other: absolute numbers depend
//! on what else the machine does.

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mxrt_kernels::aligned::AlignedVec;
use mxrt_kernels::blocked::{
    Blocked, BlockedMut, BlockedShape, Halo, Pool2dParams, PoolKind, from_blocked, pool, to_blocked,
};
use mxrt_kernels::conv::{Conv2dParams, ConvEpilogue, ConvKernel, ConvOptions, Winograd};
use mxrt_kernels::gemm::{Epilogue, Matrix, PackedB};
use mxrt_kernels::isa::Isa;
use mxrt_kernels::par::ReusedScratch;

criterion_group! {
    name = benches;
    config = Criterion::default().measurement_time(Duration::from_millis(500)).warm_up_time(Duration::from_millis(100)).sample_size(20);
    targets = convolutions, borders, products
}
criterion_main!(benches);

/// Measures `f` as `what/how`.
fn measure(c: &mut Criterion, what: &str, how: &str, work: usize, mut f: impl FnMut()) {
    let mut group = c.benchmark_group(what);
    group.throughput(Throughput::Elements(work as u64));
    group.bench_function(how, |b| b.iter(&mut f));
    group.finish();
}

fn available() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().rev().filter(|isa| isa.is_available())
}

fn convolutions(c: &mut Criterion) {
    for (what, params, size) in layers() {
        for isa in available() {
            let mut done = Vec::new();
            for winograd in [Winograd::Off, Winograd::F2, Winograd::F4] {
                convolution(c, what, params, size, isa, winograd, &mut done);
            }
        }
    }
}

fn borders(c: &mut Criterion) {
    for isa in available() {
        conversions(c, isa);
        poolings(c, isa);
    }
}

fn products(c: &mut Criterion) {
    for (m, n, k) in
        [(1, 1000, 512), (1, 4096, 9216), (8, 3072, 768), (128, 768, 768), (128, 3072, 768), (1024, 512, 512)]
    {
        for isa in available().filter(|isa| *isa != Isa::Portable) {
            product(c, m, n, k, isa);
        }
    }
}

/// Conversions of a tensor of 64 channels.
fn conversions(c: &mut Criterion, isa: Isa) {
    let shape = BlockedShape::new(1, 64, 56, 56, Halo { top: 1, left: 1, bottom: 1, right: 1 });
    let (mut planes, mut data) = (AlignedVec::zeroed(64 * 56 * 56), AlignedVec::zeroed(shape.len()));
    let (par, elements) = (ReusedScratch::default(), planes.len());
    let name = format!("{isa}");
    measure(c, "convert 64 at 56, NCHW to blocked", &name, elements, || {
        to_blocked(isa, &planes, &mut BlockedMut::new(shape, &mut data), &par);
    });
    measure(c, "convert 64 at 56, blocked to NCHW", &name, elements, || {
        from_blocked(isa, Blocked::new(shape, &data), &mut planes, &par);
    });
}

/// Poolings after first layers and next to convolutions.
fn poolings(c: &mut Criterion, isa: Isa) {
    let average = PoolKind::Average { count_pad: true };
    for (what, kind, channels, size, [kernel, stride, pad]) in [
        ("pool max 3x3/2, 64 at 112", PoolKind::Max, 64, 112, [3, 2, 1]),
        ("pool max 2x2/2, 64 at 224", PoolKind::Max, 64, 224, [2, 2, 0]),
        ("pool average 3x3, 768 at 17", average, 768, 17, [3, 1, 1]),
    ] {
        let out = (size + 2 * pad - kernel) / stride + 1;
        let (xs, ys) = (
            BlockedShape::new(1, channels, size, size, Halo::default()),
            BlockedShape::new(1, channels, out, out, Halo::default()),
        );
        let (x, mut y, par) = (AlignedVec::zeroed(xs.len()), AlignedVec::zeroed(ys.len()), ReusedScratch::default());
        let params = Pool2dParams { kernel: [kernel; 2], stride: [stride; 2], pad: [pad; 2] };
        measure(c, what, &format!("{isa}"), xs.len(), || {
            pool(isa, kind, params, Blocked::new(xs, &x), &mut BlockedMut::new(ys, &mut y), &par);
        });
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
    c: &mut Criterion,
    what: &str,
    params: Conv2dParams,
    size: usize,
    isa: Isa,
    winograd: Winograd,
    done: &mut Vec<String>,
) {
    let shape = [1, params.in_channels, size, size];
    let kernel = ConvKernel::select(params, shape, isa, ConvOptions { winograd, ..ConvOptions::default() })
        .expect("a sound convolution");
    let name = kernel.name();
    if done.contains(&name) {
        return;
    }
    let mut packed = AlignedVec::zeroed(kernel.packed_len());
    kernel.pack(&ramp(params.weight_len()), &mut packed);
    let (xs, ys) = (kernel.input_shape(), kernel.output_shape());
    let (mut x, mut y) = (AlignedVec::zeroed(xs.len()), AlignedVec::zeroed(ys.len()));
    let input = ramp(shape.iter().product());
    to_blocked(isa, &input, &mut BlockedMut::new(xs, &mut x), &ReusedScratch::default());
    let mut scratch = AlignedVec::zeroed(kernel.scratch_len());
    let par = ReusedScratch::default();
    measure(c, what, &name, params.weight_len() * ys.h * ys.w, || {
        kernel.run(
            Blocked::new(xs, &x),
            &packed,
            ConvEpilogue::default(),
            &mut BlockedMut::new(ys, &mut y),
            &mut scratch,
            &par,
        );
    });
    done.push(name);
}

fn product(c: &mut Criterion, m: usize, n: usize, k: usize, isa: Isa) {
    let (what, name) = (format!("product {m}x{n}x{k}"), format!("tiles {isa}"));
    let packed = PackedB::pack(&ramp(k * n), k, n, false, isa);
    let (a, mut y, par) = (ramp(m * k), AlignedVec::zeroed(m * n), ReusedScratch::default());
    measure(c, &what, &name, m * n * k, || {
        packed.multiply(m, Matrix::rows(&a, k), Epilogue::default(), &mut y, &par);
    });
}

/// Values between -1 and 1 without a pattern that matters.
fn ramp(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i * 7919 % 2003) as f32 / 1001.5 - 1.0).collect()
}
