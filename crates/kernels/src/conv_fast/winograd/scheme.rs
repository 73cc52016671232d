//! Sizes of tiles, their filters' values, and how points share these.

use std::ops::Range;

/// A tile size and a stride.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Scheme {
    /// 2x2 outputs from 16 points.
    F2,
    /// 4x4 outputs from 36 points.
    F4,
    /// 2x2 outputs at stride 2 from 25 points.
    Strided2,
    /// 3x3 outputs at stride 2 from 49 points.
    Strided3,
    /// 4x4 outputs at stride 2 from 81 points.
    Strided4,
}

/// Points of a tile, all of which are multiplied with the same filter values.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Which of the filter's values in both directions.
    pub filter: usize,
    pub rows: Range<usize>,
    pub cols: Range<usize>,
}

/// A set of points along one side, a bit for each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needed(u32);

impl Needed {
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

impl Scheme {
    /// Outputs along one side of a tile.
    pub(in super::super) fn outs(self) -> usize {
        match self {
            Scheme::F2 | Scheme::Strided2 => 2,
            Scheme::Strided3 => 3,
            Scheme::F4 | Scheme::Strided4 => 4,
        }
    }

    /// Inputs from one output to the next.
    pub(in super::super) fn stride(self) -> usize {
        match self {
            Scheme::F2 | Scheme::F4 => 1,
            Scheme::Strided2 | Scheme::Strided3 | Scheme::Strided4 => 2,
        }
    }

    /// Points along one side.
    pub(in super::super) fn points(self) -> usize {
        (self.outs() - 1) * self.stride() + 3
    }

    /// Values of a filter along one side. The last one belongs to all points that are left: to one with stride 1, to every odd
    /// input with stride 2.
    pub(in super::super) fn filters(self) -> usize {
        self.outs() + 2
    }

    /// The matrix that takes a filter's three values to its values at the points.
    pub(super) fn filter_matrix(self) -> Vec<[f64; 3]> {
        let strided = |finite: &[f64]| {
            let even = filter_matrix(finite).into_iter().map(|[first, last]| [first, 0.0, last]);
            even.chain([[0.0, 1.0, 0.0]]).collect()
        };
        match self {
            Scheme::F2 => filter_matrix(&[0.0, 1.0, -1.0]),
            Scheme::F4 => filter_matrix(&[0.0, 1.0, -1.0, 0.5, -2.0]),
            Scheme::Strided2 => strided(&[0.0, 1.0]),
            Scheme::Strided3 => strided(&[0.0, 1.0, -1.0]),
            Scheme::Strided4 => strided(&[0.0, 1.0, -1.0, 0.5]),
        }
    }

    /// The groups of points in the order of their filter values.
    pub(super) fn groups(self) -> impl Iterator<Item = Group> {
        let side = self.filters();
        let sharing = move |filter: usize| filter..if filter + 1 == side { self.points() } else { filter + 1 };
        (0..side * side).map(move |i| Group { filter: i, rows: sharing(i / side), cols: sharing(i % side) })
    }

    /// The points along one side that the first `outs` outputs depend on: infinity counts in the last output of a tile only,
    /// an odd input in one output.
    pub(super) fn needed(self, outs: usize) -> Needed {
        let infinity = self.outs() + 2 - self.stride();
        let finite = (1 << infinity) - 1;
        let last = u32::from(outs == self.outs()) << infinity;
        let odd = if self.stride() == 2 { ((1 << outs) - 1) << (infinity + 1) } else { 0 };
        Needed(finite | last | odd)
    }

    /// Points along one side that all tiles of `outs` outputs need.
    pub(in super::super) fn points_for(self, outs: usize) -> usize {
        let (whole, rest) = (outs / self.outs(), outs % self.outs());
        let clipped = if rest > 0 { self.needed(rest).among(&(0..self.points())) } else { 0 };
        whole * self.points() + clipped
    }
}

/// The matrix that takes N values of a filter to its values at finite points and infinity, for monic input polynomials.
pub(super) fn filter_matrix<const N: usize>(finite: &[f64]) -> Vec<[f64; N]> {
    let row = |&p: &f64| {
        let scale: f64 = finite.iter().filter(|&&q| q != p).map(|q| p - q).product();
        std::array::from_fn(|k| p.powi(k as i32) / scale)
    };
    let infinity = std::array::from_fn(|k| f64::from(u8::from(k + 1 == N)));
    finite.iter().map(row).chain([infinity]).collect()
}
