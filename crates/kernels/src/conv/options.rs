//! Options of selection.

use crate::conv::table::ConvTable;
use std::fmt;
use std::str::FromStr;

/// How much arithmetic may be saved by multiplying sums of inputs with sums of weights.
///
/// Winograd convolutions differ from direct ones in rounding (errors stay near 1e-6 of the largest
/// output), and make NaN of outputs that see an infinity. F(4,3) spreads an infinity or NaN over
/// the outputs of its tile, and an outlier adds a few millionths of its size, times the size of the
/// weights, to outputs of its tile that do not see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Winograd {
    /// Direct convolution only.
    Off,
    /// F(2,3): outputs in 2x2 tiles.
    F2,
    /// F(4,3) where it pays: outputs in 4x4 tiles. Also the forms for stride 2, 5x5 filters and
    /// lines of 3, 5 or 7 taps, which are like it.
    #[default]
    F4,
}

/// The numbers that products are made of. Tensors hold `f32` and sums are `f32` in every case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Precision {
    /// `f32`.
    #[default]
    Single,
    /// Inputs and weights rounded to bf16 where that is faster and the machine multiplies it;
    /// errors of about 3e-3 of the largest output. Where F(2,3) is used, what is rounded are the
    /// values that it multiplies; errors are half as large again.
    Bf16,
    /// `f32`, but weights of dense and recurrent layers are stored in a byte each; errors of about
    /// 5e-3 of the largest output.
    W8,
}

/// The choices open to selection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ConvOptions {
    /// The allowed transforms.
    pub winograd: Winograd,
    /// Whether bf16 is.
    pub precision: Precision,
    /// Whether the tiles of AMX are, where there are some.
    pub tiles: bool,
    /// Whether the input is in blocks of 16 already: a direct convolution of few channels then
    /// reads blocks, not planes.
    pub in_blocks: bool,
    /// Measured choices, which go before the rules.
    pub tuned: Option<&'static ConvTable>,
}

impl Precision {
    /// The precision of products with weights that are expanded, or that were never rounded.
    pub fn of_products(self) -> Precision {
        match self {
            Precision::Single | Precision::W8 => Precision::Single,
            Precision::Bf16 => Precision::Bf16,
        }
    }

    /// The word for it in tables.
    pub fn name(self) -> &'static str {
        match self {
            Precision::Single => "single",
            Precision::Bf16 => "bf16",
            Precision::W8 => "w8",
        }
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
