//! AVX2 with FMA: sixteen lanes in two registers.

use std::arch::x86_64::*;

use super::ptr::{load, store};
use super::{Body, Dst, LANES, Simd, Src};

/// Exists only inside functions compiled for AVX2 and FMA.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

/// Runs `B` compiled for AVX2 and FMA.
///
/// # Safety
/// The machine must have AVX2 and FMA; and as `B` says about its arguments.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn enter<B: Body>(args: &B::Args) {
    // SAFETY: promised by the caller.
    unsafe { B::run(Avx2(()), args) }
}

/// Lanes 0..8 and 8..16.
type Pair = [__m256; 2];

macro_rules! per_half {
    ($(fn $name:ident($($arg:ident),+) = $intrinsic:ident;)*) => {$(
        #[inline(always)]
        fn $name(self, $($arg: Pair),+) -> Pair {
            // SAFETY: the token proves AVX2 and FMA.
            unsafe { [$intrinsic($($arg[0]),+), $intrinsic($($arg[1]),+)] }
        }
    )*};
}

impl Simd for Avx2 {
    type V = Pair;
    const IN_PROGRESS: usize = 2;

    #[inline(always)]
    fn splat(self, x: f32) -> Pair {
        // SAFETY: the token proves AVX2.
        unsafe { [_mm256_set1_ps(x); 2] }
    }
    #[inline(always)]
    unsafe fn load(self, p: Src, at: usize) -> Pair {
        // SAFETY: the token proves AVX2; readable by the caller's promise.
        unsafe {
            let p = p.block(at);
            [load(p), load(p.wrapping_add(8))]
        }
    }
    #[inline(always)]
    unsafe fn store(self, p: Dst, at: usize, v: Pair) {
        // SAFETY: the token proves AVX2; writable by the caller's promise.
        unsafe {
            let p = p.block(at);
            store(p, v[0]);
            store(p.wrapping_add(8), v[1]);
        }
    }
    #[inline(always)]
    unsafe fn load_part(self, p: Src, at: usize, n: usize, rest: Pair) -> Pair {
        // SAFETY: the token proves AVX2; a masked load does not touch what is masked out.
        unsafe {
            let (masks, p) = (first_lanes(n), p.masked_block(at, ((1u32 << n) - 1) as u16));
            let low = _mm256_maskload_ps(p, masks[0]);
            let high = _mm256_maskload_ps(p.wrapping_add(8), masks[1]);
            let [low_mask, high_mask] = [_mm256_castsi256_ps(masks[0]), _mm256_castsi256_ps(masks[1])];
            [_mm256_blendv_ps(rest[0], low, low_mask), _mm256_blendv_ps(rest[1], high, high_mask)]
        }
    }
    #[inline(always)]
    unsafe fn store_part(self, p: Dst, at: usize, n: usize, v: Pair) {
        // SAFETY: the token proves AVX2; a masked store does not touch what is masked out.
        unsafe {
            let (masks, p) = (first_lanes(n), p.part(at, n));
            _mm256_maskstore_ps(p, masks[0], v[0]);
            _mm256_maskstore_ps(p.wrapping_add(8), masks[1], v[1]);
        }
    }
    /// Bytes become the highest ones of their lanes, which keep their signs.
    const BYTE_UNIT: f32 = 16_777_216.0;
    #[inline(always)]
    unsafe fn load_bytes(self, p: Src, at: usize) -> Pair {
        // SAFETY: the token proves AVX2; readable by the caller's promise.
        unsafe {
            let bytes = _mm256_broadcastsi128_si256(load(p.run(at, LANES / 4)));
            // A byte of 0x80 in a pattern makes a zero.
            let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            let low = _mm256_or_si256(_mm256_slli_epi32::<24>(lanes), _mm256_set1_epi32(0x0080_8080));
            let high = _mm256_add_epi32(low, _mm256_set1_epi32(0x0800_0000));
            [_mm256_cvtepi32_ps(_mm256_shuffle_epi8(bytes, low)), _mm256_cvtepi32_ps(_mm256_shuffle_epi8(bytes, high))]
        }
    }
    #[inline(always)]
    unsafe fn load_bf16(self, p: Src, at: usize) -> Pair {
        // SAFETY: the token proves AVX2; readable by the caller's promise.
        unsafe {
            let pairs = load(p.run(at, LANES / 2));
            let high = _mm256_and_si256(pairs, _mm256_set1_epi32(!0xffff));
            [_mm256_castsi256_ps(_mm256_slli_epi32::<16>(pairs)), _mm256_castsi256_ps(high)]
        }
    }
    per_half! {
        fn add(a, b) = _mm256_add_ps;
        fn sub(a, b) = _mm256_sub_ps;
        fn mul(a, b) = _mm256_mul_ps;
        fn div(a, b) = _mm256_div_ps;
        fn max(a, b) = _mm256_max_ps;
        fn min(a, b) = _mm256_min_ps;
        fn fma(a, b, c) = _mm256_fmadd_ps;
        fn fnma(a, b, c) = _mm256_fnmadd_ps;
    }

    #[inline(always)]
    fn pick(self, v: Pair, limit: Pair, low: Pair, high: Pair) -> Pair {
        let mut picked = low;
        for i in 0..2 {
            // SAFETY: the token proves AVX2.
            unsafe { picked[i] = _mm256_blendv_ps(high[i], low[i], _mm256_cmp_ps::<_CMP_LE_OQ>(v[i], limit[i])) }
        }
        picked
    }
    #[inline(always)]
    fn times_pow2(self, v: Pair, n: Pair) -> Pair {
        let mut scaled = v;
        for i in 0..2 {
            // Two factors, as 2^n itself may be infinite or below the normal numbers.
            // SAFETY: the token proves AVX2.
            unsafe {
                let (n, bias) = (_mm256_cvtps_epi32(n[i]), _mm256_set1_epi32(127));
                let half = _mm256_srai_epi32::<1>(n);
                let first = _mm256_slli_epi32::<23>(_mm256_add_epi32(half, bias));
                let second = _mm256_slli_epi32::<23>(_mm256_add_epi32(_mm256_sub_epi32(n, half), bias));
                let once = _mm256_mul_ps(v[i], _mm256_castsi256_ps(first));
                scaled[i] = _mm256_mul_ps(once, _mm256_castsi256_ps(second));
            }
        }
        scaled
    }

    #[inline(always)]
    fn deinterleave(self, a: Pair, b: Pair) -> (Pair, Pair) {
        // Pairs of even and odd elements inside the 128-bit lanes, then the 64-bit quarters in
        // order. SAFETY: the token proves AVX2.
        let half = |v: Pair| unsafe {
            let (even, odd) = (_mm256_shuffle_ps::<0x88>(v[0], v[1]), _mm256_shuffle_ps::<0xDD>(v[0], v[1]));
            let in_order = |v| _mm256_castpd_ps(_mm256_permute4x64_pd::<0xD8>(_mm256_castps_pd(v)));
            (in_order(even), in_order(odd))
        };
        let (a, b) = (half(a), half(b));
        ([a.0, b.0], [a.1, b.1])
    }

    #[inline(always)]
    fn transpose(self, v: &mut [Pair; LANES]) {
        // No closures around instructions: one that is not inlined is compiled without AVX2, and
        // calls them one by one.
        let old = *v;
        for r in 0..2 {
            for c in 0..2 {
                let mut quarter = [old[c * 8][r]; 8];
                for i in 1..8 {
                    quarter[i] = old[c * 8 + i][r];
                }
                let quarter = transpose8(quarter);
                for i in 0..8 {
                    v[r * 8 + i][c] = quarter[i];
                }
            }
        }
    }
}

/// All bits of each of the first `n` lanes. Called only with the token in hand, that is inside code
/// compiled for AVX2.
#[inline(always)]
fn first_lanes(n: usize) -> [__m256i; 2] {
    // SAFETY: only methods of `Avx2` call this, whose token proves AVX2.
    unsafe {
        let (n, lanes) = (_mm256_set1_epi32(n as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        [_mm256_cmpgt_epi32(n, lanes), _mm256_cmpgt_epi32(n, _mm256_add_epi32(lanes, _mm256_set1_epi32(8)))]
    }
}

/// 8x8 transpose. Called only with the token in hand, that is inside code compiled for AVX2.
#[inline(always)]
fn transpose8(v: [__m256; 8]) -> [__m256; 8] {
    // SAFETY: only `Avx2::transpose` calls this, whose token proves AVX2.
    unsafe {
        let mut t = v;
        for i in (0..8).step_by(4) {
            let (a, b, c, d) = (v[i], v[i + 1], v[i + 2], v[i + 3]);
            let (ab_lo, ab_hi) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
            let (cd_lo, cd_hi) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
            t[i] = _mm256_shuffle_ps::<0x44>(ab_lo, cd_lo);
            t[i + 1] = _mm256_shuffle_ps::<0xEE>(ab_lo, cd_lo);
            t[i + 2] = _mm256_shuffle_ps::<0x44>(ab_hi, cd_hi);
            t[i + 3] = _mm256_shuffle_ps::<0xEE>(ab_hi, cd_hi);
        }
        let mut o = v;
        for i in 0..4 {
            o[i] = _mm256_permute2f128_ps::<0x20>(t[i], t[i + 4]);
            o[i + 4] = _mm256_permute2f128_ps::<0x31>(t[i], t[i + 4]);
        }
        o
    }
}
