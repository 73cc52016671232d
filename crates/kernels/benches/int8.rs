//! Convolutions, dense layers and attention of bytes on one core: least and median processor time,
//! and multiply-adds in a nanosecond.
//!
//! `cargo bench -p mxrt-kernels --bench int8 [-- [--isa ISA] [--added] [--planes] [FILTER]]`. Data
//! are unsigned, results are bytes after a relu, as between the layers of a network, with `--added`
//! after an array was added. Images are pixels, but those of three channels; with `--planes` all
//! are planes. Dense layers and attention have the sizes of BERT-base with 128 tokens, and signed
//! data.

use mxrt_kernels::aligned::AlignedVec;
use mxrt_kernels::blocked::{BlockedShape, Halo};
use mxrt_kernels::int8::{
    AddedBytes, Function, HeadProducts, Int8Attention, Int8Conv, Int8ConvOperands, Int8Gemm, Int8Result, Level,
    PixelForm, Rows, ScaledSums,
};
use mxrt_kernels::isa::Isa;
use mxrt_kernels::par::ReusedScratch;

const ROUNDS: usize = 60;

/// The subject of a table's line; channels in and out, groups; size of the image, kernel, stride,
/// padding.
type Layer = (&'static str, [usize; 3], usize, usize, usize, usize);

const LAYERS: [Layer; 23] = [
    ("7x7/2 3-64 @224", [3, 64, 1], 224, 7, 2, 3),
    ("3x3/2 3-32 @224", [3, 32, 1], 224, 3, 2, 1),
    ("3x3 64-64 @56", [64, 64, 1], 56, 3, 1, 1),
    ("3x3 128-128 @28", [128, 128, 1], 28, 3, 1, 1),
    ("3x3 256-256 @14", [256, 256, 1], 14, 3, 1, 1),
    ("3x3 512-512 @7", [512, 512, 1], 7, 3, 1, 1),
    ("1x1 64-64 @56", [64, 64, 1], 56, 1, 1, 0),
    ("1x1 64-256 @56", [64, 256, 1], 56, 1, 1, 0),
    ("1x1 256-64 @56", [256, 64, 1], 56, 1, 1, 0),
    ("1x1 512-128 @28", [512, 128, 1], 28, 1, 1, 0),
    ("1x1 256-1024 @14", [256, 1024, 1], 14, 1, 1, 0),
    ("1x1 1024-256 @14", [1024, 256, 1], 14, 1, 1, 0),
    ("1x1 2048-512 @7", [2048, 512, 1], 7, 1, 1, 0),
    ("1x1/2 256-512 @56", [256, 512, 1], 56, 1, 2, 0),
    ("1x1 32-32 @112", [32, 32, 1], 112, 1, 1, 0),
    ("1x1 32-16 @112", [32, 16, 1], 112, 1, 1, 0),
    ("1x1 24-144 @56", [24, 144, 1], 56, 1, 1, 0),
    ("1x1 16-96 @112", [16, 96, 1], 112, 1, 1, 0),
    ("1x1 144-24 @56", [144, 24, 1], 56, 1, 1, 0),
    ("depthwise 32 @112", [32, 32, 32], 112, 3, 1, 1),
    ("depthwise 384 @14", [384, 384, 384], 14, 3, 1, 1),
    ("depthwise 96 @56", [96, 96, 96], 56, 3, 1, 1),
    ("depthwise/2 144 @56", [144, 144, 144], 56, 3, 2, 1),
];

const TOKENS: usize = 128;
const HEADS: usize = 12;
const HEAD_DIM: usize = 64;

/// The subject of a table's line; numbers in and out of a dense layer, and a function.
type Dense = (&'static str, [usize; 2], Option<Function>);

const DENSE: [Dense; 4] = [
    ("dense 768-2304", [768, 2304], None),
    ("dense 768-768", [768, 768], None),
    ("dense 768-3072 gelu", [768, 3072], Some(Function::Gelu)),
    ("dense 3072-768", [3072, 768], None),
];

fn processor_time() -> f64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a timespec that the call may write.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    now.tv_sec as f64 * 1e6 + now.tv_nsec as f64 * 1e-3
}

fn main() {
    let (mut level, mut added, mut planes, mut filter) = (Level::of(Isa::detect(), true), false, false, String::new());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--bench" => {}
            "--isa" => {
                let isa = args.next().unwrap_or_default();
                level = Level::of(isa.parse().expect("an instruction set"), false);
            }
            "--added" => added = true,
            "--planes" => planes = true,
            other => filter = other.to_owned(),
        }
    }
    println!("{:<22} {:>17} {:>22}", "layer", "us", "multiply-adds a ns");
    for (name, [channels, filters, groups], size, kernel, stride, pad) in LAYERS {
        if !name.contains(&filter) {
            continue;
        }
        let side = (size + 2 * pad - kernel) / stride + 1;
        let halo = Halo { top: pad, left: pad, bottom: pad, right: pad };
        let input = BlockedShape::pixels(1, channels, size, size, halo);
        let output = BlockedShape::pixels(1, filters, side, side, halo);
        let form = PixelForm { data: (channels > 3).then_some(input), output, addend: output };
        let conv = Int8Conv {
            batch: 1,
            channels,
            filters,
            groups,
            input: [1, size, size],
            output: [1, side, side],
            kernel: [1, kernel, kernel],
            stride: [1, stride, stride],
            pad: [0, pad, pad],
            dilate: [1; 3],
            level,
            pixels: (!planes).then_some(form),
        };
        let data: Vec<u8> = (0..input.len()).map(|i| (i * 7919 % 251) as u8).collect();
        let products = filters * channels / groups * kernel * kernel;
        let weights: Vec<i8> = (0..products).map(|i| (i * 31 % 253) as u8 as i8).collect();
        let mut packed = vec![0; conv.packed_len().expect("a length")];
        conv.pack(&weights, &mut packed);
        let mut epilogue = ScaledSums::new(vec![1.0; filters], vec![1e-3; filters]);
        epilogue.functions[usize::from(added)] = Some(Function::Relu);
        epilogue.addend = added.then_some(AddedBytes { signed: false, factor: 0.5, most: f32::INFINITY });
        let len = if planes { filters * side * side } else { output.len() };
        let [mut aligned, mut other, mut out] = [data.len(), len, len].map(in_arena);
        let [aligned, other, out] =
            [&mut aligned, &mut other, &mut out].map(|v| bytemuck::cast_slice_mut::<f32, u8>(v));
        aligned[..data.len()].copy_from_slice(&data);
        let data = Rows { bytes: &aligned[..data.len()], signed: false };
        let addend = added.then_some(Rows { bytes: &other[..len], signed: false });
        let operands = Int8ConvOperands { data, addend, packed: &packed, epilogue: &epilogue };
        let mut workspace = vec![0; conv.workspace_len().expect("a length")];
        let par = ReusedScratch::default();
        report(name, products * side * side, || conv.run(&par, &operands, &mut out[..len], &mut workspace));
    }
    for (name, sizes, function) in DENSE.iter().filter(|(name, ..)| name.contains(&filter)) {
        // Layers without a function give numbers, which are added and normalised.
        match function {
            Some(_) => dense(name, *sizes, *function, level, 0i8),
            None => dense(name, *sizes, None, level, 0f32),
        }
    }
    attention(level, &filter);
}

/// Zeros, placed as an arena places bytes.
fn in_arena(len: usize) -> AlignedVec {
    AlignedVec::zeroed(len.div_ceil(size_of::<f32>()))
}

/// Measures a dense layer with results of a type.
fn dense<T: Int8Result>(name: &str, [k, n]: [usize; 2], function: Option<Function>, level: Level, zero: T) {
    let gemm = Int8Gemm::new(n, k, level);
    let mut packed = vec![0; gemm.packed_len().expect("a length")];
    gemm.pack(&bytes::<i8>(n * k), &mut packed);
    let mut epilogue = ScaledSums::new(vec![1.0; n], vec![1e-3; n]);
    epilogue.functions[0] = function;
    epilogue.unit = 20.0;
    let (data, mut out) = (bytes::<u8>(TOKENS * k), vec![zero; TOKENS * n]);
    let par = ReusedScratch::default();
    let rows = Rows { bytes: &data, signed: true };
    report(name, TOKENS * n * k, || gemm.run(&par, rows, &packed, &epilogue, &mut out));
}

/// Measures both products of attention.
fn attention(level: Level, filter: &str) {
    let sizes = Int8Attention { time: TOKENS, batch: 1, heads: HEADS, dim: HEAD_DIM, level };
    let (qkv, weights) = (bytes::<i8>(TOKENS * HEADS * HEAD_DIM * 3), bytes::<u8>(HEADS * TOKENS * TOKENS));
    let (par, products) = (ReusedScratch::default(), HEADS * TOKENS * TOKENS * HEAD_DIM);
    let (mut scores, mut values) = (vec![0f32; HEADS * TOKENS * TOKENS], vec![0i8; TOKENS * HEADS * HEAD_DIM]);
    if "attention scores".contains(filter) {
        report("attention scores", products, || sizes.run(&par, &qkv, HeadProducts::Scores, 1e-3, &mut scores));
    }
    if "attention values".contains(filter) {
        let weights = HeadProducts::Values(Rows { bytes: &weights, signed: false });
        report("attention values", products, || sizes.run(&par, &qkv, weights, 1e-3, &mut values));
    }
}

/// Bytes of many values.
fn bytes<T: bytemuck::AnyBitPattern + bytemuck::NoUninit>(len: usize) -> Vec<T> {
    let bytes: Vec<u8> = (0..len).map(|i| (i * 7919 % 251) as u8).collect();
    bytemuck::cast_slice(&bytes).to_vec()
}

/// Prints the time of some multiply-adds.
fn report(name: &str, multiply_adds: usize, mut run: impl FnMut()) {
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begin = processor_time();
            run();
            processor_time() - begin
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let (least, median) = (times[0], times[ROUNDS / 2]);
    let rate = |us: f64| multiply_adds as f64 / us * 1e-3;
    println!("{name:<22} {least:>8.1} / {median:>6.1} {:>10.0} / {:>6.0}", rate(least), rate(median));
}
