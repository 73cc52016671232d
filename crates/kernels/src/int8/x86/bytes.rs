//! Bytes of sums with AVX-512.

use super::super::finish::{AddedBytes, Conversion};
use super::super::tile::{AddedRows, ByteEnd, COLUMNS, PANEL, PANELS, Sums};
use crate::par::PickedRows;
use std::arch::x86_64::*;

/// Narrows integers of 32 bits to bytes within limits.
#[derive(Clone, Copy)]
pub(super) struct Narrow {
    /// The least and the largest byte.
    limits: [__m512i; 2],
    signed: bool,
    /// Bits of each byte that are flipped at last.
    flip: __m512i,
}

impl Narrow {
    /// Numbers may be limited after they are rounded, because rounding keeps their order.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn of(end: &ByteEnd<'_>) -> Narrow {
        let limits = end.sums.limits.map(|limit| _mm512_set1_epi8(limit.round_ties_even() as i32 as i8));
        Narrow { limits, signed: end.signed(), flip: _mm512_set1_epi8(end.flip as i8) }
    }

    /// Narrows four vectors, quarter by quarter.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub fn quarters(&self, [a, b, c, d]: [__m512i; PANELS]) -> __m512i {
        let [low, high] = [_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d)];
        let [least, most] = self.limits;
        let bytes = if self.signed {
            _mm512_min_epi8(_mm512_max_epi8(_mm512_packs_epi16(low, high), least), most)
        } else {
            _mm512_min_epu8(_mm512_max_epu8(_mm512_packus_epi16(low, high), least), most)
        };
        _mm512_xor_si512(bytes, self.flip)
    }

    /// Narrows the results of four panels, in order.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub fn in_order(&self, panels: [__m512i; PANELS]) -> __m512i {
        let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        _mm512_permutexvar_epi32(order, self.quarters(panels))
    }
}

/// Makes bytes of sums of 64 columns. Numbers that `fit` into integers are limited after they have
/// become such.
///
/// # Safety
/// The machine has AVX-512.
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) unsafe fn finish_rows(end: &ByteEnd<'_>, fit: bool, sums: &[Sums], mut out: PickedRows<'_, u8>) {
    assert!(out.width() >= COLUMNS, "{} columns", out.width());
    let (scales, narrow, added) = (PanelScale::of(end, Conversion::Bias), Narrow::of(end), Adder::of(end));
    let limits = (!fit).then(|| end.sums.limits.map(|limit| _mm512_set1_ps(limit)));
    for (row, sums) in sums.iter().enumerate().take(out.len()) {
        let bytes = added.as_ref().map(|added| (added, added.row(row)));
        // SAFETY: rows have 64 columns.
        unsafe {
            let integers = std::array::from_fn(|p| {
                let v = scales[p].of_sum(_mm512_loadu_si512(sums.as_ptr().add(p * PANEL).cast()));
                let v = bytes.map_or(v, |(added, bytes)| added.add(bytes, p, v));
                _mm512_cvtps_epi32(limits.map_or(v, |limits| within(v, limits)))
            });
            _mm512_storeu_si512(out.row(row).as_mut_ptr().cast(), narrow.in_order(integers));
        }
    }
}

/// Limits numbers.
#[inline]
#[target_feature(enable = "avx512f")]
fn within(v: __m512, [low, high]: [__m512; 2]) -> __m512 {
    _mm512_min_ps(_mm512_max_ps(v, low), high)
}

/// Adds rows of bytes to numbers.
pub(super) struct Adder<'a> {
    rows: AddedRows<'a>,
    flip: __m128i,
    added: AddedBytes,
    /// The least and the largest number that bytes are added to.
    before: [__m512; 2],
}

impl<'a> Adder<'a> {
    /// Reads how bytes are added at this end, if any are.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn of(end: &ByteEnd<'a>) -> Option<Adder<'a>> {
        let (rows, (added, before)) = end.added.zip(end.sums.addend)?;
        let before = before.map(|limit| _mm512_set1_ps(limit));
        Some(Adder { rows, flip: _mm_set1_epi8(rows.flip as i8), added, before })
    }

    /// The bytes of a row.
    #[inline]
    pub fn row(&self, row: usize) -> &'a [u8; COLUMNS] {
        self.rows.row(row)
    }

    /// Adds the bytes of a panel of a row. The sums are not limited.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn add(&self, row: &[u8; COLUMNS], panel: usize, v: __m512) -> __m512 {
        // SAFETY: a row has all panels.
        let bytes = unsafe { _mm_loadu_si128(row.as_ptr().add(panel * PANEL).cast()) };
        add_bytes(self.added, within(v, self.before), _mm_xor_si128(bytes, self.flip))
    }
}

/// Reads the values of a panel; zeros after the last panel, whose columns are not part of results.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn read_panel(values: &[f32], first: usize) -> __m512 {
    match values.get(first..).and_then(<[f32]>::first_chunk::<PANEL>) {
        // SAFETY: there are 16 numbers.
        Some(values) => unsafe { _mm512_loadu_ps(values.as_ptr()) },
        None => _mm512_setzero_ps(),
    }
}

/// Makes numbers of the sums of 16 columns, in the way it was made for.
#[derive(Clone, Copy)]
pub(super) struct PanelScale {
    /// The numbers that sums begin with.
    pub first: __m512i,
    /// The bias, which is added before the multiplication, or the number that makes up for the bits
    /// that sums began with, which is added after it.
    bias: __m512,
    factor: __m512,
}

impl PanelScale {
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn new(conversion: Conversion, bias: __m512, factor: __m512) -> PanelScale {
        let whole = _mm512_cvtps_epi32(bias);
        match conversion {
            Conversion::Bias => PanelScale { first: _mm512_setzero_si512(), bias, factor },
            Conversion::WholeBias => PanelScale { first: whole, bias, factor },
            Conversion::Bits => {
                let bits = _mm512_set1_epi32(Conversion::TWO_POW_23);
                let bias = _mm512_mul_ps(factor, _mm512_set1_ps(-((1 << 23) as f32)));
                PanelScale { first: _mm512_add_epi32(whole, bits), bias, factor }
            }
        }
    }

    /// Reads the scales of the panels from the first column on.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn of(end: &ByteEnd<'_>, conversion: Conversion) -> [PanelScale; PANELS] {
        std::array::from_fn(|p| {
            let read = |values: &[f32]| read_panel(values, end.first + p * PANEL);
            PanelScale::new(conversion, read(end.sums.bias), read(end.sums.factor))
        })
    }

    /// Numbers of sums, by [`Conversion::Bias`].
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn of_sum(&self, sums: __m512i) -> __m512 {
        _mm512_mul_ps(_mm512_add_ps(_mm512_cvtepi32_ps(sums), self.bias), self.factor)
    }

    /// Numbers of sums, by [`Conversion::WholeBias`].
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn of_whole(&self, sums: __m512i) -> __m512 {
        _mm512_mul_ps(_mm512_cvtepi32_ps(sums), self.factor)
    }

    /// Numbers of sums, by [`Conversion::Bits`].
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn of_bits(&self, sums: __m512i) -> __m512 {
        _mm512_fmadd_ps(_mm512_castsi512_ps(sums), self.factor, self.bias)
    }
}

/// Adds bytes times a factor, rounded once.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn add_bytes(added: AddedBytes, v: __m512, bytes: __m128i) -> __m512 {
    let numbers = if added.signed { _mm512_cvtepi8_epi32(bytes) } else { _mm512_cvtepu8_epi32(bytes) };
    _mm512_fmadd_ps(_mm512_cvtepi32_ps(numbers), _mm512_set1_ps(added.factor), v)
}
