//! Products and bytes of sums with AVX2 and AVX-512.

use super::finish::{ScaledSums, SumsBlock};
use super::function::{Function, apply_each};
use super::tile::{COLUMNS, GROUP, PANEL, PANELS, Sums, TileArgs};
use std::arch::x86_64::*;

mod bytes;
mod depthwise;
mod depthwise_rows;
mod vnni;
use bytes::add_bytes;
pub(super) use bytes::finish_rows;
pub(super) use depthwise::{MOST_TAPS, depthwise_vnni};
pub(super) use depthwise_rows::{ThreeColumns, depthwise_rows_vnni};
pub(super) use vnni::vnni;

/// Bytes of the weights of a group of a panel.
const LINE: usize = GROUP * PANEL;
/// Rows that share the registers of AVX2.
const AVX2_ROWS: usize = 2;

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
