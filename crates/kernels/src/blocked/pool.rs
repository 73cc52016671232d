//! Pooling on the blocked layout.

use crate::blocked::chunks::{Chunk, ChunkGrid};
use crate::blocked::lines::{Pixels, blocks_of_pair, pairs};
use crate::blocked::{BLOCK, Blocked, BlockedMut, BlockedShape, zero_halo};
use crate::isa::Isa;
use crate::par::Par;
use crate::simd::{Body, Dst, Entry, LANES, PairsBody, Rounding, Simd, Src, entry, entry_lines, prefetch_far};
use std::ops::Range;

/// The function of the values of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PoolKind {
    /// The largest; padding does not take part, NaN neither.
    Max,
    /// The sum; padding counts as zero.
    Sum,
    /// The mean.
    Average {
        /// Divide by the window's size with its padding, not by the number of values inside the
        /// image.
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

/// An image of one block of channels up to this size, in bytes, is read without requests for what
/// comes next.
const NEAR_IMAGE: usize = 64 << 10;

impl Pool2dParams {
    /// Whether windows have a size and a distance.
    pub(crate) fn is_sound(&self) -> bool {
        self.kernel.iter().chain(&self.stride).all(|&v| v > 0)
    }
}

/// Pools `x` into `y`, whose halo it writes. Windows that reach over the far edge are cut there,
/// those of [`PoolKind::Average`] with `count_pad` only beyond the padding.
///
/// # Panics
/// If the tensors differ in images or channels or are not in blocks of 16 or lines, or a parameter
/// is zero.
pub fn pool(isa: Isa, kind: PoolKind, params: Pool2dParams, x: Blocked<'_>, y: &mut BlockedMut<'_>, par: &dyn Par) {
    let (xs, ys) = (x.shape, y.shape);
    let blocks = |s: &BlockedShape| s.block == BLOCK || s.in_lines();
    assert!(
        (xs.n, xs.c) == (ys.n, ys.c) && blocks(&xs) && blocks(&ys),
        "pooling {xs:?} into {ys:?}: images and channels must agree, in blocks of 16 or lines"
    );
    assert!(params.is_sound(), "pooling with {params:?}: sizes must be positive");
    if ys.h == 0 || ys.w == 0 {
        return;
    }
    let pooling = Pooling::new(isa, kind, params);
    let (src, dst) = (x.src(), y.dst());
    let row_work = ys.w * params.kernel[0].min(xs.h) * params.kernel[1].min(xs.w);
    let fetch = xs.block_stride() * size_of::<f32>() > NEAR_IMAGE;
    let cut = ChunkGrid::halves(ys.h, pooling_parts(&xs, &ys), row_work, CHUNK_WORK);
    par.run(cut.chunks(ys.n), 0, &|chunk, _| {
        let Chunk { image, rows, parts } = cut.chunk(chunk, ys.n);
        let image_rows = PoolRows { x: src.add(image * xs.image_stride), xs, first: 0, size: xs.h, fetch };
        // SAFETY: both buffers hold tensors of their shapes; these rows of these blocks belong to
        // this chunk.
        unsafe { pooling.run(&image_rows, dst, &ys, image, parts, rows) }
    });
}

/// Parts of the channels that are pooled for themselves: blocks, or 32 channels where one of the
/// tensors is in lines.
fn pooling_parts(xs: &BlockedShape, ys: &BlockedShape) -> usize {
    if xs.in_lines() || ys.in_lines() { pairs(ys) } else { ys.blocks() }
}

/// A kind of windows and what pools them.
#[derive(Clone, Debug)]
pub(crate) struct Pooling {
    kind: PoolKind,
    params: Pool2dParams,
    body: Entry<RowArgs>,
    lines: Entry<LineRowArgs>,
}

/// Rows of one image, all of them or some.
pub(crate) struct PoolRows {
    /// The first element of the image that `xs` describes, its halo included.
    pub x: Src,
    pub xs: BlockedShape,
    /// The first of these rows, counted from the image's first.
    pub first: isize,
    /// Rows of the image.
    pub size: usize,
    /// Request the rows that the next windows add.
    pub fetch: bool,
}

impl Pooling {
    pub(crate) fn new(isa: Isa, kind: PoolKind, params: Pool2dParams) -> Pooling {
        Pooling { kind, params, body: entry::<PoolRow>(isa), lines: entry_lines::<PoolLines>(isa) }
    }

    /// Such as `max 3x3/2`.
    pub(crate) fn name(&self) -> String {
        let kind = match self.kind {
            PoolKind::Max => "max",
            PoolKind::Sum => "sum",
            PoolKind::Average { .. } => "mean",
        };
        let Pool2dParams { kernel: [kh, kw], stride: [sh, _], .. } = self.params;
        format!("{kind} {kh}x{kw}/{sh}")
    }

    /// The rows inside an image of `size` rows that a row of windows covers.
    pub(crate) fn rows(&self, row: usize, size: usize) -> Range<usize> {
        let window = Window::new(self.params, 0, row, size);
        window.start..window.end
    }

    /// Pools some rows of windows in all channels.
    ///
    /// # Safety
    /// As for [`run`](Self::run).
    pub(crate) unsafe fn run_channels(
        &self,
        from: &PoolRows,
        y: Dst,
        ys: &BlockedShape,
        image: usize,
        rows: Range<usize>,
    ) {
        // SAFETY: promised by the caller.
        unsafe { self.run(from, y, ys, image, 0..pooling_parts(&from.xs, ys), rows) }
    }

    /// Pools some rows of windows in some parts of the channels: blocks, or 32 of them where one of
    /// the tensors is in lines.
    ///
    /// # Safety
    /// `from` must hold all rows that these windows cover, `y` a tensor of shape `ys` whose rows
    /// `rows` of these blocks nothing else accesses.
    pub(crate) unsafe fn run(
        &self,
        from: &PoolRows,
        y: Dst,
        ys: &BlockedShape,
        image: usize,
        parts: Range<usize>,
        rows: Range<usize>,
    ) {
        let lines = from.xs.in_lines() || ys.in_lines();
        let within = |row: usize| (row as isize - from.first) as usize;
        for (part, row) in parts.clone().flat_map(|part| rows.clone().map(move |row| (part, row))) {
            let window = Window::new(self.params, 0, row, from.size);
            let rows = Window { start: within(window.start), end: within(window.end), ..window };
            if lines {
                let args = LineRowArgs {
                    x: Pixels::<Src>::new(from.x, &from.xs, 0, part, 0, 0),
                    row: from.xs.row_stride(),
                    size: from.xs.w,
                    y: Pixels::<Dst>::new(y, ys, image, part, row, 0),
                    cols: ys.w,
                    rows,
                    params: self.params,
                    kind: self.kind,
                };
                // SAFETY: windows are cut to the image, whose rows are there by the caller's promise.
                unsafe { (self.lines)(&args) }
                continue;
            }
            let args = RowArgs {
                x: from.x.add(from.xs.offset(0, part, 0, 0)),
                xs: from.xs,
                y: y.add(ys.offset(image, part, row, 0)),
                cols: ys.w,
                rows,
                params: self.params,
                kind: self.kind,
                fetch: from.fetch,
            };
            // SAFETY: as above.
            unsafe { (self.body)(&args) }
        }
        let blocks = |part| if lines { blocks_of_pair(ys, part) } else { part..part + 1 };
        // SAFETY: promised by the caller.
        parts.flat_map(blocks).for_each(|block| unsafe { zero_halo(y, ys, image, block, rows.clone()) });
    }
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

/// A row of windows.
struct RowArgs {
    /// The first pixel of the block of channels.
    x: Src,
    xs: BlockedShape,
    y: Dst,
    cols: usize,
    rows: Window,
    params: Pool2dParams,
    kind: PoolKind,
    /// Request the rows that the next windows add.
    fetch: bool,
}

struct PoolRow;

impl Body for PoolRow {
    type Args = RowArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &RowArgs) {
        // SAFETY: the caller's promise is passed on.
        unsafe {
            match (x.kind == PoolKind::Max, x.params.kernel[1], x.params.stride[1]) {
                (true, 2, 2) => row::<S, true, 2, 2>(s, x),
                (true, 3, 2) => row::<S, true, 3, 2>(s, x),
                (true, 3, 1) => row::<S, true, 3, 1>(s, x),
                (true, ..) => row::<S, true, 0, 1>(s, x),
                (false, 1, 2) => row::<S, false, 1, 2>(s, x),
                (false, 2, 2) => row::<S, false, 2, 2>(s, x),
                (false, 3, 1) => row::<S, false, 3, 1>(s, x),
                (false, ..) => row::<S, false, 0, 1>(s, x),
            }
        }
    }
}

/// One row of outputs. Columns of a window are folded first, then their results: neighbouring
/// windows share columns, and with a window of `WIDTH` columns every `STEP` columns they stay in
/// registers. `WIDTH = 0` stands for any window.
///
/// # Safety
/// `x` must describe a row of outputs and an image that holds its windows.
#[inline(always)]
unsafe fn row<S: Simd, const MAX: bool, const WIDTH: usize, const STEP: usize>(s: S, x: &RowArgs) {
    // Output columns whose windows lie inside the image.
    let (pad, w) = (x.params.pad[1], x.xs.w);
    let (first, end) = match WIDTH {
        0 => (x.cols, x.cols),
        _ => (pad.div_ceil(STEP), ((w + pad).saturating_sub(WIDTH) / STEP + 1).min(x.cols)),
    };
    let (first, end) = if first < end && w + pad >= WIDTH { (first, end) } else { (x.cols, x.cols) };
    // SAFETY: windows are cut to the image; those from `first` to `end` lie inside it.
    unsafe {
        for col in (0..first).chain(end..x.cols) {
            let cols = Window::new(x.params, 1, col, w);
            let mut v = start::<S, MAX>(s);
            for at in cols.start..cols.end {
                v = fold::<S, MAX>(s, column::<S, MAX>(s, x, at), v);
            }
            s.store(x.y, col * LANES, finish(s, x, v, cols));
        }
        if first == end {
            return;
        }
        // The columns that the first window shares with one before it.
        let kept = WIDTH.saturating_sub(STEP);
        let mut folded = [start::<S, MAX>(s); WIDTH];
        for i in 0..kept {
            folded[STEP + i] = column::<S, MAX>(s, x, first * STEP - pad + i);
        }
        for col in first..end {
            let at = col * STEP - pad;
            for i in 0..kept {
                folded[i] = folded[STEP + i];
            }
            for i in kept..WIDTH {
                folded[i] = column::<S, MAX>(s, x, at + i);
            }
            let mut v = start::<S, MAX>(s);
            for i in 0..WIDTH {
                v = fold::<S, MAX>(s, folded[i], v);
            }
            s.store(x.y, col * LANES, finish(s, x, v, Window { start: at, end: at + WIDTH, padded: WIDTH }));
        }
    }
}

/// The initial value of folding.
#[inline(always)]
fn start<S: Simd, const MAX: bool>(s: S) -> S::V {
    if MAX { s.splat(f32::MIN) } else { s.zero() }
}

/// The larger or the sum; of a NaN and a number the larger is the number `v`.
#[inline(always)]
fn fold<S: Simd, const MAX: bool>(s: S, value: S::V, v: S::V) -> S::V {
    if MAX { s.max(value, v) } else { s.add(v, value) }
}

/// The values of the window's rows in one column of the image.
///
/// # Safety
/// The column and the rows of `x` must lie inside the image.
#[inline(always)]
unsafe fn column<S: Simd, const MAX: bool>(s: S, x: &RowArgs, col: usize) -> S::V {
    let mut v = start::<S, MAX>(s);
    if x.fetch {
        // Rows between windows are not read.
        for ahead in x.params.stride[0].saturating_sub(x.params.kernel[0])..x.params.stride[0] {
            prefetch_far(x.x, (x.rows.end + ahead) * x.xs.row_stride() + col * LANES);
        }
    }
    for row in x.rows.start..x.rows.end {
        // SAFETY: promised by the caller.
        v = fold::<S, MAX>(s, unsafe { s.load(x.x, row * x.xs.row_stride() + col * LANES) }, v);
    }
    v
}

/// Sums become means where means are wanted.
#[inline(always)]
fn finish<S: Simd>(s: S, x: &RowArgs, v: S::V, cols: Window) -> S::V {
    let count = values_of(x.kind, &x.rows, &cols);
    if count > 1 { s.mul(v, s.splat(1.0 / count as f32)) } else { v }
}

/// Returns the number by which the sum over a window is divided.
#[inline(always)]
fn values_of(kind: PoolKind, rows: &Window, cols: &Window) -> usize {
    match kind {
        PoolKind::Max | PoolKind::Sum => 1,
        PoolKind::Average { count_pad: true } => rows.padded * cols.padded,
        PoolKind::Average { count_pad: false } => (rows.end - rows.start) * (cols.end - cols.start),
    }
}

/// A row of windows of 32 channels, where input or output is in lines.
struct LineRowArgs {
    /// The first pixel of these channels.
    x: Pixels<Src>,
    /// Elements from one row to the next.
    row: usize,
    /// Columns of the image.
    size: usize,
    y: Pixels<Dst>,
    cols: usize,
    rows: Window,
    params: Pool2dParams,
    kind: PoolKind,
}

struct PoolLines;

impl PairsBody for PoolLines {
    type Args = LineRowArgs;
    #[inline(always)]
    unsafe fn run<S: Rounding>(s: S, x: &LineRowArgs) {
        // SAFETY: the caller's promise is passed on.
        unsafe { if x.kind == PoolKind::Max { line_row::<S, true>(s, x) } else { line_row::<S, false>(s, x) } }
    }
}

/// One row of outputs.
///
/// # Safety
/// `x` must describe a row of outputs and an image that holds its windows.
#[inline(always)]
unsafe fn line_row<S: Rounding, const MAX: bool>(s: S, x: &LineRowArgs) {
    for col in 0..x.cols {
        let cols = Window::new(x.params, 1, col, x.size);
        let mut v = [start::<S, MAX>(s); 2];
        for at in cols.start..cols.end {
            // Rows of a column first, as in blocks.
            let mut column = [start::<S, MAX>(s); 2];
            for row in x.rows.start..x.rows.end {
                // SAFETY: windows are cut to the image.
                let value = unsafe { x.x.load(s, row * x.row + at * LANES) };
                column = [fold::<S, MAX>(s, value[0], column[0]), fold::<S, MAX>(s, value[1], column[1])];
            }
            v = [fold::<S, MAX>(s, column[0], v[0]), fold::<S, MAX>(s, column[1], v[1])];
        }
        let count = values_of(x.kind, &x.rows, &cols);
        if count > 1 {
            let part = s.splat(1.0 / count as f32);
            v = [s.mul(v[0], part), s.mul(v[1], part)];
        }
        // SAFETY: promised by the caller.
        unsafe { x.y.store(s, col * LANES, v) }
    }
}
