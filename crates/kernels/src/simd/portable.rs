//! Plain arrays, for machines without the instruction sets above and as the reference of their
//! tests.

use super::{Body, Dst, LANES, Simd, Src};
use crate::math::times_pow2_f32;

/// Needs nothing of the machine.
#[derive(Clone, Copy)]
pub(super) struct Portable;

/// Runs `B` as ordinary code.
///
/// # Safety
/// As `B` says about its arguments.
pub(super) unsafe fn enter<B: Body>(args: &B::Args) {
    // SAFETY: promised by the caller.
    unsafe { B::run(Portable, args) }
}

#[inline(always)]
fn lanes(f: impl Fn(usize) -> f32) -> [f32; LANES] {
    let mut v = [0.0; LANES];
    for (i, x) in v.iter_mut().enumerate() {
        *x = f(i);
    }
    v
}

impl Simd for Portable {
    type V = [f32; LANES];

    #[inline(always)]
    fn splat(self, x: f32) -> Self::V {
        [x; LANES]
    }
    #[inline(always)]
    unsafe fn load(self, p: Src, at: usize) -> Self::V {
        // SAFETY: readable by the caller's promise; an array of f32 needs the alignment of f32
        // only.
        unsafe { *p.block(at).cast::<[f32; LANES]>() }
    }
    #[inline(always)]
    unsafe fn store(self, p: Dst, at: usize, v: Self::V) {
        // SAFETY: writable by the caller's promise; an array of f32 needs the alignment of f32
        // only.
        unsafe { *p.block(at).cast::<[f32; LANES]>() = v }
    }
    #[inline(always)]
    unsafe fn load_part(self, p: Src, at: usize, n: usize, rest: Self::V) -> Self::V {
        // SAFETY: readable by the caller's promise.
        lanes(|i| if i < n { unsafe { p.read(at + i) } } else { rest[i] })
    }
    #[inline(always)]
    unsafe fn store_part(self, p: Dst, at: usize, n: usize, v: Self::V) {
        // SAFETY: writable by the caller's promise.
        v.into_iter().take(n).enumerate().for_each(|(i, v)| unsafe { p.write(at + i, v) });
    }
    #[inline(always)]
    fn add(self, a: Self::V, b: Self::V) -> Self::V {
        lanes(|i| a[i] + b[i])
    }
    #[inline(always)]
    fn sub(self, a: Self::V, b: Self::V) -> Self::V {
        lanes(|i| a[i] - b[i])
    }
    #[inline(always)]
    fn mul(self, a: Self::V, b: Self::V) -> Self::V {
        lanes(|i| a[i] * b[i])
    }
    #[inline(always)]
    fn div(self, a: Self::V, b: Self::V) -> Self::V {
        lanes(|i| a[i] / b[i])
    }
    #[inline(always)]
    fn max(self, a: Self::V, b: Self::V) -> Self::V {
        lanes(|i| if a[i] > b[i] { a[i] } else { b[i] })
    }
    #[inline(always)]
    fn min(self, a: Self::V, b: Self::V) -> Self::V {
        lanes(|i| if a[i] < b[i] { a[i] } else { b[i] })
    }
    // Two roundings: without a fused instruction `mul_add` would be a library call per lane.
    #[inline(always)]
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        lanes(|i| a[i] * b[i] + c[i])
    }
    #[inline(always)]
    fn fnma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        lanes(|i| c[i] - a[i] * b[i])
    }
    #[inline(always)]
    fn times_pow2(self, v: Self::V, n: Self::V) -> Self::V {
        lanes(|i| times_pow2_f32(v[i], n[i] as i32))
    }
    #[inline(always)]
    fn deinterleave(self, a: Self::V, b: Self::V) -> (Self::V, Self::V) {
        let at = |i: usize| if i < LANES { a[i] } else { b[i - LANES] };
        (lanes(|i| at(2 * i)), lanes(|i| at(2 * i + 1)))
    }
    #[inline(always)]
    fn transpose(self, v: &mut [Self::V; LANES]) {
        for i in 0..LANES {
            for j in 0..i {
                let (x, y) = (v[i][j], v[j][i]);
                (v[i][j], v[j][i]) = (y, x);
            }
        }
    }
}
