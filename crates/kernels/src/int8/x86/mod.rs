//! Products and bytes of sums with AVX2 and AVX-512.

use super::finish::{ScaledSums, SumsBlock};
use super::function::{Function, apply_each};
use super::tile::{COLUMNS, PANEL, PANELS};
use std::arch::x86_64::*;

mod avx2;
mod avx2_bytes;
mod avx2_depthwise;
mod bytes;
mod depthwise;
mod depthwise_rows;
mod vnni;
pub(super) mod winograd;
pub(super) use avx2::{avx2, avx2_row, widen, widened_len};
pub(super) use avx2_bytes::{finish_bytes_avx2, finish_rows_avx2};
pub(super) use avx2_depthwise::{MOST_TAPS as MOST_TAPS_AVX2, depthwise_avx2};
use bytes::add_bytes;
pub(super) use bytes::finish_rows;
pub(super) use depthwise::{MOST_TAPS, depthwise_vnni};
pub(super) use depthwise_rows::{ThreeColumns, depthwise_rows_vnni};
pub(super) use vnni::vnni;

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
