//! Depthwise convolutions of 3 x 3 taps with AVX512-VNNI, row by row: neighbouring windows have
//! columns in common, which are interleaved once.

use super::super::depthwise::{CHANNELS, DepthwiseArgs, ResultRows, WindowRows};
use super::super::tile::{ByteEnd, PANELS};
use super::depthwise::{HALF, QuarterScale, Quarters, first_sums, interleaved, read};
use std::arch::x86_64::*;

/// Columns of the taps.
const COLUMNS: usize = 3;

/// Nine taps in three columns.
#[derive(Clone, Copy)]
pub(crate) struct ThreeColumns {
    /// Offsets of the taps of the first column.
    rows: [usize; 3],
    /// Bytes from one column to the next.
    distance: usize,
}

impl ThreeColumns {
    /// The columns of taps at these offsets, if they are three.
    pub fn of(segments: &[usize]) -> Option<ThreeColumns> {
        let [a, b, _, d, _, _, g, _, _] = *segments else { return None };
        let (rows, distance) = ([a, d, g], b.checked_sub(a)?);
        let expected = rows.iter().flat_map(|row| (0..COLUMNS).map(move |column| row + column * distance));
        expected.eq(segments.iter().copied()).then_some(ThreeColumns { rows, distance })
    }

    /// Reads and interleaves a column of windows.
    ///
    /// # Safety
    /// Its taps have 64 bytes, or 32 in each window.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn read<const HALVES: usize>(&self, windows: [*const u8; HALVES], column: usize) -> Quarters {
        let places = windows.map(|window| window.wrapping_add(column * self.distance));
        // SAFETY: promised by the caller.
        let tap = |row: usize| unsafe { read(places.map(|place| place.wrapping_add(self.rows[row]))) };
        let [a, b, c] = [tap(0), tap(1), tap(2)];
        interleaved([a, b, c, _mm512_setzero_si512()])
    }
}

/// Computes the bytes of 64 channels, of which `count` are wanted, of rows of windows.
///
/// # Safety
/// The machine has AVX512-VNNI, and every tap of every window has 64 bytes in the data and in the
/// weights.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(crate) unsafe fn depthwise_rows_vnni(
    x: &DepthwiseArgs<'_>,
    columns: ThreeColumns,
    windows: &WindowRows,
    count: usize,
    end: &ByteEnd<'_>,
    to: &mut ResultRows<'_, '_>,
) {
    let step = windows.step[1];
    // SAFETY: promised by the caller.
    unsafe {
        match (count <= HALF, step == columns.distance, step == 2 * columns.distance) {
            (true, true, _) => rows::<2, 2>(x, columns, windows, end, to),
            (true, _, true) => rows::<2, 1>(x, columns, windows, end, to),
            (true, ..) => rows::<2, 0>(x, columns, windows, end, to),
            (_, true, _) => rows::<1, 2>(x, columns, windows, end, to),
            (_, _, true) => rows::<1, 1>(x, columns, windows, end, to),
            _ => rows::<1, 0>(x, columns, windows, end, to),
        }
    }
}

/// Computes 64 channels of each row of windows, or 32 of two rows together. Neighbouring windows
/// have SHARED columns in common.
///
/// # Safety
/// The caller promises what [`depthwise_rows_vnni`] asks for.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn rows<const HALVES: usize, const SHARED: usize>(
    x: &DepthwiseArgs<'_>,
    columns: ThreeColumns,
    windows: &WindowRows,
    end: &ByteEnd<'_>,
    to: &mut ResultRows<'_, '_>,
) {
    let scale = QuarterScale::read::<HALVES>(end);
    let first = scale.first(first_sums::<HALVES>(x));
    let tap = |tap: usize| x.weights.as_ptr().wrapping_add(tap * x.width);
    let weights: [Quarters; COLUMNS] = std::array::from_fn(|column| {
        // SAFETY: promised by the caller.
        let of = |row: usize| unsafe { read([tap(row * COLUMNS + column); HALVES]) };
        interleaved([of(0), of(1), of(2), _mm512_setzero_si512()])
    });
    let [height, width] = windows.count;
    let bytes = CHANNELS / HALVES;
    for row in (0..height).step_by(HALVES) {
        // The last row stands for one that is not there.
        let rows: [usize; HALVES] = std::array::from_fn(|half| (row + half).min(height - 1));
        let mut from = rows.map(|row| x.data.as_ptr().wrapping_add(windows.first + row * windows.step[0]));
        let mut results = rows.map(|row| {
            let place = to.first[0] + row * to.row_len;
            to.out.addresses(place..place + width, to.first[1]..to.first[1] + bytes)
        });
        let pitch = to.out.pitch();
        // SAFETY: promised by the caller.
        let column = |from, column| unsafe { columns.read::<HALVES>(from, column) };
        // The columns that the first window shares with one before it.
        let mut held = [[_mm512_setzero_si512(); PANELS]; COLUMNS];
        for c in 0..SHARED {
            held[COLUMNS - SHARED + c] = column(from, c);
        }
        for _ in 0..width {
            held = match SHARED {
                2 => [held[1], held[2], column(from, 2)],
                1 => [held[2], column(from, 1), column(from, 2)],
                _ => [column(from, 0), column(from, 1), column(from, 2)],
            };
            let mut sums = first;
            for c in 0..COLUMNS {
                for q in 0..PANELS {
                    sums[q] = _mm512_dpbusd_epi32(sums[q], held[c][q], weights[c][q]);
                }
            }
            // SAFETY: `addresses` checked the rows and these bytes of each.
            unsafe { store(results, scale.bytes(sums)) }
            from = from.map(|from| from.wrapping_add(windows.step[1]));
            results = results.map(|to| to.wrapping_add(pitch));
        }
    }
}

/// Writes 64 bytes, or 32 to each of two places.
///
/// # Safety
/// The places have these bytes.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn store<const HALVES: usize>(to: [*mut u8; HALVES], bytes: __m512i) {
    // SAFETY: promised by the caller.
    unsafe {
        if HALVES == 1 {
            return _mm512_storeu_si512(to[0].cast(), bytes);
        }
        _mm256_storeu_si256(to[0].cast(), _mm512_castsi512_si256(bytes));
        _mm256_storeu_si256(to[HALVES - 1].cast(), _mm512_extracti64x4_epi64::<1>(bytes));
    }
}
