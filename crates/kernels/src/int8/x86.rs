//! Tiles of products with AVX2 and AVX512-VNNI.

use super::tile::{GROUP, PANEL, PANELS, ROWS, Sums, TileArgs};
use std::arch::x86_64::*;

/// Bytes of the weights of a group of a panel.
const LINE: usize = GROUP * PANEL;
/// Rows that share the registers of AVX2.
const AVX2_ROWS: usize = 2;

/// Computes the sums of a tile, of one row or of all, with AVX512-VNNI.
///
/// # Safety
/// The machine has AVX512-VNNI, and the operands are as long as [`TileArgs`] says.
pub(super) unsafe fn vnni(x: &TileArgs<'_>, sums: &mut [Sums]) {
    // SAFETY: promised by the caller.
    unsafe {
        match (sums.len(), x.count) {
            (ROWS, 1) => vnni_tile::<ROWS, 1>(x, sums),
            (ROWS, 2) => vnni_tile::<ROWS, 2>(x, sums),
            (ROWS, 3) => vnni_tile::<ROWS, 3>(x, sums),
            (ROWS, PANELS) => vnni_tile::<ROWS, PANELS>(x, sums),
            (1, 1) => vnni_tile::<1, 1>(x, sums),
            (1, 2) => vnni_tile::<1, 2>(x, sums),
            (1, 3) => vnni_tile::<1, 3>(x, sums),
            (1, PANELS) => vnni_tile::<1, PANELS>(x, sums),
            (rows, panels) => unreachable!("{rows} x {panels}"),
        }
    }
}

/// # Safety
/// As for [`vnni`].
#[target_feature(enable = "avx512f,avx512vnni")]
unsafe fn vnni_tile<const R: usize, const P: usize>(x: &TileArgs<'_>, out: &mut [Sums]) {
    let mut sums = [[_mm512_setzero_si512(); P]; R];
    let mut weights = [std::ptr::null(); P];
    for p in 0..P {
        weights[p] = x.panel(p);
    }
    for p in 0..P {
        // SAFETY: corrections follow the weights of a panel.
        let first = unsafe { _mm512_loadu_si512(weights[p].add(x.segments().len() * x.groups() * LINE).cast()) };
        for r in 0..R {
            sums[r][p] = if x.signed { first } else { _mm512_setzero_si512() };
        }
    }
    for segment in x.segments() {
        let mut rows = [std::ptr::null::<u8>(); R];
        for r in 0..R {
            rows[r] = x.row(r).wrapping_add(*segment);
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
    for r in 0..R {
        for p in 0..P {
            // SAFETY: a row of sums has those of all panels.
            unsafe { _mm512_storeu_si512(out[r].as_mut_ptr().add(p * PANEL).cast(), sums[r][p]) }
        }
    }
}

/// Computes the sums of a tile, of one row or of all, with AVX2.
///
/// # Safety
/// The machine has AVX2, and the operands are as long as [`TileArgs`] says.
pub(super) unsafe fn avx2(x: &TileArgs<'_>, sums: &mut [Sums]) {
    for panel in 0..x.count {
        let mut rows = sums.chunks_mut(AVX2_ROWS).enumerate();
        rows.by_ref().for_each(|(pair, sums)| {
            // SAFETY: promised by the caller.
            unsafe {
                match sums.len() {
                    AVX2_ROWS => avx2_tile::<AVX2_ROWS>(x, pair * AVX2_ROWS, panel, sums),
                    _ => avx2_tile::<1>(x, pair * AVX2_ROWS, panel, sums),
                }
            }
        });
    }
}

/// # Safety
/// As for [`avx2`].
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
