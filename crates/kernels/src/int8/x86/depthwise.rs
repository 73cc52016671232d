//! Depthwise convolutions with AVX512-VNNI.
//!
//! Bytes of four taps are interleaved, so that one instruction multiplies and adds them.
//! Interleaving works in quarters of a vector: vector q of four holds channels 4q to 4q + 3 of each
//! 16. Narrowing to bytes works the same way, and puts them in order again.

use super::super::depthwise::{CHANNELS, DepthwiseArgs};
use super::super::tile::{ByteEnd, PANEL, PANELS, TileEnd};
use super::Narrow;
use std::arch::x86_64::*;

/// Taps that are multiplied together.
const TAPS: usize = 4;
/// Channels of one of two windows in a vector.
const HALF: usize = CHANNELS / 2;
/// Most taps whose weights are interleaved in the stack.
pub(crate) const MOST_TAPS: usize = 64;

/// 64 channels as they are interleaved, or in order.
type Quarters = [__m512i; PANELS];

/// Computes the sums, or the bytes that they become, of 64 channels, of which `count` are wanted.
///
/// # Safety
/// The machine has AVX512-VNNI; every tap of every window has 64 bytes in the data and in the
/// weights, and there are at most [`MOST_TAPS`] taps; `end` has as many rows as there are windows.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(crate) unsafe fn depthwise_vnni(x: &DepthwiseArgs<'_>, count: usize, end: TileEnd<'_, '_>) {
    // SAFETY: promised by the caller.
    unsafe { if count <= HALF { channels::<2>(x, end) } else { channels::<1>(x, end) } }
}

/// Computes 64 channels of each window, or 32 of two windows together.
///
/// # Safety
/// The caller promises what [`depthwise_vnni`] asks for.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn channels<const WINDOWS: usize>(x: &DepthwiseArgs<'_>, mut end: TileEnd<'_, '_>) {
    let taps = x.segments.len();
    let groups = taps.div_ceil(TAPS);
    let mut weights = [[_mm512_setzero_si512(); PANELS]; MOST_TAPS / TAPS];
    for (g, weights) in weights.iter_mut().enumerate().take(groups) {
        *weights = interleaved(|t| match g * TAPS + t < taps {
            // SAFETY: promised by the caller.
            true => unsafe { read([x.weights.as_ptr().wrapping_add((g * TAPS + t) * x.width); WINDOWS]) },
            false => _mm512_setzero_si512(),
        });
    }
    let first = turned(std::array::from_fn(|p| {
        // SAFETY: there are 64 numbers.
        unsafe { _mm512_loadu_si512(x.first.as_ptr().add(p * PANEL % (CHANNELS / WINDOWS)).cast()) }
    }));
    let scale = match &end {
        TileEnd::Bytes(end, _) => Some(QuarterScale::read(end, CHANNELS / WINDOWS)),
        TileEnd::Sums(_) => None,
    };
    for (i, starts) in x.starts.chunks(WINDOWS).enumerate() {
        // The last window stands for one that is not there.
        let start = |w: usize| starts[w.min(starts.len() - 1)];
        let rows: [*const u8; WINDOWS] = std::array::from_fn(|w| x.data.as_ptr().wrapping_add(start(w)));
        let mut sums = first;
        for (g, weights) in weights.iter().enumerate().take(groups) {
            let data = interleaved(|t| match x.segments.get(g * TAPS + t) {
                // SAFETY: promised by the caller.
                Some(segment) => unsafe { read(rows.map(|row| row.wrapping_add(*segment))) },
                None => _mm512_setzero_si512(),
            });
            for q in 0..PANELS {
                sums[q] = _mm512_dpbusd_epi32(sums[q], data[q], weights[q]);
            }
        }
        let windows = i * WINDOWS..i * WINDOWS + starts.len();
        // SAFETY: a row has 64 columns.
        unsafe {
            match (&mut end, &scale) {
                (TileEnd::Bytes(_, out), Some(scale)) => write::<WINDOWS>(scale.bytes(sums), &mut out[windows]),
                (TileEnd::Sums(out), _) => {
                    for (p, sums) in turned(sums).into_iter().enumerate() {
                        let at = p * PANEL;
                        if let Some(out) = out[windows.clone()].get_mut(at / (CHANNELS / WINDOWS)) {
                            let at = at % (CHANNELS / WINDOWS);
                            _mm512_storeu_si512(out.as_mut_ptr().add(at).cast(), sums);
                        }
                    }
                }
                _ => unreachable!("bytes have a scale"),
            }
        }
    }
}

/// Reads 64 bytes, or 32 of two places.
///
/// # Safety
/// There are 64 bytes, or 32 at each place.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn read<const WINDOWS: usize>(places: [*const u8; WINDOWS]) -> __m512i {
    // SAFETY: promised by the caller.
    unsafe {
        if WINDOWS == 1 {
            return _mm512_loadu_si512(places[0].cast());
        }
        let low = _mm512_castsi256_si512(_mm256_loadu_si256(places[0].cast()));
        _mm512_inserti64x4::<1>(low, _mm256_loadu_si256(places[WINDOWS - 1].cast()))
    }
}

/// Writes 64 bytes, or 32 to each of two rows.
#[inline]
#[target_feature(enable = "avx512f")]
fn write<const WINDOWS: usize>(bytes: __m512i, rows: &mut [&mut [u8; CHANNELS]]) {
    // SAFETY: a row has 64 bytes.
    unsafe {
        match rows {
            [row] if WINDOWS == 1 => _mm512_storeu_si512(row.as_mut_ptr().cast(), bytes),
            [row, others @ ..] => {
                _mm256_storeu_si256(row.as_mut_ptr().cast(), _mm512_castsi512_si256(bytes));
                if let [other] = others {
                    let high = _mm512_extracti64x4_epi64::<1>(bytes);
                    _mm256_storeu_si256(other.as_mut_ptr().cast(), high);
                }
            }
            [] => {}
        }
    }
}

/// Interleaves the bytes of four vectors.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn interleaved(tap: impl Fn(usize) -> __m512i) -> Quarters {
    let [a, b, c, d] = [tap(0), tap(1), tap(2), tap(3)];
    let [low, high] = [_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b)];
    let [other_low, other_high] = [_mm512_unpacklo_epi8(c, d), _mm512_unpackhi_epi8(c, d)];
    [
        _mm512_unpacklo_epi16(low, other_low),
        _mm512_unpackhi_epi16(low, other_low),
        _mm512_unpacklo_epi16(high, other_high),
        _mm512_unpackhi_epi16(high, other_high),
    ]
}

/// Turns four vectors of four quarters: those of panels into those of interleaved channels, and
/// back.
#[inline]
#[target_feature(enable = "avx512f")]
fn turned([a, b, c, d]: Quarters) -> Quarters {
    let [low, high] = [_mm512_shuffle_i32x4::<0x88>(a, b), _mm512_shuffle_i32x4::<0xdd>(a, b)];
    let [other_low, other_high] = [_mm512_shuffle_i32x4::<0x88>(c, d), _mm512_shuffle_i32x4::<0xdd>(c, d)];
    [
        _mm512_shuffle_i32x4::<0x88>(low, other_low),
        _mm512_shuffle_i32x4::<0x88>(high, other_high),
        _mm512_shuffle_i32x4::<0xdd>(low, other_low),
        _mm512_shuffle_i32x4::<0xdd>(high, other_high),
    ]
}

/// Biases and factors that make numbers of interleaved sums, and bytes of them.
struct QuarterScale {
    bias: [__m512; PANELS],
    factor: [__m512; PANELS],
    narrow: Narrow,
}

impl QuarterScale {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn read(end: &ByteEnd<'_>, count: usize) -> QuarterScale {
        let read = |values: &[f32]| {
            let mut some = [0f32; CHANNELS];
            for some in some.chunks_mut(count) {
                some.iter_mut().zip(&values[end.first..]).for_each(|(to, from)| *to = *from);
            }
            // SAFETY: there are 64 numbers.
            let panels = std::array::from_fn(|p| unsafe { _mm512_loadu_si512(some.as_ptr().add(p * PANEL).cast()) });
            turned(panels).map(|quarter| _mm512_castsi512_ps(quarter))
        };
        QuarterScale { bias: read(end.sums.bias), factor: read(end.sums.factor), narrow: Narrow::of(end) }
    }

    /// The bytes of 64 channels in order.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn bytes(&self, sums: Quarters) -> __m512i {
        self.narrow.quarters(std::array::from_fn(|q| {
            let v = _mm512_mul_ps(_mm512_add_ps(_mm512_cvtepi32_ps(sums[q]), self.bias[q]), self.factor[q]);
            _mm512_cvtps_epi32(v)
        }))
    }
}
