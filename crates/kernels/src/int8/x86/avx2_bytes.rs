//! Bytes of sums with AVX2.

use super::super::finish::{AddedBytes, ScaledSums, SumsBlock};
use super::super::function::{Function, apply_each};
use super::super::tile::{ByteEnd, COLUMNS, Sums};
use crate::par::PickedRows;
use std::arch::x86_64::*;

/// Numbers of a vector.
const LANES: usize = 8;
/// Vectors of numbers that become a vector of bytes.
const QUARTERS: usize = 4;
/// Bytes of a vector.
const BYTES: usize = QUARTERS * LANES;

/// Numbers that become a vector of bytes.
type Numbers = [__m256; QUARTERS];

/// Makes bytes of sums of 64 columns. Numbers that `fit` into integers are limited after they have
/// become such.
///
/// # Safety
/// The machine has AVX2.
#[target_feature(enable = "avx2,fma")]
pub(crate) unsafe fn finish_rows_avx2(end: &ByteEnd<'_>, fit: bool, sums: &[Sums], mut out: PickedRows<'_, u8>) {
    let first = |at: usize| [end.sums.bias, end.sums.factor].map(|values| values.get(end.first + at..).unwrap_or(&[]));
    let scales = [Scale::read(first(0)), Scale::read(first(BYTES))];
    let narrow = Narrow::of(end);
    for (row, sums) in sums.iter().enumerate().take(out.len()) {
        let added = end.added.zip(end.sums.addend).map(|(rows, by)| (rows.row(row), rows.flip, by));
        let out = out.row(row).first_chunk_mut::<COLUMNS>().expect("rows have whole tiles");
        for (i, scale) in scales.iter().enumerate() {
            let at = i * BYTES;
            // SAFETY: rows have 64 columns.
            unsafe {
                let mut v = scale.numbers(sums.as_ptr().add(at));
                if let Some((bytes, flip, (added, before))) = added {
                    within(&mut v, before);
                    add_bytes(added, &mut v, bytes.as_ptr().add(at), flip);
                }
                if !fit {
                    within(&mut v, end.sums.limits);
                }
                _mm256_storeu_si256(out.as_mut_ptr().add(at).cast(), narrow.bytes(&v));
            }
        }
    }
}

/// Makes bytes of sums with any functions.
///
/// # Safety
/// The machine has AVX2.
#[target_feature(enable = "avx2,fma")]
pub(crate) unsafe fn finish_bytes_avx2(x: &ScaledSums, block: &SumsBlock<'_>, signed: bool, out: &mut [[u8; COLUMNS]]) {
    let of_columns = x.of_columns(block);
    let limits = if signed { [-128.0, 127.0] } else { [0.0, 255.0] };
    for at in (0..block.columns).step_by(BYTES) {
        let scale = Scale::read(of_columns.map(|values| &values[at..]));
        for (row, (sums, out)) in block.sums.iter().zip(&mut *out).enumerate() {
            // SAFETY: rows of sums, addends and results have 64 columns.
            unsafe {
                let mut v = scale.numbers(sums.as_ptr().add(at));
                apply(x.functions[0], x.unit, &mut v);
                if let Some(added) = x.addend {
                    add_bytes(added, &mut v, block.addend[row].as_ptr().add(at), 0);
                }
                apply(x.functions[1], x.unit, &mut v);
                for v in &mut v {
                    // NaN becomes zero.
                    *v = _mm256_and_ps(*v, _mm256_cmp_ps::<_CMP_ORD_Q>(*v, *v));
                }
                within(&mut v, limits);
                _mm256_storeu_si256(out.as_mut_ptr().add(at).cast(), narrowed(&v, signed));
            }
        }
    }
}

/// Biases and factors of as many columns as a vector has bytes.
struct Scale {
    bias: Numbers,
    factor: Numbers,
}

impl Scale {
    /// Reads biases and factors; zeros where there are none, for columns that are not part of
    /// results.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn read([bias, factor]: [&[f32]; 2]) -> Scale {
        let mut read = [[_mm256_setzero_ps(); QUARTERS]; 2];
        for (read, from) in read.iter_mut().zip([bias, factor]) {
            for (read, from) in read.iter_mut().zip(from.as_chunks::<LANES>().0) {
                // SAFETY: there are eight numbers.
                *read = unsafe { _mm256_loadu_ps(from.as_ptr()) };
            }
        }
        let [bias, factor] = read;
        Scale { bias, factor }
    }

    /// Numbers of sums.
    ///
    /// # Safety
    /// There are 32 sums.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn numbers(&self, sums: *const i32) -> Numbers {
        let mut v = self.bias;
        for q in 0..QUARTERS {
            // SAFETY: promised by the caller.
            let sum = unsafe { _mm256_cvtepi32_ps(_mm256_loadu_si256(sums.add(q * LANES).cast())) };
            v[q] = _mm256_mul_ps(_mm256_add_ps(sum, self.bias[q]), self.factor[q]);
        }
        v
    }
}

/// Makes bytes of numbers within limits.
struct Narrow {
    /// The least and the largest byte.
    limits: [__m256i; 2],
    signed: bool,
    /// Bits of each byte that are flipped at last.
    flip: __m256i,
}

impl Narrow {
    /// Numbers may be limited after they are rounded, because rounding keeps their order.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn of(end: &ByteEnd<'_>) -> Narrow {
        let [low, high] = end.sums.limits.map(|limit| limit.round_ties_even() as i32 as i8);
        Narrow {
            limits: [_mm256_set1_epi8(low), _mm256_set1_epi8(high)],
            signed: end.signed(),
            flip: _mm256_set1_epi8(end.flip as i8),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn bytes(&self, v: &Numbers) -> __m256i {
        let (bytes, [low, high]) = (narrowed(v, self.signed), self.limits);
        let bytes = if self.signed {
            _mm256_min_epi8(_mm256_max_epi8(bytes, low), high)
        } else {
            _mm256_min_epu8(_mm256_max_epu8(bytes, low), high)
        };
        _mm256_xor_si256(bytes, self.flip)
    }
}

/// Rounds numbers, half to even, to bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn narrowed([a, b, c, d]: &Numbers, signed: bool) -> __m256i {
    let low = _mm256_packs_epi32(_mm256_cvtps_epi32(*a), _mm256_cvtps_epi32(*b));
    let high = _mm256_packs_epi32(_mm256_cvtps_epi32(*c), _mm256_cvtps_epi32(*d));
    let bytes = if signed { _mm256_packs_epi16(low, high) } else { _mm256_packus_epi16(low, high) };
    // Each half has the first or the second four bytes of all vectors.
    _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))
}

/// Limits numbers.
#[inline]
#[target_feature(enable = "avx2")]
fn within(v: &mut Numbers, [low, high]: [f32; 2]) {
    for v in v {
        *v = _mm256_min_ps(_mm256_max_ps(*v, _mm256_set1_ps(low)), _mm256_set1_ps(high));
    }
}

/// Adds bytes, of which some bits are flipped first, times a factor, rounded once.
///
/// # Safety
/// There are 32 bytes.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn add_bytes(added: AddedBytes, v: &mut Numbers, bytes: *const u8, flip: u8) {
    let (factor, most) = (_mm256_set1_ps(added.factor), _mm256_set1_ps(added.most));
    for (q, v) in v.iter_mut().enumerate() {
        // SAFETY: promised by the caller.
        let bytes = unsafe { _mm_loadl_epi64(bytes.add(q * LANES).cast()) };
        let bytes = _mm_xor_si128(bytes, _mm_set1_epi8(flip as i8));
        let numbers = if added.signed { _mm256_cvtepi8_epi32(bytes) } else { _mm256_cvtepu8_epi32(bytes) };
        *v = _mm256_min_ps(_mm256_fmadd_ps(_mm256_cvtepi32_ps(numbers), factor, *v), most);
    }
}

/// Applies a function; as in `f32::max` and `f32::min`, of NaN and a limit the limit remains.
#[inline]
#[target_feature(enable = "avx2")]
fn apply(function: Option<Function>, unit: f32, v: &mut Numbers) {
    match function {
        None => {}
        Some(Function::Relu) => v.iter_mut().for_each(|v| *v = _mm256_max_ps(*v, _mm256_setzero_ps())),
        Some(Function::Clip(low, high)) => within(v, [low * unit, high * unit]),
        Some(function) => {
            // SAFETY: a vector is eight numbers, and every pattern of bits is one.
            let numbers = unsafe { std::slice::from_raw_parts_mut(v.as_mut_ptr().cast(), BYTES) };
            apply_each(function, unit, numbers);
        }
    }
}
