//! The transforms of 3x3 filters with stride 2.
//!
//! Along one side, outputs are sums of two convolutions with stride 1: of the even inputs with the
//! filter's first and last value, F(n,2), and of the odd ones with the value between, which pass
//! unchanged. Points are those of the even inputs, then the odd inputs. F(2,2) uses the points 0, 1
//! and infinity, F(3,2) uses -1, too, and F(4,2) also 1/2, whose rounding errors are less than
//! those of 2.

use super::transforms::Transform;
use crate::simd::Simd;

pub(super) struct Strided2;
pub(super) struct Strided3;
pub(super) struct Strided4;

impl Transform<5, 2> for Strided2 {
    #[inline(always)]
    fn input<S: Simd>(s: S, d: [S::V; 5]) -> [S::V; 5] {
        [s.sub(d[2], d[0]), d[2], s.sub(d[4], d[2]), d[1], d[3]]
    }
    #[inline(always)]
    fn output<S: Simd>(s: S, m: [S::V; 5]) -> [S::V; 2] {
        [s.add(s.add(m[0], m[1]), m[3]), s.add(s.add(m[1], m[2]), m[4])]
    }
}

impl Transform<7, 3> for Strided3 {
    #[inline(always)]
    fn input<S: Simd>(s: S, d: [S::V; 7]) -> [S::V; 7] {
        let even = [d[0], d[2], d[4], d[6]];
        let (sum, difference) = (s.add(even[2], even[1]), s.sub(even[2], even[1]));
        [s.sub(even[2], even[0]), sum, difference, s.sub(even[3], even[1]), d[1], d[3], d[5]]
    }
    #[inline(always)]
    fn output<S: Simd>(s: S, m: [S::V; 7]) -> [S::V; 3] {
        let (p, q) = (s.add(m[1], m[2]), s.sub(m[1], m[2]));
        [s.add(s.add(m[0], p), m[4]), s.add(q, m[5]), s.add(s.add(p, m[3]), m[6])]
    }
}

impl Transform<9, 4> for Strided4 {
    #[inline(always)]
    fn input<S: Simd>(s: S, d: [S::V; 9]) -> [S::V; 9] {
        let even = [d[0], d[2], d[4], d[6], d[8]];
        // Values of x - 1/2, a factor of all polynomials but one.
        let (h0, h1) = (s.naxpy(0.5, even[0], even[1]), s.naxpy(0.5, even[1], even[2]));
        let (h2, h3) = (s.naxpy(0.5, even[2], even[3]), s.naxpy(0.5, even[3], even[4]));
        [s.sub(h2, h0), s.add(h2, h1), s.sub(h2, h1), s.sub(even[3], even[1]), s.sub(h3, h1), d[1], d[3], d[5], d[7]]
    }
    #[inline(always)]
    fn output<S: Simd>(s: S, m: [S::V; 9]) -> [S::V; 4] {
        let (p, q) = (s.add(m[1], m[2]), s.sub(m[1], m[2]));
        [
            s.add(s.add(m[0], p), s.add(m[3], m[5])),
            s.add(s.axpy(0.5, m[3], q), m[6]),
            s.add(s.axpy(0.25, m[3], p), m[7]),
            s.add(s.axpy(0.125, m[3], s.add(q, m[4])), m[8]),
        ]
    }
}
