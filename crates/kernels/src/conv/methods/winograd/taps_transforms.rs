//! The transforms of filters of other sizes than three taps.
//!
//! F(2,5) has the points of F(4,3) and so its input transform. F(2,7) uses 0, 1, -1, 1/2, -1/2, 2,
//! -2 and infinity.

use super::transforms::{F4, Transform};
use crate::simd::Simd;

/// One tap.
pub(super) struct One;
pub(super) struct F25;
pub(super) struct F27;

impl Transform<1, 1> for One {
    #[inline(always)]
    fn input<S: Simd>(_: S, d: [S::V; 1]) -> [S::V; 1] {
        d
    }
    #[inline(always)]
    fn output<S: Simd>(_: S, m: [S::V; 1]) -> [S::V; 1] {
        m
    }
}

impl Transform<6, 2> for F25 {
    #[inline(always)]
    fn input<S: Simd>(s: S, d: [S::V; 6]) -> [S::V; 6] {
        F4::input(s, d)
    }
    #[inline(always)]
    fn output<S: Simd>(s: S, m: [S::V; 6]) -> [S::V; 2] {
        let (p, q) = (s.add(m[1], m[2]), s.sub(m[1], m[2]));
        [s.add(s.add(m[0], p), s.add(m[3], m[4])), s.add(s.axpy(0.5, m[3], s.naxpy(2.0, m[4], q)), m[5])]
    }
}

impl F27 {
    // Closures would not be inlined on AVX2.

    /// The common part of the polynomials of two opposite points: x times those of the other two
    /// pairs, `x^4 - sum x^2 + product`.
    #[inline(always)]
    fn pair<S: Simd>(s: S, d: [S::V; 8], k: usize, sum: f32, product: f32) -> S::V {
        s.axpy(product, d[k], s.naxpy(sum, d[k + 2], d[k + 4]))
    }

    /// The polynomial of all pairs.
    #[inline(always)]
    fn pairs<S: Simd>(s: S, d: [S::V; 8], k: usize) -> S::V {
        s.axpy(5.25, s.sub(d[k + 2], d[k + 4]), s.sub(d[k + 6], d[k]))
    }
}

impl Transform<8, 2> for F27 {
    #[inline(always)]
    fn input<S: Simd>(s: S, d: [S::V; 8]) -> [S::V; 8] {
        let (p0, p1) = (F27::pair(s, d, 1, 4.25, 1.0), F27::pair(s, d, 2, 4.25, 1.0));
        let (q0, q1) = (F27::pair(s, d, 1, 5.0, 4.0), F27::pair(s, d, 2, 5.0, 4.0));
        let (r0, r1) = (F27::pair(s, d, 1, 1.25, 0.25), F27::pair(s, d, 2, 1.25, 0.25));
        [
            F27::pairs(s, d, 0),
            s.add(p1, p0),
            s.sub(p1, p0),
            s.axpy(0.5, q0, q1),
            s.naxpy(0.5, q0, q1),
            s.axpy(2.0, r0, r1),
            s.naxpy(2.0, r0, r1),
            F27::pairs(s, d, 1),
        ]
    }
    #[inline(always)]
    fn output<S: Simd>(s: S, m: [S::V; 8]) -> [S::V; 2] {
        let ones = (s.add(m[1], m[2]), s.sub(m[1], m[2]));
        let halves = (s.add(m[3], m[4]), s.sub(m[3], m[4]));
        let twos = (s.add(m[5], m[6]), s.sub(m[5], m[6]));
        [
            s.add(s.add(m[0], ones.0), s.add(halves.0, twos.0)),
            s.add(s.axpy(0.5, halves.1, s.axpy(2.0, twos.1, ones.1)), m[7]),
        ]
    }
}
