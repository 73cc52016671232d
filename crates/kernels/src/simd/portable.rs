//! Four short vectors of four lanes, for machines without the instruction sets above and as the
//! reference of their tests.
//!
//! Every x86-64 has the vectors. Elsewhere they are arrays, which the compiler turns into what the
//! machine has; that takes many times as long to compile.

use super::{Body, Dst, LANES, PairsBody, Rounding, Simd, Src};
use crate::amx::parts::{round, value};
use crate::math::times_pow2_f32;
use quad::Quad;

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

/// Runs `B` as ordinary code.
///
/// # Safety
/// As `B` says about its arguments.
pub(super) unsafe fn enter_rounding<B: PairsBody>(args: &B::Args) {
    // SAFETY: promised by the caller.
    unsafe { B::run(Portable, args) }
}

const QUADS: usize = LANES / 4;
type Quads = [Quad; QUADS];

#[cfg(target_arch = "x86_64")]
mod quad {
    use std::arch::x86_64::{__m128, _mm_add_ps, _mm_div_ps, _mm_max_ps, _mm_min_ps, _mm_mul_ps, _mm_sub_ps};

    pub(super) type Quad = __m128;

    macro_rules! operations {
        ($($name:ident = $intrinsic:ident;)*) => {$(
            #[inline(always)]
            pub(super) fn $name(a: Quad, b: Quad) -> Quad {
                // SAFETY: SSE is part of the x86-64 baseline.
                unsafe { $intrinsic(a, b) }
            }
        )*};
    }
    // Those for extremes give their second operand where either is NaN.
    operations! {
        add = _mm_add_ps;
        sub = _mm_sub_ps;
        mul = _mm_mul_ps;
        div = _mm_div_ps;
        max = _mm_max_ps;
        min = _mm_min_ps;
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod quad {
    pub(super) type Quad = [f32; 4];

    macro_rules! operations {
        ($($name:ident = |$a:ident, $b:ident| $value:expr;)*) => {$(
            #[inline(always)]
            pub(super) fn $name(a: Quad, b: Quad) -> Quad {
                let one = |$a: f32, $b: f32| $value;
                [one(a[0], b[0]), one(a[1], b[1]), one(a[2], b[2]), one(a[3], b[3])]
            }
        )*};
    }
    operations! {
        add = |a, b| a + b;
        sub = |a, b| a - b;
        mul = |a, b| a * b;
        div = |a, b| a / b;
        max = |a, b| if a > b { a } else { b };
        min = |a, b| if a < b { a } else { b };
    }
}

macro_rules! each_quad {
    ($($name:ident)*) => {$(
        #[inline(always)]
        fn $name(self, a: Quads, b: Quads) -> Quads {
            [quad::$name(a[0], b[0]), quad::$name(a[1], b[1]), quad::$name(a[2], b[2]), quad::$name(a[3], b[3])]
        }
    )*};
}

#[inline(always)]
fn lanes(v: Quads) -> [f32; LANES] {
    bytemuck::cast(v)
}

#[inline(always)]
fn from_lanes(f: impl Fn(usize) -> f32) -> Quads {
    let mut v = [0.0; LANES];
    for (i, x) in v.iter_mut().enumerate() {
        *x = f(i);
    }
    bytemuck::cast(v)
}

impl Simd for Portable {
    type V = Quads;
    const IN_PROGRESS: usize = 2;

    #[inline(always)]
    fn splat(self, x: f32) -> Quads {
        [bytemuck::cast([x; 4]); QUADS]
    }
    #[inline(always)]
    unsafe fn load(self, p: Src, at: usize) -> Quads {
        // SAFETY: readable by the caller's promise.
        unsafe { p.block(at).cast::<Quads>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(self, p: Dst, at: usize, v: Quads) {
        // SAFETY: writable by the caller's promise.
        unsafe { p.block(at).cast::<Quads>().write_unaligned(v) }
    }
    #[inline(always)]
    unsafe fn load_part(self, p: Src, at: usize, n: usize, rest: Quads) -> Quads {
        let mut v = lanes(rest);
        // SAFETY: readable by the caller's promise.
        v.iter_mut().take(n).enumerate().for_each(|(i, v)| *v = unsafe { p.read(at + i) });
        bytemuck::cast(v)
    }
    #[inline(always)]
    unsafe fn store_part(self, p: Dst, at: usize, n: usize, v: Quads) {
        // SAFETY: writable by the caller's promise.
        lanes(v).into_iter().take(n).enumerate().for_each(|(i, v)| unsafe { p.write(at + i, v) });
    }
    #[inline(always)]
    unsafe fn load_bytes(self, p: Src, at: usize) -> Quads {
        // SAFETY: readable by the caller's promise.
        let bytes = unsafe { p.run(at, LANES / 4).cast::<[i8; LANES]>().read_unaligned() };
        from_lanes(|i| bytes[i].into())
    }
    #[inline(always)]
    unsafe fn load_bf16(self, p: Src, at: usize) -> Quads {
        const HALF: usize = LANES / 2;
        // SAFETY: readable by the caller's promise.
        let pairs = unsafe { p.run(at, HALF).cast::<[u32; HALF]>().read_unaligned() };
        from_lanes(|i| f32::from_bits(if i < HALF { pairs[i] << 16 } else { pairs[i - HALF] & !0xffff }))
    }
    each_quad! { add sub mul div max min }
    // Two roundings: without a fused instruction `mul_add` would be a library call per lane.
    #[inline(always)]
    fn fma(self, a: Quads, b: Quads, c: Quads) -> Quads {
        self.add(self.mul(a, b), c)
    }
    #[inline(always)]
    fn fnma(self, a: Quads, b: Quads, c: Quads) -> Quads {
        self.sub(c, self.mul(a, b))
    }

    #[inline(always)]
    fn pick(self, v: Quads, limit: Quads, low: Quads, high: Quads) -> Quads {
        let (v, limit, low, high) = (lanes(v), lanes(limit), lanes(low), lanes(high));
        from_lanes(|i| if v[i] <= limit[i] { low[i] } else { high[i] })
    }
    #[inline(always)]
    fn times_pow2(self, v: Quads, n: Quads) -> Quads {
        let (v, n) = (lanes(v), lanes(n));
        from_lanes(|i| times_pow2_f32(v[i], n[i] as i32))
    }
    #[inline(always)]
    fn deinterleave(self, a: Quads, b: Quads) -> (Quads, Quads) {
        let (a, b) = (lanes(a), lanes(b));
        let at = |i: usize| if i < LANES { a[i] } else { b[i - LANES] };
        (from_lanes(|i| at(2 * i)), from_lanes(|i| at(2 * i + 1)))
    }
    #[inline(always)]
    fn transpose(self, v: &mut [Quads; LANES]) {
        let rows = v.map(lanes);
        for (i, column) in v.iter_mut().enumerate() {
            *column = from_lanes(|j| rows[j][i]);
        }
    }
}

impl Rounding for Portable {
    #[inline(always)]
    fn round_to_pairs(self, low: Quads, high: Quads) -> Quads {
        let (low, high) = (lanes(low).map(round), lanes(high).map(round));
        bytemuck::cast([low, high])
    }

    #[inline(always)]
    fn values_of_pairs(self, pairs: Quads) -> [Quads; 2] {
        let pairs: [[u16; LANES]; 2] = bytemuck::cast(lanes(pairs));
        pairs.map(|half| bytemuck::cast(half.map(value)))
    }
}
