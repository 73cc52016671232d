//! Sizes of tiles, their filters' values, how points share these, and where values of points lie.

use super::odd_lines;
use super::transform::POINTS;

/// Values of a filter along one side, at most.
const FILTERS: usize = 6;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Which of the filter's values in both directions.
    pub filter: usize,
    /// How many points.
    pub points: usize,
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

    /// Points along one side that have this value of the filter.
    fn sharing(self, filter: usize) -> usize {
        if filter + 1 == self.filters() { self.points() - filter } else { 1 }
    }

    /// The groups in the order of their filter values.
    pub(super) fn groups(self) -> impl Iterator<Item = Group> {
        let side = self.filters();
        (0..side * side).map(move |i| self.group(i / side, i % side))
    }

    fn group(self, row: usize, col: usize) -> Group {
        Group { filter: row * self.filters() + col, points: self.sharing(row) * self.sharing(col) }
    }

    /// The group of a point, and its number there.
    fn group_of(self, row: usize, col: usize) -> (Group, usize) {
        let last = self.filters() - 1;
        let (i, j) = (row.min(last), col.min(last));
        (self.group(i, j), (row - i) * self.sharing(j) + col - j)
    }
}

/// Where the values of some tiles at all points lie: `[group][input block][point of the group][tile][width]`, so that points
/// that share filter values are rows of one product.
pub(super) struct Layout {
    scheme: Scheme,
    /// Elements of all tiles at one point in one block.
    point: usize,
    starts: [usize; FILTERS * FILTERS],
    len: usize,
}

impl Layout {
    /// Of `blocks` input blocks (one for products), whose tiles have `point` elements at one point.
    pub(super) fn new(scheme: Scheme, blocks: usize, point: usize) -> Layout {
        let (mut starts, mut len) = ([0; FILTERS * FILTERS], 0);
        for (start, group) in starts.iter_mut().zip(scheme.groups()) {
            *start = len;
            len += odd_lines(blocks * group.points * point);
        }
        Layout { scheme, point, starts, len }
    }

    /// Elements of everything.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Where a group starts.
    pub(super) fn start(&self, group: Group) -> usize {
        self.starts[group.filter]
    }

    /// Where the points of one input block start, for [`Place`](super::transform::Place).
    pub(super) fn places(&self, block: usize) -> [u32; POINTS * POINTS] {
        let side = self.scheme.points();
        let mut places = [0; POINTS * POINTS];
        for row in 0..side {
            for col in 0..side {
                let (group, number) = self.scheme.group_of(row, col);
                places[row * side + col] = (self.start(group) + (block * group.points + number) * self.point) as u32;
            }
        }
        places
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
