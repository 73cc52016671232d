//! Vectors of 16 `f32` lanes behind one trait, and the door from ordinary code into code compiled
//! for an instruction set.
//!
//! A kernel is written once as a [`Body`]: an `#[inline(always)]` function generic over [`Simd`].
//! [`entry`] instantiates it inside a `#[target_feature]` function of the wanted [`Isa`] and
//! returns a plain function pointer. The `Simd` values are zero-sized tokens that exist only inside
//! such functions, which is what makes their arithmetic safe to call.
//!
//! Bodies index arrays of vectors by constant ranges, which unroll into registers; iterators over
//! such arrays go through memory (twice the time of a whole layer in one case). Modules with bodies
//! therefore allow clippy's `needless_range_loop`. Nor do bodies put arithmetic into closures: one
//! that is not inlined is compiled without the instruction set and calls each instruction as a
//! function (four times the time of a layer); a test looks for such calls.

// What rounds to bf16 and what unpacks 28 bits a number is for AVX-512 alone.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]

mod ptr;

#[cfg(target_arch = "x86_64")]
#[allow(clippy::needless_range_loop)]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
#[allow(clippy::needless_range_loop)]
mod neon;
#[allow(clippy::needless_range_loop)]
mod portable;

pub(crate) use ptr::{Dst, Src};

use crate::isa::Isa;
use std::ops::Range;

/// Lanes of a vector, and channels of a block.
pub(crate) const LANES: usize = 16;

/// Sixteen `f32` lanes on one instruction set.
///
/// `max` and `min` return their second operand where either is NaN, so `max(limit, v)` keeps the
/// NaN of `v`.
pub(crate) trait Simd: Copy {
    /// Sixteen lanes.
    type V: Copy;
    /// Values that functions of several steps compute together, which keeps the units busy and fits
    /// the registers.
    const IN_PROGRESS: usize;

    fn splat(self, x: f32) -> Self::V;
    /// # Safety
    /// `p[at .. at + 16]` must be readable.
    unsafe fn load(self, p: Src, at: usize) -> Self::V;
    /// # Safety
    /// `p[at .. at + 16]` must be writable and not accessed by another thread.
    unsafe fn store(self, p: Dst, at: usize, v: Self::V);
    /// The first `n` lanes from memory, those from `n` on as in `rest`.
    /// # Safety
    /// `p[at .. at + n]` must be readable, and `n` at most 16.
    unsafe fn load_part(self, p: Src, at: usize, n: usize, rest: Self::V) -> Self::V;
    /// # Safety
    /// `p[at .. at + n]` must be writable and not accessed by another thread, and `n` at most 16.
    unsafe fn store_part(self, p: Dst, at: usize, n: usize, v: Self::V);
    /// The unit of [`load_bytes`](Self::load_bytes), a power of two.
    const BYTE_UNIT: f32 = 1.0;
    /// Sixteen whole numbers, a byte each, of four elements, times [`BYTE_UNIT`](Self::BYTE_UNIT).
    /// # Safety
    /// `p[at .. at + 4]` must be readable.
    unsafe fn load_bytes(self, p: Src, at: usize) -> Self::V;
    /// Sixteen values of bf16 of eight elements: lane i is the low half of element i, lane i + 8 its
    /// high half.
    /// # Safety
    /// `p[at .. at + 8]` must be readable.
    unsafe fn load_bf16(self, p: Src, at: usize) -> Self::V;
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    fn div(self, a: Self::V, b: Self::V) -> Self::V;
    fn max(self, a: Self::V, b: Self::V) -> Self::V;
    fn min(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a * b + c`
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// One step of a sum of products, `a * b + c`. Where lanes hold pairs of bf16, the products of
    /// both are added to `c`.
    #[inline(always)]
    fn mac(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        self.fma(a, b, c)
    }
    /// `c - a * b`
    fn fnma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// `low` where `v` is at most `limit`, else `high`.
    fn pick(self, v: Self::V, limit: Self::V, low: Self::V, high: Self::V) -> Self::V;
    /// `v` times two to the power of `n`, whole numbers between -152 and 130; exact except for
    /// results below the normal numbers.
    fn times_pow2(self, v: Self::V, n: Self::V) -> Self::V;
    /// The elements of `a` then `b` with even index, and those with odd index.
    fn deinterleave(self, a: Self::V, b: Self::V) -> (Self::V, Self::V);
    /// Turns 16 rows of 16 into 16 columns of 16.
    fn transpose(self, v: &mut [Self::V; LANES]);

    #[inline(always)]
    fn zero(self) -> Self::V {
        self.splat(0.0)
    }
    /// `x * a + b` with a scalar.
    #[inline(always)]
    fn axpy(self, x: f32, a: Self::V, b: Self::V) -> Self::V {
        self.fma(self.splat(x), a, b)
    }
    /// `b - x * a` with a scalar.
    #[inline(always)]
    fn naxpy(self, x: f32, a: Self::V, b: Self::V) -> Self::V {
        self.fnma(self.splat(x), a, b)
    }
    /// `v` between `lo` and `hi`; NaN stays NaN.
    #[inline(always)]
    fn clamp(self, v: Self::V, lo: Self::V, hi: Self::V) -> Self::V {
        self.min(hi, self.max(lo, v))
    }
}

/// A kernel written once for every instruction set. Implementations of `run` must be
/// `#[inline(always)]`.
pub(crate) trait Body {
    type Args;
    /// # Safety
    /// As the body says about its arguments.
    unsafe fn run<S: Simd>(s: S, args: &Self::Args);
}

/// The largest of the lanes of each of sixteen vectors, or their sum; of a NaN and a number the
/// larger is the number.
#[inline(always)]
pub(crate) fn across<S: Simd, const MAX: bool>(s: S, v: &mut [S::V; LANES]) -> S::V {
    s.transpose(v);
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            v[i] = if MAX { s.max(v[i + half], v[i]) } else { s.add(v[i], v[i + half]) };
        }
        half /= 2;
    }
    v[0]
}

/// Lanes that hold pairs of bf16, too: on AVX512-BF16, and with the same bits anywhere.
pub(crate) trait Rounding: Simd {
    /// 32 values as pairs of bf16: those of `low`, then those of `high`.
    fn round_to_pairs(self, low: Self::V, high: Self::V) -> Self::V;
    /// The values of pairs, `low` and `high`.
    fn values_of_pairs(self, pairs: Self::V) -> [Self::V; 2];
}

/// A kernel that rounds, as [`Body`].
pub(crate) trait PairsBody {
    type Args;
    /// # Safety
    /// As the body says about its arguments.
    unsafe fn run<S: Rounding>(s: S, args: &Self::Args);
}

/// A body compiled for one instruction set.
pub(crate) type Entry<A> = unsafe fn(&A);

/// `B` compiled for `isa`, or for the best the machine has below it.
pub(crate) fn entry<B: Body>(isa: Isa) -> Entry<B::Args> {
    match isa.or_best() {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => avx512::enter::<B>,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => avx2::enter::<B>,
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => neon::enter::<B>,
        _ => portable::enter::<B>,
    }
}

/// `B` compiled for AVX-512, whose 32 registers hold tiles that others would spill. Keeps such
/// tiles from being compiled where nothing uses them.
///
/// # Panics
/// On a machine without it: ask [`tile_size`](crate::gemm::tile::tile_size) which tiles an
/// instruction set has.
pub(crate) fn entry_wide<B: Body>() -> Entry<B::Args> {
    match Isa::detect() {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => avx512::enter::<B>,
        isa => panic!("a register tile for AVX-512 was asked for on a machine that has {isa}"),
    }
}

/// `B` compiled for AVX512-BF16: lanes that [`Simd::mac`] multiplies hold pairs of bf16.
///
/// # Panics
/// On a machine without it: ask [`has_bf16`](crate::isa::has_bf16).
pub(crate) fn entry_pairs<B: Body>() -> Entry<B::Args> {
    assert!(crate::isa::has_bf16(), "a product of bf16 was asked for on a machine without AVX512-BF16");
    #[cfg(target_arch = "x86_64")]
    return avx512::enter_pairs::<B>;
    #[cfg(not(target_arch = "x86_64"))]
    unreachable!("has_bf16 is false here")
}

/// `B` compiled for AVX512-BF16.
///
/// # Panics
/// On a machine without it: ask [`has_bf16`](crate::isa::has_bf16).
pub(crate) fn entry_rounding<B: PairsBody>() -> Entry<B::Args> {
    assert!(crate::isa::has_bf16(), "rounding to bf16 was asked for on a machine without AVX512-BF16");
    #[cfg(target_arch = "x86_64")]
    return avx512::enter_rounding::<B>;
    #[cfg(not(target_arch = "x86_64"))]
    unreachable!("has_bf16 is false here")
}

/// `B` compiled for AVX512-BF16 where `isa` has it, else for any machine.
pub(crate) fn entry_lines<B: PairsBody>(isa: Isa) -> Entry<B::Args> {
    #[cfg(target_arch = "x86_64")]
    if isa == Isa::Avx512 && crate::isa::has_bf16() {
        return avx512::enter_rounding::<B>;
    }
    let _ = isa;
    portable::enter_rounding::<B>
}

/// Rounds 32 channels of `count` pixels to pairs of bf16, 16 a pixel: the channels of two blocks,
/// of which those without a bit in `mask` count as zero.
///
/// # Safety
/// The machine must have AVX512-BF16; `lo` and `hi` must hold `count` pixels of the channels in
/// `mask`, `out` is written as far.
pub(crate) unsafe fn round_to_pairs(lo: Src, hi: Src, count: usize, mask: u32, out: Dst) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: promised by the caller.
    unsafe {
        avx512::round_to_pairs(lo, hi, count, mask, out);
    }
    #[cfg(not(target_arch = "x86_64"))]
    unreachable!("{:?}", (lo.address(0), hi.address(0), count, mask, out.as_src().address(0)))
}

/// Elements that the sign and mantissa of 32 numbers take in 28 bits each, and their codes.
pub(crate) const COMPACT_REST: usize = 2 * LANES * 3 / 4;
pub(crate) const COMPACT_CODES: usize = 2 * LANES / 8;
/// Steps that [`multiply_compact`] takes in one go, the most rows, and the distance to the next
/// row's values and sums: constants, which leave more registers.
pub(crate) const COMPACT_STEPS: usize = 4;
pub(crate) const COMPACT_VALUES_ROW: usize = 8 * COMPACT_STEPS;
pub(crate) const COMPACT_SUMS_ROW: usize = 32 * LANES;
pub(crate) const COMPACT_ROWS: usize = 12;

/// The positions of the steps of some neighbouring columns in 28 bits per number: for each 32 of
/// them three bytes per number (sign and mantissa) at `rest`, and codes of four bits, those of both
/// halves in a byte, at `codes`; `tables` gives the exponent, at its position, for each code.
#[derive(Clone, Copy)]
pub(crate) struct CompactColumns {
    pub rest: Src,
    pub codes: Src,
    /// Elements from one step to the next.
    pub step: usize,
    pub tables: Src,
    /// How many times 32 columns.
    pub pairs: usize,
}

/// Turns some steps of the first 32 columns into numbers, one step after another.
///
/// # Safety
/// The machine must have AVX512-VBMI; `columns` must have the steps and 16 elements after the last
/// one, a table for each of its pairs, and `out` room.
pub(crate) unsafe fn unpack_compact(columns: &CompactColumns, steps: Range<usize>, out: Dst) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: promised by the caller.
    unsafe {
        avx512::unpack_compact(columns, steps, out);
    }
    #[cfg(not(target_arch = "x86_64"))]
    unreachable!("{:?}", (columns.rest.address(0), steps, out.as_src().address(0)))
}

/// Four steps of a product of some rows.
pub(crate) struct CompactSteps {
    pub steps: [u32; COMPACT_STEPS],
    /// Steps that come next and are requested.
    pub soon: [u32; COMPACT_STEPS],
    /// The values of the first row at these steps, those of the next row [`COMPACT_VALUES_ROW`]
    /// elements on.
    pub values: Src,
    /// 32 sums for each pair of the first row, those of the next row [`COMPACT_SUMS_ROW`] elements
    /// on.
    pub sums: Dst,
}

/// Adds the columns' numbers at these steps, times the steps' values, to the sums of `rows` rows.
///
/// # Safety
/// As [`unpack_compact`]; and values and sums of up to [`COMPACT_ROWS`] rows must be where `x`
/// says.
pub(crate) unsafe fn multiply_compact(columns: &CompactColumns, x: &CompactSteps, rows: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: promised by the caller.
    unsafe {
        match rows {
            1 => avx512::multiply_compact::<1>(columns, x),
            2 => avx512::multiply_compact::<2>(columns, x),
            3 => avx512::multiply_compact::<3>(columns, x),
            4 => avx512::multiply_compact::<4>(columns, x),
            5 => avx512::multiply_compact::<5>(columns, x),
            6 => avx512::multiply_compact::<6>(columns, x),
            7 => avx512::multiply_compact::<7>(columns, x),
            8 => avx512::multiply_compact::<8>(columns, x),
            9 => avx512::multiply_compact::<9>(columns, x),
            10 => avx512::multiply_compact::<10>(columns, x),
            11 => avx512::multiply_compact::<11>(columns, x),
            COMPACT_ROWS => avx512::multiply_compact::<COMPACT_ROWS>(columns, x),
            _ => unreachable!("{rows} rows"),
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    unreachable!("{:?}", (columns.rest.address(0), x.values.address(0), x.sums.as_src().address(0), rows))
}

/// 32 numbers in 28 bits each, where code c is the exponent `top` - c and the last one zero's: sign
/// and mantissa to `rest`, codes to `codes`. A bit for every number whose exponent has no code; in
/// its place is the least number of its sign, which adds nothing to a sum and, other than zero,
/// makes infinity of infinity.
///
/// # Safety
/// The machine must have AVX512-VBMI; `numbers` must hold 32, `rest` have room for [`COMPACT_REST`]
/// elements and `codes` for [`COMPACT_CODES`].
pub(crate) unsafe fn pack_compact(numbers: Src, top: u32, rest: Dst, codes: Dst) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: promised by the caller; processors with VBMI have BW.
    unsafe {
        avx512::pack_compact(numbers, top, rest, codes)
    }
    #[cfg(not(target_arch = "x86_64"))]
    unreachable!("{:?}", (numbers.address(0), top, rest.as_src().address(0), codes.as_src().address(0)))
}

/// `B` compiled for an instruction set of at most 16 registers.
pub(crate) fn entry_narrow<B: Body>(isa: Isa) -> Entry<B::Args> {
    match isa.or_best() {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 | Isa::Avx512 => avx2::enter::<B>,
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => neon::enter::<B>,
        _ => portable::enter::<B>,
    }
}

/// Asks for the line at an address, which need not be valid, to be brought to the first-level
/// cache.
#[inline(always)]
pub(crate) fn request(p: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching is allowed on any address; SSE is part of the x86-64 baseline.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(p.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}

/// Asks for the line of `p + ahead` to be brought to the first-level cache. The address need not be
/// valid.
#[inline(always)]
pub(crate) fn prefetch_near(p: Src, ahead: usize) {
    request(p.address(ahead).cast());
}

/// Asks for the line at an address, which need not be valid, to be brought to the second-level
/// cache.
#[inline(always)]
pub(crate) fn request_far(p: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching is allowed on any address; SSE is part of the x86-64 baseline.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(p.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}

/// Asks for the line of `p + ahead` to be brought to the second-level cache. The address need not
/// be valid.
#[inline(always)]
pub(crate) fn prefetch_far(p: Src, ahead: usize) {
    request_far(p.address(ahead).cast());
}

#[cfg(test)]
mod tests;
