//! Forms of operators on 8-bit integers. Output 0 has numbers or integers; if there are further
//! outputs, they are the least and the largest number that the integers stand for.

use mxrt_kernels::pool::PoolKind;

/// The range of the numbers that are made integers, or that integers stand for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RangeSource {
    /// inputs 1 and 2
    Given,
    /// the ends that are given here
    Fixed([f32; 2]),
    /// the range of input 0
    Found,
}

/// Windows over up to three spatial axes, missing ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Int8Windows {
    /// extents of a window
    pub kernel: [usize; 3],
    /// distances between windows
    pub stride: [usize; 3],
    /// padding before and after
    pub pad: [usize; 3],
    /// distances within a window
    pub dilate: [usize; 3],
}

/// Computations with 8-bit integers. The types of the operands say which integers have a sign.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Int8Form {
    /// Integers of numbers in single precision.
    Quantize {
        /// integers from zero to the end of the range
        steps: f32,
        /// the range
        range: RangeSource,
    },
    /// The bytes of input 0, perhaps with zeros in the place of negative integers.
    Pass {
        /// whether negative integers become zero
        relu: bool,
        /// the range
        range: RangeSource,
    },
    /// Numbers of integers whose range is in inputs 1 and 2.
    Dequantize,
    /// Integers of sums in 32 bits whose range is in inputs 1 and 2.
    Requantize {
        /// integers from zero to the end of the range
        steps: f32,
        /// the end of the range; `None`: that of the largest sum
        largest: Option<f32>,
    },
    /// Sums of inputs 0 and 1, whose ranges are inputs 2 to 5.
    Add {
        /// calibrated range of the result, and integers for one unit of it
        calibrated: Option<([f32; 2], f32)>,
    },
    /// The largest or the rounded mean of windows; the range stays.
    Pool {
        /// function of a window
        kind: PoolKind,
        /// the windows
        windows: Int8Windows,
        /// whether the last axis has the channels
        channels_last: bool,
    },
    /// Sums of products of data and weights, `[filter, channel of a group, kernel]`, in 32 bits.
    /// Inputs are these, perhaps a bias, and their ranges.
    Layer {
        /// whether it is a dense layer, whose bias is brought to the steps of the sums
        dense: bool,
        /// whether there is a bias
        bias: bool,
        /// the windows
        windows: Int8Windows,
        /// groups of channels
        groups: usize,
    },
}
