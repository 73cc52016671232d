//! What a kernel may apply to its sums while they are still in registers.

/// A clamp applied last. NaN stays NaN.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Activation {
    /// Values as they are.
    #[default]
    None,
    /// Negative values become zero.
    Relu,
    /// Values are limited to `lo ..= hi` (relu6 is 0 to 6).
    Clip {
        /// Lower limit.
        lo: f32,
        /// Upper limit.
        hi: f32,
    },
}

impl Activation {
    /// The limits it stands for.
    pub(crate) fn limits(self) -> (f32, f32) {
        match self {
            Activation::None => (f32::NEG_INFINITY, f32::INFINITY),
            Activation::Relu => (0.0, f32::INFINITY),
            Activation::Clip { lo, hi } => (lo, hi),
        }
    }
}
