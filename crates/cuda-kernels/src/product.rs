//! Products and convolutions: `product.h`.

use crate::arguments::{ConvolutionArgument, EpilogueArgument, PartsArgument, ProductArgument};
use crate::launch::{Bound, Computes, code, computes, each, launch, small};
use crate::tiles::{Tiled, are_aligned};
use mxrt_cuda::Grid;
use mxrt_engine::{DeviceCtx, DevicePtr, FailureKind, OpError};
use mxrt_kernels::elementwise::Unary;
use mxrt_kernels::window::three;
use mxrt_ops::{DeviceOperands, KernelForm, MatrixSteps, Precision, Signature, SumEpilogue};
use mxrt_tensor::DType;
use std::ffi::CStr;

/// Rows and columns of a block's tile (`TILE` of the source), and its depth per step.
const TILE: usize = 64;
const DEPTH: u32 = 16;
/// Elements of a row of a tile for tensor cores (`CORE_PITCH` of the text).
const CORE_PITCH: u32 = 40;
/// Blocks along the second and third axis of a grid at most.
const GRID: usize = 65535;

/// The first function of `epilogue.h` that only dense layers have.
const GELU: i32 = 4;

/// An epilogue with the places of its arrays left out.
struct BoundEpilogue {
    bias: Option<usize>,
    residual: Option<usize>,
    argument: EpilogueArgument,
}

impl BoundEpilogue {
    fn new(epilogue: &SumEpilogue, of_rows: bool) -> Option<BoundEpilogue> {
        let (activation, p, q) = match epilogue.activation {
            None => (0, 0.0, 0.0),
            Some(Unary::Relu) => (1, 0.0, 0.0),
            Some(Unary::Clip { low, high }) => (2, low, high),
            Some(Unary::LeakyRelu { slope }) => (3, slope, 0.0),
            // Those of dense layers of halves and of single precision.
            Some(Unary::Gelu) => (GELU, 0.0, 0.0),
            Some(Unary::Sigmoid) => (GELU + 1, 0.0, 0.0),
            Some(Unary::Tanh) => (GELU + 2, 0.0, 0.0),
            Some(_) => return None,
        };
        let (bias_of_rows, factor) = (i32::from(of_rows), epilogue.factor.unwrap_or(1.0));
        let argument = EpilogueArgument { bias: 0, residual: 0, bias_of_rows, activation, p, q, factor };
        Some(BoundEpilogue { bias: epilogue.bias, residual: epilogue.residual, argument })
    }

    /// Whether the kernels of convolutions, and those of double precision, have it.
    fn is_common(&self) -> bool {
        self.argument.activation < GELU
    }

    fn at(&self, at: &DeviceOperands<'_>) -> EpilogueArgument {
        let address = |input: Option<usize>| input.map_or(0, |i| at.inputs[i].0);
        EpilogueArgument { bias: address(self.bias), residual: address(self.residual), ..self.argument }
    }
}

/// How sums of products are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sums {
    /// tensor cores
    Half,
    /// single precision, rounded to bfloat16 for tensor cores
    Brain,
    Single,
    Double,
    /// integers, in double precision
    Whole,
}

impl Sums {
    /// The way of summing for operands of one type. Precision bf16 allows products of single
    /// precision to round.
    fn of(signature: &Signature<'_>) -> Option<Sums> {
        let dtype = signature.inputs.first()?.dtype;
        let alike = signature.inputs.iter().chain(signature.outputs).all(|t| t.dtype == dtype);
        match dtype {
            _ if !alike => None,
            DType::F16 => Some(Sums::Half),
            DType::F32 if signature.options.precision == Precision::Bf16 => Some(Sums::Brain),
            DType::F32 => Some(Sums::Single),
            DType::F64 => Some(Sums::Double),
            _ => None,
        }
    }

    /// The way of summing for integers of one type.
    fn of_integers(signature: &Signature<'_>) -> Option<Sums> {
        let dtype = signature.inputs.first()?.dtype;
        let alike = signature.inputs.iter().chain(signature.outputs).all(|t| t.dtype == dtype);
        (alike && computes(dtype) == Some(Computes::Whole)).then_some(Sums::Whole)
    }

    /// The kernel, of those for `Half`, `Brain`, `Single` and `Double`. Integers have products alone.
    fn kernel(self, names: [&'static CStr; 4]) -> &'static CStr {
        names.get(self as usize).copied().unwrap_or(c"product_whole")
    }

    /// The type of tiles of `tiles.h`, which round nothing before they multiply.
    fn tiles(self) -> Option<DType> {
        match self {
            Sums::Half => Some(DType::F16),
            Sums::Single => Some(DType::F32),
            Sums::Brain | Sums::Double | Sums::Whole => None,
        }
    }

    /// Shared memory that a block's tile needs for both operands.
    fn shared_bytes(self) -> u32 {
        match self {
            Sums::Half | Sums::Brain => 2 * 2 * CORE_PITCH * TILE as u32,
            Sums::Single => 2 * 4 * DEPTH * (TILE as u32 + 4),
            Sums::Double | Sums::Whole => 2 * 8 * DEPTH * (TILE as u32 + 4),
        }
    }
}

/// Products that a grid holds: where they begin in both numbers of a batch and in the rows of the
/// matrices, and how many there are of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share {
    begin: [usize; 3],
    count: [usize; 3],
}

/// The shares of a batch of products of `m` rows.
fn shares([outer, inner]: [usize; 2], m: usize) -> Vec<Share> {
    let inners = inner.clamp(1, GRID);
    let most = [if inners == inner { GRID / inners } else { 1 }, inners, GRID * TILE];
    let all = [outer, inner, m];
    let begins = |axis: usize| (0..all[axis]).step_by(most[axis]);
    let mut made = Vec::new();
    for begin in begins(0).flat_map(|o| begins(1).flat_map(move |i| begins(2).map(move |row| [o, i, row]))) {
        made.push(Share { begin, count: std::array::from_fn(|axis| most[axis].min(all[axis] - begin[axis])) });
    }
    made
}

/// Submits a batch of products, where a grid does not hold all of it one share after the other.
fn launch_shares(
    ctx: &DeviceCtx<'_>,
    name: &'static CStr,
    (sums, size): (Sums, usize),
    batch: [usize; 2],
    all: &ProductArgument,
) -> Result<(), OpError> {
    for Share { begin, count: [outer, inner, m] } in shares(batch, all.m as usize) {
        let Some(Some(grid)) = tiles(m, all.n as usize, outer * inner, sums) else { continue };
        let bytes = |steps: &[i64; 4]| {
            let elements: i64 = begin.iter().zip(steps).map(|(at, step)| *at as i64 * step).sum();
            (elements * size as i64) as u64
        };
        let mut share = *all;
        (share.m, share.inner) = (m as i64, inner as i64);
        share.a = all.a.wrapping_add(bytes(&all.a_steps));
        share.b = all.b.wrapping_add(bytes(&[all.b_steps[0], all.b_steps[1], 0, 0]));
        share.c = all.c.wrapping_add(bytes(&all.c_steps));
        // A residual lies as the results do.
        if all.epilogue.residual != 0 {
            share.epilogue.residual = all.epilogue.residual.wrapping_add(bytes(&all.c_steps));
        }
        launch(ctx, name, grid, &share)?;
    }
    Ok(())
}

/// Tiles of a result; none where the grid would be too large.
fn tiles(m: usize, n: usize, batch: usize, sums: Sums) -> Option<Option<Grid>> {
    let (rows, columns) = (m.div_ceil(TILE), n.div_ceil(TILE));
    if rows == 0 || columns == 0 || batch == 0 {
        return Some(None);
    }
    if rows > GRID || batch > GRID || columns > i32::MAX as usize {
        return None;
    }
    let blocks = [columns as u32, rows as u32, batch as u32];
    Some(Some(Grid { blocks, threads: 256, shared_bytes: sums.shared_bytes() }))
}

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    match form {
        KernelForm::Product { batch, size, operands, alpha, epilogue } => {
            bind_product(Sums::of(signature)?, (*batch, *size), *operands, *alpha, epilogue, signature)
        }
        KernelForm::Within { dtype: DType::F64, form } => match &**form {
            KernelForm::Product { batch, size, operands, alpha, epilogue } => {
                let sums = Sums::of_integers(signature).filter(|_| *epilogue == SumEpilogue::default())?;
                bind_product(sums, (*batch, *size), *operands, *alpha, epilogue, signature)
            }
            _ => None,
        },
        KernelForm::Convolution {
            channels_last,
            filters_first: false,
            kernel,
            stride,
            pad,
            dilate,
            groups,
            epilogue,
        } => {
            let names = match channels_last {
                false => [c"convolution_f16", c"convolution_bf16", c"convolution_f32", c"convolution_f64"],
                true => [
                    c"convolution_last_f16",
                    c"convolution_last_bf16",
                    c"convolution_last_f32",
                    c"convolution_last_f64",
                ],
            };
            let windows = Windows { channels_last: *channels_last, kernel, stride, pad, dilate };
            bind_convolution(Sums::of(signature)?, names, windows, *groups, epilogue, signature)
        }
        // Exact in single precision whatever products may round to, as on the CPU.
        KernelForm::Deconvolution { kernel, stride, pad, dilate, groups, bias } => {
            let sums = match signature.inputs.first()?.dtype {
                DType::F32 => Sums::Single,
                DType::F64 => Sums::Double,
                DType::F16 => Sums::Half,
                _ => return None,
            };
            let names = [c"deconvolution_f16", c"", c"deconvolution_f32", c"deconvolution_f64"];
            let epilogue = SumEpilogue { bias: *bias, ..SumEpilogue::default() };
            let windows = Windows { channels_last: false, kernel, stride, pad, dilate };
            bind_convolution(sums, names, windows, *groups, &epilogue, signature)
        }
        _ => None,
    }
}

/// Results that are stored unchanged.
const NO_EPILOGUE: EpilogueArgument =
    EpilogueArgument { bias: 0, residual: 0, bias_of_rows: 0, activation: 0, p: 0.0, q: 0.0, factor: 1.0 };

impl EpilogueArgument {
    /// Whether its arrays can be read by pieces.
    fn is_aligned(&self) -> bool {
        are_aligned(&[self.bias, self.residual])
    }
}

/// Rows of a matrix in memory: the first one, and elements between them.
#[derive(Clone, Copy)]
pub(crate) struct MatrixRows {
    pub first: DevicePtr,
    pub step: usize,
}

/// `a` times the transposed `b`, with a bias of columns: `[m, k]`, `[n, k]` and `[m, n]` numbers of
/// single or double precision, computed in it.
pub(crate) fn multiply(
    ctx: &DeviceCtx<'_>,
    dtype: DType,
    [m, n, k]: [usize; 3],
    [a, b, c]: [MatrixRows; 3],
    bias: Option<DevicePtr>,
) -> Result<(), OpError> {
    let epilogue = EpilogueArgument { bias: bias.map_or(0, |bias| bias.0), ..NO_EPILOGUE };
    let steps = [[a.step, 1], [1, b.step], [c.step, 1]];
    multiply_matrices(ctx, dtype, [m, n, k], [a.first, b.first, c.first], steps, epilogue)
}

/// `a` times `b`: dense matrices of `[m, k]`, `[k, n]` and `[m, n]` numbers of single or double
/// precision, computed in it.
pub(crate) fn multiply_dense(
    ctx: &DeviceCtx<'_>,
    dtype: DType,
    [m, n, k]: [usize; 3],
    matrices: [DevicePtr; 3],
) -> Result<(), OpError> {
    multiply_matrices(ctx, dtype, [m, n, k], matrices, [[k, 1], [n, 1], [n, 1]], NO_EPILOGUE)
}

/// A product of matrices whose rows and columns have these steps.
fn multiply_matrices(
    ctx: &DeviceCtx<'_>,
    dtype: DType,
    [m, n, k]: [usize; 3],
    [a, b, c]: [DevicePtr; 3],
    steps: [[usize; 2]; 3],
    epilogue: EpilogueArgument,
) -> Result<(), OpError> {
    let (sums, name) = match dtype {
        DType::F64 => (Sums::Double, c"product_f64"),
        _ => (Sums::Single, c"product_f32"),
    };
    let too_large =
        || OpError::new(FailureKind::NotImplemented, format!("a product of {n} columns is too large for a GPU"));
    if m * n == 0 {
        return Ok(());
    }
    if n.div_ceil(TILE) > i32::MAX as usize {
        return Err(too_large());
    }
    let [a_steps, b_steps, c_steps] = steps.map(|[rows, columns]| [0, 0, rows as i64, columns as i64]);
    let argument = ProductArgument {
        c: c.0,
        a: a.0,
        b: b.0,
        m: m as i64,
        n: n as i64,
        k: k as i64,
        inner: 1,
        a_steps,
        b_steps,
        c_steps,
        alpha: 1.0,
        epilogue,
        parts: PartsArgument::NONE,
        dtype: 0,
        unused: 0,
    };
    match Tiled::of_product(&argument, dtype, 1) {
        Some(tiled) if are_aligned(&[a.0, b.0, c.0, epilogue.bias]) => tiled.launch_product(ctx, argument),
        _ => launch_shares(ctx, name, (sums, dtype.size()), [1, 1], &argument),
    }
}

/// The argument of a batch of products, without addresses and what is done to their results.
fn product_argument([m, n, k]: [usize; 3], inner: usize, operands: [MatrixSteps; 3], alpha: f64) -> ProductArgument {
    let [a_steps, b_steps, c_steps] = operands.map(|matrix| matrix.steps.map(|step| step as i64));
    ProductArgument {
        c: 0,
        a: 0,
        b: 0,
        m: m as i64,
        n: n as i64,
        k: k as i64,
        inner: inner.max(1) as i64,
        a_steps,
        b_steps,
        c_steps,
        alpha,
        epilogue: NO_EPILOGUE,
        parts: PartsArgument::NONE,
        dtype: 0,
        unused: 0,
    }
}

fn bind_product(
    sums: Sums,
    ([outer, inner], [m, n, k]): ([usize; 2], [usize; 3]),
    operands: [MatrixSteps; 3],
    alpha: f64,
    epilogue: &SumEpilogue,
    signature: &Signature<'_>,
) -> Option<Bound> {
    let epilogue = BoundEpilogue::new(epilogue, false).filter(|e| sums != Sums::Double || e.is_common())?;
    if n.div_ceil(TILE) > i32::MAX as usize {
        return None;
    }
    let dtype = signature.inputs.first()?.dtype;
    let size = dtype.size();
    let name = sums.kernel([c"product_f16", c"product_bf16", c"product_f32", c"product_f64"]);
    let [a, b, c] = operands;
    let argument = ProductArgument {
        epilogue: epilogue.argument,
        dtype: code(dtype),
        ..product_argument([m, n, k], inner, operands, alpha)
    };
    // Tiles have no factor of the residual.
    let tiles = sums.tiles().filter(|_| epilogue.argument.factor == 1.0);
    let tiled = tiles.and_then(|dtype| Tiled::of_product(&argument, dtype, outer * inner));
    Some(Bound::new(move |ctx, at| {
        if m * n * outer * inner == 0 {
            return Ok(());
        }
        let argument = ProductArgument {
            c: at.outputs[0].offset(c.first * size).0,
            a: at.inputs[a.array].offset(a.first * size).0,
            b: at.inputs[b.array].offset(b.first * size).0,
            epilogue: epilogue.at(at),
            ..argument
        };
        match &tiled {
            Some(tiled) if are_aligned(&[argument.a, argument.b, argument.c]) && argument.epilogue.is_aligned() => {
                tiled.launch_product(ctx, argument)
            }
            _ => launch_shares(ctx, name, (sums, size), [outer, inner], &argument),
        }
    }))
}

/// Windows of a convolution.
struct Windows<'a> {
    channels_last: bool,
    kernel: &'a [usize; 3],
    stride: &'a [usize; 3],
    pad: &'a [usize; 3],
    dilate: &'a [usize; 3],
}

/// The argument of a convolution, without addresses and what is done to its results.
fn convolution_argument(
    Windows { channels_last, kernel, stride, pad, dilate }: Windows<'_>,
    groups: usize,
    signature: &Signature<'_>,
) -> Option<ConvolutionArgument> {
    let (input, output) = (signature.inputs.first()?, signature.outputs.first()?);
    let rank = input.shape.len().checked_sub(2)?;
    let (pixel_axes, channel_axis) = if channels_last { (1..rank + 1, rank + 1) } else { (2..rank + 2, 1) };
    let out = three(output.shape.get(pixel_axes.clone())?, 1);
    // The kernel numbers the pixels of all images, and the depth, in 32 bits.
    let (pixels, taps) = (out.iter().product(), kernel.iter().product());
    i32::try_from(input.shape[0].checked_mul(pixels)?).ok()?;
    i32::try_from(input.shape[channel_axis].checked_mul(taps)?).ok()?;
    Some(ConvolutionArgument {
        to: 0,
        from: 0,
        weight: 0,
        images: output.shape[0] as i64,
        channels: (input.shape[channel_axis] / groups) as i64,
        filters: (output.shape[channel_axis] / groups) as i64,
        groups: i32::try_from(groups).ok()?,
        unused: 0,
        size: small(three(input.shape.get(pixel_axes)?, 1))?,
        out: small(out)?,
        kernel: small(*kernel)?,
        step: small(*stride)?,
        pad: small(*pad)?,
        dilate: small(*dilate)?,
        epilogue: NO_EPILOGUE,
        parts: PartsArgument::NONE,
    })
}

/// The blocks of a convolution; `None` inside if it has no results.
fn convolution_grid(argument: &ConvolutionArgument, groups: usize, sums: Sums) -> Option<Option<Grid>> {
    let pixels: usize = argument.out.iter().map(|extent| *extent as usize).product();
    tiles(argument.filters as usize, argument.images as usize * pixels, groups, sums)
}

/// Whether each channel of planes is convolved alone. The kernel for these numbers results in 32
/// bits.
fn is_depthwise(argument: &ConvolutionArgument, results: usize) -> bool {
    let of_planes = argument.size[0] == 1 && argument.kernel[0] == 1;
    u32::try_from(results).is_ok() && of_planes && argument.channels == 1 && argument.filters == 1
}

fn bind_convolution(
    sums: Sums,
    names: [&'static CStr; 4],
    windows: Windows<'_>,
    groups: usize,
    epilogue: &SumEpilogue,
    signature: &Signature<'_>,
) -> Option<Bound> {
    let output = signature.outputs.first()?;
    let epilogue = BoundEpilogue::new(epilogue, true).filter(BoundEpilogue::is_common)?;
    let channels_last = windows.channels_last;
    let argument =
        ConvolutionArgument { epilogue: epilogue.argument, ..convolution_argument(windows, groups, signature)? };
    let grid = convolution_grid(&argument, groups, sums)?;
    let placed = move |at: &DeviceOperands<'_>| ConvolutionArgument {
        to: at.outputs[0].0,
        from: at.inputs[0].0,
        weight: at.inputs[1].0,
        epilogue: epilogue.at(at),
        ..argument
    };
    let results = output.shape.size();
    if channels_last && is_depthwise(&argument, results) && sums != Sums::Brain {
        let name = sums.kernel([c"depthwise_f16", c"", c"depthwise_f32", c"depthwise_f64"]);
        return Some(Bound::kernel(name, each(results), placed));
    }
    let name = sums.kernel(names);
    let tiled = sums.tiles().filter(|_| channels_last).and_then(|dtype| Tiled::of_convolution(&argument, dtype));
    Some(Bound::new(move |ctx, at| {
        let Some(grid) = grid else { return Ok(()) };
        let argument = placed(at);
        match &tiled {
            Some(tiled)
                if are_aligned(&[argument.to, argument.from, argument.weight]) && argument.epilogue.is_aligned() =>
            {
                tiled.launch_convolution(ctx, argument)
            }
            _ => launch(ctx, name, grid, &argument),
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_a_batch_once_and_fit_a_grid() {
        let rows = GRID * TILE;
        for (batch, m, wanted) in [
            ([1, 1], 5, 1),
            ([3, 40_000], rows, 3),
            ([70_000, 1], 2, 2),
            ([2, 70_000], 1, 4),
            ([40_000, 2], 1, 2),
            ([2, 3], 2 * rows + 1, 3),
            ([0, 3], 4, 0),
        ] {
            let made = shares(batch, m);
            assert_eq!(made.len(), wanted, "{batch:?} x {m}");
            let size = |share: &Share| share.count.iter().product::<usize>();
            assert_eq!(made.iter().map(size).sum::<usize>(), batch[0] * batch[1] * m);
            for (i, share) in made.iter().enumerate() {
                assert!(share.count[0] * share.count[1] <= GRID && share.count[2] <= rows);
                assert!(made[..i].iter().all(|other| other.begin != share.begin));
                // What is numbered inside is whole where the outer number goes on.
                assert!(share.count[0] == 1 || share.count[1] == batch[1]);
            }
        }
    }
}
