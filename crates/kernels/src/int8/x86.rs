//! Tiles of products with AVX2 and AVX512-VNNI.

use super::finish::{Conversion, ScaledSums, SumsBlock};
use super::function::{Function, apply_each};
use super::tile::{COLUMNS, GROUP, PANEL, PANELS, ROWS, Sums, TileArgs, TileEnd};
use crate::par::PickedRows;
use std::arch::x86_64::*;
use std::ops::Range;

mod bytes;
mod depthwise;
pub(super) use bytes::finish_rows;
use bytes::{Narrow, PanelScale, add_bytes};
pub(super) use depthwise::{MOST_TAPS, depthwise_vnni};

/// Bytes of the weights of a group of a panel.
const LINE: usize = GROUP * PANEL;
/// Rows of a tile of one or two panels.
const HIGH_ROWS: usize = 2 * ROWS;
/// Rows that share the registers of AVX2.
const AVX2_ROWS: usize = 2;

/// Computes the sums of whole tiles, or of one row, with AVX512-VNNI.
///
/// # Safety
/// The machine has AVX512-VNNI, and the operands are as long as [`TileArgs`] says.
pub(super) unsafe fn vnni(x: &TileArgs<'_>, end: TileEnd<'_, '_>) {
    assert!(end.rows() == x.starts.len(), "{} rows of {}", end.rows(), x.starts.len());
    // SAFETY: promised by the caller.
    unsafe {
        match (x.starts.len(), x.count) {
            (1, 1) => vnni_tiles::<1, 1>(x, end),
            (1, 2) => vnni_tiles::<1, 2>(x, end),
            (1, 3) => vnni_tiles::<1, 3>(x, end),
            (1, PANELS) => vnni_tiles::<1, PANELS>(x, end),
            (_, 1) => vnni_high_tiles::<1>(x, end),
            (_, 2) => vnni_high_tiles::<2>(x, end),
            (_, 3) => vnni_tiles::<ROWS, 3>(x, end),
            (_, PANELS) => vnni_tiles::<ROWS, PANELS>(x, end),
            (rows, panels) => unreachable!("{rows} x {panels}"),
        }
    }
}

/// Computes tiles of few panels, which have twice as many rows where there are as many, so that
/// enough sums are in flight.
///
/// # Safety
/// The caller promises what [`vnni`] asks for.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn vnni_high_tiles<const P: usize>(x: &TileArgs<'_>, mut end: TileEnd<'_, '_>) {
    let all = x.starts.len();
    let (high, low) = x.starts.split_at(all / HIGH_ROWS * HIGH_ROWS);
    // SAFETY: promised by the caller.
    unsafe {
        vnni_tiles::<HIGH_ROWS, P>(&x.with_starts(high), end.part(0..high.len()));
        vnni_tiles::<ROWS, P>(&x.with_starts(low), end.part(high.len()..all));
    }
}

/// Computes the sums of R rows and P panels together, all in registers, as often as there are R
/// rows.
///
/// # Safety
/// The caller promises what [`vnni`] asks for.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn vnni_tiles<const R: usize, const P: usize>(x: &TileArgs<'_>, mut end: TileEnd<'_, '_>) {
    let (scales, narrow) = match &end {
        TileEnd::Bytes(end, _) => (PanelScale::of(end, end.conversion), Narrow::of(end)),
        TileEnd::Sums(_) => ([PanelScale::none(); PANELS], Narrow::none()),
    };
    let mut first = [_mm512_setzero_si512(); P];
    for p in 0..P {
        if x.signed {
            let corrections = x.panel(p).wrapping_add(x.segments().len() * x.groups() * LINE);
            // SAFETY: corrections follow the weights of a panel.
            first[p] = unsafe { _mm512_loadu_si512(corrections.cast()) };
        }
        first[p] = _mm512_add_epi32(first[p], scales[p].first);
    }
    for (tile, starts) in x.starts.as_chunks::<R>().0.iter().enumerate() {
        let mut sums = [[_mm512_setzero_si512(); P]; R];
        let mut weights = [std::ptr::null(); P];
        for p in 0..P {
            weights[p] = x.panel(p);
            for r in 0..R {
                sums[r][p] = first[p];
            }
        }
        for segment in x.segments() {
            let mut rows = [std::ptr::null::<u8>(); R];
            for r in 0..R {
                rows[r] = x.data().wrapping_add(starts[r] + *segment);
            }
            for g in 0..x.groups() {
                // SAFETY: every panel has this group of this segment, and so has every row.
                unsafe {
                    let mut lines = [_mm512_setzero_si512(); P];
                    for p in 0..P {
                        lines[p] = _mm512_loadu_si512(weights[p].cast());
                        weights[p] = weights[p].add(LINE);
                    }
                    for r in 0..R {
                        let data = _mm512_set1_epi32(rows[r].add(g * GROUP).cast::<i32>().read_unaligned());
                        for p in 0..P {
                            sums[r][p] = _mm512_dpbusd_epi32(sums[r][p], data, lines[p]);
                        }
                    }
                }
            }
        }
        match &mut end {
            TileEnd::Sums(out) => {
                let out = &mut out[tile * R..][..R];
                for r in 0..R {
                    for p in 0..P {
                        // SAFETY: a row of sums has those of all panels.
                        unsafe { _mm512_storeu_si512(out[r].as_mut_ptr().add(p * PANEL).cast(), sums[r][p]) }
                    }
                }
            }
            TileEnd::Bytes(end, out) => {
                // Loops of a few instructions, which are unrolled: sums stay in registers.
                match end.conversion {
                    Conversion::Bits => {
                        for r in 0..R {
                            for p in 0..P {
                                sums[r][p] = _mm512_cvtps_epi32(scales[p].of_bits(sums[r][p]));
                            }
                        }
                    }
                    Conversion::WholeBias => {
                        for r in 0..R {
                            for p in 0..P {
                                sums[r][p] = _mm512_cvtps_epi32(scales[p].of_whole(sums[r][p]));
                            }
                        }
                    }
                    Conversion::Bias => {
                        for r in 0..R {
                            for p in 0..P {
                                sums[r][p] = _mm512_cvtps_epi32(scales[p].of_sum(sums[r][p]));
                            }
                        }
                    }
                }
                // Rows of few panels become bytes together.
                let together = PANELS / P;
                for group in 0..R.div_ceil(together) {
                    let first = group * together;
                    let integers = std::array::from_fn(|i| match (first + i / P, i % P) {
                        (r, p) if i < together * P && r < R => sums[r][p],
                        _ => _mm512_setzero_si512(),
                    });
                    let rows = tile * R + first..tile * R + R.min(first + together);
                    store_rows::<P>(narrow.in_order(integers), rows, out);
                }
            }
        }
    }
}

/// Writes the bytes of P panels of a row after those of the row before it.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn store_rows<const P: usize>(bytes: __m512i, rows: Range<usize>, out: &mut PickedRows<'_, u8>) {
    let half = |i: usize| {
        if i == 0 { _mm512_castsi512_si256(bytes) } else { _mm512_extracti64x4_epi64::<1>(bytes) }
    };
    for (i, row) in rows.enumerate() {
        let row = out.row(row);
        assert!(row.len() >= P * PANEL);
        let to = row.as_mut_ptr();
        // SAFETY: the row has the bytes of all panels.
        unsafe {
            match P {
                1 if i % 2 == 0 => _mm_storeu_si128(to.cast(), _mm256_castsi256_si128(half(i / 2))),
                1 => _mm_storeu_si128(to.cast(), _mm256_extracti128_si256::<1>(half(i / 2))),
                2 => _mm256_storeu_si256(to.cast(), half(i)),
                3 => _mm512_mask_storeu_epi32(to.cast(), 0x0fff, bytes),
                _ => _mm512_storeu_si512(to.cast(), bytes),
            }
        }
    }
}

/// Computes the sums of a tile, of one row or of all, with AVX2.
///
/// # Safety
/// The machine has AVX2, and the operands are as long as [`TileArgs`] says.
pub(super) unsafe fn avx2(x: &TileArgs<'_>, sums: &mut [Sums]) {
    for panel in 0..x.count {
        for (pair, sums) in sums.chunks_mut(AVX2_ROWS).enumerate() {
            // SAFETY: promised by the caller.
            unsafe {
                match sums.len() {
                    AVX2_ROWS => avx2_tile::<AVX2_ROWS>(x, pair * AVX2_ROWS, panel, sums),
                    _ => avx2_tile::<1>(x, pair * AVX2_ROWS, panel, sums),
                }
            }
        }
    }
}

/// Computes the sums of R rows, from the first on, and one panel.
///
/// # Safety
/// The caller promises what [`avx2`] asks for.
#[target_feature(enable = "avx2")]
unsafe fn avx2_tile<const R: usize>(x: &TileArgs<'_>, first: usize, panel: usize, out: &mut [Sums]) {
    // Each sum is kept as two, of products 0 and 1 and of products 2 and 3.
    let mut sums = [[_mm256_setzero_si256(); 4]; R];
    let mut line = x.panel(panel);
    for segment in x.segments() {
        for g in 0..x.groups() {
            let mut weights = [_mm256_setzero_si256(); 4];
            for (q, weights) in weights.iter_mut().enumerate() {
                // SAFETY: the panel has 64 bytes of this group of this segment.
                let bytes = unsafe { _mm_loadu_si128(line.add(q * 16).cast()) };
                *weights = _mm256_cvtepi8_epi16(bytes);
            }
            line = line.wrapping_add(LINE);
            for (r, sums) in sums.iter_mut().enumerate() {
                // SAFETY: the row has four bytes of this group of this segment.
                let data = unsafe { x.row(first + r).add(segment + g * GROUP).cast::<i32>().read_unaligned() };
                let data = _mm256_cvtepu8_epi16(_mm_set1_epi32(data));
                for (sum, weights) in sums.iter_mut().zip(weights) {
                    *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(data, weights));
                }
            }
        }
    }
    let first = x.first_sums(panel);
    for (sums, out) in sums.iter().zip(out) {
        out[panel * PANEL..][..PANEL].copy_from_slice(&first);
        for (sum, out) in sums.iter().zip(out[panel * PANEL..][..PANEL].as_chunks_mut::<4>().0) {
            let mut pairs = [0i32; 8];
            // SAFETY: `pairs` is 8 numbers.
            unsafe { _mm256_storeu_si256(pairs.as_mut_ptr().cast(), *sum) }
            for (out, pair) in out.iter_mut().zip(pairs.as_chunks::<2>().0) {
                *out = out.wrapping_add(pair[0]).wrapping_add(pair[1]);
            }
        }
    }
}

/// Makes bytes of sums, sixteen in a vector.
///
/// # Safety
/// The machine has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) unsafe fn finish_bytes(x: &ScaledSums, block: &SumsBlock<'_>, signed: bool, out: &mut [[u8; COLUMNS]]) {
    let [bias, factor] = x.of_columns(block);
    for (row, (sums, out)) in block.sums.iter().zip(&mut *out).enumerate() {
        let mut values = [_mm512_setzero_ps(); PANELS];
        let values = &mut values[..block.columns / PANEL];
        for (panel, v) in values.iter_mut().enumerate() {
            let at = panel * PANEL;
            // SAFETY: rows of sums have 64 columns; `bias` and `factor` have those of the block,
            // which are panels.
            let (sum, bias, factor) = unsafe {
                let sum = _mm512_cvtepi32_ps(_mm512_loadu_si512(sums.as_ptr().add(at).cast()));
                (sum, _mm512_loadu_ps(bias.as_ptr().add(at)), _mm512_loadu_ps(factor.as_ptr().add(at)))
            };
            *v = _mm512_mul_ps(_mm512_add_ps(sum, bias), factor);
        }
        apply(x.functions[0], x.unit, values);
        if let Some(added) = x.addend {
            for (panel, v) in values.iter_mut().enumerate() {
                // SAFETY: rows of addends have 64 columns.
                let bytes = unsafe { _mm_loadu_si128(block.addend[row].as_ptr().add(panel * PANEL).cast()) };
                *v = _mm512_min_ps(add_bytes(added, *v, bytes), _mm512_set1_ps(added.most));
            }
        }
        apply(x.functions[1], x.unit, values);
        for (panel, v) in values.iter().enumerate() {
            // SAFETY: rows of results have 64 columns.
            unsafe { _mm_storeu_si128(out.as_mut_ptr().add(panel * PANEL).cast(), round_to_bytes(*v, signed)) }
        }
    }
}

/// Applies a function; as in `f32::max` and `f32::min`, of NaN and a limit the limit remains.
#[inline]
#[target_feature(enable = "avx512f")]
fn apply(function: Option<Function>, unit: f32, values: &mut [__m512]) {
    match function {
        None => {}
        Some(Function::Relu) => values.iter_mut().for_each(|v| *v = _mm512_max_ps(*v, _mm512_setzero_ps())),
        Some(Function::Clip(low, high)) => {
            let (low, high) = (_mm512_set1_ps(low * unit), _mm512_set1_ps(high * unit));
            values.iter_mut().for_each(|v| *v = _mm512_min_ps(_mm512_max_ps(*v, low), high));
        }
        Some(function) => {
            let count = values.len() * PANEL;
            // SAFETY: a vector is 16 numbers, and every pattern of bits is one.
            let numbers = unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), count) };
            apply_each(function, unit, numbers);
        }
    }
}

/// Rounds as `RoundTo` does: half to even, NaN to zero, within the type.
#[inline]
#[target_feature(enable = "avx512f")]
fn round_to_bytes(v: __m512, signed: bool) -> __m128i {
    let numbers = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask::<_CMP_ORD_Q>(v, v), v);
    let [low, high] = if signed { [-128.0, 127.0] } else { [0.0, 255.0] };
    let within = _mm512_min_ps(_mm512_max_ps(numbers, _mm512_set1_ps(low)), _mm512_set1_ps(high));
    _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(within))
}
