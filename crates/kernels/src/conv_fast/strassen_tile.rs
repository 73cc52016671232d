//! Register tiles of [`Strassen`](super::strassen::Strassen): one of the seven products, and what is made of it.

use super::tiles::ResidualAt;
use crate::gemm::tile::{Soon, Tap, accumulate, too_large};
use crate::isa::Isa;
use crate::simd::{Body, Dst, Entry, LANES, Simd, Src, entry, entry_wide};

/// Elements of the largest tile.
pub(super) const TILE: usize = 14 * 2 * LANES;

/// Arguments of one product of M pixels and two blocks of output channels.
pub(super) struct SevenArgs {
    /// The first pixel of the left operand.
    pub a: Src,
    pub taps: *const Tap,
    pub taps_len: usize,
    pub b: Src,
    pub soon: Soon,
    /// Which product: those of a tile follow each other.
    pub product: usize,
    /// Two tiles of sums that later products go on from.
    pub kept: Dst,
    /// Where this product completes outputs.
    pub finish: Option<Finish>,
}

/// What completes M pixels of two blocks of output channels.
pub(super) struct Finish {
    /// Two blocks of 16.
    pub bias: Src,
    pub residual: Option<ResidualAt>,
    pub y: Dst,
    pub y_block: usize,
    pub limits: (f32, f32),
}

struct SevenTile<const M: usize, const WAYS: usize>;

impl<const M: usize, const WAYS: usize> Body for SevenTile<M, WAYS> {
    type Args = SevenArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &SevenArgs) {
        // SAFETY: the caller passes valid taps, operands that they and M cover, and room for two tiles.
        unsafe {
            let taps = std::slice::from_raw_parts(x.taps, x.taps_len);
            let (first, second) = (x.kept, x.kept.add(TILE));
            // Where the sums of this product begin: the first product is in the second to fourth and in the seventh, the first
            // four are in the fifth.
            let begin = match x.product {
                1 | 2 | 3 | 6 => Some(first.as_src()),
                4 => Some(second.as_src()),
                _ => None,
            };
            let mut acc = [[s.zero(); 2]; M];
            if let Some(begin) = begin {
                for m in 0..M {
                    for n in 0..2 {
                        acc[m][n] = s.load(begin, (m * 2 + n) * LANES);
                    }
                }
            }
            accumulate::<S, M, 2, WAYS, LANES, M>(s, &mut acc, x.a, LANES, 0, taps, x.b, x.soon);
            let Some(finish) = &x.finish else {
                let to = if x.product == 3 { second } else { first };
                for m in 0..M {
                    for n in 0..2 {
                        s.store(to, (m * 2 + n) * LANES, acc[m][n]);
                    }
                }
                return;
            };
            if x.product == 5 {
                // It is in two quarters of the output: with the first three products in one that the last completes, with the
                // first four in this one.
                for m in 0..M {
                    for n in 0..2 {
                        let at = (m * 2 + n) * LANES;
                        s.store(first, at, s.add(s.load(first.as_src(), at), acc[m][n]));
                        acc[m][n] = s.add(acc[m][n], s.load(second.as_src(), at));
                    }
                }
            }
            let (lo, hi) = (s.splat(finish.limits.0), s.splat(finish.limits.1));
            for n in 0..2 {
                let bias = s.load(finish.bias, n * LANES);
                for m in 0..M {
                    let mut v = s.add(acc[m][n], bias);
                    if let Some(r) = finish.residual {
                        v = s.add(v, s.load(r.at, n * r.block + m * LANES));
                    }
                    s.store(finish.y, n * finish.y_block + m * LANES, s.clamp(v, lo, hi));
                }
            }
        }
    }
}

/// The tile of `rows` pixels.
pub(super) fn seven_tile(isa: Isa, rows: usize) -> Entry<SevenArgs> {
    macro_rules! wide {
        ($($rows:literal / $ways:literal)*) => {
            match rows { $($rows => entry_wide::<SevenTile<$rows, $ways>>(),)* _ => too_large(isa, rows, 2) }
        };
    }
    wide!(1/4 2/2 3/2 4/1 5/1 6/1 7/1 8/1 9/1 10/1 11/1 12/1 13/1 14/1)
}

/// Arguments of the sums of a row of pixels.
pub(super) struct SumArgs {
    /// Both halves of the channels of the upper row, then of the lower one.
    pub a: [Src; 4],
    pub to: [Dst; 4],
    pub cols: usize,
}

struct SumRow;

impl Body for SumRow {
    type Args = SumArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &SumArgs) {
        for at in (0..x.cols * LANES).step_by(LANES) {
            // SAFETY: the caller passes rows of `cols` pixels.
            unsafe {
                let [a11, a12, a21, a22] = [0, 1, 2, 3].map(|i| s.load(x.a[i], at));
                let s1 = s.add(a21, a22);
                let s2 = s.sub(s1, a11);
                s.store(x.to[0], at, s1);
                s.store(x.to[1], at, s2);
                s.store(x.to[2], at, s.sub(a11, a21));
                s.store(x.to[3], at, s.sub(a12, s2));
            }
        }
    }
}

/// The sums of a row.
pub(super) fn sum_row(isa: Isa) -> Entry<SumArgs> {
    entry::<SumRow>(isa)
}
