//! Register tiles of sums that are shared by outputs, and the sums of inputs that they multiply.

use super::super::places::TileShapes;
use super::super::tiles::{ResidualAt, place};
use crate::activation::Limits;
use crate::gemm::tile::{Soon, Tap, accumulate, too_large};
use crate::isa::Isa;
use crate::simd::{Body, Dst, Entry, LANES, Simd, Src, entry_narrow, entry_wide};

/// Arguments of a tile of M neighbouring pixels times N blocks of output channels: `sums = from + panel * input`.
#[derive(Clone, Copy)]
pub(super) struct SumTileArgs {
    /// The input pixel under the first tap of the first output.
    pub a: Src,
    /// From the input pixel of the first output to that of the first output in the next row, in elements.
    pub row: usize,
    pub taps: *const Tap,
    pub taps_len: usize,
    pub b: Src,
    pub soon: Soon,
    /// Of kept sums, elements between blocks, and from the first pixel to the first in the next row.
    pub kept_block: usize,
    pub kept_row: usize,
    /// Kept sums that these begin with.
    pub from: Option<Src>,
    /// Where these are kept.
    pub keep: Option<Dst>,
    pub out: Option<Out>,
}

/// Where a tile puts sums out, and what it does to them.
#[derive(Clone, Copy)]
pub(super) struct Out {
    pub y: Dst,
    pub y_block: usize,
    /// From the first output to the first in the next row, in elements.
    pub y_row: usize,
    /// Kept sums that are added.
    pub add: Option<Src>,
    /// N blocks of 16.
    pub bias: Src,
    pub residual: Option<ResidualAt>,
    pub limits: Limits,
}

impl SumTileArgs {
    /// Moves to the tile so many rows down and elements to the right of `first`, the first of a row, and so many elements on in kept
    /// sums. In place: copies of all of it took as long as a tenth of a short tile.
    #[inline]
    pub(super) fn move_from(&mut self, first: &SumTileArgs, row: usize, right: usize, kept: usize) {
        (self.a, self.row) = (first.a.add(row * first.row + right), first.row - right);
        self.kept_row = first.kept_row - right;
        if let (Some(at), Some(first)) = (&mut self.from, &first.from) {
            *at = first.add(kept);
        }
        if let (Some(at), Some(first)) = (&mut self.keep, &first.keep) {
            *at = first.add(kept);
        }
        if let (Some(at), Some(first)) = (&mut self.out, &first.out) {
            (at.y, at.y_row) = (first.y.add(row * first.y_row + right), first.y_row - right);
            if let (Some(at), Some(first)) = (&mut at.add, &first.add) {
                *at = first.add(kept);
            }
            if let (Some(at), Some(first)) = (&mut at.residual, &first.residual) {
                (at.at, at.row) = (first.at.add(row * first.row + right), first.row - right);
            }
        }
    }
}

/// Pixels from `TURN` on lie in the next row; with `TURN = M` all lie in one.
struct SumTile<const M: usize, const N: usize, const WAYS: usize, const TURN: usize>;

impl<const M: usize, const N: usize, const WAYS: usize, const TURN: usize> Body for SumTile<M, N, WAYS, TURN> {
    type Args = SumTileArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &SumTileArgs) {
        let mut acc = [[s.zero(); N]; M];
        // SAFETY: the caller passes valid taps, and operands that they and M x N cover.
        unsafe {
            if let Some(from) = x.from {
                for n in 0..N {
                    for m in 0..M {
                        acc[m][n] = s.load(from, n * x.kept_block + place::<TURN>(m, x.kept_row));
                    }
                }
            }
            let taps = std::slice::from_raw_parts(x.taps, x.taps_len);
            accumulate::<S, M, N, WAYS, LANES, TURN>(s, &mut acc, x.a, LANES, x.row, taps, x.b, x.soon);
            if let Some(keep) = x.keep {
                for n in 0..N {
                    for m in 0..M {
                        s.store(keep, n * x.kept_block + place::<TURN>(m, x.kept_row), acc[m][n]);
                    }
                }
            }
            let Some(out) = &x.out else { return };
            match (out.add, out.limits.are_leaky()) {
                (Some(add), true) => put_out::<S, M, N, TURN, true, true>(s, x, out, add, acc),
                (Some(add), false) => put_out::<S, M, N, TURN, true, false>(s, x, out, add, acc),
                (None, true) => put_out::<S, M, N, TURN, false, true>(s, x, out, out.bias, acc),
                (None, false) => put_out::<S, M, N, TURN, false, false>(s, x, out, out.bias, acc),
            }
        }
    }
}

/// Adds kept sums (if `ADD`), bias and residual, applies the activation and stores N blocks of M pixels.
///
/// # Safety
/// All operands must have these pixels.
#[inline(always)]
unsafe fn put_out<S: Simd, const M: usize, const N: usize, const TURN: usize, const ADD: bool, const LEAKY: bool>(
    s: S,
    x: &SumTileArgs,
    out: &Out,
    add: Src,
    acc: [[S::V; N]; M],
) {
    let limits = out.limits.ready_if(s, LEAKY);
    for n in 0..N {
        // SAFETY: promised by the caller.
        unsafe {
            let bias = s.load(out.bias, n * LANES);
            for m in 0..M {
                let mut v = acc[m][n];
                if ADD {
                    v = s.add(v, s.load(add, n * x.kept_block + place::<TURN>(m, x.kept_row)));
                }
                v = s.add(v, bias);
                if let Some(r) = out.residual {
                    v = s.add(v, s.load(r.at, n * r.block + place::<TURN>(m, r.row)));
                }
                s.store(out.y, n * out.y_block + place::<TURN>(m, out.y_row), limits.apply(s, v));
            }
        }
    }
}

/// Tiles of so many blocks of outputs.
pub(super) struct SumTiles {
    pub isa: Isa,
    pub blocks: usize,
}

impl TileShapes<SumTileArgs> for SumTiles {
    fn row(&self, pixels: usize) -> Entry<SumTileArgs> {
        macro_rules! tiles {
            ($entry:ident $arguments:tt, $blocks:literal: $($rows:literal / $ways:literal)*) => {
                match pixels {
                    $($rows => $entry::<SumTile<$rows, $blocks, $ways, $rows>> $arguments,)*
                    _ => too_large(self.isa, pixels, self.blocks),
                }
            };
        }
        match (self.isa.or_best(), self.blocks) {
            (Isa::Avx512, 1) => tiles!(entry_wide(), 1: 1/4 2/4 3/2 4/2 5/1 6/1 7/1 8/1 9/1 10/1 11/1 12/1 13/1 14/1),
            (Isa::Avx512, 2) => tiles!(entry_wide(), 2: 1/4 2/2 3/2 4/1 5/1 6/1 7/1 8/1 9/1 10/1 11/1 12/1 13/1 14/1),
            (isa @ (Isa::Avx2 | Isa::Portable), 1) => tiles!(entry_narrow(isa), 1: 1/4 2/2 3/1 4/1 5/1 6/1),
            _ => too_large(self.isa, pixels, self.blocks),
        }
    }

    fn two_rows(&self, cols: usize) -> Option<Entry<SumTileArgs>> {
        macro_rules! wide {
            ($($cols:literal $all:literal)*) => {
                match (cols, self.blocks) {
                    $(
                        ($cols, 1) => Some(entry_wide::<SumTile<$all, 1, 1, $cols>>()),
                        ($cols, 2) => Some(entry_wide::<SumTile<$all, 2, 1, $cols>>()),
                    )*
                    _ => None,
                }
            };
        }
        match self.isa.or_best() {
            Isa::Avx512 => wide!(4 8 5 10 6 12 7 14),
            Isa::Avx2 | Isa::Portable => None,
        }
    }

    fn turning(&self, turn: usize) -> Option<Entry<SumTileArgs>> {
        macro_rules! narrow {
            ($($turn:literal)*) => {
                match turn {
                    $($turn => Some(entry_narrow::<SumTile<6, 1, 1, $turn>>(Isa::Avx2)),)*
                    _ => None,
                }
            };
        }
        match self.isa.or_best() {
            Isa::Avx2 => narrow!(1 2 3 4 5),
            Isa::Avx512 | Isa::Portable => None,
        }
    }
}

/// A row of each quarter of an input, and of the four sums of them.
pub(super) struct InputSumsArgs {
    /// First and second half of the channels, in the first half of the band.
    pub own: [Src; 2],
    /// The same in the second half; zeros where there are none.
    pub partners: Option<[Src; 2]>,
    pub sums: [Dst; 4],
    pub pixels: usize,
}

/// The sums of inputs; see the module's description.
pub(super) struct InputSums;

impl Body for InputSums {
    type Args = InputSumsArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &InputSumsArgs) {
        let [t1, t2, t3, t4] = x.sums;
        // SAFETY: the caller passes rows of so many pixels.
        unsafe {
            for at in (0..x.pixels * LANES).step_by(LANES) {
                let (x11, x21) = (s.load(x.own[0], at), s.load(x.own[1], at));
                let (x12, x22) = match x.partners {
                    Some([first, second]) => (s.load(first, at), s.load(second, at)),
                    None => (s.zero(), s.zero()),
                };
                let v1 = s.sub(x12, x11);
                let v2 = s.sub(x22, v1);
                s.store(t1, at, v1);
                s.store(t2, at, v2);
                s.store(t3, at, s.sub(x22, x12));
                s.store(t4, at, s.sub(v2, x21));
            }
        }
    }
}
