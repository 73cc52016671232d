//! Windows: `pooling.h`.

use crate::arguments::PoolingArgument;
use crate::launch::{Bound, THREADS, code, each, launch, of_floats, small};
use mxrt_cuda::Grid;
use mxrt_engine::{DeviceCtx, OpError};
use mxrt_kernels::pool::PoolKind;
use mxrt_kernels::window::three;
use mxrt_ops::{KernelForm, Signature};
use mxrt_tensor::DType;
use std::ffi::CStr;

/// Bytes of a piece, and pieces of a block of `pooling_shared` (`POOL_PIECES` of the text).
const PIECE: usize = 16;
const BLOCK_PIECES: usize = 8;
/// Folds of the text.
const MAX: i32 = 0;
const LP: i32 = 4;
/// Numbers that the sums of long windows have at least: a block's threads read one each.
const LONG: usize = 32;

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    let KernelForm::Pooling { kind, kernel, stride, pad, channels_last } = *form else { return None };
    let (input, output) = (signature.inputs.first()?, signature.outputs.first()?);
    let name = of_floats(input.dtype, [c"pooling_f32", c"pooling_f64"])?;
    let argument = argument(kind, [kernel, stride, pad], channels_last, signature)?;
    let n = output.shape.size();
    let pieces = Pieces::new(&argument, input.shape.size(), input.dtype);
    Some(Bound::new(move |ctx, at| {
        let argument = PoolingArgument { to: at.outputs[0].0, from: at.inputs[0].0, ..argument };
        let aligned = [argument.to, argument.from].iter().all(|address| address % PIECE as u64 == 0);
        match (&pieces, each(n)) {
            (_, None) => Ok(()),
            // Sums of long windows have their own order, whatever the addresses are.
            (Some(pieces), _) if pieces.long || aligned => pieces.launch(ctx, argument, aligned),
            (_, Some(grid)) => launch(ctx, name, grid, &argument),
        }
    }))
}

/// The argument of a pooling without addresses.
pub(crate) fn argument(
    kind: PoolKind,
    [kernel, stride, pad]: [[usize; 3]; 3],
    channels_last: bool,
    signature: &Signature<'_>,
) -> Option<PoolingArgument> {
    let (input, output) = (signature.inputs.first()?, signature.outputs.first()?);
    let rank = input.shape.len().checked_sub(2).filter(|rank| (1..=3).contains(rank))?;
    let spatial = if channels_last { 1..rank + 1 } else { 2..rank + 2 };
    let (fold, p) = fold(kind);
    let out = three(&output.shape[spatial.clone()], 1);
    // The kernel numbers the pixels of a plane in 32 bits.
    i32::try_from(out.iter().product::<usize>()).ok()?;
    let channels = if channels_last { input.shape[rank + 1] } else { input.shape[1] };
    let inner = if channels_last { channels } else { 1 };
    Some(PoolingArgument {
        to: 0,
        from: 0,
        n: output.shape.size() as i64,
        planes: (input.shape[0] * channels / inner.max(1)) as i64,
        inner: inner as i64,
        size: small(three(&input.shape[spatial.clone()], 1))?,
        out: small(out)?,
        kernel: small(kernel)?,
        step: small(stride)?,
        pad: small(pad)?,
        fold,
        p,
        dtype: code(input.dtype),
        together: 0,
        // As in MXNet.
        nothing_is_nan: i32::from(rank == 3),
    })
}

/// A kind's number in the text, and its power.
fn fold(kind: PoolKind) -> (i32, i32) {
    match kind {
        PoolKind::Max => (MAX, 0),
        PoolKind::Sum => (1, 0),
        PoolKind::Avg { count_include_pad: true } => (2, 0),
        PoolKind::Avg { count_include_pad: false } => (3, 0),
        PoolKind::Lp { p } => (LP, p as i32),
    }
}

/// Pooling of channels in pieces of 16 bytes, chosen by the shape alone.
#[derive(Clone, Copy)]
struct Pieces {
    name: &'static CStr,
    grid: Grid,
    /// pieces or blocks, and pieces of a pixel
    n: usize,
    inner: usize,
    /// whether the threads of a block share a window
    long: bool,
}

impl Pieces {
    /// A kernel in pieces; none if channels are no whole pieces, or too many to count in 32 bits.
    fn new(p: &PoolingArgument, input: usize, dtype: DType) -> Option<Pieces> {
        let elements = PIECE / dtype.size();
        let (pooled, inner) = (p.n as usize, p.inner as usize / elements);
        if p.fold == LP || inner == 0 || !(p.inner as usize).is_multiple_of(elements) || pooled == 0 {
            return None;
        }
        i32::try_from(input.max(pooled)).ok()?;
        let taps = p.kernel.iter().fold(1usize, |all, extent| all.saturating_mul(*extent as usize));
        let long = p.fold != MAX && taps >= LONG;
        let name = match (dtype, long) {
            (DType::F16, false) => c"pooling_pieces_f16",
            (DType::F16, true) => c"pooling_shared_f16",
            (DType::F32, false) => c"pooling_pieces_f32",
            (DType::F32, true) => c"pooling_shared_f32",
            _ => return None,
        };
        let pieces = pooled / elements;
        let blocks = pieces / inner * inner.div_ceil(BLOCK_PIECES);
        // A number of each warp for every element of a block's pieces.
        let shared_bytes = (THREADS as usize / 32 * BLOCK_PIECES * elements * size_of::<f32>()) as u32;
        let shared = Grid { blocks: [blocks as u32, 1, 1], threads: THREADS, shared_bytes };
        let (n, grid) = if long { (blocks, shared) } else { (pieces, each(pieces)?) };
        Some(Pieces { name, grid, n, inner, long })
    }

    fn launch(&self, ctx: &DeviceCtx<'_>, p: PoolingArgument, aligned: bool) -> Result<(), OpError> {
        let counted = PoolingArgument { n: self.n as i64, inner: self.inner as i64, together: i32::from(aligned), ..p };
        launch(ctx, self.name, self.grid, &counted)
    }
}
