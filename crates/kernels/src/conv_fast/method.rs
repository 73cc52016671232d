//! What selection chooses between, and what it may choose from.

use super::table::ConvTable;
use std::fmt;
use std::str::FromStr;

/// How much arithmetic may be saved by multiplying sums of inputs with sums of weights.
///
/// Winograd convolutions differ from direct ones in rounding (errors stay near 1e-6 of the largest output), and make NaN of
/// outputs that see an infinity. F(4,3) spreads an infinity or NaN over the outputs of its tile, and an outlier adds a few
/// millionths of its size, times the size of the weights, to outputs of its tile that do not see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Winograd {
    /// Direct convolution only.
    Off,
    /// F(2,3): outputs in 2x2 tiles.
    F2,
    /// F(4,3) where it pays: outputs in 4x4 tiles. Also the forms for stride 2, 5x5 filters and lines of 3, 5 or 7 taps, which are
    /// like it.
    #[default]
    F4,
}

/// The numbers that products are made of. Tensors hold `f32` and sums are `f32` in every case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Precision {
    /// `f32`.
    #[default]
    Single,
    /// Inputs and weights rounded to bf16 where that is faster and the machine multiplies it; errors of about 3e-3 of the largest
    /// output. Where F(2,3) is used, what is rounded are the values that it multiplies; errors are half as large again.
    Bf16,
}

/// What selection may choose from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ConvOptions {
    /// Which transforms are allowed.
    pub winograd: Winograd,
    /// Whether bf16 is.
    pub precision: Precision,
    /// Weights of so many bytes or more are packed in one way only, whatever the image, and to no more bytes than they have; such
    /// methods are seldom the fastest.
    pub one_packing: Option<usize>,
    /// The input lies in blocks of 16 already: a direct convolution of few channels reads it so, and not as planes.
    pub in_blocks: bool,
    /// Measured choices, which go before the rules.
    pub tuned: Option<&'static ConvTable>,
}

/// An algorithm by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// Direct convolution.
    Direct,
    /// One filter per channel.
    Depthwise,
    /// Winograd F(2,3), filters transformed when they are packed.
    F2,
    /// Winograd F(4,3), filters transformed when they are packed.
    F4,
    /// Winograd F(4,3), filters transformed in registers.
    Registers,
    /// Winograd F(4,4) of the four phases of a first layer.
    Phases,
    /// Winograd of 3x3 filters with stride 2, filters transformed when they are packed.
    Strided,
    /// Winograd of 5x5 filters and of lines of 3, 5 or 7 taps, filters transformed when they are packed.
    Taps,
    /// Direct convolution of bf16 values.
    Bf16,
    /// Winograd F(2,3) with products of bf16 values.
    F2Bf16,
    /// Winograd of 3x3 filters with stride 2 with products of bf16 values.
    StridedBf16,
}

impl Method {
    /// Every method.
    pub const ALL: [Method; 11] = [
        Method::Direct,
        Method::Depthwise,
        Method::F2,
        Method::F4,
        Method::Registers,
        Method::Phases,
        Method::Strided,
        Method::Taps,
        Method::Bf16,
        Method::F2Bf16,
        Method::StridedBf16,
    ];

    /// Whether inputs, filters and outputs are transformed so that fewer numbers are multiplied.
    pub fn transforms(self) -> bool {
        !matches!(self, Method::Direct | Method::Depthwise | Method::Bf16)
    }

    /// Whether values are rounded to bf16 before they are multiplied.
    pub fn rounds(self) -> bool {
        matches!(self, Method::Bf16 | Method::F2Bf16 | Method::StridedBf16)
    }

    /// The word for it in tables.
    pub fn name(self) -> &'static str {
        match self {
            Method::Direct => "direct",
            Method::Depthwise => "depthwise",
            Method::F2 => "f2",
            Method::F4 => "f4",
            Method::Registers => "registers",
            Method::Phases => "phases",
            Method::Strided => "strided",
            Method::Taps => "taps",
            Method::Bf16 => "bf16",
            Method::F2Bf16 => "f2-bf16",
            Method::StridedBf16 => "strided-bf16",
        }
    }
}

impl Precision {
    /// The word for it in tables.
    pub fn name(self) -> &'static str {
        match self {
            Precision::Single => "single",
            Precision::Bf16 => "bf16",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let found = Method::ALL.into_iter().find(|method| method.name() == s);
        found.ok_or_else(|| {
            let known: Vec<&str> = Method::ALL.iter().map(|m| m.name()).collect();
            format!("`{s}` is not a method of convolution; known: {}", known.join(", "))
        })
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Precision {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let found = [Precision::Single, Precision::Bf16].into_iter().find(|precision| precision.name() == s);
        found.ok_or_else(|| format!("`{s}` is not a precision: single or bf16"))
    }
}
