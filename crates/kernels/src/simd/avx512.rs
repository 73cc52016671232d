//! AVX-512F: sixteen lanes in one register; and the same with products of pairs of bf16.

use std::arch::x86_64::*;
use std::ops::Range;

use super::ptr::{load, store};
use super::{
    Body, COMPACT_CODES, COMPACT_REST, COMPACT_STEPS, COMPACT_SUMS_ROW, COMPACT_VALUES_ROW, CompactColumns,
    CompactSteps, Dst, LANES, PairsBody, Rounding, Simd, Src, prefetch_near,
};

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

/// Runs `B` compiled for AVX512-BF16.
///
/// # Safety
/// The machine must have AVX-512F and AVX512-BF16; and as `B` says about its arguments.
#[target_feature(enable = "avx512f,avx512bf16")]
pub(super) unsafe fn enter_rounding<B: PairsBody>(args: &B::Args) {
    // SAFETY: promised by the caller.
    unsafe { B::run(Avx512::<true>(()), args) }
}

/// Rounds `count` times 32 values to 16 pairs: the values `lo[i * 16 ..]` then `hi[i * 16 ..]`, of
/// which those without a bit in `mask` become zero, to `out[i * 16 ..]`.
///
/// # Safety
/// The machine must have AVX-512F and AVX512-BF16; `count * 16` elements must be readable from `lo`
/// and `hi` and writable at `out`. What is masked out need not be readable.
#[target_feature(enable = "avx512f,avx512bf16")]
pub(super) unsafe fn round_to_pairs(lo: Src, hi: Src, count: usize, mask: u32, out: Dst) {
    let (lo_mask, hi_mask) = (mask as u16, (mask >> 16) as u16);
    for at in (0..count * LANES).step_by(LANES) {
        // SAFETY: promised by the caller; a masked load does not touch what is masked out.
        unsafe {
            let (l, h) = if mask == u32::MAX {
                (load(lo.block(at)), load(hi.block(at)))
            } else {
                let some = |p: Src, mask: u16| _mm512_maskz_loadu_ps(mask, p.masked_block(at, mask));
                (some(lo, lo_mask), some(hi, hi_mask))
            };
            let pairs = _mm512_cvtne2ps_pbh(h, l);
            _mm512_storeu_si512(out.block(at).cast(), std::mem::transmute::<__m512bh, __m512i>(pairs));
        }
    }
}

/// The constants that convert 28 bits to numbers.
#[derive(Clone, Copy)]
struct Compact {
    /// The highest of the three bytes twice: its first bit is the sign, the others continue the
    /// mantissa.
    bytes: __m512i,
    kept: __m512i,
}

impl Compact {
    #[target_feature(enable = "avx512f")]
    fn new() -> Compact {
        let bytes: [i32; LANES] = std::array::from_fn(|i| i32::from_le_bytes([0, 1, 2, 2].map(|b| 3 * i as u8 + b)));
        // SAFETY: as many bytes as are loaded.
        let bytes = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
        Compact { bytes, kept: _mm512_set1_epi32(!0x7f80_0000) }
    }

    /// 32 numbers in two vectors.
    ///
    /// # Safety
    /// Signs and mantissas must be readable at `rest`, codes at `codes`, and 16 elements after
    /// both.
    #[target_feature(enable = "avx512f,avx512vbmi")]
    #[inline]
    unsafe fn pair(self, rest: Src, codes: Src, table: __m512i) -> [__m512; 2] {
        // SAFETY: promised by the caller.
        unsafe {
            let low = load(rest.block(0));
            let high = load(rest.block(COMPACT_REST / 2));
            let codes = _mm512_cvtepu8_epi32(load(codes.block(0)));
            let codes = [(low, codes), (high, _mm512_srli_epi32::<4>(codes))];
            codes.map(|(rest, codes)| {
                let rest = _mm512_permutexvar_epi8(self.bytes, rest);
                let exponents = _mm512_permutexvar_epi32(codes, table);
                // (rest & kept) | exponent
                _mm512_castsi512_ps(_mm512_ternarylogic_epi32::<0xEA>(rest, self.kept, exponents))
            })
        }
    }
}

/// Implements [`super::unpack_compact`].
///
/// # Safety
/// The machine must have AVX-512F and AVX512-VBMI; and as there.
#[target_feature(enable = "avx512f,avx512vbmi")]
pub(super) unsafe fn unpack_compact(x: &CompactColumns, steps: Range<usize>, out: Dst) {
    let compact = Compact::new();
    // SAFETY: promised by the caller.
    unsafe {
        let table = load(x.tables.block(0));
        for (i, step) in steps.enumerate() {
            let numbers = compact.pair(x.rest.add(step * x.step), x.codes.add(step * x.step), table);
            for (half, numbers) in numbers.into_iter().enumerate() {
                store(out.block((2 * i + half) * LANES), numbers);
            }
        }
    }
}

/// Implements [`super::multiply_compact`].
///
/// # Safety
/// The machine must have AVX-512F and AVX512-VBMI; and as there, with `M` rows.
#[target_feature(enable = "avx512f,avx512vbmi")]
#[allow(clippy::needless_range_loop)]
pub(super) unsafe fn multiply_compact<const M: usize>(x: &CompactColumns, y: &CompactSteps) {
    let compact = Compact::new();
    // SAFETY: promised by the caller.
    unsafe {
        for pair in 0..x.pairs {
            let table = load(x.tables.block(pair * LANES));
            let mut sums = [[_mm512_setzero_ps(); 2]; M];
            for m in 0..M {
                for half in 0..2 {
                    sums[m][half] = load(y.sums.as_src().block(m * COMPACT_SUMS_ROW + (pair * 2 + half) * LANES));
                }
            }
            for s in 0..COMPACT_STEPS {
                let (at, soon) = (y.steps[s] as usize * x.step, y.soon[s] as usize * x.step);
                let (rest, codes) = (x.rest.add(at + pair * COMPACT_REST), x.codes.add(at + pair * COMPACT_CODES));
                let numbers = compact.pair(rest, codes, table);
                // As much as a pair takes, which is less than two lines.
                prefetch_near(x.rest, soon + pair * (COMPACT_REST + COMPACT_CODES));
                prefetch_near(x.rest, soon + pair * (COMPACT_REST + COMPACT_CODES) + LANES);
                for m in 0..M {
                    let value = _mm512_set1_ps(y.values.read(m * COMPACT_VALUES_ROW + s));
                    for half in 0..2 {
                        sums[m][half] = _mm512_fmadd_ps(value, numbers[half], sums[m][half]);
                    }
                }
            }
            for m in 0..M {
                for half in 0..2 {
                    store(y.sums.block(m * COMPACT_SUMS_ROW + (pair * 2 + half) * LANES), sums[m][half]);
                }
            }
        }
    }
}

/// Implements [`super::pack_compact`].
///
/// # Safety
/// The machine must have AVX-512F, AVX512-BW and AVX512-VBMI; and as there.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub(super) unsafe fn pack_compact(numbers: Src, top: u32, rest: Dst, codes: Dst) -> u32 {
    const CODES: i32 = 15;
    let bytes: [[u8; 3]; LANES] = std::array::from_fn(|i| [0, 1, 2].map(|b| 4 * i as u8 + b));
    // SAFETY: promised by the caller; a masked load or store does not touch what is masked out.
    unsafe {
        let used = (1u64 << 48) - 1;
        let bytes = _mm512_maskz_loadu_epi8(used, bytes.as_ptr().cast());
        let (top, zero) = (_mm512_set1_epi32(top as i32), _mm512_set1_epi32(CODES));
        let sign = _mm512_set1_epi32(1 << 23);
        let half = |at: usize| {
            let v = load(numbers.block(at));
            let exponent = _mm512_and_si512(_mm512_srli_epi32::<23>(v), _mm512_set1_epi32(0xff));
            let code = _mm512_min_epu32(_mm512_sub_epi32(top, exponent), zero);
            let none = _mm512_mask_test_epi32_mask(_mm512_cmpeq_epi32_mask(code, zero), exponent, exponent);
            // mantissa | (number >> 8 & sign)
            let kept = _mm512_and_si512(v, _mm512_set1_epi32(0x7f_ffff));
            let kept = _mm512_ternarylogic_epi32::<0xF8>(kept, _mm512_srli_epi32::<8>(v), sign);
            let least = _mm512_ternarylogic_epi32::<0xEA>(_mm512_srli_epi32::<8>(v), sign, _mm512_set1_epi32(1));
            let kept = _mm512_permutexvar_epi8(bytes, _mm512_mask_mov_epi32(kept, none, least));
            _mm512_mask_storeu_epi8(rest.part(at * 3 / 4, COMPACT_REST / 2).cast(), used, kept);
            (code, u32::from(none))
        };
        let ((low, low_none), (high, high_none)) = (half(0), half(LANES));
        let both = _mm512_cvtepi32_epi8(_mm512_or_si512(low, _mm512_slli_epi32::<4>(high)));
        _mm_storeu_si128(codes.part(0, COMPACT_CODES).cast(), both);
        low_none | high_none << LANES
    }
}

impl<const PAIRS: bool> Simd for Avx512<PAIRS> {
    type V = __m512;
    const IN_PROGRESS: usize = 4;

    #[inline(always)]
    fn splat(self, x: f32) -> __m512 {
        // SAFETY: the token proves AVX-512F.
        unsafe { _mm512_set1_ps(x) }
    }
    #[inline(always)]
    unsafe fn load(self, p: Src, at: usize) -> __m512 {
        // SAFETY: the token proves AVX-512F; readable by the caller's promise.
        unsafe { load(p.block(at)) }
    }
    #[inline(always)]
    unsafe fn store(self, p: Dst, at: usize, v: __m512) {
        // SAFETY: the token proves AVX-512F; writable by the caller's promise.
        unsafe { store(p.block(at), v) }
    }
    #[inline(always)]
    unsafe fn load_part(self, p: Src, at: usize, n: usize, rest: __m512) -> __m512 {
        let mask = first_lanes(n);
        // SAFETY: the token proves AVX-512F; a masked load does not touch what is masked out.
        unsafe { _mm512_mask_loadu_ps(rest, mask, p.masked_block(at, mask)) }
    }
    #[inline(always)]
    unsafe fn store_part(self, p: Dst, at: usize, n: usize, v: __m512) {
        // SAFETY: the token proves AVX-512F; a masked store does not touch what is masked out.
        unsafe { _mm512_mask_storeu_ps(p.part(at, n), first_lanes(n), v) }
    }
    #[inline(always)]
    unsafe fn load_bytes(self, p: Src, at: usize) -> __m512 {
        // SAFETY: the token proves AVX-512F; readable by the caller's promise.
        unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load(p.run(at, LANES / 4)))) }
    }
    #[inline(always)]
    unsafe fn load_bf16(self, p: Src, at: usize) -> __m512 {
        // SAFETY: the token proves AVX-512F; readable by the caller's promise.
        unsafe {
            let pairs = _mm512_broadcast_i64x4(load(p.run(at, LANES / 2)));
            let counts = _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 16, 16, 16, 16, 16, 16, 16, 16);
            _mm512_castsi512_ps(_mm512_and_si512(_mm512_sllv_epi32(pairs, counts), _mm512_set1_epi32(!0xffff)))
        }
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
    fn div(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the token proves AVX-512F.
        unsafe { _mm512_div_ps(a, b) }
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
        // SAFETY: a token with `PAIRS` proves AVX512-BF16; all these vectors are 512 bits of
        // anything.
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
    fn pick(self, v: __m512, limit: __m512, low: __m512, high: __m512) -> __m512 {
        // SAFETY: the token proves AVX-512F.
        unsafe { _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LE_OQ>(v, limit), high, low) }
    }
    #[inline(always)]
    fn times_pow2(self, v: __m512, n: __m512) -> __m512 {
        // SAFETY: the token proves AVX-512F.
        unsafe { _mm512_scalef_ps(v, n) }
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

/// A bit for each of the first `n` lanes.
#[inline(always)]
fn first_lanes(n: usize) -> u16 {
    ((1u32 << n) - 1) as u16
}

impl Rounding for Avx512<true> {
    #[inline(always)]
    fn round_to_pairs(self, low: __m512, high: __m512) -> __m512 {
        // SAFETY: the token proves AVX512-BF16; all these vectors are 512 bits of anything.
        unsafe { std::mem::transmute::<__m512bh, __m512>(_mm512_cvtne2ps_pbh(high, low)) }
    }

    #[inline(always)]
    fn values_of_pairs(self, pairs: __m512) -> [__m512; 2] {
        // SAFETY: the token proves AVX-512F.
        unsafe {
            let pairs = _mm512_castps_si512(pairs);
            let low = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(pairs));
            let high = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64::<1>(pairs));
            [_mm512_castsi512_ps(_mm512_slli_epi32::<16>(low)), _mm512_castsi512_ps(_mm512_slli_epi32::<16>(high))]
        }
    }
}
