//! Convolution layers on one core: processor time, and GFLOP/s of the definition's multiply-adds.
//!
//! `cargo bench -p mxrt-kernels --bench layers [-- [--isa ISA] [--bf16] [--tiles] [--direct] [--method
//! METHOD] [--lines] [FILTER]]`; `--lines` means input and output in lines of bf16 where a method
//! takes them. "Hot" repeats a call; "cold" reads 48 MB in between, so that weights and activations
//! come from memory as they may inside a network. Best / median.

use mxrt_kernels::aligned::AlignedVec;
use mxrt_kernels::blocked::{Blocked, BlockedMut, BlockedShape, LINE_CHANNELS, to_blocked};
use mxrt_kernels::cache_class::CacheClass;
use mxrt_kernels::conv::{
    Conv2dParams, ConvEpilogue, ConvKernel, ConvOptions, ConvSignature, ConvTable, Method, Precision, Winograd,
};
use mxrt_kernels::isa::Isa;
use mxrt_kernels::par::ReusedScratch;
use mxrt_kernels::vector_units::VectorUnits;
use std::hint::black_box;

const ROUNDS: usize = 25;

/// The subject of a table's line, channels in and out, size of the image, kernel, stride, padding.
type Layer = (&'static str, [usize; 2], usize, [usize; 2], usize, [usize; 2]);

const LAYERS: [Layer; 57] = [
    ("1x1 64-64 @56", [64, 64], 56, [1, 1], 1, [0, 0]),
    ("1x1 64-256 @56", [64, 256], 56, [1, 1], 1, [0, 0]),
    ("1x1 256-64 @56", [256, 64], 56, [1, 1], 1, [0, 0]),
    ("1x1 512-128 @28", [512, 128], 28, [1, 1], 1, [0, 0]),
    ("1x1 128-512 @28", [128, 512], 28, [1, 1], 1, [0, 0]),
    ("1x1 1024-256 @14", [1024, 256], 14, [1, 1], 1, [0, 0]),
    ("1x1 256-1024 @14", [256, 1024], 14, [1, 1], 1, [0, 0]),
    ("1x1 512-512 @14", [512, 512], 14, [1, 1], 1, [0, 0]),
    ("1x1 2048-512 @7", [2048, 512], 7, [1, 1], 1, [0, 0]),
    ("1x1 512-2048 @7", [512, 2048], 7, [1, 1], 1, [0, 0]),
    ("1x1 1024-1024 @7", [1024, 1024], 7, [1, 1], 1, [0, 0]),
    ("1x1 1024-1024 @14", [1024, 1024], 14, [1, 1], 1, [0, 0]),
    ("1x1 1024-1024 @6", [1024, 1024], 6, [1, 1], 1, [0, 0]),
    ("1x1 1024-1024 @28", [1024, 1024], 28, [1, 1], 1, [0, 0]),
    ("1x1/2 512-1024 @28", [512, 1024], 28, [1, 1], 2, [0, 0]),
    ("1x1 768-192 @17", [768, 192], 17, [1, 1], 1, [0, 0]),
    ("1x7 192-192 @17", [192, 192], 17, [1, 7], 1, [0, 3]),
    ("7x1 192-192 @17", [192, 192], 17, [7, 1], 1, [3, 0]),
    ("1x1 2048-320 @8", [2048, 320], 8, [1, 1], 1, [0, 0]),
    ("1x7 128-128 @17", [128, 128], 17, [1, 7], 1, [0, 3]),
    ("7x1 128-192 @17", [128, 192], 17, [7, 1], 1, [3, 0]),
    ("1x3 384-384 @8", [384, 384], 8, [1, 3], 1, [0, 1]),
    ("3x1 384-384 @8", [384, 384], 8, [3, 1], 1, [1, 0]),
    ("5x5 64-192 @27", [64, 192], 27, [5, 5], 1, [2, 2]),
    ("5x5 16-32 @28", [16, 32], 28, [5, 5], 1, [2, 2]),
    ("5x5 32-128 @14", [32, 128], 14, [5, 5], 1, [2, 2]),
    ("5x5 48-128 @7", [48, 128], 7, [5, 5], 1, [2, 2]),
    ("3x3/2 64-128 @56", [64, 128], 56, [3, 3], 2, [1, 1]),
    ("3x3/2 256-512 @14", [256, 512], 14, [3, 3], 2, [1, 1]),
    ("3x3/2 128-256 @28", [128, 256], 28, [3, 3], 2, [1, 1]),
    ("3x3/2 128-128 @56", [128, 128], 56, [3, 3], 2, [1, 1]),
    ("3x3/2 512-512 @14", [512, 512], 14, [3, 3], 2, [1, 1]),
    ("3x3/2 288-384 @35", [288, 384], 35, [3, 3], 2, [0, 0]),
    ("3x3/2 96-96 @35", [96, 96], 35, [3, 3], 2, [0, 0]),
    ("3x3/2 192-320 @17", [192, 320], 17, [3, 3], 2, [0, 0]),
    ("5x5 48-64 @35", [48, 64], 35, [5, 5], 1, [2, 2]),
    ("3x3 64-64 @56", [64, 64], 56, [3, 3], 1, [1, 1]),
    ("3x3 128-128 @28", [128, 128], 28, [3, 3], 1, [1, 1]),
    ("3x3 256-256 @14", [256, 256], 14, [3, 3], 1, [1, 1]),
    ("3x3 512-512 @7", [512, 512], 7, [3, 3], 1, [1, 1]),
    ("3x3 256-256 @56", [256, 256], 56, [3, 3], 1, [1, 1]),
    ("3x3 128-256 @56", [128, 256], 56, [3, 3], 1, [1, 1]),
    ("3x3 512-512 @28", [512, 512], 28, [3, 3], 1, [1, 1]),
    ("3x3 512-512 @4", [512, 512], 4, [3, 3], 1, [1, 1]),
    ("3x3 512-512 @5", [512, 512], 5, [3, 3], 1, [1, 1]),
    ("3x3 512-512 @10", [512, 512], 10, [3, 3], 1, [1, 1]),
    ("3x3 256-256 @10", [256, 256], 10, [3, 3], 1, [1, 1]),
    ("3x3 256-256 @12", [256, 256], 12, [3, 3], 1, [1, 1]),
    ("3x3/2 256-512 @18", [256, 512], 18, [3, 3], 2, [1, 1]),
    ("3x3/2 256-512 @20", [256, 512], 20, [3, 3], 2, [1, 1]),
    ("3x3 16-64 @55", [16, 64], 55, [3, 3], 1, [1, 1]),
    ("3x3 64-256 @13", [64, 256], 13, [3, 3], 1, [1, 1]),
    ("3x3 384-256 @13", [384, 256], 13, [3, 3], 1, [1, 1]),
    ("3x3 128-256 @14", [128, 256], 14, [3, 3], 1, [1, 1]),
    ("3x3 512-512 @14", [512, 512], 14, [3, 3], 1, [1, 1]),
    ("3x3 128-32 @14", [128, 32], 14, [3, 3], 1, [1, 1]),
    ("3x3/2 3-32 @224", [3, 32], 224, [3, 3], 2, [1, 1]),
];

/// Zeros in huge pages where the system has them, as in the engine's arenas; never freed.
fn huge(len: usize) -> &'static mut [f32] {
    const PAGE: usize = 2 << 20;
    let layout = std::alloc::Layout::from_size_align((len * 4).next_multiple_of(PAGE).max(PAGE), PAGE).expect("a size");
    // SAFETY: the memory is fresh, large enough, zeroed after the advice, and never freed.
    unsafe {
        let start = std::alloc::alloc(layout);
        libc::madvise(start.cast(), layout.size(), libc::MADV_HUGEPAGE);
        start.write_bytes(0, layout.size());
        std::slice::from_raw_parts_mut(start.cast(), len)
    }
}

fn processor_time() -> f64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a timespec that the call may write.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    now.tv_sec as f64 * 1e6 + now.tv_nsec as f64 * 1e-3
}

/// Values between -1 and 1 without a pattern that matters.
fn values(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i * 7919 % 2003) as f32 / 1001.5 - 1.0).collect()
}

fn main() {
    let (mut isa, mut options, mut filter) = (Isa::detect(), ConvOptions::default(), String::new());
    let (mut method, mut lines): (Option<Method>, bool) = (None, false);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--bench" => {}
            "--isa" => isa = args.next().unwrap_or_default().parse().expect("an instruction set"),
            "--bf16" => options.precision = Precision::Bf16,
            "--tiles" => options.tiles = true,
            "--lines" => lines = true,
            "--method" => method = Some(args.next().unwrap_or_default().parse().expect("a method")),
            "--direct" => options.winograd = Winograd::Off,
            other => filter = other.to_owned(),
        }
    }
    let evicted = AlignedVec::zeroed(12 << 20);
    println!("{:<20} {:>17} {:>8} {:>17} {:>8}", "layer", "hot us", "GFLOP/s", "cold us", "GFLOP/s");
    for (name, [inputs, outputs], size, kernel, stride, pad) in LAYERS {
        if !name.contains(&filter) {
            continue;
        }
        let params = Conv2dParams { kernel, stride: [stride; 2], pad, ..Conv2dParams::square(inputs, outputs, 1) };
        let shape = [1, inputs, size, size];
        if let Some(method) = method {
            let cache = CacheClass::detect();
            let (units, precision) = (VectorUnits::detect(isa), options.precision);
            let signature = ConvSignature { isa, units, cache, precision, params, shape };
            let mut table = ConvTable::default();
            table.insert(signature, method, 1);
            options.tuned = Some(Box::leak(Box::new(table)));
        }
        let kernel = ConvKernel::select(params, shape, isa, options).expect("a sound convolution");
        let packed = huge(kernel.packed_len());
        kernel.pack(&values(params.weight_len()), packed);
        let (mut xs, mut ys, par) = (kernel.input_shape(), kernel.output_shape(), ReusedScratch::default());
        let fits = |s: &BlockedShape| s.c.is_multiple_of(LINE_CHANNELS);
        if lines && kernel.takes_lines() && fits(&xs) && fits(&ys) {
            [xs, ys] = [xs, ys].map(|s| BlockedShape::lines(s.n, s.c, s.h, s.w, s.halo));
        }
        let (x, y) = (huge(xs.len()), huge(ys.len()));
        if !xs.in_lines() {
            to_blocked(isa, &values(inputs * size * size), &mut BlockedMut::new(xs, x), &par);
        }
        let scratch = huge(kernel.scratch_len());
        let work = (params.weight_len() * ys.h * ys.w) as f64;
        print!("{name:<20}");
        for cold in [false, true] {
            let mut times: Vec<f64> = (0..ROUNDS)
                .map(|_| {
                    if cold {
                        black_box(evicted.chunks(16).map(|line| line[0]).sum::<f32>());
                    }
                    let begin = processor_time();
                    let mut out = BlockedMut::new(ys, y);
                    kernel.run(Blocked::new(xs, x), packed, ConvEpilogue::default(), &mut out, scratch, &par);
                    processor_time() - begin
                })
                .collect();
            times.sort_by(f64::total_cmp);
            let median = times[ROUNDS / 2];
            print!(" {:8.1} /{median:7.1} {:8.0}", times[0], 2e-3 * work / median);
        }
        println!("  {}", kernel.name());
    }
}
