//! Depthwise and 1x1 convolutions on one core, one after the other and joined, in turns: processor time in microseconds.
//!
//! `cargo bench -p mxrt-kernels --bench joined [-- [--isa ISA] [--bf16] [FILTER]]`. Before each turn the input is written and
//! the output read, as the layers around them do. Best / median.

use mxrt_kernels::conv_fast::{
    Blocked, BlockedMut, Conv2dParams, ConvEpilogue, ConvKernel, ConvOptions, FirstEpilogue, JoinedKernel, Precision,
    to_blocked,
};
use mxrt_kernels::isa::Isa;
use mxrt_kernels::par::Kept;
use std::hint::black_box;

const ROUNDS: usize = 60;

/// Channels of the input and the output, size of the input, stride.
const LAYERS: [([usize; 2], usize, usize); 14] = [
    ([32, 64], 112, 1),
    ([64, 128], 112, 2),
    ([128, 128], 56, 1),
    ([128, 256], 56, 2),
    ([256, 256], 28, 1),
    ([256, 512], 28, 2),
    ([32, 16], 112, 1),
    ([96, 24], 112, 2),
    ([144, 24], 56, 1),
    ([144, 32], 56, 2),
    ([192, 32], 28, 1),
    ([192, 64], 28, 2),
    ([384, 64], 14, 1),
    ([576, 96], 14, 1),
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
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--bench" => {}
            "--isa" => isa = args.next().unwrap_or_default().parse().expect("an instruction set"),
            "--bf16" => options.precision = Precision::Bf16,
            other => filter = other.to_owned(),
        }
    }
    println!("{:<22} {:>17} {:>17} {:>17}", "layers", "depthwise", "1x1", "joined");
    for ([inputs, outputs], size, stride) in LAYERS {
        let name = format!("{inputs}-{outputs} @{size}/{stride}");
        if !name.contains(&filter) {
            continue;
        }
        let depthwise = Conv2dParams {
            stride: [stride; 2],
            pad: [1; 2],
            groups: inputs,
            ..Conv2dParams::square(inputs, inputs, 3)
        };
        let select =
            |params, size| ConvKernel::select(params, [1, inputs, size, size], isa, options).expect("a kernel");
        let first = select(depthwise, size);
        let pointwise = Conv2dParams::square(inputs, outputs, 1);
        let then = select(pointwise, size / stride);
        let joined = JoinedKernel::join(&first, &then);
        let (xs, ms, ys) = (first.input_shape(), first.output_shape(), then.output_shape());
        let (x, m, y, par) = (huge(xs.len()), huge(ms.len()), huge(ys.len()), Kept::default());
        let (first_packed, then_packed) = (huge(first.packed_len()), huge(then.packed_len()));
        let (w1, w2) = (values(depthwise.weight_len()), values(pointwise.weight_len()));
        first.pack(&w1, first_packed);
        then.pack(&w2, then_packed);
        let packed = huge(joined.as_ref().map_or(0, |j| j.packed_len()));
        if let Some(joined) = &joined {
            joined.pack(&w1, &w2, packed);
        }
        let data = values(inputs * size * size);
        let mut scratch = vec![0.0; first.scratch_len().max(then.scratch_len())];
        let (bias1, bias2) = (values(inputs), values(outputs));
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..ROUNDS {
            to_blocked(isa, &data, &mut BlockedMut::new(xs, x), &par);
            let begin = processor_time();
            let epilogue = |b| ConvEpilogue { bias: Some(b), ..ConvEpilogue::default() };
            let mut out = BlockedMut::new(ms, m);
            first.run(Blocked::new(xs, x), first_packed, epilogue(&bias1), &mut out, &mut scratch, &par);
            let between = processor_time();
            let mut out = BlockedMut::new(ys, y);
            then.run(Blocked::new(ms, m), then_packed, epilogue(&bias2), &mut out, &mut scratch, &par);
            let end = processor_time();
            times[0].push(between - begin);
            times[1].push(end - between);
            black_box(y.iter().sum::<f32>());
            let Some(joined) = &joined else { continue };
            to_blocked(isa, &data, &mut BlockedMut::new(xs, x), &par);
            let begin = processor_time();
            let bias = FirstEpilogue { bias: Some(&bias1), ..FirstEpilogue::default() };
            joined.run(Blocked::new(xs, x), packed, bias, epilogue(&bias2), &mut BlockedMut::new(ys, y), &par);
            times[2].push(processor_time() - begin);
            black_box(y.iter().sum::<f32>());
        }
        print!("{name:<22}");
        for times in &mut times {
            times.sort_by(f64::total_cmp);
            print!(" {:8.1} /{:7.1}", times.first().unwrap_or(&0.0), times.get(times.len() / 2).unwrap_or(&0.0));
        }
        println!("  {}", joined.map_or(String::new(), |j| j.name()));
    }
}
