//! Products of matrices in float64, in register tiles of AVX2 with FMA.
//!
//! B is packed once in panels of [`COLUMNS`], the rows of A in tiles of [`ROWS`] by every chunk. An
//! element is summed in runs of [`DEPTH`] products, whatever the threads do.

use crate::aligned::AlignedVec;
use crate::gemm::tile::Soon;
use crate::gemm_plain::Gemm;
use crate::par::{Columns, Par, par_chunks_mut, par_chunks_mut_scratch};
use crate::simd::{LANES, Src, request_far};
use crate::squares::{self, TurnedBlock};
use crate::vectorize::Width;

/// Rows and columns that are held in registers.
const ROWS: usize = 6;
const COLUMNS: usize = 8;
const _: () = assert!(size_of::<[f64; COLUMNS]>() == size_of::<[f32; LANES]>(), "a row of a panel is a line");
/// Products of a run: a panel of this depth stays in the first-level cache.
const DEPTH: usize = 256;
/// Rows of a chunk, whose packed run stays in the second-level cache.
const BAND: usize = 8 * ROWS;
/// Bytes of a B that a chunk packs for itself, and matrices from which on chunks do.
const SMALL: usize = 512 << 10;
const MANY: usize = 8;

/// Whether the processor has what the tiles take and the product fills them.
pub(crate) fn fits(p: &Gemm) -> bool {
    cfg!(target_arch = "x86_64") && Width::widest() > Width::Baseline && p.m >= ROWS && p.n >= COLUMNS && p.k >= ROWS
}

/// Computes the product; returns false, and leaves C unchanged, if there is no memory for packed B.
pub(crate) fn gemm(par: &dyn Par, p: Gemm, a: &[f64], b: &[f64], c: &mut [f64]) -> bool {
    let panels = p.n.div_ceil(COLUMNS);
    let (len, size) = (panels * p.k * COLUMNS, p.m * p.n);
    let rows_bytes = size_of::<f64>() * BAND.min(p.m.next_multiple_of(ROWS)) * DEPTH.min(p.k);
    let a_of = |item: usize| &a[item * p.m * p.k..][..p.m * p.k];
    let b_of = |item: usize| &b[item * p.k * p.n..][..p.k * p.n];
    if p.batch >= MANY && len * size_of::<f64>() <= SMALL {
        let bytes = rows_bytes + len * size_of::<f64>();
        par_chunks_mut_scratch(par, c, size, bytes, |item, c, scratch| {
            let (packed, rest) = scratch.split_at_mut(len * size_of::<f64>());
            let packed: &mut [f64] = bytemuck::cast_slice_mut(packed);
            pack_panels(&p, b_of(item), 0, packed);
            for (band, c) in c.chunks_mut(BAND * p.n).enumerate() {
                multiply(&p, a_of(item), packed, band * BAND, c, rest);
            }
        });
        return true;
    }
    let Some(mut packed) = len.checked_mul(2).and_then(AlignedVec::try_zeroed) else { return false };
    let packed: &mut [f64] = bytemuck::cast_slice_mut(&mut packed);
    for (item, c) in c.chunks_mut(size).enumerate() {
        let grain = (SMALL / (p.k * COLUMNS * size_of::<f64>())).clamp(1, 8);
        par_chunks_mut(par, packed, grain * p.k * COLUMNS, |chunk, panels| {
            pack_panels(&p, b_of(item), chunk * grain, panels);
        });
        par_chunks_mut_scratch(par, c, BAND * p.n, rows_bytes, |band, c, scratch| {
            multiply(&p, a_of(item), packed, band * BAND, c, scratch);
        });
    }
    true
}

/// Packs panels of op(B) from number `first` on, each `[k][COLUMNS]` with zeros after the last
/// column.
fn pack_panels(p: &Gemm, b: &[f64], first: usize, panels: &mut [f64]) {
    for (i, panel) in panels.chunks_exact_mut(p.k * COLUMNS).enumerate() {
        let start = (first + i) * COLUMNS;
        let width = COLUMNS.min(p.n - start);
        if !p.transpose_b {
            for (k, row) in panel.chunks_exact_mut(COLUMNS).enumerate() {
                row[..width].copy_from_slice(&b[k * p.n + start..][..width]);
                row[width..].fill(0.0);
            }
            continue;
        }
        if width == COLUMNS && p.k >= COLUMNS {
            let from = (start * p.k) as isize;
            let block = TurnedBlock { from, step: p.k as isize, backwards: false, rows: p.k, columns: COLUMNS };
            squares::turn(b, block, &mut Columns::of_rows(panel, COLUMNS), [0, 0]);
            continue;
        }
        for j in 0..COLUMNS {
            let column = if j < width { &b[(start + j) * p.k..][..p.k] } else { &[][..] };
            let places = panel.iter_mut().skip(j).step_by(COLUMNS);
            places.zip(column.iter().chain(std::iter::repeat(&0.0))).for_each(|(to, v)| *to = *v);
        }
    }
}

/// Packs `depth` steps from `k0` of the rows of op(A) from `first` on, in tiles `[depth][ROWS]`.
fn pack_rows(p: &Gemm, a: &[f64], first: usize, rows: usize, k0: usize, depth: usize, tiles: &mut [[f64; ROWS]]) {
    for (tile, r0) in tiles.chunks_exact_mut(depth).zip((0..rows).step_by(ROWS)) {
        for r in 0..ROWS {
            // Rows beyond the last repeat it and are not stored.
            let row = first + (r0 + r).min(rows - 1);
            if p.transpose_a {
                let column = a[k0 * p.m + row..].iter().step_by(p.m);
                tile.iter_mut().zip(column).for_each(|(to, v)| to[r] = *v);
            } else {
                tile.iter_mut().zip(&a[row * p.k + k0..]).for_each(|(to, v)| to[r] = *v);
            }
        }
    }
}

/// Computes the rows of C from `first` on, as many as `c` has.
fn multiply(p: &Gemm, a: &[f64], packed: &[f64], first: usize, c: &mut [f64], scratch: &mut [u8]) {
    let rows = c.len() / p.n;
    match p.beta {
        0.0 => c.fill(0.0),
        beta => c.iter_mut().for_each(|c| *c *= beta),
    }
    for k0 in (0..p.k).step_by(DEPTH) {
        let depth = DEPTH.min(p.k - k0);
        let bytes = size_of::<[f64; ROWS]>() * depth * rows.div_ceil(ROWS);
        let tiles: &mut [[f64; ROWS]] = bytemuck::cast_slice_mut(&mut scratch[..bytes]);
        pack_rows(p, a, first, rows, k0, depth, tiles);
        for (number, j0) in (0..p.n).step_by(COLUMNS).enumerate() {
            let run = |panel: usize| &packed[(panel * p.k + k0) * COLUMNS..][..depth * COLUMNS];
            let panel = run(number).as_chunks().0;
            let next = Src::new(bytemuck::cast_slice(run((number + 1).min(p.n.div_ceil(COLUMNS) - 1))));
            let width = COLUMNS.min(p.n - j0);
            for (tile, r0) in tiles.chunks_exact(depth).zip((0..rows).step_by(ROWS)) {
                let soon = Soon::share(next, depth * LANES, LANES, r0 / ROWS, rows.div_ceil(ROWS));
                (r0..rows.min(r0 + ROWS)).for_each(|r| request_far(c[r * p.n + j0..].as_ptr().cast()));
                let sums = product(tile, panel, soon);
                for (r, sums) in sums.iter().enumerate().take(rows - r0) {
                    let row = &mut c[(r0 + r) * p.n + j0..][..width];
                    row.iter_mut().zip(sums).for_each(|(c, sum)| *c += p.alpha * sum);
                }
            }
        }
    }
}

/// The product of a tile of rows and a panel of columns.
#[cfg(target_arch = "x86_64")]
fn product(tile: &[[f64; ROWS]], panel: &[[f64; COLUMNS]], soon: Soon) -> [[f64; COLUMNS]; ROWS] {
    #[target_feature(enable = "avx2,fma")]
    #[allow(clippy::needless_range_loop)]
    fn avx2(tile: &[[f64; ROWS]], panel: &[[f64; COLUMNS]], soon: Soon) -> [[f64; COLUMNS]; ROWS] {
        use crate::simd::prefetch_far;
        use std::arch::x86_64::*;
        let mut sums = [[_mm256_setzero_pd(); 2]; ROWS];
        for (step, (a, b)) in tile.iter().zip(panel).enumerate() {
            prefetch_far(soon.at, step * soon.step);
            // SAFETY: a row of a panel has eight numbers.
            let b = unsafe { [_mm256_loadu_pd(b.as_ptr()), _mm256_loadu_pd(b.as_ptr().add(4))] };
            for r in 0..ROWS {
                let a = _mm256_set1_pd(a[r]);
                sums[r] = [_mm256_fmadd_pd(a, b[0], sums[r][0]), _mm256_fmadd_pd(a, b[1], sums[r][1])];
            }
        }
        let mut out = [[0.0; COLUMNS]; ROWS];
        // By index: an iterator would keep all sums in memory.
        for r in 0..ROWS {
            // SAFETY: a row of the result has eight numbers.
            unsafe {
                _mm256_storeu_pd(out[r].as_mut_ptr(), sums[r][0]);
                _mm256_storeu_pd(out[r].as_mut_ptr().add(4), sums[r][1]);
            }
        }
        out
    }
    // SAFETY: `fits` has found AVX2 and FMA.
    unsafe { avx2(tile, panel, soon) }
}

/// The product of a tile of rows and a panel of columns.
#[cfg(not(target_arch = "x86_64"))]
fn product(tile: &[[f64; ROWS]], panel: &[[f64; COLUMNS]], _: Soon) -> [[f64; COLUMNS]; ROWS] {
    let mut sums = [[0.0; COLUMNS]; ROWS];
    for (a, b) in tile.iter().zip(panel) {
        for (sums, a) in sums.iter_mut().zip(a) {
            sums.iter_mut().zip(b).for_each(|(sum, b)| *sum += a * b);
        }
    }
    sums
}
