//! NEON, which every 64-bit ARM processor has: sixteen lanes in four registers.

use std::arch::aarch64::*;

use super::{Body, Dst, LANES, Simd, Src};

/// Needs nothing beyond the target's baseline.
#[derive(Clone, Copy)]
pub(super) struct Neon;

/// Runs `B` on NEON.
///
/// # Safety
/// The arguments must be as `B` says.
pub(super) unsafe fn enter<B: Body>(args: &B::Args) {
    // SAFETY: promised by the caller.
    unsafe { B::run(Neon, args) }
}

const QUADS: usize = LANES / 4;
/// Lanes 0..4, 4..8, 8..12 and 12..16.
type Quads = [float32x4_t; QUADS];

macro_rules! per_quad {
    ($(fn $name:ident($a:ident, $b:ident) = $value:expr;)*) => {$(
        #[inline(always)]
        fn $name(self, a: Quads, b: Quads) -> Quads {
            let mut of = a;
            for i in 0..QUADS {
                let ($a, $b) = (a[i], b[i]);
                // SAFETY: NEON is part of the baseline.
                of[i] = unsafe { $value };
            }
            of
        }
    )*};
}

impl Simd for Neon {
    type V = Quads;
    const IN_PROGRESS: usize = 2;

    #[inline(always)]
    fn splat(self, x: f32) -> Quads {
        // SAFETY: NEON is part of the baseline.
        unsafe { [vdupq_n_f32(x); QUADS] }
    }
    #[inline(always)]
    unsafe fn load(self, p: Src, at: usize) -> Quads {
        // SAFETY: readable by the caller's promise.
        unsafe {
            let p = p.block(at);
            [vld1q_f32(p), vld1q_f32(p.add(4)), vld1q_f32(p.add(8)), vld1q_f32(p.add(12))]
        }
    }
    #[inline(always)]
    unsafe fn store(self, p: Dst, at: usize, v: Quads) {
        // SAFETY: writable by the caller's promise.
        unsafe {
            let p = p.block(at);
            for i in 0..QUADS {
                vst1q_f32(p.add(4 * i), v[i]);
            }
        }
    }
    #[inline(always)]
    unsafe fn load_part(self, p: Src, at: usize, n: usize, rest: Quads) -> Quads {
        let mut lanes = [0.0f32; LANES];
        let to = Dst::new(&mut lanes);
        // SAFETY: `n` elements are readable by the caller's promise, and `lanes` has room.
        unsafe {
            self.store(to, 0, rest);
            to.copy_from(0, p.add(at), n);
            self.load(to.as_src(), 0)
        }
    }
    #[inline(always)]
    unsafe fn store_part(self, p: Dst, at: usize, n: usize, v: Quads) {
        let mut lanes = [0.0f32; LANES];
        let to = Dst::new(&mut lanes);
        // SAFETY: `n` elements are writable by the caller's promise, and `lanes` has as many.
        unsafe {
            self.store(to, 0, v);
            p.copy_from(at, to.as_src(), n);
        }
    }
    #[inline(always)]
    unsafe fn load_bytes(self, p: Src, at: usize) -> Quads {
        // SAFETY: readable by the caller's promise.
        unsafe {
            let bytes = vld1q_s8(p.run(at, LANES / 4).cast());
            let (low, high) = (vmovl_s8(vget_low_s8(bytes)), vmovl_s8(vget_high_s8(bytes)));
            [
                vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))),
                vcvtq_f32_s32(vmovl_s16(vget_high_s16(low))),
                vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))),
                vcvtq_f32_s32(vmovl_s16(vget_high_s16(high))),
            ]
        }
    }
    #[inline(always)]
    unsafe fn load_bf16(self, p: Src, at: usize) -> Quads {
        // SAFETY: readable by the caller's promise.
        unsafe {
            let p = p.run(at, LANES / 2).cast::<u32>();
            let (first, second, kept) = (vld1q_u32(p), vld1q_u32(p.add(4)), vdupq_n_u32(!0xffff));
            [
                vreinterpretq_f32_u32(vshlq_n_u32::<16>(first)),
                vreinterpretq_f32_u32(vshlq_n_u32::<16>(second)),
                vreinterpretq_f32_u32(vandq_u32(first, kept)),
                vreinterpretq_f32_u32(vandq_u32(second, kept)),
            ]
        }
    }
    per_quad! {
        fn add(a, b) = vaddq_f32(a, b);
        fn sub(a, b) = vsubq_f32(a, b);
        fn mul(a, b) = vmulq_f32(a, b);
        fn div(a, b) = vdivq_f32(a, b);
        // The instructions for extremes prefer either NaN or numbers; wanted is the second operand.
        fn max(a, b) = vbslq_f32(vcgtq_f32(a, b), a, b);
        fn min(a, b) = vbslq_f32(vcltq_f32(a, b), a, b);
    }
    #[inline(always)]
    fn fma(self, a: Quads, b: Quads, c: Quads) -> Quads {
        let mut sum = c;
        for i in 0..QUADS {
            // SAFETY: NEON is part of the baseline.
            sum[i] = unsafe { vfmaq_f32(c[i], a[i], b[i]) };
        }
        sum
    }
    #[inline(always)]
    fn fnma(self, a: Quads, b: Quads, c: Quads) -> Quads {
        let mut sum = c;
        for i in 0..QUADS {
            // SAFETY: NEON is part of the baseline.
            sum[i] = unsafe { vfmsq_f32(c[i], a[i], b[i]) };
        }
        sum
    }

    #[inline(always)]
    fn pick(self, v: Quads, limit: Quads, low: Quads, high: Quads) -> Quads {
        let mut picked = low;
        for i in 0..QUADS {
            // SAFETY: NEON is part of the baseline.
            unsafe { picked[i] = vbslq_f32(vcleq_f32(v[i], limit[i]), low[i], high[i]) }
        }
        picked
    }
    #[inline(always)]
    fn times_pow2(self, v: Quads, n: Quads) -> Quads {
        let mut scaled = v;
        for i in 0..QUADS {
            // Two factors, as 2^n itself may be infinite or below the normal numbers.
            // SAFETY: NEON is part of the baseline.
            unsafe {
                let (n, bias) = (vcvtnq_s32_f32(n[i]), vdupq_n_s32(127));
                let half = vshrq_n_s32::<1>(n);
                let first = vshlq_n_s32::<23>(vaddq_s32(half, bias));
                let second = vshlq_n_s32::<23>(vaddq_s32(vsubq_s32(n, half), bias));
                let once = vmulq_f32(v[i], vreinterpretq_f32_s32(first));
                scaled[i] = vmulq_f32(once, vreinterpretq_f32_s32(second));
            }
        }
        scaled
    }
    #[inline(always)]
    fn deinterleave(self, a: Quads, b: Quads) -> (Quads, Quads) {
        let (mut even, mut odd) = (a, b);
        for i in 0..QUADS {
            let (first, second) = if i < 2 { (a[2 * i], a[2 * i + 1]) } else { (b[2 * i - 4], b[2 * i - 3]) };
            // SAFETY: NEON is part of the baseline.
            unsafe {
                even[i] = vuzp1q_f32(first, second);
                odd[i] = vuzp2q_f32(first, second);
            }
        }
        (even, odd)
    }
    #[inline(always)]
    fn transpose(self, v: &mut [Quads; LANES]) {
        let old = *v;
        for r in 0..QUADS {
            for c in 0..QUADS {
                let square = [old[c * 4][r], old[c * 4 + 1][r], old[c * 4 + 2][r], old[c * 4 + 3][r]];
                let square = transpose4(square);
                for i in 0..4 {
                    v[r * 4 + i][c] = square[i];
                }
            }
        }
    }
}

/// 4x4 transpose.
#[inline(always)]
fn transpose4(v: [float32x4_t; 4]) -> [float32x4_t; 4] {
    // SAFETY: NEON is part of the baseline.
    unsafe {
        let (ab_even, ab_odd) = (vtrn1q_f32(v[0], v[1]), vtrn2q_f32(v[0], v[1]));
        let (cd_even, cd_odd) = (vtrn1q_f32(v[2], v[3]), vtrn2q_f32(v[2], v[3]));
        let wide = |x| vreinterpretq_f64_f32(x);
        let narrow = |x| vreinterpretq_f32_f64(x);
        [
            narrow(vtrn1q_f64(wide(ab_even), wide(cd_even))),
            narrow(vtrn1q_f64(wide(ab_odd), wide(cd_odd))),
            narrow(vtrn2q_f64(wide(ab_even), wide(cd_even))),
            narrow(vtrn2q_f64(wide(ab_odd), wide(cd_odd))),
        ]
    }
}
