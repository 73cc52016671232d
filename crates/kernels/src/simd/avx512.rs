//! AVX-512F: sixteen lanes in one register.

use std::arch::x86_64::*;

use super::{Body, Dst, LANES, Simd, Src};

/// Exists only inside functions compiled for AVX-512F.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

/// Runs `B` compiled for AVX-512F.
///
/// # Safety
/// The machine must have AVX-512F; and as `B` says about its arguments.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn enter<B: Body>(args: &B::Args) {
    // SAFETY: promised by the caller.
    unsafe { B::run(Avx512(()), args) }
}

impl Simd for Avx512 {
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
