//! Products of matrices on one core: AVX-512, tiles of AMX in float32 and bf16, batches, and
//! attention; least processor time, and multiply-adds in a nanosecond.
//!
//! `cargo bench -p mxrt-kernels --bench products [PART OF A NAME]`.

use mxrt_kernels::aligned::AlignedVec;
use mxrt_kernels::amx::{AmxGemm, Target};
use mxrt_kernels::attention::{Attention, AttentionOperands};
use mxrt_kernels::conv::Precision;
use mxrt_kernels::gemm::{Epilogue, Matrices, MatricesMut, Matrix, Places, Sgemm};
use mxrt_kernels::gemm_plain::{Gemm, gemm};
use mxrt_kernels::isa::Isa;
use mxrt_kernels::par::ReusedScratch;
use mxrt_kernels::softmax::{SoftmaxParams, softmax};
use std::time::{Duration, Instant};

/// Rows, columns, products of a sum: layers of BERT-base and ResNet-50.
const DENSE: [[usize; 3]; 7] = [
    [128, 768, 768],
    [128, 3072, 768],
    [128, 768, 3072],
    [1024, 768, 768],
    [49, 512, 2048],
    [24, 768, 768],
    [3136, 256, 64],
];

/// Matrices, rows, columns, products of a sum; attention of BERT-base, and small ones.
const BATCHES: [[usize; 4]; 5] =
    [[12, 128, 128, 64], [12, 128, 64, 128], [12, 512, 512, 64], [12, 16, 16, 64], [100, 32, 32, 32]];

/// Heads, queries and keys, depth.
const ATTENTION: [[usize; 3]; 4] = [[12, 16, 64], [12, 128, 64], [12, 512, 64], [8, 1024, 128]];

/// Attention in one step, and as two batches of products with a softmax between them.
fn attention(par: &ReusedScratch, [heads, n, d]: [usize; 3]) {
    let [q, k, v] = [1, 2, 3].map(|i| values(heads * n * d + i));
    let (mut scores, mut out) = (vec![0.0; heads * n * n], vec![0.0; heads * n * d]);
    let (name, work) = (format!("attention, {heads} heads of {n}x{d}"), 2 * heads * n * n * d);
    let isa = Isa::detect();
    let products = Gemm { batch: heads, transpose_b: true, ..Gemm::new(n, n, d) }.on(isa);
    let sums = Gemm { batch: heads, ..Gemm::new(n, d, n) }.on(isa);
    let mut weights = scores.clone();
    measure(&format!("{name} in three steps"), work, || {
        gemm(par, products, &q[1..], &k[2..], &mut scores);
        softmax(par, SoftmaxParams::default(), &scores, [heads * n, n, 1], None, &mut weights);
        gemm(par, sums, &weights, &v[3..], &mut out);
    });
    let at = Places::contiguous([1, heads], n, d);
    let of = |data| Matrices { data, at };
    let whole = Attention { batch: [1, heads], queries: n, keys: n, depth: d, width: d, scale: 1.0, isa, tiles: false };
    measure(&format!("{name} in one"), work, || {
        let operands = AttentionOperands {
            queries: of(&q[1..]),
            keys: of(&k[2..]),
            values: of(&v[3..]),
            mask: None,
            lengths: None,
        };
        whole.run(par, operands, MatricesMut { data: &mut out, at });
    });
}

fn main() {
    let par = ReusedScratch::default();
    ATTENTION.iter().for_each(|size| attention(&par, *size));
    for [m, n, k] in DENSE {
        let (a, b) = (values(m * k), values(n * k));
        let (weights, mut c) = (Matrix::rows(&b, k).transposed(), vec![0.0; m * n]);
        let single = Sgemm::new(m, n, k, Isa::detect());
        let mut packed = AlignedVec::zeroed(single.packed_len());
        single.pack(weights, &mut packed);
        let rows = Matrix::rows(&a, k);
        let name = format!("{m}x{n}x{k}");
        measure(&format!("{name} {}", single.isa()), m * n * k, || {
            single.run(rows, &packed, Epilogue::default(), &mut c, n, &mut [], &par);
        });
        for precision in [Precision::Single, Precision::Bf16] {
            let Some(tiles) = AmxGemm::new(m, n, k, precision) else { continue };
            let mut packed = AlignedVec::zeroed(tiles.packed_len());
            tiles.pack(&par, weights, &mut packed);
            let mut lines = AlignedVec::zeroed(tiles.workspace_len());
            measure(&format!("{name} amx {precision}"), m * n * k, || {
                let target = Target::Rows { c: &mut c, stride: n };
                tiles.run(&a, &packed, Epilogue::default().into(), target, &mut lines, &par);
            });
        }
    }
    for [batch, m, n, k] in BATCHES {
        let (a, b, mut c) = (values(batch * m * k), values(batch * n * k), vec![0.0; batch * m * n]);
        let plain = Gemm { batch, transpose_b: true, ..Gemm::new(m, n, k) };
        for (name, product) in [("plain", plain), ("in register tiles", plain.on(Isa::detect()))] {
            measure(&format!("{batch} of {m}x{n}x{k} {name}"), batch * m * n * k, || {
                gemm(&par, product, &a, &b, &mut c);
            });
        }
    }
}

fn values(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i * 37 % 101) as f32 / 101.0 - 0.5).collect()
}

fn measure(name: &str, multiply_adds: usize, mut call: impl FnMut()) {
    let wanted = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    if wanted.is_some_and(|part| !name.contains(&part)) {
        return;
    }
    let (end, mut least) = (Instant::now() + Duration::from_millis(500), f64::INFINITY);
    while Instant::now() < end {
        let begin = processor_time();
        call();
        least = least.min(processor_time() - begin);
    }
    println!("{name:<40} {:>9.1} us {:>7.1} / ns", least * 1e6, multiply_adds as f64 / (least * 1e9));
}

/// Seconds that this thread has computed.
fn processor_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes the time.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
