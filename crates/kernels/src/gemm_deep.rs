//! Products of few rows or columns over a long inner dimension. Panels of their whole depth would
//! take many times the memory of the operands, so blocks of it are packed.
//!
//! The depth is divided into parts, which threads share. The sums of the parts are added in their
//! order, so the bits follow from the shape alone.

use crate::aligned::AlignedVec;
use crate::element::Float;
use crate::gemm_plain::{Gemm, TILE_COLUMNS, TILE_ROWS};
use crate::matrix_vector::store;
use crate::par::{Par, par_chunks_mut_scratch};
use crate::vectorize::vectorized;
use std::ops::Range;

/// Products of a sum from which on a product is deep: no layer of a usual network has so many.
pub(crate) const DEEP: usize = 128 << 10;
/// Products of a part, and of a packed block.
pub(crate) const PART: usize = 32 << 10;
const BLOCK: usize = 256;
/// Rows or columns of which a deep product has no more: packed blocks and sums stay small.
const FEW: usize = 64;

/// Whether the depth is divided.
pub(crate) fn fits(p: &Gemm) -> bool {
    p.k >= DEEP && p.m.min(p.n) <= FEW
}

/// Rows of op(A), or columns of op(B).
#[derive(Clone, Copy)]
struct Lines<'a, T> {
    data: &'a [T],
    count: usize,
    /// distance between lines, and along one
    line: usize,
    step: usize,
}

/// Computes a product that [`fits`]; returns false, and leaves C unchanged, if there is no memory
/// for the sums of parts.
pub(crate) fn multiply<T: Float>(par: &dyn Par, p: Gemm, a: &[T], b: &[T], c: &mut [T]) -> bool {
    let (size, parts) = (p.m * p.n, p.k.div_ceil(PART));
    let len = (parts * size).checked_mul(size_of::<T>().div_ceil(size_of::<f32>()));
    let Some(mut memory) = len.and_then(AlignedVec::try_zeroed) else { return false };
    let sums: &mut [T] = &mut bytemuck::cast_slice_mut(&mut memory)[..parts * size];
    let turned = p.m > p.n;
    for (item, c) in c.chunks_mut(size).enumerate() {
        let (a, b) = (&a[item * p.m * p.k..][..p.m * p.k], &b[item * p.k * p.n..][..p.k * p.n]);
        let lines = |data, count: usize, contiguous: bool| {
            let (line, step) = if contiguous { (p.k, 1) } else { (1, count) };
            Lines { data, count, line, step }
        };
        let (rows, columns) = (lines(a, p.m, !p.transpose_a), lines(b, p.n, p.transpose_b));
        let (few, many) = if turned { (columns, rows) } else { (rows, columns) };
        let packed = few.count.next_multiple_of(TILE_ROWS) * BLOCK;
        let bytes = (packed + TILE_COLUMNS * BLOCK) * size_of::<T>();
        par_chunks_mut_scratch(par, sums, size, bytes, |part, sums, scratch| {
            let scratch: &mut [T] = bytemuck::cast_slice_mut(&mut scratch[..bytes]);
            let steps = part * PART..p.k.min((part + 1) * PART);
            sums.fill(T::ZERO);
            add_part(few, many, steps, scratch, sums);
        });
        for (place, c) in c.iter_mut().enumerate() {
            let at = if turned { place % p.n * p.m + place / p.n } else { place };
            let of_parts = sums[at..].iter().step_by(size).map(|sum| sum.to_f64());
            store(&p, c, T::from_f64(of_parts.sum()));
        }
    }
    true
}

/// Copies some steps of N lines from `first` on, zeros after the last line.
#[inline(always)]
fn pack<T: Float, const N: usize>(from: Lines<'_, T>, first: usize, steps: Range<usize>, to: &mut [[T; N]]) {
    let count = N.min(from.count - first);
    if count < N {
        to.fill([T::ZERO; N]);
    }
    if from.line == 1 {
        for (step, to) in steps.zip(to) {
            let row = &from.data[step * from.step + first..][..count];
            to.iter_mut().zip(row).for_each(|(to, v)| *to = *v);
        }
        return;
    }
    for lane in 0..count {
        let line = &from.data[(first + lane) * from.line..][steps.clone()];
        to.iter_mut().zip(line).for_each(|(to, v)| to[lane] = *v);
    }
}

vectorized! {
    fn add_part[T: Float](
        few: Lines<'_, T>,
        many: Lines<'_, T>,
        steps: Range<usize>,
        scratch: &mut [T],
        sums: &mut [T],
    ) {
        let (panel, rows) = scratch.split_at_mut(BLOCK * TILE_COLUMNS);
        let (panel, rows) = (panel.as_chunks_mut::<TILE_COLUMNS>().0, rows.as_chunks_mut::<TILE_ROWS>().0);
        for k0 in steps.clone().step_by(BLOCK) {
            let block = k0..steps.end.min(k0 + BLOCK);
            for (tile, rows) in rows.chunks_exact_mut(BLOCK).enumerate() {
                pack(few, tile * TILE_ROWS, block.clone(), &mut rows[..block.len()]);
            }
            for j0 in (0..many.count).step_by(TILE_COLUMNS) {
                let panel = &mut panel[..block.len()];
                pack(many, j0, block.clone(), panel);
                let columns = TILE_COLUMNS.min(many.count - j0);
                for (tile, rows) in rows.chunks_exact(BLOCK).enumerate() {
                    let mut own = [[T::ZERO; TILE_COLUMNS]; TILE_ROWS];
                    for (row, panel) in rows.iter().zip(&*panel) {
                        for r in 0..TILE_ROWS {
                            for j in 0..TILE_COLUMNS {
                                own[r][j] += row[r] * panel[j];
                            }
                        }
                    }
                    let lines = sums.chunks_exact_mut(many.count).skip(tile * TILE_ROWS);
                    for (line, own) in lines.zip(&own) {
                        line[j0..][..columns].iter_mut().zip(own).for_each(|(sum, own)| *sum += *own);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm_plain::gemm;
    use crate::isa::Isa;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads, random};
    use crate::vectorize::Width;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Notes the most scratch that a loop asks for.
    #[derive(Default)]
    struct Noting(AtomicUsize);

    impl Par for Noting {
        fn run(&self, chunks: usize, scratch_bytes: usize, body: &(dyn Fn(usize, &mut [u8]) + Sync)) {
            self.0.fetch_max(scratch_bytes, Ordering::Relaxed);
            Serial.run(chunks, scratch_bytes, body);
        }
    }

    /// Compares a product with its definition, and the bits of all threads and widths.
    fn check<T: Float>(p: Gemm, tolerance: f64) {
        let numbers = |n: usize, seed| random(n, seed).iter().map(|v| T::from_f64((*v).into())).collect::<Vec<T>>();
        let (a, b) = (numbers(p.batch * p.m * p.k, 1), numbers(p.batch * p.k * p.n, 2));
        let old = numbers(p.batch * p.m * p.n, 3);
        let run = |width: Width, par: &dyn Par| {
            let mut c = old.clone();
            width.limit(|| gemm(par, p, &a, &b, &mut c));
            c
        };
        let noting = Noting::default();
        let first = run(Width::widest(), &noting);
        // Panels of the whole depth would take 34 MB and more.
        assert!(noting.0.into_inner() <= 16 << 20, "{p:?}");
        for (at, got) in first.iter().enumerate() {
            let (item, row, column) = (at / (p.m * p.n), at / p.n % p.m, at % p.n);
            let (a, b) = (&a[item * p.m * p.k..], &b[item * p.k * p.n..]);
            let sum: f64 = (0..p.k)
                .map(|k| {
                    let a = if p.transpose_a { a[k * p.m + row] } else { a[row * p.k + k] };
                    let b = if p.transpose_b { b[column * p.k + k] } else { b[k * p.n + column] };
                    a.to_f64() * b.to_f64()
                })
                .sum();
            let want = p.alpha * sum + p.beta * old[at].to_f64();
            assert!((got.to_f64() - want).abs() <= tolerance, "{p:?}, element {at}: {got:?}, expected {want}");
        }
        let same = |c: Vec<T>| bytemuck::cast_slice::<T, u8>(&c) == bytemuck::cast_slice::<T, u8>(&first);
        assert!(same(run(Width::widest(), &Reverse)) && same(run(Width::widest(), &Threads(3))), "{p:?}");
        if p.tiles.is_none() {
            assert!(Width::all().into_iter().all(|width| same(run(width, &Serial))), "{p:?}");
        }
    }

    #[test]
    fn deep_products_agree_with_their_definition_and_need_little_memory() {
        let k = DEEP + 77;
        for (batch, m, n) in [(1, 2, 2), (2, 5, 3), (1, 21, 2), (1, 4, 17)] {
            for flags in if m == 2 { 0..4 } else { 1..3 } {
                let p = Gemm {
                    batch,
                    transpose_a: flags & 1 != 0,
                    transpose_b: flags & 2 != 0,
                    alpha: 0.5,
                    beta: if flags == 2 { -2.0 } else { 0.0 },
                    ..Gemm::new(m, n, k)
                };
                check::<f32>(p, 0.02);
                check::<f32>(p.on(Isa::detect()), 0.02);
                check::<f64>(p.on(Isa::detect()), 1e-9);
            }
        }
    }
}
