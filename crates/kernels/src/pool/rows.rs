//! Pooling of rows in single precision, in vectors written out: rows are too short for what a
//! compiled loop does before its first vector and after its last one, and windows two columns apart
//! take shuffles.

use super::{PoolKind, PoolPlan, fold_vectors};
use crate::halves::{narrow, widen};
use crate::par::{Par, chunk_by_work, par_chunks_mut_scratch};
use crate::simd::{Body, Dst, LANES, Simd, Src, entry};
use crate::vectorize::Width;
use half::f16;
use std::ops::Range;

/// Columns of a window, from one to the next, and of the padding before a row, at most: all of them
/// are stored.
const WIDEST: usize = 64;
/// Fewer outputs in a row than this are not worth a vector.
const FEWEST: usize = 4;

/// Whether the rows of a pooling can be pooled here.
pub(super) fn fits(plan: &PoolPlan) -> bool {
    plan.inner == 1
        && !matches!(plan.kind, PoolKind::Lp { .. })
        && [plan.kernel[2], plan.stride[2], plan.pad[2]].iter().all(|columns| *columns <= WIDEST)
        && plan.out[2] >= FEWEST
}

/// Pools `x` into `out`.
pub(super) fn pool(plan: &PoolPlan, par: &dyn Par, x: &[f32], out: &mut [f32]) {
    let (rows, lines, extents) = (OutputRows::new(plan), 2 * line_len(plan), extents(plan));
    let plane = plan.plane();
    rows.each_part(par, out, lines, |part, out, lines| {
        let image =
            Image { x: &x[part.plane * plane..][..plane], first: [0; 2], height: plan.size[1], lowest: f32::MIN };
        pool_part(plan, &part, image, &extents, lines, out);
    });
}

/// Pools half precision, whose parts are widened and the results rounded.
pub(super) fn pool_halves(plan: &PoolPlan, par: &dyn Par, x: &[f16], out: &mut [f16]) {
    let (rows, lines, extents) = (OutputRows::new(plan), 2 * line_len(plan), extents(plan));
    let (wide, results) = (rows.most_seen(), rows.chunk.min(plan.out[1]) * plan.out[2]);
    rows.each_part(par, out, lines + wide + results, |part, out, scratch| {
        let (lines, scratch) = scratch.split_at_mut(lines);
        let (wide, results) = scratch.split_at_mut(wide);
        let [slices, seen] = part.sees(plan);
        let (width, results) = (plan.size[2], &mut results[..out.len()]);
        for (i, slice) in slices.clone().enumerate() {
            let first = (part.plane * plan.size[0] + slice) * plan.size[1];
            let len = seen.len() * width;
            widen(&x[(first + seen.start) * width..][..len], &mut wide[i * len..][..len]);
        }
        let first = [slices.start, seen.start];
        let image = Image { x: wide, first, height: seen.len(), lowest: f16::MIN.to_f32() };
        pool_part(plan, &part, image, &extents, lines, results);
        narrow(results, out);
    });
}

/// How the rows of the output are cut.
struct OutputRows<'a> {
    plan: &'a PoolPlan,
    /// Rows of a chunk.
    chunk: usize,
}

/// Rows of the output that belong to one slice of one plane.
struct SlicePart {
    plane: usize,
    slice: usize,
    rows: Range<usize>,
}

impl<'a> OutputRows<'a> {
    fn new(plan: &'a PoolPlan) -> OutputRows<'a> {
        OutputRows { plan, chunk: chunk_by_work(plan.out[2] * plan.kernel.iter().product::<usize>()) }
    }

    /// Calls `body` with every part of `out`, its elements and the given number of scratch values.
    fn each_part<T: Send>(
        &self,
        par: &dyn Par,
        out: &mut [T],
        scratch_len: usize,
        body: impl Fn(SlicePart, &mut [T], &mut [f32]) + Sync,
    ) {
        let ([depth, height, width], bytes) = (self.plan.out, scratch_len * size_of::<f32>());
        par_chunks_mut_scratch(par, out, self.chunk * width, bytes, |i, mut out, scratch| {
            let mut first = i * self.chunk;
            while !out.is_empty() {
                let (slice, row) = (first / height, first % height);
                let count = (out.len() / width).min(height - row);
                let (now, later) = out.split_at_mut(count * width);
                let part = SlicePart { plane: slice / depth, slice: slice % depth, rows: row..row + count };
                body(part, now, bytemuck::cast_slice_mut(&mut scratch[..bytes]));
                (first, out) = (first + count, later);
            }
        });
    }

    /// The most elements that the windows of a part see.
    fn most_seen(&self) -> usize {
        let PoolPlan { kernel, stride, size, out, .. } = self.plan;
        let rows = (self.chunk.min(out[1]) - 1) * stride[1] + kernel[1];
        kernel[0].min(size[0]) * rows.min(size[1]) * size[2]
    }
}

impl SlicePart {
    /// The slices and rows of the input that its windows see.
    fn sees(&self, plan: &PoolPlan) -> [Range<usize>; 2] {
        let (first, last) = (plan.window(1, self.rows.start), plan.window(1, self.rows.end - 1));
        [plan.window(0, self.slice), first.start..last.end.max(first.start)]
    }
}

/// A plane of the input, or what windows see of it.
struct Image<'a> {
    x: &'a [f32],
    /// The first slice and row that are there.
    first: [usize; 2],
    /// Rows of each slice that are there.
    height: usize,
    /// The largest value of an empty window.
    lowest: f32,
}

fn pool_part(plan: &PoolPlan, part: &SlicePart, image: Image<'_>, extents: &[f32], lines: &mut [f32], out: &mut [f32]) {
    let args = Args {
        plan: *plan,
        x: Src::new(image.x),
        first: image.first,
        height: image.height,
        lowest: image.lowest,
        slice: part.slice,
        rows: part.rows.clone(),
        extents: Src::new(extents),
        line_len: line_len(plan),
        lines: Dst::new(lines),
        out: Dst::new(out),
    };
    let isa = Width::widest().isa();
    let body = if plan.kind == PoolKind::Max { entry::<PoolRows<true>>(isa) } else { entry::<PoolRows<false>>(isa) };
    // SAFETY: the image has what the windows see, `out` the rows; line and extents have the lengths
    // that the plan asks for.
    unsafe { body(&args) }
}

/// Elements of a row with its padding, followed by the elements that the last vector of outputs
/// reads without need.
fn line_len(plan: &PoolPlan) -> usize {
    let written = plan.pad[2] + plan.size[2].next_multiple_of(LANES);
    let read = plan.out[2].next_multiple_of(LANES) * plan.stride[2] + plan.kernel[2] + LANES;
    written.max(read).next_multiple_of(LANES)
}

/// How many columns of each window of a row count in a mean, for whole vectors of windows.
fn extents(plan: &PoolPlan) -> Vec<f32> {
    let extent = |o| match plan.kind {
        PoolKind::Avg { count_include_pad } => plan.extent(2, o, count_include_pad) as f32,
        _ => 1.0,
    };
    (0..plan.out[2].next_multiple_of(LANES)).map(extent).collect()
}

struct Args {
    plan: PoolPlan,
    x: Src,
    first: [usize; 2],
    height: usize,
    lowest: f32,
    slice: usize,
    rows: Range<usize>,
    extents: Src,
    /// Two lines, one of which is filled while the windows of the other are pooled: a value that
    /// has just been stored cannot immediately be loaded at other boundaries.
    lines: Dst,
    line_len: usize,
    out: Dst,
}

struct PoolRows<const MAX: bool>;

impl<const MAX: bool> Body for PoolRows<MAX> {
    type Args = Args;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &Args) {
        // SAFETY: promised by the caller.
        unsafe {
            match (x.plan.kernel[2], x.plan.stride[2]) {
                (2, 2) => rows::<S, MAX, 2, 2>(s, x),
                (3, 2) => rows::<S, MAX, 3, 2>(s, x),
                (_, 2) => rows::<S, MAX, 0, 2>(s, x),
                (3, 1) => rows::<S, MAX, 3, 1>(s, x),
                (_, 1) => rows::<S, MAX, 0, 1>(s, x),
                _ => rows::<S, MAX, 0, 0>(s, x),
            }
        }
    }
}

/// The rows of a window become one line, whose columns are then put together: fewer steps than
/// there are places in a window. `KERNEL = 0` stands for any width, `STRIDE = 0` for any above 2.
///
/// # Safety
/// As [`pool_part`] says.
#[inline(always)]
unsafe fn rows<S: Simd, const MAX: bool, const KERNEL: usize, const STRIDE: usize>(s: S, x: &Args) {
    let start = if MAX { s.splat(x.lowest) } else { s.zero() };
    let width = x.plan.out[2];
    // SAFETY: promised by the caller.
    unsafe {
        for at in (0..2 * x.line_len).step_by(LANES) {
            s.store(x.lines, at, start);
        }
        for i in 0..=x.rows.len() {
            if i < x.rows.len() {
                let line = x.lines.add(i % 2 * x.line_len + x.plan.pad[2]);
                fill_line::<S, MAX>(s, x, x.rows.start + i, line, start);
            }
            let Some(i) = i.checked_sub(1) else { continue };
            let (row, line) = (x.rows.start + i, x.lines.as_src().add(i % 2 * x.line_len));
            let lines = s.splat(lines(&x.plan, x.slice, row));
            for at in (0..width).step_by(LANES) {
                let mut v = windows::<S, MAX, KERNEL, STRIDE>(s, x, line.add(at * x.plan.stride[2]), start);
                if !MAX {
                    let count = s.mul(lines, s.load(x.extents, at));
                    v = s.div(v, s.max(count, s.splat(1.0)));
                }
                if at + LANES <= width {
                    s.store(x.out, i * width + at, v);
                } else {
                    s.store_part(x.out, i * width + at, width - at, v);
                }
            }
        }
    }
}

/// Folds each column of the windows of an output row into one value, after the padding.
///
/// # Safety
/// As [`pool_part`] says.
#[inline(always)]
unsafe fn fill_line<S: Simd, const MAX: bool>(s: S, x: &Args, row: usize, line: Dst, start: S::V) {
    let (width, rows) = (x.plan.size[2], x.plan.window(1, row));
    let mut fresh = true;
    // SAFETY: promised by the caller.
    unsafe {
        for slice in x.plan.window(0, x.slice) {
            let first = x.x.add((slice - x.first[0]) * x.height * width);
            let mut row = rows.start;
            while row < rows.end {
                let from = first.add((row - x.first[1]) * width);
                let count = (rows.end - row).min(3);
                match count {
                    1 => add_rows::<S, MAX, 1>(s, from, width, line, start, fresh),
                    2 => add_rows::<S, MAX, 2>(s, from, width, line, start, fresh),
                    _ => add_rows::<S, MAX, 3>(s, from, width, line, start, fresh),
                }
                (row, fresh) = (row + count, false);
            }
        }
        if fresh {
            add_rows::<S, MAX, 0>(s, x.x, width, line, start, true);
        }
    }
}

/// Puts N rows, and what is in the line already unless it is to be `fresh`, together.
///
/// # Safety
/// The rows must be there, and the line as long in whole vectors.
#[inline(always)]
unsafe fn add_rows<S: Simd, const MAX: bool, const N: usize>(
    s: S,
    rows: Src,
    width: usize,
    line: Dst,
    start: S::V,
    fresh: bool,
) {
    let (whole, rest) = (width / LANES * LANES, width % LANES);
    // SAFETY: promised by the caller.
    unsafe {
        for at in (0..whole).step_by(LANES) {
            let mut v = if fresh { start } else { s.load(line.as_src(), at) };
            for i in 0..N {
                v = fold_vectors::<S, MAX>(s, s.load(rows, i * width + at), v);
            }
            s.store(line, at, v);
        }
        if rest > 0 {
            let mut v = if fresh { start } else { s.load(line.as_src(), whole) };
            for i in 0..N {
                v = fold_vectors::<S, MAX>(s, s.load_part(rows, i * width + whole, rest, start), v);
            }
            s.store(line, whole, v);
        }
    }
}

/// The sixteen windows at the beginning of a line, whose columns are put together from left to
/// right.
///
/// # Safety
/// As [`pool_part`] says.
#[inline(always)]
unsafe fn windows<S: Simd, const MAX: bool, const KERNEL: usize, const STRIDE: usize>(
    s: S,
    x: &Args,
    line: Src,
    start: S::V,
) -> S::V {
    if STRIDE == 0 {
        // SAFETY: promised by the caller.
        return unsafe { windows_apart::<S, MAX>(s, x, line) };
    }
    let kernel = if KERNEL == 0 { x.plan.kernel[2] } else { KERNEL };
    let mut v = start;
    for tap in (0..kernel).step_by(STRIDE) {
        // SAFETY: promised by the caller.
        let first = unsafe { s.load(line, tap) };
        if STRIDE == 1 {
            v = fold_vectors::<S, MAX>(s, first, v);
            continue;
        }
        // SAFETY: as above.
        let (even, odd) = s.deinterleave(first, unsafe { s.load(line, tap + LANES) });
        v = fold_vectors::<S, MAX>(s, even, v);
        if tap + 1 < kernel {
            v = fold_vectors::<S, MAX>(s, odd, v);
        }
    }
    v
}

/// Folds windows three columns or more apart, one by one.
///
/// # Safety
/// As [`pool_part`] says.
#[inline(always)]
unsafe fn windows_apart<S: Simd, const MAX: bool>(s: S, x: &Args, line: Src) -> S::V {
    let mut results = [if MAX { x.lowest } else { 0.0 }; LANES];
    for (i, v) in results.iter_mut().enumerate() {
        for tap in 0..x.plan.kernel[2] {
            // SAFETY: promised by the caller.
            let value = unsafe { line.read(i * x.plan.stride[2] + tap) };
            *v = match MAX {
                true if value > *v => value,
                true => *v,
                false => *v + value,
            };
        }
    }
    // SAFETY: sixteen elements.
    unsafe { s.load(Src::new(&results), 0) }
}

/// How many lines of the windows of a row count in a mean.
fn lines(plan: &PoolPlan, slice: usize, row: usize) -> f32 {
    match plan.kind {
        PoolKind::Avg { count_include_pad: padded } => {
            (plan.extent(0, slice, padded) * plan.extent(1, row, padded)) as f32
        }
        _ => 1.0,
    }
}
