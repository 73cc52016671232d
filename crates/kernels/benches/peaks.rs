//! The limits of one core: multiply-adds of registers, and bytes read from caches and memory. They
//! are the reference for the numbers of kernels.
//!
//! `cargo bench -p mxrt-kernels --bench peaks`. Best and median of processor time.

#![allow(clippy::needless_range_loop, reason = "iterators over arrays of vectors go through memory")]

#[cfg(not(target_arch = "x86_64"))]
fn main() {
    println!("peaks are measured on x86-64 only");
}

#[cfg(target_arch = "x86_64")]
fn main() {
    x86::main();
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use mxrt_kernels::isa::{Isa, has_bf16};
    use std::arch::x86_64::*;
    use std::hint::black_box;

    const ROUNDS: usize = 15;
    const STEPS: usize = 200_000;
    /// Concurrent sums: enough to hide latencies, few enough for the registers.
    const SUMS: usize = 12;
    const NARROW_SUMS: usize = 12;

    #[target_feature(enable = "avx512f")]
    fn fma512() -> f32 {
        let (a, b) = (_mm512_set1_ps(black_box(0.999)), _mm512_set1_ps(black_box(1e-3)));
        let mut sums = [b; SUMS];
        for _ in 0..STEPS {
            for i in 0..SUMS {
                sums[i] = _mm512_fmadd_ps(a, b, sums[i]);
            }
        }
        sums.iter().map(|v| _mm512_reduce_add_ps(*v)).sum()
    }

    #[target_feature(enable = "avx512f,avx512bf16")]
    fn bf16() -> f32 {
        let a = _mm512_cvtneps_pbh(_mm512_set1_ps(black_box(1e-3)));
        // SAFETY: both are 256 bits of anything.
        let pair = _mm512_castsi256_si512(unsafe { std::mem::transmute::<__m256bh, __m256i>(a) });
        // SAFETY: both are 512 bits of anything.
        let pair = unsafe { std::mem::transmute::<__m512i, __m512bh>(pair) };
        let mut sums = [_mm512_setzero_ps(); SUMS];
        for _ in 0..STEPS {
            for i in 0..SUMS {
                sums[i] = _mm512_dpbf16_ps(sums[i], pair, pair);
            }
        }
        sums.iter().map(|v| _mm512_reduce_add_ps(*v)).sum()
    }

    #[target_feature(enable = "avx2,fma")]
    fn fma256() -> f32 {
        let (a, b) = (_mm256_set1_ps(black_box(0.999)), _mm256_set1_ps(black_box(1e-3)));
        let mut sums = [b; NARROW_SUMS];
        for _ in 0..STEPS {
            for i in 0..NARROW_SUMS {
                sums[i] = _mm256_fmadd_ps(a, b, sums[i]);
            }
        }
        sums.iter().map(|v| _mm_cvtss_f32(_mm256_castps256_ps128(*v))).sum()
    }

    /// Reads every line, eight at a time.
    #[target_feature(enable = "avx2")]
    fn read(data: &[f32]) -> f32 {
        let mut sums = [_mm256_setzero_ps(); 8];
        for lines in data.chunks_exact(64) {
            for (i, sum) in sums.iter_mut().enumerate() {
                // SAFETY: `lines` has 64 elements.
                *sum = _mm256_add_ps(*sum, unsafe { _mm256_loadu_ps(lines.as_ptr().add(i * 8)) });
            }
        }
        sums.iter().map(|v| _mm_cvtss_f32(_mm256_castps256_ps128(*v))).sum()
    }

    fn processor_time() -> f64 {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` is a timespec that the call may write.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
        now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
    }

    /// Best and median of `work` per second.
    fn rate(what: &str, unit: &str, work: f64, mut f: impl FnMut() -> f32) {
        let mut rates: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let begin = processor_time();
                black_box(f());
                work * 1e-9 / (processor_time() - begin)
            })
            .collect();
        rates.sort_by(|a, b| b.total_cmp(a));
        println!("{what:<34} {:7.1} / {:7.1} {unit}", rates[0], rates[ROUNDS / 2]);
    }

    pub fn main() {
        let steps = STEPS as f64;
        // SAFETY: each function is called only where its instructions are.
        unsafe {
            if Isa::Avx512.is_available() {
                rate("multiply-add f32, 512 bits", "GFLOP/s", steps * (SUMS * 32) as f64, || fma512());
            }
            if has_bf16() {
                rate("multiply-add bf16, 512 bits", "GFLOP/s", steps * (SUMS * 64) as f64, || bf16());
            }
            if !Isa::Avx2.is_available() {
                return;
            }
            rate("multiply-add f32, 256 bits", "GFLOP/s", steps * (NARROW_SUMS * 16) as f64, || fma256());
            for kib in [24, 512, 8 << 10, 256 << 10] {
                let data = vec![1.0f32; kib << 8];
                let times = (64 << 10) / kib + 1;
                let bytes = (times * size_of_val(&data[..])) as f64;
                rate(&format!("reading {kib} KiB"), "GB/s", bytes, || (0..times).map(|_| read(black_box(&data))).sum());
            }
        }
    }
}
