//! Depthwise convolutions with AVX512-VNNI.
//!
//! Bytes of four taps are interleaved, so that one instruction multiplies and adds them.
//! Interleaving works in quarters of a vector: vector q of four holds channels 4q to 4q + 3 of each
//! 16. Narrowing to bytes works the same way, and puts them in order again.

use super::super::depthwise::{CHANNELS, DepthwiseArgs};
use super::super::finish::Conversion;
use super::super::tile::{ByteEnd, PANEL, PANELS, TileEnd};
use super::bytes::{Narrow, PanelScale, read_panel};
use std::arch::x86_64::*;

/// Taps that are multiplied together.
const TAPS: usize = 4;
/// Channels of one of two windows in a vector.
pub(super) const HALF: usize = CHANNELS / 2;
/// Most taps whose weights are interleaved in the stack.
pub(crate) const MOST_TAPS: usize = 64;

/// 64 channels as they are interleaved, or in order.
pub(super) type Quarters = [__m512i; PANELS];

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

/// Computes 64 channels of each window, or 32 of two windows together: one of either half of all.
///
/// # Safety
/// The caller promises what [`depthwise_vnni`] asks for.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn channels<const HALVES: usize>(x: &DepthwiseArgs<'_>, end: TileEnd<'_, '_>) {
    let mut out = Out::<HALVES>::new(x, end);
    let groups = x.segments.len().div_ceil(TAPS);
    // Zeros for the most groups would take a tenth of the time.
    let mut weights = [const { std::mem::MaybeUninit::<Quarters>::uninit() }; MOST_TAPS / TAPS];
    for (g, weights) in weights.iter_mut().enumerate().take(groups) {
        weights.write(interleaved(std::array::from_fn(|t| match g * TAPS + t {
            // SAFETY: promised by the caller.
            tap if tap < x.segments.len() => unsafe { read([x.weights.as_ptr().wrapping_add(tap * x.width); HALVES]) },
            _ => _mm512_setzero_si512(),
        })));
    }
    // SAFETY: these were written.
    let weights = unsafe { weights[..groups].assume_init_ref() };
    for i in 0..out.each {
        let mut sums = out.first;
        let rows = out.windows(x, i).map(|start| x.data.as_ptr().wrapping_add(start));
        for (g, weights) in weights.iter().enumerate() {
            let data = interleaved(std::array::from_fn(|t| match x.segments.get(g * TAPS + t) {
                // SAFETY: promised by the caller.
                Some(segment) => unsafe { read(rows.map(|row| row.wrapping_add(*segment))) },
                None => _mm512_setzero_si512(),
            }));
            for q in 0..PANELS {
                sums[q] = _mm512_dpbusd_epi32(sums[q], data[q], weights[q]);
            }
        }
        out.store(i, sums);
    }
}

/// Destination of windows that are computed together.
struct Out<'a, 'b, const HALVES: usize> {
    end: TileEnd<'a, 'b>,
    scale: Option<QuarterScale>,
    /// Numbers that sums begin with.
    first: Quarters,
    /// Windows.
    count: usize,
    /// Windows of a half.
    each: usize,
}

impl<'a, 'b, const HALVES: usize> Out<'a, 'b, HALVES> {
    /// Channels of a window.
    const WIDTH: usize = CHANNELS / HALVES;

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn new(x: &DepthwiseArgs<'_>, end: TileEnd<'a, 'b>) -> Self {
        let scale = match &end {
            TileEnd::Bytes(end, _) => Some(QuarterScale::read::<HALVES>(end)),
            TileEnd::Sums(_) => None,
        };
        let first = first_sums::<HALVES>(x);
        let first = scale.as_ref().map_or(first, |scale| scale.first(first));
        Out { end, scale, first, count: x.starts.len(), each: x.starts.len().div_ceil(HALVES) }
    }

    /// Offsets of the windows that are computed as number `i` of each half. The last window stands
    /// for one that is not there.
    #[inline]
    fn windows(&self, x: &DepthwiseArgs<'_>, i: usize) -> [usize; HALVES] {
        std::array::from_fn(|half| x.starts[(half * self.each + i).min(self.count - 1)])
    }

    /// Writes the windows of number `i` of each half.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn store(&mut self, i: usize, sums: Quarters) {
        let rows = (0..HALVES).map(|half| half * self.each + i).filter(|row| *row < self.count);
        match (&mut self.end, &self.scale) {
            (TileEnd::Bytes(_, out), Some(scale)) => {
                let bytes = scale.bytes(sums);
                for (half, row) in rows.enumerate() {
                    let row = out.row(row);
                    assert!(row.len() >= Self::WIDTH);
                    let to = row.as_mut_ptr();
                    // SAFETY: the row has the bytes of a half, or of all.
                    unsafe {
                        match (HALVES, half) {
                            (1, _) => _mm512_storeu_si512(to.cast(), bytes),
                            (_, 0) => _mm256_storeu_si256(to.cast(), _mm512_castsi512_si256(bytes)),
                            _ => _mm256_storeu_si256(to.cast(), _mm512_extracti64x4_epi64::<1>(bytes)),
                        }
                    }
                }
            }
            (TileEnd::Sums(out), _) => {
                let panels = turned(sums);
                for (half, row) in rows.enumerate() {
                    for (p, sums) in panels[half * PANELS / HALVES..][..PANELS / HALVES].iter().enumerate() {
                        // SAFETY: a row has 64 sums.
                        unsafe { _mm512_storeu_si512(out[row].as_mut_ptr().add(p * PANEL).cast(), *sums) }
                    }
                }
            }
            _ => unreachable!("bytes have a scale"),
        }
    }
}

/// The numbers that sums of 64 channels, or twice of 32, begin with.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn first_sums<const HALVES: usize>(x: &DepthwiseArgs<'_>) -> Quarters {
    turned(std::array::from_fn(|p| {
        // SAFETY: there are 64 numbers.
        unsafe { _mm512_loadu_si512(x.first.as_ptr().add(p * PANEL % (CHANNELS / HALVES)).cast()) }
    }))
}

/// Reads 64 bytes, or 32 of two places.
///
/// # Safety
/// There are 64 bytes, or 32 at each place.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn read<const WINDOWS: usize>(places: [*const u8; WINDOWS]) -> __m512i {
    // SAFETY: promised by the caller.
    unsafe {
        if WINDOWS == 1 {
            return _mm512_loadu_si512(places[0].cast());
        }
        let low = _mm512_castsi256_si512(_mm256_loadu_si256(places[0].cast()));
        _mm512_inserti64x4::<1>(low, _mm256_loadu_si256(places[WINDOWS - 1].cast()))
    }
}

/// Interleaves the bytes of four vectors.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn interleaved([a, b, c, d]: Quarters) -> Quarters {
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

/// Makes bytes of interleaved sums.
pub(super) struct QuarterScale {
    scales: [PanelScale; PANELS],
    conversion: Conversion,
    narrow: Narrow,
}

impl QuarterScale {
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn read<const HALVES: usize>(end: &ByteEnd<'_>) -> QuarterScale {
        let read = |values: &[f32]| {
            let panel = |p: usize| read_panel(&values[end.first..], p * PANEL % (CHANNELS / HALVES));
            turned(std::array::from_fn(|p| _mm512_castps_si512(panel(p)))).map(|quarter| _mm512_castsi512_ps(quarter))
        };
        let (bias, factor, conversion) = (read(end.sums.bias), read(end.sums.factor), end.conversion);
        let scales = std::array::from_fn(|q| PanelScale::new(conversion, bias[q], factor[q]));
        QuarterScale { scales, conversion, narrow: Narrow::of(end) }
    }

    /// The numbers that sums begin with, beyond those of the weights.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn first(&self, first: Quarters) -> Quarters {
        std::array::from_fn(|q| _mm512_add_epi32(first[q], self.scales[q].first))
    }

    /// The bytes of 64 channels in order.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub fn bytes(&self, sums: Quarters) -> __m512i {
        self.narrow.quarters(std::array::from_fn(|q| {
            let (scale, sum) = (&self.scales[q], sums[q]);
            _mm512_cvtps_epi32(match self.conversion {
                Conversion::Bits => scale.of_bits(sum),
                Conversion::WholeBias => scale.of_whole(sum),
                Conversion::Bias => scale.of_sum(sum),
            })
        }))
    }
}
