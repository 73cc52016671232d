//! Register tiles of convolutions: sums over taps with bias, residual and activation applied before
//! they are stored.

use crate::activation::ActivationLimits;
use crate::gemm::tile::{Elements, Soon, Tap, accumulate, tile_size, too_large};
use crate::isa::Isa;
use crate::simd::{Body, Dst, Entry, LANES, Simd, Src, entry_narrow, entry_pairs, entry_wide, prefetch_near};

/// The values added to a tile of outputs.
#[derive(Clone, Copy)]
pub(super) struct ResidualAt {
    pub at: Src,
    /// Elements between blocks of channels.
    pub block: usize,
    /// Elements between rows.
    pub row: usize,
}

/// Arguments of a tile of M pixels, of one row or from the end of one to the beginning of the next,
/// times N blocks of output channels.
pub(super) struct ConvTileArgs {
    /// The input pixel under the first tap of the first output.
    pub a: Src,
    /// Elements between the input pixels of neighbouring outputs.
    pub pixel: usize,
    /// Distance from the input pixel of the first output to that of the first output in the next
    /// row, in elements.
    pub row: usize,
    pub taps: *const Tap,
    pub taps_len: usize,
    pub b: Src,
    pub soon: Soon,
    /// The output holds sums of earlier taps.
    pub resumes: bool,
    /// Whether more taps follow: sums are then stored unchanged.
    pub pauses: bool,
    /// N blocks of 16.
    pub bias: Src,
    pub residual: Option<ResidualAt>,
    pub y: Dst,
    pub y_block: usize,
    /// Distance from the first output to the first in the next row, in elements.
    pub y_row: usize,
    /// Request the lines of the outputs before the sums are made.
    pub fetch_outputs: bool,
    pub limits: ActivationLimits,
}

/// Tile in which the pixels from `WRAP` on are in the next row; with `WRAP = M` all are in one.
struct ConvTile<const M: usize, const N: usize, const WAYS: usize, const PIXEL: usize, const WRAP: usize>;

impl<const M: usize, const N: usize, const WAYS: usize, const PIXEL: usize, const WRAP: usize> Body
    for ConvTile<M, N, WAYS, PIXEL, WRAP>
{
    type Args = ConvTileArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &ConvTileArgs) {
        // SAFETY: the caller passes valid taps, and operands that they and M x N cover.
        unsafe {
            let taps = std::slice::from_raw_parts(x.taps, x.taps_len);
            if x.fetch_outputs {
                for n in 0..N {
                    for m in 0..M {
                        prefetch_near(x.y.as_src(), n * x.y_block + place::<WRAP>(m, x.y_row));
                    }
                }
            }
            let mut acc = [[s.zero(); N]; M];
            // Sums begin with the bias: short ones have no time for an addition afterwards.
            for n in 0..N {
                let bias = s.load(x.bias, n * LANES);
                for m in 0..M {
                    acc[m][n] =
                        if x.resumes { s.load(x.y.as_src(), n * x.y_block + place::<WRAP>(m, x.y_row)) } else { bias };
                }
            }
            accumulate::<S, M, N, WAYS, PIXEL, WRAP>(s, &mut acc, x.a, x.pixel, x.row, taps, x.b, x.soon);
            if x.pauses {
                for n in 0..N {
                    for m in 0..M {
                        s.store(x.y, n * x.y_block + place::<WRAP>(m, x.y_row), acc[m][n]);
                    }
                }
                return;
            }
            if x.limits.are_leaky() {
                store_tile::<S, M, N, WRAP, true>(s, x, acc)
            } else {
                store_tile::<S, M, N, WRAP, false>(s, x, acc)
            }
        }
    }
}

/// The offset of pixel m of a tile, in rows that are `row` apart; those from `WRAP` on are in the
/// second.
#[inline(always)]
pub(super) fn place<const WRAP: usize>(m: usize, row: usize) -> usize {
    if m < WRAP { m * LANES } else { row + (m - WRAP) * LANES }
}

/// Adds the residual, applies the activation and stores N blocks of M pixels.
///
/// # Safety
/// The residual and the output must have these pixels.
#[inline(always)]
unsafe fn store_tile<S: Simd, const M: usize, const N: usize, const WRAP: usize, const LEAKY: bool>(
    s: S,
    x: &ConvTileArgs,
    acc: [[S::V; N]; M],
) {
    let limits = x.limits.ready_if(s, LEAKY);
    for n in 0..N {
        for m in 0..M {
            // SAFETY: promised by the caller.
            unsafe {
                let mut v = acc[m][n];
                if let Some(r) = x.residual {
                    v = s.add(v, s.load(r.at, n * r.block + place::<WRAP>(m, r.row)));
                }
                s.store(x.y, n * x.y_block + place::<WRAP>(m, x.y_row), limits.apply(s, v));
            }
        }
    }
}

/// The tile of `rows` pixels `pixel` elements apart and `blocks` blocks of outputs; at most the
/// size that `tile_size` gives.
pub(super) fn conv_tile(isa: Isa, elements: Elements, rows: usize, blocks: usize, pixel: usize) -> Entry<ConvTileArgs> {
    macro_rules! tiles {
        ($entry:ident $arguments:tt, $pixel:literal, $blocks:literal: $($rows:literal / $ways:literal)*) => {
            match rows {
                $($rows => $entry::<ConvTile<$rows, $blocks, $ways, $pixel, $rows>> $arguments,)*
                _ => too_large(isa, rows, blocks),
            }
        };
        ($entry:ident, $pixel:literal) => {
            match blocks {
                1 => tiles!($entry(), $pixel, 1: 1/4 2/4 3/2 4/2 5/1 6/1 7/1 8/1 9/1 10/1 11/1 12/1 13/1 14/1),
                2 => tiles!($entry(), $pixel, 2: 1/4 2/2 3/2 4/1 5/1 6/1 7/1 8/1 9/1 10/1 11/1 12/1 13/1 14/1),
                _ => too_large(isa, rows, blocks),
            }
        };
    }
    // Constant distances for blocked pixels and planes at strides 1 and 2; any other is read from
    // the arguments.
    match (isa.or_best(), elements, pixel) {
        (Isa::Avx512, Elements::Pairs, 16) => tiles!(entry_pairs, 16),
        (Isa::Avx512, Elements::Pairs, 32) => tiles!(entry_pairs, 32),
        (Isa::Avx512, Elements::Pairs, _) => tiles!(entry_pairs, 0),
        (Isa::Avx512, _, 16) => tiles!(entry_wide, 16),
        (Isa::Avx512, _, 32) => tiles!(entry_wide, 32),
        (Isa::Avx512, _, 1) => tiles!(entry_wide, 1),
        (Isa::Avx512, _, 2) => tiles!(entry_wide, 2),
        (Isa::Avx512, _, _) => tiles!(entry_wide, 0),
        (_, _, 16) => tiles!(entry_narrow(isa), 16, 1: 1/4 2/2 3/1 4/1 5/1 6/1),
        (_, _, 32) => tiles!(entry_narrow(isa), 32, 1: 1/4 2/2 3/1 4/1 5/1 6/1),
        (_, _, 2) => tiles!(entry_narrow(isa), 2, 1: 1/4 2/2 3/1 4/1 5/1 6/1),
        _ => tiles!(entry_narrow(isa), 0, 1: 1/4 2/2 3/1 4/1 5/1 6/1),
    }
}

/// The tile of two whole rows of `cols` pixels `pixel` elements apart, where there is one: narrow
/// images leave most of a tile of one row empty, and would read the weights once for every row.
pub(super) fn two_row_tile(
    isa: Isa,
    elements: Elements,
    cols: usize,
    blocks: usize,
    pixel: usize,
) -> Option<Entry<ConvTileArgs>> {
    macro_rules! wide {
        ($entry:ident: $($cols:literal $all:literal)*) => {
            match (cols, blocks, pixel) {
                $(
                    ($cols, 1, 16) => Some($entry::<ConvTile<$all, 1, 1, 16, $cols>>()),
                    ($cols, 2, 16) => Some($entry::<ConvTile<$all, 2, 1, 16, $cols>>()),
                    ($cols, 1, 32) => Some($entry::<ConvTile<$all, 1, 1, 32, $cols>>()),
                    ($cols, 2, 32) => Some($entry::<ConvTile<$all, 2, 1, 32, $cols>>()),
                )*
                _ => None,
            }
        };
    }
    match (isa.or_best(), elements) {
        (Isa::Avx512, Elements::Pairs) => wide!(entry_pairs: 4 8 5 10 6 12 7 14),
        (Isa::Avx512, Elements::Single) => wide!(entry_wide: 4 8 5 10 6 12 7 14),
        _ => None,
    }
}

/// The largest tile of pixels `pixel` elements apart of which the first `wrap` end a row and the
/// others begin the next, where there is one: for instruction sets with small tiles, into which
/// rows seldom divide.
pub(super) fn wrapping_tile(isa: Isa, wrap: usize, pixel: usize) -> Option<Entry<ConvTileArgs>> {
    macro_rules! narrow {
        ($($wrap:literal)*) => {
            match (wrap, pixel) {
                $(
                    ($wrap, 16) => Some(entry_narrow::<ConvTile<6, 1, 1, 16, $wrap>>(isa)),
                    ($wrap, 32) => Some(entry_narrow::<ConvTile<6, 1, 1, 32, $wrap>>(isa)),
                )*
                _ => None,
            }
        };
    }
    match isa.or_best() {
        Isa::Avx2 | Isa::Neon => narrow!(1 2 3 4 5),
        _ => None,
    }
}

/// Arguments of a tile of M pixels of one row of a depthwise convolution in one block of channels.
pub(super) struct DepthwiseTileArgs {
    /// The input pixel under the first tap of the first output.
    pub a: Src,
    /// Elements between the input pixels of neighbouring outputs.
    pub pixel: usize,
    /// Positions of the taps.
    pub taps: *const Tap,
    pub taps_len: usize,
    /// A vector of weights per tap.
    pub weights: Src,
    pub bias: Src,
    pub residual: Option<ResidualAt>,
    pub y: Dst,
    /// Offset of the outputs one row later, if their lines are to be requested.
    pub next_row: Option<usize>,
    pub limits: ActivationLimits,
}

struct DepthwiseTile<const M: usize, const PIXEL: usize>;

impl<const M: usize, const PIXEL: usize> Body for DepthwiseTile<M, PIXEL> {
    type Args = DepthwiseTileArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &DepthwiseTileArgs) {
        let pixel = if PIXEL > 0 { PIXEL } else { x.pixel };
        // SAFETY: the caller passes valid taps, and operands that they and M cover.
        unsafe {
            let taps = std::slice::from_raw_parts(x.taps, x.taps_len);
            if let Some(next) = x.next_row {
                for m in 0..M {
                    prefetch_near(x.y.as_src(), next + m * LANES);
                }
            }
            let mut acc = [s.load(x.bias, 0); M];
            for (t, tap) in taps.iter().enumerate() {
                let w = s.load(x.weights, t * LANES);
                let a = x.a.add(tap.offset as usize);
                for m in 0..M {
                    acc[m] = s.fma(s.load(a, m * pixel), w, acc[m]);
                }
            }
            store_depthwise(s, x, acc);
        }
    }
}

/// Tile for three neighbouring taps per row and outputs at neighbouring pixels: every input is
/// loaded once per row, not three times.
struct DepthwiseTile3<const M: usize>;

impl<const M: usize> Body for DepthwiseTile3<M> {
    type Args = DepthwiseTileArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &DepthwiseTileArgs) {
        // SAFETY: the caller passes valid taps, and operands that they and M cover.
        unsafe {
            let taps = std::slice::from_raw_parts(x.taps, x.taps_len);
            if let Some(next) = x.next_row {
                for m in 0..M {
                    prefetch_near(x.y.as_src(), next + m * LANES);
                }
            }
            let mut acc = [s.load(x.bias, 0); M];
            for (i, taps) in taps.chunks_exact(3).enumerate() {
                let a = x.a.add(taps[0].offset as usize);
                let mut inputs = [s.zero(); 10];
                for m in 0..M + 2 {
                    inputs[m] = s.load(a, m * LANES);
                }
                for j in 0..3 {
                    let w = s.load(x.weights, (i * 3 + j) * LANES);
                    for m in 0..M {
                        acc[m] = s.fma(inputs[m + j], w, acc[m]);
                    }
                }
            }
            store_depthwise(s, x, acc);
        }
    }
}

/// Adds the residual, applies the activation and stores M pixels.
///
/// # Safety
/// The residual and the output must have M pixels.
#[inline(always)]
unsafe fn store_depthwise<S: Simd, const M: usize>(s: S, x: &DepthwiseTileArgs, acc: [S::V; M]) {
    // SAFETY: promised by the caller.
    unsafe {
        if x.limits.are_leaky() {
            store_depthwise_if::<S, M, true>(s, x, acc)
        } else {
            store_depthwise_if::<S, M, false>(s, x, acc)
        }
    }
}

/// # Safety
/// As for [`store_depthwise`].
#[inline(always)]
unsafe fn store_depthwise_if<S: Simd, const M: usize, const LEAKY: bool>(s: S, x: &DepthwiseTileArgs, acc: [S::V; M]) {
    let limits = x.limits.ready_if(s, LEAKY);
    for m in 0..M {
        // SAFETY: promised by the caller.
        unsafe {
            let mut v = acc[m];
            if let Some(r) = x.residual {
                v = s.add(v, s.load(r.at, m * LANES));
            }
            s.store(x.y, m * LANES, limits.apply(s, v));
        }
    }
}

/// Pixels of the largest depthwise tile; `dense` if rows have three neighbouring taps and outputs
/// are at neighbouring pixels.
pub(super) fn depthwise_rows(isa: Isa, dense: bool) -> usize {
    match isa.or_best() {
        Isa::Avx512 if dense => 8,
        isa => tile_size(isa).rows,
    }
}

/// The depthwise tile of `rows` pixels `pixel` elements apart.
pub(super) fn depthwise_tile(isa: Isa, rows: usize, pixel: usize, dense: bool) -> Entry<DepthwiseTileArgs> {
    macro_rules! dense {
        ($($rows:literal)*) => {
            match rows { $($rows => entry_wide::<DepthwiseTile3<$rows>>(),)* _ => too_large(isa, rows, 1) }
        };
    }
    macro_rules! wide {
        ($pixel:literal: $($rows:literal)*) => {
            match rows { $($rows => entry_wide::<DepthwiseTile<$rows, $pixel>>(),)* _ => too_large(isa, rows, 1) }
        };
        ($pixel:literal) => { wide!($pixel: 1 2 3 4 5 6 7 8 9 10 11 12 13 14) };
    }
    macro_rules! narrow {
        ($pixel:literal: $($rows:literal)*) => {
            match rows { $($rows => entry_narrow::<DepthwiseTile<$rows, $pixel>>(isa),)* _ => too_large(isa, rows, 1) }
        };
    }
    match (isa.or_best(), pixel) {
        (Isa::Avx512, _) if dense => dense!(1 2 3 4 5 6 7 8),
        (Isa::Avx512, 16) => wide!(16),
        (Isa::Avx512, 32) => wide!(32),
        (Isa::Avx512, _) => wide!(0),
        _ => narrow!(0: 1 2 3 4 5 6),
    }
}
