//! The register tile of every product: M rows (pixels, tiles of a transform, matrix rows) times N
//! blocks of 16 outputs.
//!
//! Rows of A are read one scalar at a time and broadcast; B is a panel packed in reading order, 16
//! N values per step. A table of [`Tap`]s says where each run of up to 16 consecutive steps starts
//! in A, so that one tile serves convolutions of any kernel, stride and dilation, the products of
//! Winograd transforms and plain matrices.

use crate::isa::Isa;
use crate::simd::{
    Body, Dst, Entry, LANES, Simd, Src, entry_narrow, entry_pairs, entry_wide, prefetch_far, prefetch_near,
};

/// A run of consecutive values in every row of A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C)]
pub(crate) struct Tap {
    /// Beginning in elements from the row's base.
    pub offset: u32,
    /// How many values, 1 to 16.
    pub count: u32,
}

/// The meaning of a 32-bit element of A and B.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Elements {
    /// A number.
    #[default]
    Single,
    /// Two numbers in bf16, both of which are multiplied, for AVX512-BF16.
    Pairs,
}

/// How far ahead of its use a weight line is requested, in elements: 128 lines into the first-level
/// cache, 1024 into the second. Hardware prefetching alone does not keep up with panels that come
/// from memory.
const NEAR: usize = 128 * 16;
const FAR: usize = 1024 * 16;
/// How many taps ahead of its use a line of A is.
const ROWS_AHEAD: usize = 2;
/// Largest number of rows for which only reading B takes time; the hardware follows one stream
/// better without requests in between.
const FEW_ROWS: usize = 4;

/// Rows and blocks of 16 columns of the largest register tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TileSize {
    pub rows: usize,
    pub blocks: usize,
}

/// The tile that fills the registers of `isa` without spilling.
pub(crate) fn tile_size(isa: Isa) -> TileSize {
    match isa.or_best() {
        Isa::Avx512 => TileSize { rows: 14, blocks: 2 },
        Isa::Avx2 | Isa::Neon => TileSize { rows: 6, blocks: 1 },
        Isa::Portable => TileSize { rows: 2, blocks: 1 },
    }
}

/// Rows cut into tiles of two sizes, one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Split {
    pub parts: usize,
    /// Tiles of the first size.
    leading: usize,
    sizes: [usize; 2],
}

impl Split {
    /// The fewest tiles of at most `max` rows, as even as possible; larger ones first.
    pub(crate) fn new(total: usize, max: usize) -> Split {
        let parts = total.div_ceil(max).max(1);
        let small = total / parts;
        Split { parts, leading: total % parts, sizes: [small + 1, small] }
    }

    /// Tiles for `isa`. Large ones are about as fast as the largest, so that even ones are best; of
    /// small ones only the largest is fast, so that all are of that size except for the remainder.
    pub(crate) fn tiles(total: usize, isa: Isa) -> Split {
        let max = tile_size(isa).rows;
        match isa.or_best() {
            Isa::Avx512 => Split::new(total, max),
            _ => Split { parts: total.div_ceil(max).max(1), leading: total / max, sizes: [max, total % max] },
        }
    }

    /// Rows of part `i`.
    #[inline(always)]
    pub(crate) fn rows(&self, i: usize) -> usize {
        self.sizes[usize::from(i >= self.leading)]
    }

    /// First row of part `i`.
    #[inline(always)]
    pub(crate) fn start(&self, i: usize) -> usize {
        let leading = i.min(self.leading);
        self.sizes[0] * leading + self.sizes[1] * (i - leading)
    }

    /// An entry per part size: `pick(rows)` is called at most twice.
    pub(crate) fn entries<A>(&self, pick: impl Fn(usize) -> Entry<A>) -> SplitEntries<A> {
        let [large, small] = self.sizes;
        match (self.leading, self.parts - self.leading) {
            (0, _) => SplitEntries { large: pick(small.max(1)), small: pick(small.max(1)) },
            (_, 0) => SplitEntries { large: pick(large), small: pick(large) },
            _ => SplitEntries { large: pick(large), small: pick(small) },
        }
    }
}

/// The entries of a [`Split`].
pub(crate) struct SplitEntries<A> {
    small: Entry<A>,
    large: Entry<A>,
}

impl<A> SplitEntries<A> {
    #[inline(always)]
    pub(crate) fn of(&self, split: &Split, i: usize) -> Entry<A> {
        if i < split.leading { self.large } else { self.small }
    }
}

/// `acc[m][n] += sum over steps of A[m][step] * B[step][n]`.
///
/// `ROW` is the distance between rows of A in elements, or 0 to take it from `row`: a constant
/// makes every row of A a constant displacement from one register. One below 16 stands for planes,
/// where every tap is one value. Few rows would leave the multiply-add units waiting for each
/// other's results, so the steps are spread over `WAYS` sets of accumulators.
///
/// `soon` says what of B is requested for the second-level cache.
///
/// From row `WRAP` on, rows are counted from `a + wrap`: a tile can hold two rows of a narrow
/// image, which halves how often B is read. With `WRAP = M` there is one run of rows and `wrap`
/// means nothing.
///
/// # Safety
/// For every tap and m < M, `count` values at `offset` from the start of row m must be readable,
/// and `b[.. steps * N * 16]`.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(crate) unsafe fn accumulate<
    S: Simd,
    const M: usize,
    const N: usize,
    const WAYS: usize,
    const ROW: usize,
    const WRAP: usize,
>(
    s: S,
    acc: &mut [[S::V; N]; M],
    a: Src,
    row: usize,
    wrap: usize,
    taps: &[Tap],
    b: Src,
    soon: Soon,
) {
    let mut soon = soon;
    let rows = RowPositions::<WRAP> { step: if ROW > 0 { ROW } else { row }, wrap };
    let mut b = b;
    let mut more = [[[s.zero(); N]; M]; WAYS];
    more[0] = *acc;
    for (t, tap) in taps.iter().enumerate() {
        let mut ap = a.add(tap.offset as usize);
        // SAFETY: promised by the caller.
        unsafe {
            if ROW > 0 && ROW < LANES {
                // Planes: every tap is one value.
                step::<S, M, N, WRAP, false>(s, &mut more[0], ap, 0, rows, b, b);
                b = b.add(N * LANES);
            } else if tap.count == LANES as u32 {
                // A line of every row of A, requested before it is needed: rows of one pixel have
                // no stream for the hardware to follow.
                let mut ahead = a.add(taps[(t + ROWS_AHEAD).min(taps.len() - 1)].offset as usize);
                for i in 0..LANES / 4 {
                    for u in 0..4 {
                        if soon.rows && ROW > 0 && M > FEW_ROWS && i * 4 < M {
                            prefetch_near(ahead, u * ROW);
                        }
                        step::<S, M, N, WRAP, true>(s, &mut more[u % WAYS], ap, u, rows, b.add(u * N * LANES), soon.at);
                        soon.at = soon.at.add(soon.step);
                    }
                    ahead = ahead.add(4 * ROW);
                    b = b.add(4 * N * LANES);
                    ap = ap.add(4);
                }
            } else {
                for _ in 0..tap.count {
                    step::<S, M, N, WRAP, false>(s, &mut more[0], ap, 0, rows, b, b);
                    b = b.add(N * LANES);
                    ap = ap.add(1);
                }
            }
        }
    }
    for m in 0..M {
        for n in 0..N {
            acc[m][n] = more[0][m][n];
            for way in 1..WAYS {
                acc[m][n] = s.add(acc[m][n], more[way][m][n]);
            }
        }
    }
}

/// Lines of B that will be wanted later: N of them are requested at every step.
#[derive(Clone, Copy)]
pub(crate) struct Soon {
    pub at: Src,
    /// Elements from one step's lines to the next step's.
    pub step: usize,
    /// Whether rows of A are requested, too.
    pub rows: bool,
}

impl Soon {
    /// The request for the elements that follow on a panel `b` of `width` values per step, at the
    /// usual distance.
    #[inline(always)]
    pub(crate) fn behind(b: Src, width: usize) -> Soon {
        Soon { at: b.add(FAR), step: width, rows: false }
    }

    /// A part of the panel `next` that is as long as what `passes` tiles read one after the other:
    /// pass number `pass` requests its share, so that what arrives from memory does so all the time
    /// and not only during the first pass.
    #[inline(always)]
    pub(crate) fn share(next: Src, len: usize, width: usize, pass: usize, passes: usize) -> Soon {
        Soon { at: next.add(len / passes * pass), step: width.div_ceil(passes), rows: false }
    }
}

/// The positions of the rows of A.
#[derive(Clone, Copy)]
struct RowPositions<const WRAP: usize> {
    step: usize,
    wrap: usize,
}

/// One step: N vectors of B, each used by M broadcasts of A.
///
/// # Safety
/// Element `at` of every row m < M and `b[.. N * 16]` must be readable.
#[inline(always)]
unsafe fn step<S: Simd, const M: usize, const N: usize, const WRAP: usize, const FETCH: bool>(
    s: S,
    acc: &mut [[S::V; N]; M],
    a: Src,
    at: usize,
    rows: RowPositions<WRAP>,
    b: Src,
    soon: Src,
) {
    // SAFETY: promised by the caller.
    unsafe {
        let mut bv = [s.zero(); N];
        for n in 0..N {
            bv[n] = s.load(b, n * LANES);
            if FETCH && M > FEW_ROWS {
                prefetch_near(b, n * LANES + NEAR);
                prefetch_far(soon, n * LANES);
            }
        }
        let wrapped = a.add(rows.wrap);
        for m in 0..M {
            let value = if m < WRAP { a.read(at + m * rows.step) } else { wrapped.read(at + (m - WRAP) * rows.step) };
            let av = s.splat(value);
            for n in 0..N {
                acc[m][n] = s.mac(av, bv[n], acc[m][n]);
            }
        }
    }
}

/// Arguments of [`product`]: `c[m][n][16] (+)= A * B` with the rows of A 16 elements apart.
pub(crate) struct ProductArgs {
    pub a: Src,
    pub taps: *const Tap,
    pub taps_len: usize,
    pub b: Src,
    pub c: Dst,
    pub c_at: SumsAt,
    /// Add to what C holds.
    pub add: bool,
}

/// The distances of the sums of a register tile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SumsAt {
    /// Elements from a row to the next.
    pub row: usize,
    /// Elements from 16 columns to the next.
    pub block: usize,
}

impl SumsAt {
    /// Rows of `width` columns, one after the other.
    pub fn rows(width: usize) -> SumsAt {
        SumsAt { row: width, block: LANES }
    }
}

struct Product<const M: usize, const N: usize, const WAYS: usize>;

impl<const M: usize, const N: usize, const WAYS: usize> Body for Product<M, N, WAYS> {
    type Args = ProductArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &ProductArgs) {
        // SAFETY: the caller passes valid taps, and operands that they and M x N cover.
        unsafe {
            let taps = std::slice::from_raw_parts(x.taps, x.taps_len);
            let mut acc = [[s.zero(); N]; M];
            if x.add {
                for m in 0..M {
                    for n in 0..N {
                        acc[m][n] = s.load(x.c.as_src(), m * x.c_at.row + n * x.c_at.block);
                    }
                }
            }
            accumulate::<S, M, N, WAYS, LANES, M>(s, &mut acc, x.a, LANES, 0, taps, x.b, Soon::behind(x.b, N * LANES));
            for m in 0..M {
                for n in 0..N {
                    s.store(x.c, m * x.c_at.row + n * x.c_at.block, acc[m][n]);
                }
            }
        }
    }
}

/// The product tile of `rows` x `blocks` for `isa`; at most [`tile_size`].
pub(crate) fn product(isa: Isa, elements: Elements, rows: usize, blocks: usize) -> Entry<ProductArgs> {
    macro_rules! wide {
        ($blocks:literal: $($rows:literal / $ways:literal)*) => {
            match rows { $($rows => entry_wide::<Product<$rows, $blocks, $ways>>(),)* _ => too_large(isa, rows, blocks) }
        };
    }
    macro_rules! narrow {
        ($($rows:literal / $ways:literal)*) => {
            match rows { $($rows => entry_narrow::<Product<$rows, 1, $ways>>(isa),)* _ => too_large(isa, rows, blocks) }
        };
    }
    macro_rules! pairs {
        ($blocks:literal: $($rows:literal / $ways:literal)*) => {
            match rows { $($rows => entry_pairs::<Product<$rows, $blocks, $ways>>(),)* _ => too_large(isa, rows, blocks) }
        };
    }
    match (isa.or_best(), blocks) {
        (Isa::Avx512, 2) if elements == Elements::Pairs => {
            pairs!(2: 1/4 2/4 3/2 4/2 5/1 6/1 7/1 8/1 9/1 10/1 11/1 12/1 13/1 14/1)
        }
        (Isa::Avx512, 1) if elements == Elements::Pairs => {
            pairs!(1: 1/4 2/4 3/2 4/2 5/1 6/1 7/1 8/1 9/1 10/1 11/1 12/1 13/1 14/1)
        }
        (Isa::Avx512, 1) => wide!(1: 1/4 2/4 3/2 4/2 5/1 6/1 7/1 8/1 9/1 10/1 11/1 12/1 13/1 14/1),
        (Isa::Avx512, 2) => wide!(2: 1/4 2/2 3/2 4/1 5/1 6/1 7/1 8/1 9/1 10/1 11/1 12/1 13/1 14/1),
        (_, 1) => narrow!(1/4 2/2 3/1 4/1 5/1 6/1),
        _ => too_large(isa, rows, blocks),
    }
}

/// A tile that no table holds: a mistake in the caller's splitting.
#[cold]
pub(crate) fn too_large<A>(isa: Isa, rows: usize, blocks: usize) -> Entry<A> {
    let TileSize { rows: most_rows, blocks: most_blocks } = tile_size(isa);
    panic!("no {isa} register tile of {rows} x {blocks}: rows must be 1 to {most_rows}, blocks 1 to {most_blocks}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_covers_every_row_once_in_even_parts() {
        for total in 1..100 {
            for max in 1..16 {
                let split = Split::new(total, max);
                let mut at = 0;
                for i in 0..split.parts {
                    assert_eq!(split.start(i), at);
                    assert!((1..=max).contains(&split.rows(i)), "{total} in {max}");
                    at += split.rows(i);
                }
                assert_eq!(at, total);
            }
            for isa in Isa::ALL {
                let split = Split::tiles(total, isa);
                let sizes: Vec<usize> = (0..split.parts).map(|i| split.rows(i)).collect();
                assert_eq!(sizes.iter().sum::<usize>(), total, "{isa}");
                assert!(sizes.is_sorted_by(|a, b| a >= b) && sizes.iter().all(|s| *s <= tile_size(isa).rows), "{isa}");
                assert!((0..split.parts).all(|i| split.start(i) == sizes[..i].iter().sum::<usize>()), "{isa}");
                assert!(sizes.iter().all(|s| *s > 0), "{isa} {total}");
            }
        }
    }
}
