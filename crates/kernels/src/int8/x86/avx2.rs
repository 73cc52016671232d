//! Products of bytes with AVX2, on numbers of 16 bits.
//!
//! A pair of bytes times a pair of weights takes 17 bits, so that no instruction on bytes adds them
//! exactly. Pairs of 16 bits are multiplied and added in 32. Both operands are widened to memory
//! that stays in the first-level cache, once for all tiles that read them: of four neighbours,
//! numbers 0 and 2 are one pair and numbers 1 and 3 the other, which two shifts make of a vector.

use super::super::tile::{GROUP, PANEL, PANELS, ROWS, Sums, TileArgs};
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

/// Groups of four products that are widened together.
const STEP: usize = 64;
/// WidenedRows that are widened together.
const HEIGHT: usize = 8 * ROWS;
/// Bytes of the weights of a group of a panel.
const LINE: usize = GROUP * PANEL;
/// Pairs of a widened group.
const PAIRS: usize = 2;
/// Groups of a vector of bytes.
const EACH: usize = 8;
/// Sums of a vector.
const LANES: usize = 8;
/// Vectors of the sums of a panel.
const HALVES: usize = PANEL / LANES;

/// Some widened groups of a row: the first pair of each, then the second of each.
type WidenedRow = [i32; PAIRS * STEP];
/// WidenedRows of a step.
type WidenedRows = [WidenedRow; HEIGHT];

/// Widened weights of a panel, in the order of a row.
type WidenedWeights = [[__m256i; HALVES]; PAIRS * STEP];

/// Bytes of rows of this many groups that are widened.
pub(crate) fn widened_len(groups: usize) -> usize {
    groups.div_ceil(STEP) * size_of::<WidenedRows>()
}

/// Widens the rows of tiles. The last row stands for those after it.
///
/// # Safety
/// The machine has AVX2, and the rows are as long as [`TileArgs`] says.
///
/// # Panics
/// If there are more than [`HEIGHT`] rows, or there is no room for them.
#[target_feature(enable = "avx2")]
pub(crate) unsafe fn widen(x: &TileArgs<'_>, to: &mut [u8]) {
    let lines = x.segments().len() * x.groups();
    let (steps, _) =
        bytemuck::cast_slice_mut::<u8, WidenedRow>(&mut to[..widened_len(lines)]).as_chunks_mut::<HEIGHT>();
    let tiles = x.starts.len().div_ceil(ROWS);
    for (step, rows) in steps.iter_mut().enumerate() {
        let count = STEP.min(lines - step * STEP);
        for (row, to) in rows[..tiles * ROWS].iter_mut().enumerate() {
            // SAFETY: promised by the caller; a row has room for a step.
            unsafe { widen_row(x, row.min(x.starts.len() - 1), step * STEP, count, to.as_mut_ptr()) }
        }
    }
}

/// Computes the sums of rows that were widened. `sums` has room for whole tiles.
///
/// # Safety
/// The machine has AVX2, and panels are as long as [`TileArgs`] says.
///
/// # Panics
/// If not as many rows were widened.
#[target_feature(enable = "avx2")]
pub(crate) unsafe fn avx2(x: &TileArgs<'_>, widened: &[u8], sums: &mut [Sums]) {
    let lines = x.segments().len() * x.groups();
    let (steps, _) = bytemuck::cast_slice::<u8, WidenedRow>(&widened[..widened_len(lines)]).as_chunks::<HEIGHT>();
    let tiles = x.starts.len().div_ceil(ROWS);
    let (sums, _) = sums[..tiles * ROWS].as_chunks_mut::<ROWS>();
    if lines == 0 {
        for panel in 0..x.count {
            let first = x.first_sums(panel);
            sums.as_flattened_mut().iter_mut().for_each(|row| row[panel * PANEL..][..PANEL].copy_from_slice(&first));
        }
    }
    let mut weights = MaybeUninit::<WidenedWeights>::uninit();
    let weights = weights.as_mut_ptr().cast::<__m256i>();
    for (step, rows) in steps.iter().enumerate() {
        let line = step * STEP;
        let count = STEP.min(lines - line);
        for panel in 0..x.count {
            // SAFETY: the panel has these lines, and there is room for those of a step.
            unsafe { widen_weights(x.panel(panel).wrapping_add(line * LINE), count, weights) }
            let first = if step == 0 { Some(x.first_sums(panel)) } else { None };
            let (next, after) = if panel + 1 < x.count { (panel + 1, line) } else { (0, line + STEP) };
            let soon = x.panel(next).wrapping_add(after * LINE);
            for (tile, (rows, sums)) in rows.as_chunks::<ROWS>().0.iter().zip(&mut *sums).enumerate() {
                // Each tile requests a part of the weights that are widened next.
                for line in tile * STEP / tiles..(tile + 1) * STEP / tiles {
                    _mm_prefetch::<_MM_HINT_T0>(soon.wrapping_add(line * LINE).cast());
                }
                // SAFETY: weights were widened, and rows before.
                unsafe { add_products(rows, weights, count, first.as_ref(), (sums, panel * PANEL)) }
            }
        }
    }
}

/// Widens `count` groups of a row, from this line of weights on.
///
/// # Safety
/// The row has these groups, and `to` has room for them.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn widen_row(x: &TileArgs<'_>, row: usize, line: usize, count: usize, to: *mut i32) {
    let (mut segment, mut group) = (line / x.groups(), line % x.groups());
    let mut done = 0;
    while done < count {
        let some = (x.groups() - group).min(count - done);
        // SAFETY: promised by the caller.
        unsafe {
            let from = x.row(row).wrapping_add(x.segments()[segment] + group * GROUP);
            widen_run(from, some, to.add(done), to.add(count + done));
        }
        done += some;
        (segment, group) = (segment + 1, 0);
    }
}

/// Widens neighbouring groups to pairs.
///
/// # Safety
/// There are these groups, and room for as many pairs in each place.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn widen_run(from: *const u8, count: usize, first: *mut i32, second: *mut i32) {
    let whole = count / EACH * EACH;
    let half = (count - whole) / (EACH / 2) * (EACH / 2);
    // SAFETY: promised by the caller.
    unsafe {
        for g in (0..whole).step_by(EACH) {
            let bytes = _mm256_loadu_si256(from.add(g * GROUP).cast());
            _mm256_storeu_si256(first.add(g).cast(), _mm256_and_si256(bytes, _mm256_set1_epi16(0xff)));
            _mm256_storeu_si256(second.add(g).cast(), _mm256_srli_epi16::<8>(bytes));
        }
        if half > 0 {
            let bytes = _mm_loadu_si128(from.add(whole * GROUP).cast());
            _mm_storeu_si128(first.add(whole).cast(), _mm_and_si128(bytes, _mm_set1_epi16(0xff)));
            _mm_storeu_si128(second.add(whole).cast(), _mm_srli_epi16::<8>(bytes));
        }
        for g in whole + half..count {
            let bytes = from.add(g * GROUP).cast::<u32>().read_unaligned();
            first.add(g).write((bytes & 0x00ff_00ff) as i32);
            second.add(g).write((bytes >> 8 & 0x00ff_00ff) as i32);
        }
    }
}

/// Widens lines of weights.
///
/// # Safety
/// There are these lines, and room for them.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn widen_weights(from: *const u8, count: usize, to: *mut __m256i) {
    for half in 0..count * HALVES {
        // SAFETY: promised by the caller.
        unsafe {
            let bytes = _mm256_loadu_si256(from.add(half * LINE / HALVES).cast());
            to.add(half).write(_mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(bytes)));
            to.add(count * HALVES + half).write(_mm256_srai_epi16::<8>(bytes));
        }
    }
}

/// Adds the products of some groups of a tile of rows and a panel, whose columns begin at `out.1`, to
/// its sums, or to the numbers that sums begin with.
///
/// # Safety
/// The weights of as many groups were widened, of this panel.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn add_products(
    rows: &[WidenedRow; ROWS],
    weights: *const __m256i,
    groups: usize,
    first: Option<&[i32; PANEL]>,
    (out, at): (&mut [Sums; ROWS], usize),
) {
    assert!(groups <= STEP && at + PANEL <= PANELS * PANEL, "{groups} groups, columns from {at} on");
    let mut sums = [[_mm256_setzero_si256(); HALVES]; ROWS];
    let mut line = weights;
    let mut data = rows.as_ptr().cast::<i32>();
    // SAFETY: promised by the caller; rows have these pairs, and sums these columns.
    unsafe {
        for r in 0..ROWS {
            let from = first.map_or(out[r].as_ptr().add(at), |first| first.as_ptr());
            for h in 0..HALVES {
                sums[r][h] = _mm256_loadu_si256(from.add(h * LANES).cast());
            }
        }
        // Two pairs in one turn would need more registers than there are.
        for _ in 0..PAIRS * groups {
            let [low, high] = [line.read(), line.add(1).read()];
            for r in 0..ROWS {
                let pair = _mm256_set1_epi32(data.add(r * PAIRS * STEP).read());
                sums[r][0] = _mm256_add_epi32(sums[r][0], _mm256_madd_epi16(pair, low));
                sums[r][1] = _mm256_add_epi32(sums[r][1], _mm256_madd_epi16(pair, high));
            }
            (line, data) = (line.add(HALVES), data.add(1));
        }
        for r in 0..ROWS {
            for h in 0..HALVES {
                _mm256_storeu_si256(out[r].as_mut_ptr().add(at + h * LANES).cast(), sums[r][h]);
            }
        }
    }
}

/// Computes the sums of one row.
///
/// # Safety
/// The machine has AVX2, and the operands are as long as [`TileArgs`] says.
#[target_feature(enable = "avx2")]
pub(crate) unsafe fn avx2_row(x: &TileArgs<'_>, sums: &mut Sums) {
    for panel in 0..x.count {
        let first = x.first_sums(panel);
        // SAFETY: a row of sums has whole panels.
        let mut totals: [_; HALVES] =
            std::array::from_fn(|h| unsafe { _mm256_loadu_si256(first.as_ptr().add(h * LANES).cast()) });
        let mut line = x.panel(panel);
        for segment in x.segments() {
            for g in 0..x.groups() {
                // SAFETY: the row has four bytes of this group of this segment, the panel 64.
                unsafe {
                    let data = x.row(0).add(segment + g * GROUP).cast::<i32>().read_unaligned();
                    let data = _mm256_set1_epi32(data);
                    let pairs = [_mm256_and_si256(data, _mm256_set1_epi16(0xff)), _mm256_srli_epi16::<8>(data)];
                    for h in 0..HALVES {
                        let bytes = _mm256_loadu_si256(line.add(h * LINE / HALVES).cast());
                        let weights =
                            [_mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(bytes)), _mm256_srai_epi16::<8>(bytes)];
                        for i in 0..PAIRS {
                            totals[h] = _mm256_add_epi32(totals[h], _mm256_madd_epi16(pairs[i], weights[i]));
                        }
                    }
                }
                line = line.wrapping_add(LINE);
            }
        }
        for h in 0..HALVES {
            // SAFETY: a row of sums has whole panels.
            unsafe { _mm256_storeu_si256(sums.as_mut_ptr().add(panel * PANEL + h * LANES).cast(), totals[h]) }
        }
    }
}
