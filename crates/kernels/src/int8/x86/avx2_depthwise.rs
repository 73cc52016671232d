//! Depthwise convolutions with AVX2: two taps at once, as pairs of 16 bits.

use super::super::depthwise::{CHANNELS, DepthwiseArgs};
use super::super::tile::Sums;
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

/// Most taps that have weights in pairs.
pub(crate) const MOST_TAPS: usize = 2 * PAIRS;
/// Most pairs of taps.
const PAIRS: usize = 25;
/// Pairs of the taps of 3x3 windows.
const USUAL: usize = 5;
/// Channels that are widened together.
const WIDE: usize = 16;
/// Vectors of the sums of these.
const HALVES: usize = 2;

/// Two taps of 64 channels.
#[derive(Clone, Copy)]
struct Pair {
    /// Offsets of the taps.
    segments: [usize; 2],
    weights: [[__m256i; HALVES]; CHANNELS / WIDE],
}

/// Computes the sums of the first `count` of 64 channels of windows.
///
/// # Safety
/// The machine has AVX2, and every tap of every window has 64 bytes in the data and in the weights.
///
/// # Panics
/// If there are more taps than [`MOST_TAPS`].
#[target_feature(enable = "avx2")]
pub(crate) unsafe fn depthwise_avx2(x: &DepthwiseArgs<'_>, count: usize, sums: &mut [Sums]) {
    let mut pairs = [const { MaybeUninit::uninit() }; PAIRS];
    let pairs = &mut pairs[..x.segments.len().div_ceil(2)];
    for (i, pair) in pairs.iter_mut().enumerate() {
        // SAFETY: promised by the caller.
        pair.write(unsafe { pair_of(x, 2 * i) });
    }
    // SAFETY: all were written.
    let pairs = unsafe { pairs.assume_init_ref() };
    // SAFETY: promised by the caller.
    unsafe {
        match pairs.len() {
            USUAL => windows::<USUAL>(x, pairs, count.div_ceil(WIDE), sums),
            _ => windows::<0>(x, pairs, count.div_ceil(WIDE), sums),
        }
    }
}

/// The taps from this one on. A tap that is not there has the place of the other, and no weights.
///
/// # Safety
/// The first tap has 64 weights, and so has the second if it is there.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn pair_of(x: &DepthwiseArgs<'_>, first: usize) -> Pair {
    let second = x.segments.get(first + 1);
    let mut weights = [[_mm256_setzero_si256(); HALVES]; CHANNELS / WIDE];
    for (c, to) in weights.iter_mut().enumerate() {
        let mut taps = [_mm256_setzero_si256(); 2];
        for (i, tap) in taps.iter_mut().enumerate().take(1 + usize::from(second.is_some())) {
            // SAFETY: promised by the caller.
            let bytes = unsafe { _mm_loadu_si128(x.weights.as_ptr().add((first + i) * x.width + c * WIDE).cast()) };
            *tap = _mm256_cvtepi8_epi16(bytes);
        }
        *to = interleaved(taps[0], taps[1]);
    }
    let segment = x.segments[first];
    Pair { segments: [segment, *second.unwrap_or(&segment)], weights }
}

/// Computes the sums of windows of N pairs, or of any number if N is zero, for `parts` times 16
/// channels.
///
/// # Safety
/// Every tap of every window has these bytes.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn windows<const N: usize>(x: &DepthwiseArgs<'_>, pairs: &[Pair], parts: usize, sums: &mut [Sums]) {
    assert!(parts * WIDE <= CHANNELS && (N == 0 || N == pairs.len()), "{parts} parts, {} pairs", pairs.len());
    let count = if N > 0 { N } else { pairs.len() };
    for (start, sums) in x.starts.iter().zip(sums) {
        for c in 0..parts {
            let from = x.data.as_ptr().wrapping_add(start + c * WIDE);
            let mut totals = [_mm256_setzero_si256(); HALVES];
            // SAFETY: promised by the caller; there are as many pairs and channels.
            unsafe {
                for i in 0..count {
                    let Pair { segments: [a, b], weights } = &*pairs.as_ptr().add(i);
                    let data = interleaved(read(from.add(*a)), read(from.add(*b)));
                    for h in 0..HALVES {
                        let products =
                            _mm256_madd_epi16(data[h], *weights.as_ptr().cast::<__m256i>().add(c * HALVES + h));
                        totals[h] = _mm256_add_epi32(totals[h], products);
                    }
                }
                // Sums have channels 0 to 3 and 8 to 11, and those between them.
                let low = _mm256_permute2x128_si256::<0x20>(totals[0], totals[1]);
                let high = _mm256_permute2x128_si256::<0x31>(totals[0], totals[1]);
                let (first, to) = (x.first.as_ptr().add(c * WIDE), sums.as_mut_ptr().add(c * WIDE));
                store(first, low, to);
                store(first.add(WIDE / HALVES), high, to.add(WIDE / HALVES));
            }
        }
    }
}

/// Widens 16 bytes.
///
/// # Safety
/// There are these bytes.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn read(from: *const u8) -> __m256i {
    // SAFETY: promised by the caller.
    _mm256_cvtepu8_epi16(unsafe { _mm_loadu_si128(from.cast()) })
}

/// Writes sums and what they begin with.
///
/// # Safety
/// There are eight numbers at each place.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store(first: *const i32, sums: __m256i, to: *mut i32) {
    // SAFETY: promised by the caller.
    unsafe { _mm256_storeu_si256(to.cast(), _mm256_add_epi32(_mm256_loadu_si256(first.cast()), sums)) }
}

/// Makes pairs of the numbers of two vectors.
#[inline]
#[target_feature(enable = "avx2")]
fn interleaved(a: __m256i, b: __m256i) -> [__m256i; HALVES] {
    [_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)]
}
