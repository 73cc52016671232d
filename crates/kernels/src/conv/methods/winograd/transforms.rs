//! The transforms of F(2,3), F(4,3) and F(4,4), for vectors of 16 channels, and how tiles go
//! through them and those of `strided_transforms.rs` and `taps_transforms.rs`.
//!
//! F(2,3) uses the points 0, 1, -1 and infinity; F(4,3) uses 0, 1, -1, 1/2, -2 and infinity, whose
//! rounding errors are less than half of those of the textbook's 2 instead of 1/2; F(4,4) uses 0,
//! 1, -1, 1/2, -1/2, 2 and infinity. Input transforms are the monic Toom-Cook polynomials; the
//! fractions go into the filters.

use crate::activation::ActivationLimits;
use crate::simd::{Body, Dst, LANES, PairsBody, Rounding, Simd, Src};

/// One-dimensional transforms for P points and O outputs.
pub(super) trait Transform<const P: usize, const O: usize> {
    fn input<S: Simd>(s: S, d: [S::V; P]) -> [S::V; P];
    fn output<S: Simd>(s: S, m: [S::V; P]) -> [S::V; O];
}

pub(super) struct F2;
pub(super) struct F4;

impl Transform<4, 2> for F2 {
    #[inline(always)]
    fn input<S: Simd>(s: S, d: [S::V; 4]) -> [S::V; 4] {
        // Monic polynomials for 0, 1, -1, infinity.
        [s.sub(d[2], d[0]), s.add(d[2], d[1]), s.sub(d[2], d[1]), s.sub(d[3], d[1])]
    }
    #[inline(always)]
    fn output<S: Simd>(s: S, m: [S::V; 4]) -> [S::V; 2] {
        [s.add(m[0], s.add(m[1], m[2])), s.add(s.sub(m[1], m[2]), m[3])]
    }
}

impl Transform<6, 4> for F4 {
    #[inline(always)]
    fn input<S: Simd>(s: S, d: [S::V; 6]) -> [S::V; 6] {
        let (q0, q1) = (s.sub(d[3], d[1]), s.sub(d[4], d[2]));
        let (p0, p1) = (s.axpy(1.5, d[2], q0), s.axpy(1.5, d[3], q1));
        let first = s.axpy(1.5, q0, s.add(d[0], s.naxpy(2.0, d[2], d[4])));
        let last = s.axpy(1.5, q1, s.add(d[1], s.naxpy(2.0, d[3], d[5])));
        [first, s.add(p1, p0), s.sub(p1, p0), s.axpy(2.0, q0, q1), s.naxpy(0.5, q0, q1), last]
    }
    #[inline(always)]
    fn output<S: Simd>(s: S, m: [S::V; 6]) -> [S::V; 4] {
        let (p, q) = (s.add(m[1], m[2]), s.sub(m[1], m[2]));
        [
            s.add(s.add(m[0], p), s.add(m[3], m[4])),
            s.axpy(0.5, m[3], s.naxpy(2.0, m[4], q)),
            s.axpy(0.25, m[3], s.axpy(4.0, m[4], p)),
            s.add(s.axpy(0.125, m[3], m[5]), s.naxpy(8.0, m[4], q)),
        ]
    }
}

pub(super) struct F44;

impl F44 {
    /// The points but infinity.
    pub(super) const FINITE: [f64; 6] = [0.0, 1.0, -1.0, 0.5, -0.5, 2.0];

    // What the polynomials of several points share, from element k on. Closures would not be
    // inlined on AVX2.

    #[inline(always)]
    fn ones<S: Simd>(s: S, d: [S::V; 7], k: usize) -> S::V {
        s.axpy(0.5, d[k], s.naxpy(0.25, d[k + 1], s.naxpy(2.0, d[k + 2], d[k + 3])))
    }

    #[inline(always)]
    fn halves<S: Simd>(s: S, d: [S::V; 7], k: usize) -> S::V {
        s.axpy(2.0, s.sub(d[k], d[k + 2]), s.sub(d[k + 3], d[k + 1]))
    }

    #[inline(always)]
    fn ends<S: Simd>(s: S, d: [S::V; 7], k: usize) -> S::V {
        s.axpy(0.25, d[k], s.naxpy(1.25, d[k + 2], d[k + 4]))
    }
}

impl Transform<7, 4> for F44 {
    #[inline(always)]
    fn input<S: Simd>(s: S, d: [S::V; 7]) -> [S::V; 7] {
        let (p0, p1) = (F44::ones(s, d, 1), F44::ones(s, d, 2));
        let (q0, q1) = (F44::halves(s, d, 1), F44::halves(s, d, 2));
        let (r0, r1, r2) = (F44::ends(s, d, 0), F44::ends(s, d, 1), F44::ends(s, d, 2));
        [
            s.naxpy(2.0, r0, r1),
            s.add(p1, p0),
            s.sub(p1, p0),
            s.axpy(0.5, q0, q1),
            s.naxpy(0.5, q0, q1),
            r1,
            s.naxpy(2.0, r1, r2),
        ]
    }
    #[inline(always)]
    fn output<S: Simd>(s: S, m: [S::V; 7]) -> [S::V; 4] {
        let (p, q) = (s.add(m[1], m[2]), s.sub(m[1], m[2]));
        let (r, t) = (s.add(m[3], m[4]), s.sub(m[3], m[4]));
        [
            s.add(s.add(m[0], m[5]), s.add(p, r)),
            s.axpy(2.0, m[5], s.axpy(0.5, t, q)),
            s.axpy(4.0, m[5], s.axpy(0.25, r, p)),
            s.add(s.axpy(8.0, m[5], m[6]), s.axpy(0.125, t, q)),
        ]
    }
}

/// The position of the value at a point, from that at the first one.
pub(super) trait ImageTile {
    /// # Safety
    /// `point` must be one of the points that the distances were made for.
    unsafe fn of(&self, point: usize) -> usize;
}

/// Equal distances.
impl ImageTile for usize {
    #[inline(always)]
    unsafe fn of(&self, point: usize) -> usize {
        point * *self
    }
}

/// A table of all points.
impl ImageTile for *const u32 {
    #[inline(always)]
    unsafe fn of(&self, point: usize) -> usize {
        // SAFETY: promised by the caller.
        unsafe { *self.add(point) as usize }
    }
}

/// The input of one tile in one block of channels.
pub(super) struct InputArgs<L = usize> {
    /// The first pixel; and that in the next block of channels, if pairs are made from both.
    pub x: [Src; 2],
    /// Elements between rows of the image.
    pub x_row: usize,
    /// The target of the value at the first point.
    pub v: Dst,
    /// Elements between points.
    pub point: L,
}

/// Values of an input tile at all points.
///
/// The two transforms are those along columns, which combines rows, and along rows; with their
/// numbers of points and outputs.
pub(super) struct InputTile<T, U, L, const P: usize, const O: usize, const Q: usize, const N: usize>(T, U, L);

impl<T: Transform<P, O>, U, L, const P: usize, const O: usize, const Q: usize, const N: usize>
    InputTile<T, U, L, P, O, Q, N>
{
    /// The columns of one block of channels, transformed.
    ///
    /// # Safety
    /// The tile must lie inside the padded image.
    #[inline(always)]
    unsafe fn columns<S: Simd>(s: S, x: Src, x_row: usize) -> [[S::V; Q]; P] {
        let mut columns = [[s.zero(); Q]; P];
        for j in 0..Q {
            let mut d = [s.zero(); P];
            for i in 0..P {
                // SAFETY: promised by the caller.
                d[i] = unsafe { s.load(x, i * x_row + j * LANES) };
            }
            let column = T::input(s, d);
            for i in 0..P {
                columns[i][j] = column[i];
            }
        }
        columns
    }
}

impl<T, U, L, const P: usize, const O: usize, const Q: usize, const N: usize> Body for InputTile<T, U, L, P, O, Q, N>
where
    T: Transform<P, O>,
    U: Transform<Q, N>,
    L: ImageTile,
{
    type Args = InputArgs<L>;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &InputArgs<L>) {
        // SAFETY: the caller passes a tile inside the padded image and room for all points.
        unsafe {
            let columns = Self::columns(s, x.x[0], x.x_row);
            for i in 0..P {
                let row = U::input(s, columns[i]);
                for j in 0..Q {
                    s.store(x.v, x.point.of(i * Q + j), row[j]);
                }
            }
        }
    }
}

impl<T, U, L, const P: usize, const O: usize, const Q: usize, const N: usize> PairsBody
    for InputTile<T, U, L, P, O, Q, N>
where
    T: Transform<P, O>,
    U: Transform<Q, N>,
    L: ImageTile,
{
    type Args = InputArgs<L>;
    #[inline(always)]
    unsafe fn run<S: Rounding>(s: S, x: &InputArgs<L>) {
        // SAFETY: the caller passes a tile inside both blocks of the padded image and room for all
        // points.
        unsafe {
            let low = Self::columns(s, x.x[0], x.x_row);
            let high = Self::columns(s, x.x[1], x.x_row);
            for i in 0..P {
                let (low, high) = (U::input(s, low[i]), U::input(s, high[i]));
                for j in 0..Q {
                    s.store(x.v, x.point.of(i * Q + j), s.round_to_pairs(low[j], high[j]));
                }
            }
        }
    }
}

/// The output of one tile in one block of channels.
pub(super) struct OutputArgs<L = usize> {
    /// The product at the first point.
    pub m: Src,
    /// Elements between points.
    pub point: L,
    /// One block of 16.
    pub bias: Src,
    /// The residual at the tile's first pixel, and elements between its rows.
    pub residual: Option<(Src, usize)>,
    pub y: Dst,
    pub y_row: usize,
    /// Outputs that lie inside the image.
    pub rows: usize,
    pub cols: usize,
    pub limits: ActivationLimits,
}

/// Outputs of a tile from its products; transforms as those of [`InputTile`].
pub(super) struct OutputTile<T, U, L, const P: usize, const O: usize, const Q: usize, const N: usize>(T, U, L);

impl<T, U, L, const P: usize, const O: usize, const Q: usize, const N: usize> Body for OutputTile<T, U, L, P, O, Q, N>
where
    T: Transform<P, O>,
    U: Transform<Q, N>,
    L: ImageTile,
{
    type Args = OutputArgs<L>;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &OutputArgs<L>) {
        // SAFETY: the caller passes products of all points; `rows` x `cols` outputs lie inside the
        // image.
        unsafe {
            let mut columns = [[s.zero(); Q]; O];
            for j in 0..Q {
                let mut m = [s.zero(); P];
                for i in 0..P {
                    m[i] = s.load(x.m, x.point.of(i * Q + j));
                }
                let column = T::output(s, m);
                for i in 0..O {
                    columns[i][j] = column[i];
                }
            }
            for i in 0..O {
                if i < x.rows {
                    let row = U::output(s, columns[i]);
                    for j in 0..N {
                        if j < x.cols {
                            finish(s, x, i, j, row[j]);
                        }
                    }
                }
            }
        }
    }
}

/// Applies the epilogue to one output and stores it.
///
/// # Safety
/// Output (row, col) of the tile must lie inside the image.
#[inline(always)]
pub(super) unsafe fn finish<S: Simd, L>(s: S, x: &OutputArgs<L>, row: usize, col: usize, v: S::V) {
    // SAFETY: promised by the caller.
    unsafe {
        let mut v = s.add(v, s.load(x.bias, 0));
        if let Some((residual, pitch)) = x.residual {
            v = s.add(v, s.load(residual, row * pitch + col * LANES));
        }
        let limits = x.limits.ready(s);
        s.store(x.y, row * x.y_row + col * LANES, limits.apply(s, v));
    }
}
