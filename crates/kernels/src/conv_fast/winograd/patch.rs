//! Patches of 2x2 tiles of F(4,3), F(3,3) and F(2,3), and their transforms, with filters of integers: fractions sit in the input
//! transform.

use super::transform::{F2, F4, InputArgs, OutputArgs, Transform, finish};
use crate::simd::{Body, Entry, LANES, Simd, entry_wide};

/// Points along a side, points of a tile, tiles of a patch.
pub(super) const SIDE: usize = 6;
pub(super) const POINTS: usize = SIDE * SIDE;
pub(super) const TILES: usize = 4;
/// Outputs along the sides of a patch, at least and at most.
const LEAST: usize = 4;
const MOST: usize = 8;

/// Rows and columns of outputs of a patch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patch(pub [usize; 2]);

/// A tile of a patch.
pub(super) struct Tile {
    /// Which one of the four.
    pub number: usize,
    /// Its first output.
    pub row: usize,
    pub col: usize,
    /// Rows and columns of outputs.
    pub outs: [usize; 2],
}

/// Outputs of both tiles along a side of a patch, the larger one first. The smallest patch has one tile only.
pub(super) const fn tile_sides(patch: usize) -> [usize; 2] {
    let first = if patch == LEAST { patch } else { patch.div_ceil(2) };
    [first, patch - first]
}

impl Patch {
    /// For images of `out` outputs: the fewest patches, as small as they can be.
    pub(super) fn for_image(out: [usize; 2]) -> Patch {
        Patch(out.map(|size| size.div_ceil(size.div_ceil(MOST)).max(LEAST)))
    }

    /// Points of all tiles.
    pub(super) fn points(self) -> usize {
        let of_tile = |outs: usize| (0..SIDE).filter(|point| uses(outs, *point)).count();
        self.0.map(|side| tile_sides(side).map(of_tile).iter().sum::<usize>()).iter().product()
    }

    pub(super) fn tiles(self) -> impl Iterator<Item = Tile> {
        let [rows, cols] = self.0.map(tile_sides);
        let all = (0..TILES).map(move |number| {
            let (down, right) = (number / 2, number % 2);
            Tile { number, row: down * rows[0], col: right * cols[0], outs: [rows[down], cols[right]] }
        });
        all.filter(|tile| !tile.outs.contains(&0))
    }
}

/// `$body` for the size of a tile.
macro_rules! for_size {
    ($body:ident, $outs:expr) => {
        match $outs {
            [4, 4] => entry_wide::<$body<4, 4>>(),
            [4, 3] => entry_wide::<$body<4, 3>>(),
            [4, 2] => entry_wide::<$body<4, 2>>(),
            [3, 4] => entry_wide::<$body<3, 4>>(),
            [3, 3] => entry_wide::<$body<3, 3>>(),
            [3, 2] => entry_wide::<$body<3, 2>>(),
            [2, 4] => entry_wide::<$body<2, 4>>(),
            [2, 3] => entry_wide::<$body<2, 3>>(),
            [2, 2] => entry_wide::<$body<2, 2>>(),
            other => unreachable!("no patch has tiles of {other:?} outputs"),
        }
    };
}

impl Tile {
    pub(super) fn input_transform(&self) -> Entry<InputArgs> {
        for_size!(InputTile, self.outs)
    }

    pub(super) fn output_transform(&self) -> Entry<OutputArgs> {
        for_size!(OutputTile, self.outs)
    }
}

/// Whether a side of `outs` outputs uses a point: those of three do without -2, those of two without 1/2, too.
#[inline(always)]
pub(super) const fn uses(outs: usize, point: usize) -> bool {
    match outs {
        0 => false,
        2 => point != 3 && point != 4,
        3 => point != 4,
        _ => true,
    }
}

/// Values at the points of F(4,3), of F(3,3) or of F(2,3), times the fractions that the filters leave out.
#[inline(always)]
fn side_input<S: Simd, const OUTS: usize>(s: S, d: [S::V; SIDE]) -> [S::V; SIDE] {
    if OUTS == 4 {
        const SCALE: [f32; 5] = [1.0, 1.0 / 3.0, -1.0 / 3.0, -4.0 / 15.0, 1.0 / 15.0];
        let mut v = F4::input(s, d);
        for i in 1..5 {
            v[i] = s.mul(v[i], s.splat(SCALE[i]));
        }
        v
    } else if OUTS == 2 {
        let half = s.splat(0.5);
        let [at_zero, at_one, at_minus_one, at_infinity] = F2::input(s, [d[0], d[1], d[2], d[3]]);
        let zero = s.zero();
        [s.sub(zero, at_zero), s.mul(at_one, half), s.mul(at_minus_one, half), zero, zero, at_infinity]
    } else {
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
            s.zero(),
            at_infinity,
        ]
    }
}

/// Outputs from values at the points.
#[inline(always)]
fn side_output<S: Simd, const OUTS: usize>(s: S, m: [S::V; SIDE]) -> [S::V; 4] {
    if OUTS == 4 {
        F4::output(s, m)
    } else if OUTS == 2 {
        let [first, second] = F2::output(s, [m[0], m[1], m[2], m[5]]);
        [first, second, s.zero(), s.zero()]
    } else {
        let (p, q) = (s.add(m[1], m[2]), s.sub(m[1], m[2]));
        [s.add(s.add(m[0], p), m[3]), s.axpy(0.5, m[3], q), s.add(s.axpy(0.25, m[3], p), m[5]), s.zero()]
    }
}

struct InputTile<const TALL: usize, const WIDE: usize>;

impl<const TALL: usize, const WIDE: usize> Body for InputTile<TALL, WIDE> {
    type Args = InputArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &InputArgs) {
        // SAFETY: the caller passes a tile inside the padded image and room for all points.
        unsafe {
            let mut columns = [[s.zero(); SIDE]; SIDE];
            for j in 0..WIDE + 2 {
                let mut d = [s.zero(); SIDE];
                for i in 0..TALL + 2 {
                    d[i] = s.load(x.x[0], i * x.x_row + j * LANES);
                }
                let column = side_input::<S, TALL>(s, d);
                for i in 0..SIDE {
                    columns[i][j] = column[i];
                }
            }
            for i in 0..SIDE {
                let row = side_input::<S, WIDE>(s, columns[i]);
                for j in 0..SIDE {
                    if uses(TALL, i) && uses(WIDE, j) {
                        s.store(x.v, (i * SIDE + j) * x.point, row[j]);
                    }
                }
            }
        }
    }
}

struct OutputTile<const TALL: usize, const WIDE: usize>;

impl<const TALL: usize, const WIDE: usize> Body for OutputTile<TALL, WIDE> {
    type Args = OutputArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &OutputArgs) {
        // SAFETY: the caller passes products of the points in use; `rows` x `cols` outputs lie inside the image.
        unsafe {
            let mut columns = [[s.zero(); SIDE]; 4];
            for j in 0..SIDE {
                let mut m = [s.zero(); SIDE];
                for i in 0..SIDE {
                    if uses(TALL, i) && uses(WIDE, j) {
                        m[i] = s.load(x.m, (i * SIDE + j) * x.point);
                    }
                }
                let column = side_output::<S, TALL>(s, m);
                for i in 0..TALL {
                    columns[i][j] = column[i];
                }
            }
            for i in 0..TALL {
                if i < x.rows {
                    let row = side_output::<S, WIDE>(s, columns[i]);
                    for j in 0..WIDE {
                        if j < x.cols {
                            finish(s, x, i, j, row[j]);
                        }
                    }
                }
            }
        }
    }
}
