//! Pooling on the blocked layout.

use super::blocked::{BLOCK, Blocked, BlockedMut, BlockedShape, zero_halo};
use crate::isa::Isa;
use crate::par::Par;
use crate::simd::{Body, Dst, LANES, Simd, Src, entry};

/// What becomes of the values of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PoolKind {
    /// The largest; padding does not take part, NaN neither.
    Max,
    /// Their sum; padding counts as zero.
    Sum,
    /// Their mean.
    Average {
        /// Divide by the window's size with its padding, not by the number of values inside the image.
        count_pad: bool,
    },
}

/// Windows of a pooling; the output's size says how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pool2dParams {
    /// Rows and columns of a window.
    pub kernel: [usize; 2],
    /// Rows and columns between windows.
    pub stride: [usize; 2],
    /// Rows above and columns left of the image that windows may start in.
    pub pad: [usize; 2],
}

/// Window operations that a chunk should have at least.
const CHUNK_WORK: usize = 16 << 10;

/// Pools `x` into `y`, whose halo it writes. Windows that reach over the far edge are cut there, those of
/// [`PoolKind::Average`] with `count_pad` only beyond the padding.
///
/// # Panics
/// If the tensors differ in images or channels or are not in blocks of 16, or a parameter is zero.
pub fn pool(isa: Isa, kind: PoolKind, params: Pool2dParams, x: Blocked<'_>, y: &mut BlockedMut<'_>, par: &dyn Par) {
    let (xs, ys) = (x.shape, y.shape);
    assert!(
        (xs.n, xs.c, xs.block, ys.block) == (ys.n, ys.c, BLOCK, BLOCK),
        "pooling {xs:?} into {ys:?}: images, channels and blocks of 16 must agree"
    );
    assert!(
        params.kernel.iter().chain(&params.stride).all(|&v| v > 0),
        "pooling with {params:?}: sizes must be positive"
    );
    if ys.h == 0 || ys.w == 0 {
        return;
    }
    let (src, dst) = (x.src(), y.dst());
    let body = entry::<PoolRow>(isa);
    let row_work = ys.w * params.kernel[0].min(xs.h) * params.kernel[1].min(xs.w);
    let chunk_rows = CHUNK_WORK.div_ceil(row_work.max(1)).min(ys.h);
    let bands = ys.h.div_ceil(chunk_rows);
    par.run(bands * ys.blocks() * ys.n, 0, &|chunk, _| {
        let (band, rest) = (chunk % bands, chunk / bands);
        let (block, image) = (rest % ys.blocks(), rest / ys.blocks());
        let rows = band * chunk_rows..((band + 1) * chunk_rows).min(ys.h);
        for row in rows.clone() {
            let args = RowArgs {
                x: src.add(xs.offset(image, block, 0, 0)),
                xs,
                y: dst.add(ys.offset(image, block, row, 0)),
                cols: ys.w,
                rows: Window::new(params, 0, row, xs.h),
                params,
                kind,
            };
            // SAFETY: both buffers hold tensors of their shapes, windows are cut to the image, and this row of this block
            // belongs to this chunk.
            unsafe { body(&args) }
        }
        // SAFETY: as above.
        unsafe { zero_halo(dst, &ys, image, block, rows) }
    });
}

/// The part of a window that lies inside the image along one axis, and its length with the padding.
#[derive(Clone, Copy)]
struct Window {
    start: usize,
    end: usize,
    padded: usize,
}

impl Window {
    #[inline(always)]
    fn new(p: Pool2dParams, axis: usize, at: usize, size: usize) -> Window {
        // Counted from the first row or column of padding.
        let (start, pad) = (at * p.stride[axis], p.pad[axis]);
        let end = start + p.kernel[axis];
        Window {
            start: start.saturating_sub(pad).min(size),
            end: end.saturating_sub(pad).min(size),
            padded: end.min(size + 2 * pad).saturating_sub(start),
        }
    }
}

struct RowArgs {
    /// The first pixel of the block of channels.
    x: Src,
    xs: BlockedShape,
    y: Dst,
    cols: usize,
    rows: Window,
    params: Pool2dParams,
    kind: PoolKind,
}

struct PoolRow;

impl Body for PoolRow {
    type Args = RowArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &RowArgs) {
        for col in 0..x.cols {
            let cols = Window::new(x.params, 1, col, x.xs.w);
            let max = x.kind == PoolKind::Max;
            let mut v = if max { s.splat(f32::MIN) } else { s.zero() };
            for row in x.rows.start..x.rows.end {
                let line = x.x.add(row * x.xs.row_stride());
                let mut sum = s.zero();
                for col in cols.start..cols.end {
                    // SAFETY: the window is cut to the image.
                    let value = unsafe { s.load(line, col * LANES) };
                    if max {
                        v = s.max(value, v);
                    } else {
                        sum = s.add(sum, value);
                    }
                }
                v = if max { v } else { s.add(v, sum) };
            }
            let count = match x.kind {
                PoolKind::Max | PoolKind::Sum => 1,
                PoolKind::Average { count_pad: true } => x.rows.padded * cols.padded,
                PoolKind::Average { count_pad: false } => (x.rows.end - x.rows.start) * (cols.end - cols.start),
            };
            if count > 1 {
                v = s.mul(v, s.splat(1.0 / count as f32));
            }
            // SAFETY: `col` is inside the row that the caller passed.
            unsafe { s.store(x.y, col * LANES, v) }
        }
    }
}
