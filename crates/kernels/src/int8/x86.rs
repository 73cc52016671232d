//! Tiles of products with AVX2 and AVX512-VNNI.

use super::gemm::{PANEL, TILE, Tile};
use std::arch::x86_64::*;

/// Four rows at most share the registers of AVX2.
const AVX2_ROWS: usize = 2;

/// Products of rows with a panel, with AVX512-VNNI.
///
/// # Panics
/// If the rows or the panel are not whole groups of four.
pub(super) fn multiply_vnni(rows: &[u8], count: usize, panel: &[u8], tile: &mut Tile) {
    let groups = check(rows, count, panel);
    let row = groups * 4;
    let mut done = 0;
    while done < count {
        let from = &rows[done * row..];
        let sums = &mut tile[done..];
        // SAFETY: `Level::or_best` found the instructions; `check` saw that each of the rows taken
        // has `row` bytes and the panel 16 times as many.
        done += unsafe {
            match count - done {
                TILE.. => vnni::<TILE>(from, panel, groups, sums),
                4.. => vnni::<4>(from, panel, groups, sums),
                2.. => vnni::<2>(from, panel, groups, sums),
                _ => vnni::<1>(from, panel, groups, sums),
            }
        };
    }
}

/// Products of rows with a panel, with AVX2.
///
/// # Panics
/// If the rows or the panel are not whole groups of four.
pub(super) fn multiply_avx2(rows: &[u8], count: usize, panel: &[u8], tile: &mut Tile) {
    let groups = check(rows, count, panel);
    let row = groups * 4;
    let mut done = 0;
    while done < count {
        let from = &rows[done * row..];
        let sums = &mut tile[done..];
        // SAFETY: as in `multiply_vnni`.
        done += unsafe {
            match count - done {
                AVX2_ROWS.. => avx2::<AVX2_ROWS>(from, panel, groups, sums),
                _ => avx2::<1>(from, panel, groups, sums),
            }
        };
    }
}

/// Groups of four in a row.
fn check(rows: &[u8], count: usize, panel: &[u8]) -> usize {
    let groups = panel.len() / (4 * PANEL);
    assert!(count <= TILE && rows.len() >= count * groups * 4, "{count} rows of {groups} groups, got {}", rows.len());
    groups
}

/// Computes R rows; returns R.
///
/// # Safety
/// The machine has AVX512-VNNI; `rows` has R rows of `4 * groups` bytes, `panel` 16 times as many
/// as a row, `tile` R rows.
#[target_feature(enable = "avx512f,avx512vnni")]
unsafe fn vnni<const R: usize>(rows: &[u8], panel: &[u8], groups: usize, tile: &mut [[i32; PANEL]]) -> usize {
    let mut sums = [_mm512_setzero_si512(); R];
    for g in 0..groups {
        // SAFETY: group `g` of the panel and of every row is inside, as the caller promises.
        unsafe {
            let weights = _mm512_loadu_si512(panel.as_ptr().add(g * 64).cast());
            for (r, sum) in sums.iter_mut().enumerate() {
                let data = rows.as_ptr().add((r * groups + g) * 4).cast::<i32>().read_unaligned();
                *sum = _mm512_dpbusd_epi32(*sum, _mm512_set1_epi32(data), weights);
            }
        }
    }
    for (sum, out) in sums.iter().zip(tile) {
        // SAFETY: a row of the tile is 16 numbers.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), *sum) }
    }
    R
}

/// Computes R rows; returns R.
///
/// # Safety
/// The machine has AVX2; `rows` has R rows of `4 * groups` bytes, `panel` 16 times as many as a
/// row, `tile` R rows.
#[target_feature(enable = "avx2")]
unsafe fn avx2<const R: usize>(rows: &[u8], panel: &[u8], groups: usize, tile: &mut [[i32; PANEL]]) -> usize {
    // Each sum is kept as two, of products 0 and 1 and of products 2 and 3.
    let mut sums = [[_mm256_setzero_si256(); 4]; R];
    for g in 0..groups {
        let mut weights = [_mm256_setzero_si256(); 4];
        for (q, weights) in weights.iter_mut().enumerate() {
            // SAFETY: group `g` of the panel is 64 bytes, as the caller promises.
            let bytes = unsafe { _mm_loadu_si128(panel.as_ptr().add(g * 64 + q * 16).cast()) };
            *weights = _mm256_cvtepi8_epi16(bytes);
        }
        for (r, sums) in sums.iter_mut().enumerate() {
            // SAFETY: group `g` of row `r` is 4 bytes, as the caller promises.
            let data = unsafe { rows.as_ptr().add((r * groups + g) * 4).cast::<i32>().read_unaligned() };
            let data = _mm256_cvtepu8_epi16(_mm_set1_epi32(data));
            for (sum, weights) in sums.iter_mut().zip(weights) {
                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(data, weights));
            }
        }
    }
    for (sums, out) in sums.iter().zip(tile) {
        for (sum, out) in sums.iter().zip(out.chunks_exact_mut(4)) {
            let mut pairs = [0i32; 8];
            // SAFETY: `pairs` is 8 numbers.
            unsafe { _mm256_storeu_si256(pairs.as_mut_ptr().cast(), *sum) }
            for (out, pair) in out.iter_mut().zip(pairs.as_chunks::<2>().0) {
                *out = pair[0].wrapping_add(pair[1]);
            }
        }
    }
    R
}
