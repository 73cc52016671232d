//! AVX-512F: sixteen lanes in one register; and the same with products of pairs of bf16.

use std::arch::x86_64::*;

use super::{Body, Dst, LANES, Simd, Src};

/// Exists only inside functions compiled for AVX-512F, with `PAIRS` for AVX512-BF16 too.
#[derive(Clone, Copy)]
pub(super) struct Avx512<const PAIRS: bool>(());

/// Runs `B` compiled for AVX-512F.
///
/// # Safety
/// The machine must have AVX-512F; and as `B` says about its arguments.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn enter<B: Body>(args: &B::Args) {
    // SAFETY: promised by the caller.
    unsafe { B::run(Avx512::<false>(()), args) }
}

/// Runs `B` compiled for AVX512-BF16, its lanes of products holding pairs.
///
/// # Safety
/// The machine must have AVX-512F and AVX512-BF16; and as `B` says about its arguments.
#[target_feature(enable = "avx512f,avx512bf16")]
pub(super) unsafe fn enter_pairs<B: Body>(args: &B::Args) {
    // SAFETY: promised by the caller.
    unsafe { B::run(Avx512::<true>(()), args) }
}

/// Rounds `count` times 32 values to 16 pairs: the values `lo[i * 16 ..]` then `hi[i * 16 ..]`, of which those without a bit in
/// `mask` become zero, to `out[i * 16 ..]`.
///
/// # Safety
/// The machine must have AVX-512F and AVX512-BF16; `count * 16` elements must be readable from `lo` and `hi` and writable at
/// `out`. What is masked out need not be readable.
#[target_feature(enable = "avx512f,avx512bf16")]
pub(super) unsafe fn round_to_pairs(lo: Src, hi: Src, count: usize, mask: u32, out: Dst) {
    let (lo_mask, hi_mask) = (mask as u16, (mask >> 16) as u16);
    for at in (0..count * LANES).step_by(LANES) {
        // SAFETY: promised by the caller; a masked load does not touch what is masked out.
        unsafe {
            let (l, h) = if mask == u32::MAX {
                (_mm512_loadu_ps(lo.block(at)), _mm512_loadu_ps(hi.block(at)))
            } else {
                let some = |p: Src, mask: u16| _mm512_maskz_loadu_ps(mask, p.masked_block(at, mask));
                (some(lo, lo_mask), some(hi, hi_mask))
            };
            let pairs = _mm512_cvtne2ps_pbh(h, l);
            _mm512_storeu_si512(out.block(at).cast(), std::mem::transmute::<__m512bh, __m512i>(pairs));
        }
    }
}

impl<const PAIRS: bool> Simd for Avx512<PAIRS> {
    type V = __m512;

    #[inline(always)]
    fn splat(self, x: f32) -> __m512 {
        // SAFETY: the token proves AVX-512F.
        unsafe { _mm512_set1_ps(x) }
    }
    #[inline(always)]
    unsafe fn load(self, p: Src, at: usize) -> __m512 {
        // SAFETY: the token proves AVX-512F; readable by the caller's promise.
        unsafe { _mm512_loadu_ps(p.block(at)) }
    }
    #[inline(always)]
    unsafe fn store(self, p: Dst, at: usize, v: __m512) {
        // SAFETY: the token proves AVX-512F; writable by the caller's promise.
        unsafe { _mm512_storeu_ps(p.block(at), v) }
    }
    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the token proves AVX-512F.
        unsafe { _mm512_add_ps(a, b) }
    }
    #[inline(always)]
    fn sub(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the token proves AVX-512F.
        unsafe { _mm512_sub_ps(a, b) }
    }
    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the token proves AVX-512F.
        unsafe { _mm512_mul_ps(a, b) }
    }
    #[inline(always)]
    fn max(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the token proves AVX-512F.
        unsafe { _mm512_max_ps(a, b) }
    }
    #[inline(always)]
    fn min(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the token proves AVX-512F.
        unsafe { _mm512_min_ps(a, b) }
    }
    #[inline(always)]
    fn fma(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: the token proves AVX-512F.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    fn mac(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        if !PAIRS {
            return self.fma(a, b, c);
        }
        // SAFETY: a token with `PAIRS` proves AVX512-BF16; all these vectors are 512 bits of anything.
        unsafe {
            let pairs = |v: __m512| std::mem::transmute::<__m512, __m512bh>(v);
            _mm512_dpbf16_ps(c, pairs(a), pairs(b))
        }
    }
    #[inline(always)]
    fn fnma(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: the token proves AVX-512F.
        unsafe { _mm512_fnmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn deinterleave(self, a: __m512, b: __m512) -> (__m512, __m512) {
        // SAFETY: the token proves AVX-512F.
        unsafe {
            let even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
            let odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
            (_mm512_permutex2var_ps(a, even, b), _mm512_permutex2var_ps(a, odd, b))
        }
    }

    #[inline(always)]
    fn transpose(self, v: &mut [__m512; LANES]) {
        // 4x4 transposes inside the 128-bit lanes, then two exchanges of whole lanes.
        // SAFETY: the token proves AVX-512F.
        unsafe {
            let mut t = *v;
            for i in (0..LANES).step_by(4) {
                let (a, b, c, d) = (v[i], v[i + 1], v[i + 2], v[i + 3]);
                let (ab_lo, ab_hi) = (_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
                let (cd_lo, cd_hi) = (_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
                t[i] = _mm512_shuffle_ps::<0x44>(ab_lo, cd_lo);
                t[i + 1] = _mm512_shuffle_ps::<0xEE>(ab_lo, cd_lo);
                t[i + 2] = _mm512_shuffle_ps::<0x44>(ab_hi, cd_hi);
                t[i + 3] = _mm512_shuffle_ps::<0xEE>(ab_hi, cd_hi);
            }
            for i in 0..4 {
                // t[i + 4 g] holds column 4 l + i of rows 4 g .. 4 g + 4 in lane l.
                let (a, b, c, d) = (t[i], t[i + 4], t[i + 8], t[i + 12]);
                let (ab_even, ab_odd) = (_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xDD>(a, b));
                let (cd_even, cd_odd) = (_mm512_shuffle_f32x4::<0x88>(c, d), _mm512_shuffle_f32x4::<0xDD>(c, d));
                v[i] = _mm512_shuffle_f32x4::<0x88>(ab_even, cd_even);
                v[i + 4] = _mm512_shuffle_f32x4::<0x88>(ab_odd, cd_odd);
                v[i + 8] = _mm512_shuffle_f32x4::<0xDD>(ab_even, cd_even);
                v[i + 12] = _mm512_shuffle_f32x4::<0xDD>(ab_odd, cd_odd);
            }
        }
    }
}
