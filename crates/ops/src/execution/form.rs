//! Forms: descriptions of computations that kernels of devices understand.
//!
//! All operators reduce to a few forms: elements in other places, functions of elements, folds over
//! axes, products. The definition of an operator names its form ([`OpDef::form`]), next to the
//! kernel for the host and from the same attributes. A device that has a kernel for a form has one
//! for every operator of that form.

use super::draw_form::DrawForm;
use super::form_parts::{
    Anchors, MatrixSteps, Move, Ordered, PositionKind, RandomForm, Resampling, SequenceKind, SumEpilogue,
};
use super::int8_form::Int8Form;
use super::matrix_form::MatrixForm;
use super::{Kernel, Signature, dispatch};
use crate::definition::{Attrs, OpDef};
use crate::rewrite::{Elementwise, ElementwiseProgram, StepInput};
use mxrt_engine::OpError;
use mxrt_kernels::density::Density;
use mxrt_kernels::elementwise::Binary;
use mxrt_kernels::image::border::Bordered;
use mxrt_kernels::image::resize::Resize;
use mxrt_kernels::index::OutOfRange;
use mxrt_kernels::norm::LrnParams;
use mxrt_kernels::pool::PoolKind;
use mxrt_kernels::recurrent::Recurrent;
use mxrt_kernels::reduce::Reduction;
use mxrt_kernels::softmax::SoftmaxParams;
use mxrt_kernels::sort::Order;
use mxrt_kernels::vision::boxes::{BoxDecoding, BoxFormat, Matching};
use mxrt_kernels::vision::columns::ColumnWindows;
use mxrt_kernels::vision::correlation::Correlation;
use mxrt_kernels::vision::deformable::DeformableWindows;
use mxrt_kernels::vision::deformable_roi::DeformableRoiPool;
use mxrt_kernels::vision::multibox::MultiBoxDetection;
use mxrt_kernels::vision::multibox_target::MultiBoxTarget;
use mxrt_kernels::vision::nms::BoxNms;
use mxrt_kernels::vision::proposal::Proposals;
use mxrt_kernels::vision::roi::{PositionSensitivePool, Regions, RoiAlign};
use mxrt_kernels::vision::rotated_roi::RotatedRoiAlign;
use mxrt_tensor::DType;

/// Computation of a kernel. Operands are the inputs in the operator's order unless a form names
/// others.
#[derive(Clone, Debug, PartialEq)]
pub enum KernelForm {
    /// Output 0 has the bytes of input 0.
    Copy,
    /// Strided copies. Output 0 holds a fixed number where nothing is copied to.
    Move {
        /// the number, if not all elements are written
        fill: Option<f64>,
        /// copies, one after the other
        moves: Vec<Move>,
    },
    /// A function of every element. Inputs are broadcast, axes matched from the last, to output 0.
    Elementwise {
        /// functions, and the values that they read
        program: ElementwiseProgram,
        /// shapes of inputs that are read in other shapes than their own
        shapes: Vec<Vec<usize>>,
    },
    /// A function of every element and a number, which is converted to the type of the result. The
    /// elements are converted to that type first.
    WithNumber {
        /// function of the element and the number
        function: Binary,
        /// the other operand
        number: f64,
        /// whether the number is the first operand
        first: bool,
    },
    /// A function of elements, a fold or a product: operands are converted to a type, in which the
    /// form is computed. The result may be of that type, of another one of its kind, or truths in
    /// bool. A product of integers in float64 is converted to their type.
    Within {
        /// the type
        dtype: DType,
        /// the computation
        form: Box<KernelForm>,
    },
    /// Elements in another type.
    Cast,
    /// Output `i` has the elements of input `i`, in its own type.
    CastEach,
    /// Whole numbers, one after the other.
    Numbers(Vec<i64>),
    /// Elements rounded to decimal places, of two equally near the even one. Negative places are
    /// before the point.
    Rounded {
        /// decimal places
        places: i32,
    },
    /// Elements with numbers in the place of NaN and infinities.
    Finite {
        /// numbers in the place of NaN, infinity and -infinity
        numbers: [f64; 3],
    },
    /// Numbers in steps: element `i` is `start + i / repeat * step`.
    Range {
        /// value of element 0
        start: f64,
        /// difference between numbers
        step: f64,
        /// number of elements that hold the same number
        repeat: usize,
    },
    /// Evenly spaced numbers, computed in double precision: element `i` is `start + i * step`.
    Spaced {
        /// value of element 0
        start: f64,
        /// difference between numbers
        step: f64,
        /// a later element, and its value, which differs by rounding
        end: (usize, f64),
    },
    /// Matrices with ones on a diagonal, and zeros elsewhere.
    Diagonal {
        /// how far the diagonal is to the right of the main one
        right: i64,
    },
    /// The matrices in the last two axes of input 0, or the same vector in all rows, with zeros on
    /// the right of a diagonal.
    LeftOf {
        /// how far the diagonal is to the right of the main one
        right: i64,
    },
    /// Kronecker products of the columns of matrices.
    KroneckerColumns,
    /// A fold over axes.
    Reduce {
        /// operation of the fold
        reduction: Reduction,
        /// axes that are reduced
        reduced: Vec<bool>,
    },
    /// Whether any element over axes, or every one, is not 0.
    Truths {
        /// whether every element has to be
        every: bool,
        /// axes that are reduced
        reduced: Vec<bool>,
    },
    /// Variances over axes, or deviations.
    Variances {
        /// axes that are reduced
        reduced: Vec<bool>,
        /// number that the sum of squares is divided by
        divisor: f64,
        /// whether the result is the root
        root: bool,
    },
    /// Means and variances over axes: outputs 0 and 1.
    Moments {
        /// axes that are reduced
        reduced: Vec<bool>,
    },
    /// Running sums along the middle of three joined axes, in the type of the result.
    RunningSum {
        /// extents of the joined axes
        split: [usize; 3],
    },
    /// Positions of the first largest or smallest element along the middle of three joined axes.
    Extreme {
        /// whether the largest element is searched
        largest: bool,
        /// extents of the joined axes
        split: [usize; 3],
    },
    /// Softmax along the middle of three joined axes.
    Softmax {
        /// variant of the function
        params: SoftmaxParams,
        /// extents of the joined axes
        split: [usize; 3],
        /// whether the second input holds lengths
        has_length: bool,
    },
    /// Layer normalization of data, gamma, beta along the middle of three joined axes. Further
    /// outputs are mean and deviation.
    LayerNorm {
        /// extents of the joined axes
        split: [usize; 3],
        /// number that is added to the variance
        eps: f64,
        /// number of gammas and betas, which successive rows use cyclically; `None` if each place
        /// of a row has its own
        of_rows: Option<usize>,
    },
    /// Elements divided by the Euclidean norm along the middle of three joined axes.
    UnitNorm {
        /// extents of the joined axes
        split: [usize; 3],
        /// number that is added to the sum of squares
        eps: f64,
    },
    /// Elements divided by a power of the sum of squares of neighbours along the middle of three
    /// joined axes.
    ResponseNorm {
        /// parameters of the norm
        params: LrnParams,
        /// extents of the joined axes
        split: [usize; 3],
    },
    /// Batch normalization of data, gamma, beta, mean, variance. The middle of three joined axes
    /// has the channels.
    BatchNorm {
        /// extents of the joined axes
        split: [usize; 3],
        /// number that is added to the variance
        eps: f64,
        /// whether gamma counts as 1
        fix_gamma: bool,
        /// whether negative results become 0
        relu: bool,
    },
    /// Weight and bias of a layer, folded with the BatchNorm after it. Inputs are weight, perhaps
    /// bias, gamma, beta, mean, variance.
    FoldBatchNorm {
        /// number that is added to the variance
        eps: f64,
        /// whether gamma counts as 1
        fix_gamma: bool,
        /// factor of the result
        factor: f64,
    },
    /// Elements of input `data` selected by the numbers in input `indices`, along the middle of
    /// three joined axes.
    Take {
        /// number of the input whose elements are selected
        data: usize,
        /// number of the input with indices
        indices: usize,
        /// extents of the joined axes of data
        split: [usize; 3],
        /// treatment of indices outside the axis
        mode: OutOfRange,
        /// number of the axis, for messages
        axis: usize,
        /// whether there is an index for each pair of outer and inner axes, instead of whole rows
        pick: bool,
    },
    /// Rows of `inner` elements of input 0. Input 1 has a row for each of the first axes; the
    /// numbers at position `k` of these rows select row `k` of the result. Negative numbers count
    /// from the end.
    GatherRows {
        /// extents of the first axes
        sizes: Vec<usize>,
        /// elements of a row
        inner: usize,
    },
    /// Rows of `inner` elements that replace others. Input `indices` has a row for each of the first
    /// axes; the numbers at position `k` of these rows say which row of the result row `k` of input
    /// `values` replaces. Negative numbers count from the end, and the last of several rows counts.
    ScatterRows {
        /// whether the other rows are those of input 0; otherwise they are zero
        onto_first: bool,
        /// number of the input with the rows
        values: usize,
        /// number of the input with the indices
        indices: usize,
        /// extents of the first axes
        sizes: Vec<usize>,
        /// elements of a row
        inner: usize,
        /// number of rows
        count: usize,
    },
    /// Conversions between positions in an array and indices along its axes.
    Positions {
        /// the conversion
        kind: PositionKind,
        /// distances between neighbours along each axis, and extents of the axes
        axes: Vec<[usize; 2]>,
    },
    /// 1 if all elements of all inputs are finite in float32, else 0.
    AllFinite,
    /// 1 if all elements of two inputs are equal, or almost, else 0.
    AllClose {
        /// allowed difference relative to the second input
        relative: f64,
        /// allowed difference besides
        absolute: f64,
        /// whether NaN equals NaN
        equal_nan: bool,
    },
    /// Numbers of elements in bins, and the edges of the bins. The edges are evenly spaced from the
    /// first to the second number, or else those of input 1.
    Histogram(Option<[f64; 2]>),
    /// The first elements in order along the middle of three joined axes.
    Order {
        /// extents of the joined axes
        split: [usize; 3],
        /// order of the elements, and how many are given
        order: Order,
        /// kind of the results
        give: Ordered,
    },
    /// One-hot vectors: one where the last axis is the index, else zero.
    OneHot {
        /// extent of the last axis
        depth: usize,
        /// number that stands for one
        on: f64,
        /// number that stands for zero
        off: f64,
    },
    /// Choice between two arrays. Inputs are condition, yes, no; each condition chooses `row`
    /// elements.
    Select {
        /// elements for each condition
        row: usize,
    },
    /// Choice between two arrays or numbers. Inputs are condition, yes, no, without those that are
    /// numbers; they are broadcast, axes matched from the last, to output 0.
    Choose {
        /// numbers in the place of yes and no
        numbers: [Option<f64>; 2],
    },
    /// Sums along the last axis of a part of input 0, floats in double precision.
    SumsOfPart {
        /// first element of the part
        first: usize,
        /// extents of the part
        shape: Vec<usize>,
        /// steps along each axis
        steps: Vec<isize>,
    },
    /// Product `alpha * a b` of matrices, then the epilogue.
    Product {
        /// numbers of outer and inner batches
        batch: [usize; 2],
        /// rows, columns, depth
        size: [usize; 3],
        /// left and right operand, and the result
        operands: [MatrixSteps; 3],
        /// factor of the product
        alpha: f64,
        /// operations after the product
        epilogue: SumEpilogue,
    },
    /// Convolution of data and weights with up to three spatial axes, missing ones first.
    Convolution {
        /// whether images are `[image, pixels, channel]` and weights `[kernel, channel of a group,
        /// filter]`; otherwise they are `[image, channel, pixels]` and `[filter, channel of a
        /// group, kernel]`
        channels_last: bool,
        /// whether weights are `[filter, kernel, channel of a group]`; only with channels last
        filters_first: bool,
        /// extents of a kernel
        kernel: [usize; 3],
        /// distances between kernels
        stride: [usize; 3],
        /// padding before and after
        pad: [usize; 3],
        /// distances within a kernel
        dilate: [usize; 3],
        /// groups of channels
        groups: usize,
        /// operations after the convolution
        epilogue: SumEpilogue,
    },
    /// Transposed convolution of data and weights, `[channels, filters of a group, kernel]`. Its
    /// other properties are those of `Convolution`.
    Deconvolution {
        /// extents of a kernel
        kernel: [usize; 3],
        /// distances between the results of neighbouring elements
        stride: [usize; 3],
        /// extents that are cut off at the beginning
        pad: [usize; 3],
        /// distances within a kernel
        dilate: [usize; 3],
        /// groups of channels
        groups: usize,
        /// number of the bias among the inputs
        bias: Option<usize>,
    },
    /// Planes of numbers from 0 to 1, made of pixels of numbers from 0 to 255.
    ImagePlanes {
        /// pixels of an image
        pixels: usize,
        /// numbers of a pixel
        channels: usize,
    },
    /// Planes minus the mean of their channel, divided by its deviation.
    NormalizePlanes {
        /// elements of a plane
        pixels: usize,
        /// mean and deviation of each channel
        terms: Vec<[f64; 2]>,
    },
    /// An image of pixels with a border.
    BorderedImage {
        /// image and border
        bordered: Bordered,
        /// numbers of a pixel of a border of one colour
        colour: Vec<f64>,
    },
    /// Images of pixels of another size.
    ResizeImages(Resize),
    /// Planes of another size: the last two axes of input 0.
    Resample(Resampling),
    /// Convolution of data, offsets that shift the taps, perhaps a mask, weights, and perhaps bias.
    DeformableConvolution {
        /// windows and groups of channels with the same offsets
        windows: DeformableWindows,
        /// groups of channels that do not see each other
        groups: usize,
        /// whether there is a mask
        modulated: bool,
    },
    /// Means of products or differences of the patches of input 0 and shifted patches of input 1.
    Correlation(Correlation),
    /// Pixels of all windows over images, as columns.
    Columns(ColumnWindows),
    /// Images that columns of pixels add up to.
    ColumnSums(ColumnWindows),
    /// Steps of sequences. Input 1, if there is one, holds their lengths.
    Sequence {
        /// operation on the steps
        kind: SequenceKind,
        /// numbers of steps and sequences
        size: [usize; 2],
        /// elements of a step
        inner: usize,
        /// whether sequences are the first axis, and steps the second
        batch_first: bool,
    },
    /// Losses of connectionist temporal classification of activations `[step, sequence, symbol]` and
    /// labels, then lengths of sequences and of labels as far as there are any.
    CtcLoss {
        /// number of the blank symbol
        blank: usize,
        /// number that ends a label which has no length
        padding: i64,
        /// whether there are lengths of sequences, and of labels
        lengths: [bool; 2],
    },
    /// Pooling in windows over up to three spatial axes, missing ones first.
    Pooling {
        /// function of a window
        kind: PoolKind,
        /// extents of a window
        kernel: [usize; 3],
        /// distances between windows
        stride: [usize; 3],
        /// padding before and after
        pad: [usize; 3],
        /// whether the last axis has the channels
        channels_last: bool,
    },
    /// Samples of planes at positions from -1 to 1. Inputs are data, and positions or, for each
    /// image, a map of 2 x 3 numbers that gives them.
    Sample {
        /// whether the positions follow from a map
        affine: bool,
    },
    /// Positions for samples, from an affine map for each image or from a flow in pixels.
    Grid {
        /// whether the input is a flow
        flow: bool,
    },
    /// Images and regions of interest: means of samples in the bins of each region.
    RoiAlign(RoiAlign),
    /// Images and regions of interest: the largest pixel in the bins of each region.
    RoiMaxima(Regions),
    /// Images and regions of interest: means of bins that read channels of their own.
    RoiMeans(PositionSensitivePool),
    /// Images, regions of interest and perhaps offsets: means of samples in bins that are moved.
    RoiMoved(DeformableRoiPool),
    /// Images and regions of interest that are turned: means of samples in the bins.
    RoiTurned(RotatedRoiAlign),
    /// Recurrent layers of data, parameters, first states, and for an LSTM first cell states.
    /// Further outputs are the last states.
    Recurrent(Recurrent),
    /// Anchors around every pixel of a feature map: rows of corners.
    Anchors(Anchors),
    /// Rows of numbers that no better row suppresses, the best first.
    Suppress(BoxNms),
    /// Detections from class probabilities, locations and anchors: rows of class, score and
    /// corners.
    Detections(MultiBoxDetection),
    /// Objects for anchors, from anchors, labels and class predictions: locations, their mask,
    /// classes.
    MultiBoxTarget(MultiBoxTarget),
    /// Region proposals from scores, deltas and the sizes of images. Output 1, if there is one, has
    /// their scores.
    Proposals(Proposals),
    /// Intersections over union of every box of input 0 with every box of input 1.
    BoxOverlaps(BoxFormat),
    /// Boxes out of numbers relative to anchors.
    DecodeBoxes(BoxDecoding),
    /// Reference boxes relative to anchors, and a mask of the anchors that have one. Inputs are
    /// samples, matches, anchors, references, means, deviations.
    EncodeBoxes,
    /// The column of each row and the row of each column that match, best score first.
    Match {
        /// order and end of the matches
        how: Matching,
        /// rows and columns of a matrix of scores
        size: [usize; 2],
    },
    /// Random numbers, one after the other from the stream of each element.
    Random(RandomForm),
    /// Random numbers of a distribution whose parameters are inputs 0 and, if there is one, 1.
    RandomRows {
        /// distribution, whose own parameters do not count
        distribution: RandomForm,
        /// numbers drawn with each element of the parameters
        each: usize,
    },
    /// Random choices among places.
    Draw(DrawForm),
    /// Densities of a distribution at the elements of input 0, equally many for each element of the
    /// parameters: inputs 1 and, if there is one, 2.
    Density {
        /// the distribution
        density: Density,
        /// whether the results are logarithms
        log: bool,
    },
    /// Densities of Dirichlet distributions at the vectors in the last axis of input 0, equally
    /// many for each vector of parameters in input 1.
    DirichletDensity {
        /// whether the results are logarithms
        log: bool,
    },
    /// A computation with the matrices in the last two axes.
    Matrices(MatrixForm),
    /// A computation with 8-bit integers.
    Int8(Int8Form),
}

impl KernelForm {
    /// One function of element-wise operands.
    pub fn of_function(function: Elementwise) -> KernelForm {
        let reads = (0..function.arity()).map(StepInput::Input).collect();
        let program = ElementwiseProgram { steps: vec![(function, reads)] };
        KernelForm::Elementwise { program, shapes: Vec::new() }
    }

    /// Converts the operands to a type, in which the form is computed.
    pub(crate) fn within(self, dtype: DType) -> KernelForm {
        KernelForm::Within { dtype, form: Box::new(self) }
    }

    /// Folds all inputs, one after the other, by a function of two.
    pub(crate) fn folded(function: Binary, inputs: usize) -> KernelForm {
        let left = |step: usize| if step == 0 { StepInput::Input(0) } else { StepInput::Step(step - 1) };
        let step = |i| (Elementwise::Binary(function), [left(i), StepInput::Input(i + 1)].into_iter().collect());
        let steps = (0..inputs.saturating_sub(1)).map(step).collect();
        KernelForm::Elementwise { program: ElementwiseProgram { steps }, shapes: Vec::new() }
    }

    /// Reads elements of input 0 in steps; they fill output `output`.
    pub fn strided(output: usize, shape: &[usize], offset: usize, strides: &[isize]) -> Move {
        let into = (0, mxrt_kernels::strides::contiguous(shape));
        Move { input: 0, output, shape: shape.to_vec(), from: (offset, strides.to_vec()), into }
    }
}

/// Result of binding an operator to types.
pub(crate) type BoundKernel = Result<Box<dyn Kernel>, OpError>;

/// Form in the definition of an operator.
pub(crate) type MaybeForm = Result<Option<KernelForm>, OpError>;

/// Gives the form for elements of any type that [`dispatch`](super::dispatch) calls `all`.
pub(crate) fn for_all(dtype: DType, form: KernelForm) -> MaybeForm {
    dispatch!(dtype, all, _T => Ok(Some(form)))
}

/// Gives the form for elements that are numbers.
pub(crate) fn for_numeric(dtype: DType, form: KernelForm) -> MaybeForm {
    dispatch!(dtype, numeric, _T => Ok(Some(form)))
}

/// Gives the form for elements of float32 or float64.
pub(crate) fn for_wide(dtype: DType, form: KernelForm) -> MaybeForm {
    dispatch!(dtype, wide, _T => Ok(Some(form)))
}

/// Gives the form for elements of a floating type.
pub(crate) fn for_floats(dtype: DType, form: KernelForm) -> MaybeForm {
    dispatch!(dtype, float, _T => Ok(Some(form)))
}

/// Returns the form of an operator for complete types. `None` if no form describes it.
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
