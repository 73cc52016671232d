//! What a kernel computes, in words that kernels of devices understand.
//!
//! Operators come down to a few forms: elements in other places, functions of elements, folds over
//! axes, products. The definition of an operator names its form ([`OpDef::form`]), next to the kernel
//! for the host and from the same attributes. A device that has a kernel for a form has one for every
//! operator of it.

use super::{Kernel, Signature, dispatch};
use crate::definition::{Attrs, OpDef};
use crate::rewrite::{Elementwise, ElementwiseProgram, StepInput};
use mxrt_engine::OpError;
use mxrt_kernels::elementwise::{Binary, Unary};
use mxrt_kernels::index::OutOfRange;
use mxrt_kernels::norm::LrnParams;
use mxrt_kernels::pool::PoolKind;
use mxrt_kernels::recurrent::Recurrent;
use mxrt_kernels::reduce::Reduction;
use mxrt_kernels::softmax::SoftmaxParams;
use mxrt_kernels::sort::Order;
use mxrt_kernels::vision::multibox::MultiBoxDetection;
use mxrt_kernels::vision::nms::BoxNms;
use mxrt_kernels::vision::roi::{Regions, RoiAlign};
use mxrt_tensor::DType;

/// A strided copy: element after element of an index space, from an input to an output.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    /// number of the input
    pub input: usize,
    /// number of the output
    pub output: usize,
    /// extents of the index space
    pub shape: Vec<usize>,
    /// first element read, and steps along each axis
    pub from: (usize, Vec<isize>),
    /// first element written, and steps along each axis
    pub into: (usize, Vec<isize>),
}

/// What follows a sum of products: operands by their number among the inputs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SumEpilogue {
    /// one number for each column of a product, or filter of a convolution
    pub bias: Option<usize>,
    /// added, of the shape of the result
    pub residual: Option<usize>,
    /// applied last
    pub activation: Option<Unary>,
}

/// What is given of elements in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordered {
    /// the elements
    Values,
    /// their positions along the axis
    Positions,
    /// elements, then positions
    Both,
    /// 1 where an element is among the first, else 0
    Mask,
}

/// Steps of a matrix in its array: first element; steps between outer and inner batches, rows and
/// columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixSteps {
    /// number among the inputs; of the result: 0
    pub array: usize,
    /// first element
    pub first: usize,
    /// between outer batches, inner batches, rows, columns
    pub steps: [isize; 4],
}

/// What a kernel computes. Operands are the inputs in the operator's order unless said otherwise.
#[derive(Clone, Debug, PartialEq)]
pub enum KernelForm {
    /// Output 0 has the bytes of input 0.
    Copy,
    /// Output 0 holds this number where nothing is moved to.
    Move {
        /// the number, if not all elements are written
        fill: Option<f64>,
        /// one after the other
        moves: Vec<Move>,
    },
    /// A function of every element. Inputs are broadcast, axes matched from the last, to output 0.
    Elementwise {
        /// functions and what they read
        program: ElementwiseProgram,
        /// shapes of the inputs where they are read in others than their own
        shapes: Vec<Vec<usize>>,
    },
    /// A function of every element and a number, which the type of the result holds. The elements
    /// are converted to that type before.
    WithNumber {
        /// what is computed
        function: Binary,
        /// the other operand
        number: f64,
        /// whether the number is the first operand
        first: bool,
    },
    /// Elements in another type.
    Cast,
    /// `start + i / repeat * step`.
    Range {
        /// of element 0
        start: f64,
        /// between numbers
        step: f64,
        /// elements that hold the same number
        repeat: usize,
    },
    /// A fold over axes.
    Reduce {
        /// what is computed
        reduction: Reduction,
        /// axes that go
        reduced: Vec<bool>,
    },
    /// Means and variances over axes: outputs 0 and 1.
    Moments {
        /// axes that go
        reduced: Vec<bool>,
    },
    /// Running sums along the middle of three joined axes, in the type of the result.
    RunningSum {
        /// extents
        split: [usize; 3],
    },
    /// Where the first largest or smallest element is along the middle of three joined axes.
    Extreme {
        /// the largest
        largest: bool,
        /// extents
        split: [usize; 3],
    },
    /// Along the middle of three joined axes.
    Softmax {
        /// what is computed
        params: SoftmaxParams,
        /// extents
        split: [usize; 3],
        /// whether the second input holds lengths
        has_length: bool,
    },
    /// Data, gamma, beta; along the middle of three joined axes. Further outputs are mean and
    /// deviation.
    LayerNorm {
        /// extents
        split: [usize; 3],
        /// added to the variance
        eps: f64,
        /// gammas and betas that rows have in turns; none: each place of a row has its own
        of_rows: Option<usize>,
    },
    /// Divided by the Euclidean norm along the middle of three joined axes.
    UnitNorm {
        /// extents
        split: [usize; 3],
        /// added to the sum of squares
        eps: f64,
    },
    /// Divided by a power of the sum of squares of neighbours along the middle of three joined axes.
    ResponseNorm {
        /// what is computed
        params: LrnParams,
        /// extents
        split: [usize; 3],
    },
    /// Data, gamma, beta, mean, variance; the middle of three joined axes has the channels.
    BatchNorm {
        /// extents
        split: [usize; 3],
        /// added to the variance
        eps: f64,
        /// gamma counts as 1
        fix_gamma: bool,
        /// negative results become 0
        relu: bool,
    },
    /// Weight, perhaps bias, gamma, beta, mean, variance: weight and bias of a layer together with
    /// the BatchNorm behind it.
    FoldBatchNorm {
        /// added to the variance
        eps: f64,
        /// gamma counts as 1
        fix_gamma: bool,
        /// the result is multiplied by it
        factor: f64,
    },
    /// Elements of input `data` by the numbers in input `indices`, along the middle of three joined
    /// axes.
    Take {
        /// number of the input that is looked into
        data: usize,
        /// number of the input with indices
        indices: usize,
        /// extents of data
        split: [usize; 3],
        /// what becomes of numbers outside
        mode: OutOfRange,
        /// the axis, for messages
        axis: usize,
        /// there is an index for each pair of outer and inner axes, instead of whole rows
        pick: bool,
    },
    /// Rows of `inner` elements of input 0: row `k` of the result by the numbers `k` of each row of
    /// input 1, one for each of the first axes. Negative ones count from the end.
    GatherRows {
        /// extents of these axes
        sizes: Vec<usize>,
        /// elements of a row
        inner: usize,
    },
    /// The first elements in order along the middle of three joined axes.
    Order {
        /// extents
        split: [usize; 3],
        /// which come first, and how many
        order: Order,
        /// the outputs
        give: Ordered,
    },
    /// One where the last axis is the index, else zero.
    OneHot {
        /// extent of the last axis
        depth: usize,
        /// for one
        on: f64,
        /// for zero
        off: f64,
    },
    /// Condition, yes, no; so many elements for each condition.
    Select {
        /// elements
        row: usize,
    },
    /// `alpha * a b`, then the epilogue.
    Product {
        /// batches: outer, inner
        batch: [usize; 2],
        /// rows, columns, depth
        size: [usize; 3],
        /// left and right operand, and the result
        operands: [MatrixSteps; 3],
        /// factor
        alpha: f64,
        /// what follows
        epilogue: SumEpilogue,
    },
    /// Data and weights; up to three spatial axes, missing ones first.
    Convolution {
        /// images are `[image, pixels, channel]`, weights `[kernel, channel of a group, filter]`;
        /// otherwise `[image, channel, pixels]` and `[filter, channel of a group, kernel]`
        channels_last: bool,
        /// extents of a kernel
        kernel: [usize; 3],
        /// distances
        stride: [usize; 3],
        /// before and behind
        pad: [usize; 3],
        /// distances within a kernel
        dilate: [usize; 3],
        /// groups of channels
        groups: usize,
        /// what follows
        epilogue: SumEpilogue,
    },
    /// Data and weights of a transposed convolution, `[channels, filters of a group, kernel]`;
    /// otherwise as `Convolution`.
    Deconvolution {
        /// extents of a kernel
        kernel: [usize; 3],
        /// distances between what two elements are spread to
        stride: [usize; 3],
        /// what is cut off before
        pad: [usize; 3],
        /// distances within a kernel
        dilate: [usize; 3],
        /// groups of channels
        groups: usize,
        /// number of the bias among the inputs
        bias: Option<usize>,
    },
    /// Planes of another size: the last two axes of input 0.
    Resample(Resampling),
    /// Steps of sequences; input 1, if there is one, holds their lengths.
    Sequence {
        /// what is computed
        kind: SequenceKind,
        /// steps and sequences
        size: [usize; 2],
        /// elements of a step
        inner: usize,
        /// whether sequences are the first axis, and steps the second
        batch_first: bool,
    },
    /// Windows over up to three spatial axes, missing ones first.
    Pooling {
        /// what is computed
        kind: PoolKind,
        /// extents of a window
        kernel: [usize; 3],
        /// distances
        stride: [usize; 3],
        /// before and behind
        pad: [usize; 3],
        /// the last axis has the channels
        channels_last: bool,
    },
    /// Planes at positions from -1 to 1: data, and the positions or a map of 2 x 3 numbers for each
    /// image that makes them.
    Sample {
        /// the positions follow from a map
        affine: bool,
    },
    /// Positions: of an affine map for each image, or of a flow in pixels.
    Grid {
        /// the input is a flow
        flow: bool,
    },
    /// Images and regions of interest: means of samples in the bins of each region.
    RoiAlign(RoiAlign),
    /// Images and regions of interest: the largest pixel in the bins of each region.
    RoiMaxima(Regions),
    /// Recurrent layers: data, parameters, first states, and for an LSTM first cell states. Further
    /// outputs are the last ones.
    Recurrent(Recurrent),
    /// Anchors around every pixel of a feature map: rows of corners.
    Anchors(Anchors),
    /// Rows of numbers: those that no better row suppresses, the best first.
    Suppress(BoxNms),
    /// Class probabilities, locations, anchors: rows of class, score and corners.
    Detections(MultiBoxDetection),
    /// Random numbers, one after the other from the stream of each element.
    Random(RandomForm),
}

/// Anchors around pixels, as parts of the image.
#[derive(Clone, Debug, PartialEq)]
pub struct Anchors {
    /// pixels of a row
    pub columns: usize,
    /// half the width and half the height of each anchor of a pixel
    pub half_sides: Vec<[f32; 2]>,
    /// between pixels, down and to the right
    pub steps: [f32; 2],
    /// where in a pixel the center is, down and to the right
    pub offsets: [f32; 2],
    /// anchors are cut to the image
    pub clip: bool,
}

/// How pixels are made of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resampling {
    /// between four neighbours
    Bilinear {
        /// the centers of the corner pixels fall on each other, not the edges of the planes
        align_corners: bool,
    },
    /// means over windows that divide a plane into as many parts as it gets pixels
    Means,
}

/// What becomes of the steps of a sequence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SequenceKind {
    /// those behind its end are this number
    Mask(f64),
    /// the last one alone
    Last,
    /// backwards; what lies behind its end stays
    Reverse,
}

/// Distributions that are drawn element by element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RandomForm {
    /// low, high
    Uniform(f64, f64),
    /// mean, deviation
    Normal(f64, f64),
    /// rate
    Exponential(f64),
    /// shape, scale
    Gamma(f64, f64),
    /// mean
    Poisson(f64),
    /// successes, their probability
    NegativeBinomial(f64, f64),
    /// mean, dispersion
    GeneralizedNegativeBinomial(f64, f64),
    /// low, high
    Integers(i64, i64),
}

impl KernelForm {
    /// One function of element-wise operands.
    pub fn of_function(function: Elementwise) -> KernelForm {
        let reads = (0..function.arity()).map(StepInput::Input).collect();
        let program = ElementwiseProgram { steps: vec![(function, reads)] };
        KernelForm::Elementwise { program, shapes: Vec::new() }
    }

    /// A function of two, of all inputs one after the other.
    pub(crate) fn folded(function: Binary, inputs: usize) -> KernelForm {
        let left = |step: usize| if step == 0 { StepInput::Input(0) } else { StepInput::Step(step - 1) };
        let step = |i| (Elementwise::Binary(function), [left(i), StepInput::Input(i + 1)].into_iter().collect());
        let steps = (0..inputs.saturating_sub(1)).map(step).collect();
        KernelForm::Elementwise { program: ElementwiseProgram { steps }, shapes: Vec::new() }
    }

    /// Elements of input 0 read in steps; they fill output `output`.
    pub fn strided(output: usize, shape: &[usize], offset: usize, strides: &[isize]) -> Move {
        let into = (0, mxrt_kernels::strides::contiguous(shape));
        Move { input: 0, output, shape: shape.to_vec(), from: (offset, strides.to_vec()), into }
    }
}

/// Result of binding an operator to types.
pub(crate) type BoundKernel = Result<Box<dyn Kernel>, OpError>;

/// Form in the definition of an operator.
pub(crate) type MaybeForm = Result<Option<KernelForm>, OpError>;

/// A form where the elements are of any type that [`dispatch`](super::dispatch) calls `all`.
pub(crate) fn for_all(dtype: DType, form: KernelForm) -> MaybeForm {
    dispatch!(dtype, all, _T => Ok(Some(form)))
}

/// A form where the elements are numbers.
pub(crate) fn for_numeric(dtype: DType, form: KernelForm) -> MaybeForm {
    dispatch!(dtype, numeric, _T => Ok(Some(form)))
}

/// A form where the elements are of a floating type.
pub(crate) fn for_floats(dtype: DType, form: KernelForm) -> MaybeForm {
    dispatch!(dtype, float, _T => Ok(Some(form)))
}

/// Says what an operator computes for complete types; `None`: devices have no words for it.
pub fn form_of(def: &OpDef, attrs: &Attrs, signature: &Signature<'_>) -> Result<Option<KernelForm>, OpError> {
    if let Some(form) = (def.form)(attrs, signature)? {
        return Ok(Some(form));
    }
    if (def.rewrites.is_identity)(attrs) {
        return Ok(Some(KernelForm::Copy));
    }
    let dtype = signature.inputs.first().map(|input| input.dtype);
    match (dtype, (def.rewrites.elementwise)(attrs)) {
        (Some(dtype), Some(function @ Elementwise::Unary(_))) => for_numeric(dtype, KernelForm::of_function(function)),
        (Some(dtype), Some(function @ Elementwise::Binary(_))) => for_all(dtype, KernelForm::of_function(function)),
        _ => Ok(None),
    }
}
