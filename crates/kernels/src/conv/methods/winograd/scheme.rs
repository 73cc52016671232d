//! Sizes of tiles, their filters' values, and how points share these.

use super::MOST_CHANNELS;
use crate::conv::params::Conv2dParams;
use std::ops::Range;

/// One side of a tile: the outputs, from the taps of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TileSide {
    /// One output of one tap: the unchanged input.
    One,
    /// 2 outputs of 3 taps from 4 points.
    F23,
    /// 4 of 3 from 6.
    F43,
    /// 2 of 5 from 6.
    F25,
    /// 2 of 7 from 8.
    F27,
    /// 2 of 3 at stride 2 from 5.
    Strided2,
    /// 3 of 3 at stride 2 from 7.
    Strided3,
    /// 4 of 3 at stride 2 from 9.
    Strided4,
}

/// Both sides of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::conv) struct Scheme {
    pub(super) rows: TileSide,
    pub(super) cols: TileSide,
}

/// Points of a tile, all of which are multiplied with the same filter values.
#[derive(Clone, Debug)]
pub(super) struct PointGroup {
    /// Number of the filter's value in both directions.
    pub filter: usize,
    pub rows: Range<usize>,
    pub cols: Range<usize>,
}

/// A set of points along one side, a bit for each.
#[derive(Clone, Copy, Debug)]
pub(super) struct NeededPoints(u32);

impl NeededPoints {
    #[inline(always)]
    pub(super) fn has(self, point: usize) -> bool {
        self.0 >> point & 1 == 1
    }

    /// How many there are in a range.
    #[inline(always)]
    pub(super) fn among(self, points: &Range<usize>) -> usize {
        (self.0 >> points.start & ((1 << points.len()) - 1)).count_ones() as usize
    }
}

impl TileSide {
    /// Outputs of a tile.
    pub(super) fn outs(self) -> usize {
        match self {
            TileSide::One => 1,
            TileSide::F23 | TileSide::F25 | TileSide::F27 | TileSide::Strided2 => 2,
            TileSide::Strided3 => 3,
            TileSide::F43 | TileSide::Strided4 => 4,
        }
    }

    fn taps(self) -> usize {
        match self {
            TileSide::One => 1,
            TileSide::F23 | TileSide::F43 | TileSide::Strided2 | TileSide::Strided3 | TileSide::Strided4 => 3,
            TileSide::F25 => 5,
            TileSide::F27 => 7,
        }
    }

    /// Inputs from one output to the next.
    fn stride(self) -> usize {
        if matches!(self, TileSide::Strided2 | TileSide::Strided3 | TileSide::Strided4) { 2 } else { 1 }
    }

    pub(super) fn points(self) -> usize {
        (self.outs() - 1) * self.stride() + self.taps()
    }

    /// Values of a filter. The last one belongs to all points that are left: to one with stride 1,
    /// to every odd input with stride 2.
    fn filters(self) -> usize {
        if self.stride() == 1 { self.points() } else { self.outs() + 2 }
    }

    /// The matrix that takes a filter's taps to its values at the points.
    pub(super) fn filter_matrix(self) -> Vec<Vec<f64>> {
        let strided = |finite: &[f64]| {
            let even = filter_matrix(2, finite).into_iter().map(|ends| vec![ends[0], 0.0, ends[1]]);
            even.chain([vec![0.0, 1.0, 0.0]]).collect()
        };
        match self {
            TileSide::One => vec![vec![1.0]],
            TileSide::F23 => filter_matrix(3, &[0.0, 1.0, -1.0]),
            TileSide::F43 => filter_matrix(3, &[0.0, 1.0, -1.0, 0.5, -2.0]),
            TileSide::F25 => filter_matrix(5, &[0.0, 1.0, -1.0, 0.5, -2.0]),
            TileSide::F27 => filter_matrix(7, &[0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0]),
            TileSide::Strided2 => strided(&[0.0, 1.0]),
            TileSide::Strided3 => strided(&[0.0, 1.0, -1.0]),
            TileSide::Strided4 => strided(&[0.0, 1.0, -1.0, 0.5]),
        }
    }

    /// The points that the first `outs` outputs depend on: infinity counts in the last output of a
    /// tile only, an odd input in one output.
    pub(super) fn needed(self, outs: usize) -> NeededPoints {
        let infinity = if self.stride() == 1 { self.points() - 1 } else { self.outs() };
        let finite = (1 << infinity) - 1;
        let last = u32::from(outs == self.outs()) << infinity;
        let odd = if self.stride() == 2 { ((1 << outs) - 1) << (infinity + 1) } else { 0 };
        NeededPoints(finite | last | odd)
    }

    /// How a side of `outs` outputs is cut into tiles.
    pub(super) fn cut(self, outs: usize) -> SideTiling {
        SideTiling { outs, tiles: outs.div_ceil(self.outs()) }
    }

    /// Points that all tiles of `outs` outputs need.
    fn points_for(self, outs: usize) -> usize {
        let cut = self.cut(outs);
        let points = |outs: usize| self.needed(outs).among(&(0..self.points()));
        let [large, small] = cut.sizes();
        let small_ones = cut.tiles * large - outs;
        (cut.tiles - small_ones) * points(large) + small_ones * points(small)
    }
}

/// Outputs along a side in as few tiles as hold them, which differ by one output at most: each tile
/// that is not full does without a point or more.
#[derive(Clone, Copy, Debug)]
pub(super) struct SideTiling {
    outs: usize,
    pub tiles: usize,
}

impl SideTiling {
    /// The beginning of a tile.
    pub(super) fn start(self, tile: usize) -> usize {
        tile * self.outs / self.tiles
    }

    /// Outputs of large and of small tiles; the same where all are alike.
    pub(super) fn sizes(self) -> [usize; 2] {
        [self.outs.div_ceil(self.tiles), self.outs / self.tiles]
    }
}

impl Scheme {
    /// 2x2 outputs of 3x3 taps from 16 points.
    pub(in crate::conv) const F2: Scheme = Scheme::square(TileSide::F23);
    /// 4x4 outputs of 3x3 taps from 36 points.
    pub(in crate::conv) const F4: Scheme = Scheme::square(TileSide::F43);
    /// 2x2 outputs of 3x3 taps at stride 2 from 25 points.
    pub(in crate::conv) const STRIDED2: Scheme = Scheme::square(TileSide::Strided2);
    /// 3x3 outputs of 3x3 taps at stride 2 from 49 points.
    pub(in crate::conv) const STRIDED3: Scheme = Scheme::square(TileSide::Strided3);
    /// 4x4 outputs of 3x3 taps at stride 2 from 81 points.
    pub(in crate::conv) const STRIDED4: Scheme = Scheme::square(TileSide::Strided4);

    const fn square(side: TileSide) -> Scheme {
        Scheme { rows: side, cols: side }
    }

    /// The scheme for filters of sizes other than 3x3: of 5x5, and lines of 3, 5 or 7 taps.
    pub(in crate::conv) fn of_taps(p: &Conv2dParams) -> Option<Scheme> {
        let line = |taps: usize| match taps {
            3 => Some(TileSide::F43),
            5 => Some(TileSide::F25),
            7 => Some(TileSide::F27),
            _ => None,
        };
        let plain = p.in_channels <= MOST_CHANNELS && p.stride == [1, 1] && p.dilate == [1, 1] && p.groups == 1;
        match p.kernel {
            _ if !plain => None,
            [5, 5] => Some(Scheme::square(TileSide::F25)),
            [1, taps] => line(taps).map(|cols| Scheme { rows: TileSide::One, cols }),
            [taps, 1] => line(taps).map(|rows| Scheme { rows, cols: TileSide::One }),
            _ => None,
        }
    }

    fn sides(self) -> [TileSide; 2] {
        [self.rows, self.cols]
    }

    /// Rows and columns of outputs of a tile.
    pub(in crate::conv) fn outs(self) -> [usize; 2] {
        self.sides().map(TileSide::outs)
    }

    /// Inputs from one output to the next.
    pub(in crate::conv) fn stride(self) -> usize {
        self.cols.stride()
    }

    /// Rows and columns of points.
    pub(in crate::conv) fn points(self) -> [usize; 2] {
        self.sides().map(TileSide::points)
    }

    /// Values of a filter in both directions.
    pub(in crate::conv) fn filters(self) -> usize {
        self.rows.filters() * self.cols.filters()
    }

    /// Such as `F(4,3)`; for what is no square rows and columns apart.
    pub(in crate::conv) fn name(self) -> String {
        let [[outs, taps], [more_outs, more_taps]] = self.sides().map(|side| [side.outs(), side.taps()]);
        match self.rows == self.cols {
            true => format!("F({outs},{taps})"),
            false => format!("F({outs}x{more_outs},{taps}x{more_taps})"),
        }
    }

    /// The groups of points in the order of their filter values.
    pub(super) fn groups(self) -> impl Iterator<Item = PointGroup> {
        let sharing = |side: TileSide, filter: usize| {
            filter..if filter + 1 == side.filters() { side.points() } else { filter + 1 }
        };
        let cols = self.cols.filters();
        (0..self.filters()).map(move |i| PointGroup {
            filter: i,
            rows: sharing(self.rows, i / cols),
            cols: sharing(self.cols, i % cols),
        })
    }

    /// Points of all tiles of an output with these rows and columns.
    pub(in crate::conv) fn points_in(self, out: [usize; 2]) -> usize {
        let points = |side: TileSide, outs| side.cut(outs).tiles * side.points();
        points(self.rows, out[0]) * points(self.cols, out[1])
    }

    /// Points that all tiles of an output with these rows and columns need.
    pub(in crate::conv) fn points_for(self, out: [usize; 2]) -> usize {
        self.rows.points_for(out[0]) * self.cols.points_for(out[1])
    }
}

/// The matrix that takes some taps of a filter to its values at finite points and infinity, for
/// monic input polynomials.
pub(super) fn filter_matrix(taps: usize, finite: &[f64]) -> Vec<Vec<f64>> {
    let row = |&p: &f64| {
        let scale: f64 = finite.iter().filter(|&&q| q != p).map(|q| p - q).product();
        (0..taps).map(|k| p.powi(k as i32) / scale).collect()
    };
    let infinity = (0..taps).map(|k| f64::from(u8::from(k + 1 == taps))).collect();
    finite.iter().map(row).chain([infinity]).collect()
}
