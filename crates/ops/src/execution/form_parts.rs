//! Parts of forms: strided copies, what is applied to sums, kinds of functions.

use mxrt_kernels::elementwise::Unary;

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

/// Operations that follow a sum of products. Operands are given by their number among the inputs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SumEpilogue {
    /// one number for each column of a product, or filter of a convolution
    pub bias: Option<usize>,
    /// operand of the shape of the result, which is added
    pub residual: Option<usize>,
    /// factor of the residual; 1 if there is none here
    pub factor: Option<f64>,
    /// function that is applied last
    pub activation: Option<Unary>,
}

impl SumEpilogue {
    /// Whether devices apply the function after the sums of a dense layer in float16 or float32.
    pub fn applies(function: Unary) -> bool {
        use Unary::{Clip, Gelu, LeakyRelu, Relu, Sigmoid, Tanh};
        matches!(function, Relu | Clip { .. } | LeakyRelu { .. } | Gelu | Sigmoid | Tanh)
    }
}

/// Results of an operator that orders elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordered {
    /// the elements
    Values,
    /// positions of the elements along the axis
    Positions,
    /// elements, then positions
    Both,
    /// mask: 1 where an element is among the first, else 0
    Mask,
}

/// Steps of a matrix in its array: first element; steps between outer and inner batches, rows and
/// columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixSteps {
    /// number among the inputs; 0 for the result
    pub array: usize,
    /// first element
    pub first: usize,
    /// steps between outer batches, inner batches, rows, columns
    pub steps: [isize; 4],
}

/// Anchors around pixels, measured in parts of the image.
#[derive(Clone, Debug, PartialEq)]
pub struct Anchors {
    /// pixels of a row
    pub columns: usize,
    /// half the width and half the height of each anchor of a pixel
    pub half_sides: Vec<[f32; 2]>,
    /// distances between pixels, down and to the right
    pub steps: [f32; 2],
    /// position of the center in a pixel, down and to the right
    pub offsets: [f32; 2],
    /// whether anchors are cut to the image
    pub clip: bool,
}

/// Ways to change the size of planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resampling {
    /// interpolation between four neighbours
    Bilinear {
        /// whether the centers of the corner pixels coincide, instead of the edges of the planes
        align_corners: bool,
    },
    /// means over windows that divide a plane into as many parts as it gets pixels
    Means,
}

/// Conversions between positions in an array and indices along its axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PositionKind {
    /// indices of each axis, one axis after the other, become positions
    Ravel,
    /// positions become indices of each axis, one axis after the other
    Unravel,
    /// every element gets its indices, one element after the other
    Own,
}

/// Operations on the steps of a sequence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SequenceKind {
    /// sets the steps after the end of a sequence to this number
    Mask(f64),
    /// selects the last step
    Last,
    /// reverses the steps up to the end of a sequence; later steps stay
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
