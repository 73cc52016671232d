//! Patches of 2x2 tiles of F(4,3), F(3,3) and F(2,3), and their transforms, with filters of
//! integers: fractions sit in the input transform.

use super::transforms::{F2, F4, InputArgs, InputTile, OutputArgs, OutputTile, Transform};
use crate::simd::{Entry, Simd, entry_wide};

/// Points along a side, points of a tile, tiles of a patch.
pub(super) const SIDE: usize = 6;
pub(super) const POINTS: usize = SIDE * SIDE;
pub(super) const TILES: usize = 4;
/// Outputs along the sides of a patch, at least and at most.
const LEAST: usize = 4;
const MOST: usize = 8;

/// Rows and columns of outputs of a patch.
#[derive(Clone, Copy, Debug)]
pub(super) struct FusedPatch(pub [usize; 2]);

/// A tile of a patch.
#[derive(Clone, Debug)]
pub(super) struct PatchTile {
    /// Number of the tile, out of four.
    pub number: usize,
    /// First output of the tile.
    pub row: usize,
    pub col: usize,
    /// Rows and columns of outputs.
    pub outs: [usize; 2],
}

/// Outputs of both tiles along a side of a patch, the larger one first. The smallest patch has one
/// tile only.
pub(super) const fn tile_sides(patch: usize) -> [usize; 2] {
    let first = if patch == LEAST { patch } else { patch.div_ceil(2) };
    [first, patch - first]
}

impl FusedPatch {
    /// The patch for images of `out` outputs: the fewest patches, as small as they can be.
    pub(super) fn for_image(out: [usize; 2]) -> FusedPatch {
        FusedPatch(out.map(|size| size.div_ceil(size.div_ceil(MOST)).max(LEAST)))
    }

    /// Points of all tiles.
    pub(super) fn points(self) -> usize {
        let of_tile = |outs: usize| (0..SIDE).filter(|point| uses(outs, *point)).count();
        self.0.map(|side| tile_sides(side).map(of_tile).iter().sum::<usize>()).iter().product()
    }

    /// The tiles of the patch: one, two or four.
    pub(super) fn tiles(self) -> impl Iterator<Item = PatchTile> {
        let [rows, cols] = self.0.map(tile_sides);
        let all = (0..TILES).map(move |number| {
            let (down, right) = (number / 2, number % 2);
            PatchTile { number, row: down * rows[0], col: right * cols[0], outs: [rows[down], cols[right]] }
        });
        all.filter(|tile| !tile.outs.contains(&0))
    }
}

/// `$tile` for this number of rows and columns of outputs.
macro_rules! for_size {
    ($tile:ident, $outs:expr) => {
        match $outs {
            [4, 4] => entry_wide::<$tile<Four, Four, *const u32, 6, 4, 6, 4>>(),
            [4, 3] => entry_wide::<$tile<Four, Three, *const u32, 6, 4, 5, 3>>(),
            [4, 2] => entry_wide::<$tile<Four, Two, *const u32, 6, 4, 4, 2>>(),
            [3, 4] => entry_wide::<$tile<Three, Four, *const u32, 5, 3, 6, 4>>(),
            [3, 3] => entry_wide::<$tile<Three, Three, *const u32, 5, 3, 5, 3>>(),
            [3, 2] => entry_wide::<$tile<Three, Two, *const u32, 5, 3, 4, 2>>(),
            [2, 4] => entry_wide::<$tile<Two, Four, *const u32, 4, 2, 6, 4>>(),
            [2, 3] => entry_wide::<$tile<Two, Three, *const u32, 4, 2, 5, 3>>(),
            [2, 2] => entry_wide::<$tile<Two, Two, *const u32, 4, 2, 4, 2>>(),
            other => unreachable!("no patch has tiles of {other:?} outputs"),
        }
    };
}

impl PatchTile {
    /// The offsets of the tile's points, which are `point` elements apart.
    pub(super) fn places(&self, point: usize) -> [u32; POINTS] {
        let [rows, cols] = self.outs.map(|outs| (0..SIDE).filter(move |point| uses(outs, *point)));
        let all = rows.flat_map(|row| cols.clone().map(move |col| (row * SIDE + col) * point));
        let mut places = [0; POINTS];
        places.iter_mut().zip(all).for_each(|(place, offset)| *place = offset as u32);
        places
    }

    pub(super) fn input_transform(&self) -> Entry<InputArgs<*const u32>> {
        for_size!(InputTile, self.outs)
    }

    pub(super) fn output_transform(&self) -> Entry<OutputArgs<*const u32>> {
        for_size!(OutputTile, self.outs)
    }
}

/// Whether a side of `outs` outputs uses a point: those of three do without -2, those of two
/// without 1/2, too.
#[inline(always)]
pub(super) const fn uses(outs: usize, point: usize) -> bool {
    match outs {
        0 => false,
        2 => point != 3 && point != 4,
        3 => point != 4,
        _ => true,
    }
}

/// F(4,3), F(3,3) and F(2,3), whose inputs are multiplied by the fractions that the filters leave
/// out.
struct Four;
struct Three;
struct Two;

impl Transform<6, 4> for Four {
    #[inline(always)]
    fn input<S: Simd>(s: S, d: [S::V; 6]) -> [S::V; 6] {
        const SCALE: [f32; 5] = [1.0, 1.0 / 3.0, -1.0 / 3.0, -4.0 / 15.0, 1.0 / 15.0];
        let mut v = F4::input(s, d);
        for i in 1..5 {
            v[i] = s.mul(v[i], s.splat(SCALE[i]));
        }
        v
    }
    #[inline(always)]
    fn output<S: Simd>(s: S, m: [S::V; 6]) -> [S::V; 4] {
        F4::output(s, m)
    }
}

impl Transform<5, 3> for Three {
    #[inline(always)]
    fn input<S: Simd>(s: S, d: [S::V; 5]) -> [S::V; 5] {
        let t = s.sub(d[3], d[1]);
        let at_zero = s.naxpy(0.5, s.sub(d[2], d[0]), t);
        let at_one = s.axpy(0.5, s.sub(d[2], d[1]), d[3]);
        let at_minus_one = s.axpy(0.5, d[1], s.naxpy(1.5, d[2], d[3]));
        let at_infinity = s.naxpy(0.5, t, s.sub(d[4], d[2]));
        [
            s.add(at_zero, at_zero),
            at_one,
            s.mul(at_minus_one, s.splat(-1.0 / 3.0)),
            s.mul(t, s.splat(-2.0 / 3.0)),
            at_infinity,
        ]
    }
    #[inline(always)]
    fn output<S: Simd>(s: S, m: [S::V; 5]) -> [S::V; 3] {
        let (p, q) = (s.add(m[1], m[2]), s.sub(m[1], m[2]));
        [s.add(s.add(m[0], p), m[3]), s.axpy(0.5, m[3], q), s.add(s.axpy(0.25, m[3], p), m[4])]
    }
}

impl Transform<4, 2> for Two {
    #[inline(always)]
    fn input<S: Simd>(s: S, d: [S::V; 4]) -> [S::V; 4] {
        let half = s.splat(0.5);
        let [at_zero, at_one, at_minus_one, at_infinity] = F2::input(s, d);
        [s.sub(s.zero(), at_zero), s.mul(at_one, half), s.mul(at_minus_one, half), at_infinity]
    }
    #[inline(always)]
    fn output<S: Simd>(s: S, m: [S::V; 4]) -> [S::V; 2] {
        F2::output(s, m)
    }
}
