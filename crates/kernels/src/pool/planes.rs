//! Global pooling of small planes in single precision, sixteen planes at a time: transposed, the
//! lanes of all of them are put together in the steps that one would take.

use super::{PoolKind, PoolPlan, fold_vectors};
use crate::halves::{narrow, widen};
use crate::par::{Par, chunk_by_work, par_chunks_mut, par_chunks_mut_scratch};
use crate::simd::{Body, Dst, LANES, Simd, Src, across, entry};
use crate::vectorize::Width;
use half::f16;

/// Elements of a plane, at most: more of them would have to be summed in double precision.
const LONGEST: usize = 64 * LANES;
/// Planes whose vectors are in progress at once.
const AT_ONCE: usize = 4;

/// Whether every plane is one window that can be pooled here.
pub(super) fn fits(plan: &PoolPlan) -> bool {
    plan.inner == 1
        && !matches!(plan.kind, PoolKind::Lp { .. })
        && plan.out == [1; 3]
        && (0..3).all(|axis| plan.window(axis, 0) == (0..plan.size[axis]))
        && plan.plane() <= LONGEST
}

/// Pools `x` into `out`, which has one element for each plane.
pub(super) fn pool(plan: &PoolPlan, par: &dyn Par, x: &[f32], out: &mut [f32]) {
    let (len, planes) = (plan.plane(), chunk_by_work(plan.plane()));
    par_chunks_mut(par, out, planes, |i, out| run(plan, &x[i * planes * len..][..out.len() * len], f32::MIN, out));
}

/// Pools half precision: sixteen planes are widened and their results rounded.
pub(super) fn pool_halves(plan: &PoolPlan, par: &dyn Par, x: &[f16], out: &mut [f16]) {
    let (len, planes) = (plan.plane(), chunk_by_work(plan.plane()).next_multiple_of(LANES));
    let bytes = LANES * len * size_of::<f32>();
    par_chunks_mut_scratch(par, out, planes, bytes, |i, out, scratch| {
        let x = &x[i * planes * len..][..out.len() * len];
        let wide: &mut [f32] = bytemuck::cast_slice_mut(&mut scratch[..bytes]);
        for (x, out) in x.chunks(LANES * len).zip(out.chunks_mut(LANES)) {
            let (wide, mut results) = (&mut wide[..x.len()], [0.0; LANES]);
            widen(x, wide);
            run(plan, wide, f16::MIN.to_f32(), &mut results[..out.len()]);
            narrow(&results[..out.len()], out);
        }
    });
}

fn run(plan: &PoolPlan, x: &[f32], lowest: f32, out: &mut [f32]) {
    let count = match plan.kind {
        PoolKind::Avg { count_include_pad: padded } => (0..3).map(|axis| plan.extent(axis, 0, padded)).product(),
        _ => 1,
    };
    let (max, isa) = (plan.kind == PoolKind::Max, Width::widest().isa());
    let body = if max { entry::<Planes<true>>(isa) } else { entry::<Planes<false>>(isa) };
    let args = PlanesArgs {
        x: Src::new(x),
        len: plan.plane(),
        planes: out.len(),
        start: if max { lowest } else { 0.0 },
        count: count as f32,
        out: Dst::new(out),
    };
    // SAFETY: `x` has a plane for every element of `out`.
    unsafe { body(&args) }
}

struct PlanesArgs {
    x: Src,
    /// Elements of a plane.
    len: usize,
    planes: usize,
    /// The initial value of folding.
    start: f32,
    /// The divisor of sums.
    count: f32,
    out: Dst,
}

struct Planes<const MAX: bool>;

impl<const MAX: bool> Body for Planes<MAX> {
    type Args = PlanesArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &PlanesArgs) {
        let mut lanes = [s.splat(x.start); LANES];
        for first in (0..x.planes).step_by(LANES) {
            let (from, planes) = (x.x.add(first * x.len), LANES.min(x.planes - first));
            let together = planes / AT_ONCE * AT_ONCE;
            // SAFETY: promised by the caller.
            unsafe {
                for plane in (0..together).step_by(AT_ONCE) {
                    some::<S, MAX, AT_ONCE>(s, x, from, plane, &mut lanes);
                }
                for plane in together..planes {
                    some::<S, MAX, 1>(s, x, from, plane, &mut lanes);
                }
                let v = across::<S, MAX>(s, &mut lanes);
                let v = if MAX { v } else { s.div(v, s.splat(x.count)) };
                s.store_part(x.out, first, planes, v);
            }
        }
    }
}

/// N planes, each as one vector.
///
/// # Safety
/// The planes must be there, and have places in `lanes`.
#[inline(always)]
unsafe fn some<S: Simd, const MAX: bool, const N: usize>(
    s: S,
    x: &PlanesArgs,
    from: Src,
    plane: usize,
    lanes: &mut [S::V; LANES],
) {
    let (whole, rest, start) = (x.len / LANES * LANES, x.len % LANES, s.splat(x.start));
    let mut v = [start; N];
    // SAFETY: promised by the caller.
    unsafe {
        for at in (0..whole).step_by(LANES) {
            for i in 0..N {
                v[i] = fold_vectors::<S, MAX>(s, s.load(from, (plane + i) * x.len + at), v[i]);
            }
        }
        if rest > 0 {
            for i in 0..N {
                let last = s.load_part(from, (plane + i) * x.len + whole, rest, start);
                v[i] = fold_vectors::<S, MAX>(s, last, v[i]);
            }
        }
    }
    lanes[plane..plane + N].copy_from_slice(&v);
}
