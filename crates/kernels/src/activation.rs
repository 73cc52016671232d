//! Functions that a kernel may apply to its sums while they are still in registers.

use crate::simd::Simd;

/// A function applied last. NaN stays NaN.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Activation {
    /// Leaves values unchanged.
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
    /// Negative values are multiplied by a slope between 0 and 1, both excluded.
    Leaky {
        /// The slope.
        slope: f32,
    },
}

impl Activation {
    /// The limits it stands for.
    pub(crate) fn limits(self) -> ActivationLimits {
        let (lo, hi) = match self {
            Activation::None | Activation::Leaky { .. } => (f32::NEG_INFINITY, f32::INFINITY),
            Activation::Relu => (0.0, f32::INFINITY),
            Activation::Clip { lo, hi } => (lo, hi),
        };
        ActivationLimits { lo, hi, slope: if let Activation::Leaky { slope } = self { Some(slope) } else { None } }
    }

    /// The definition.
    #[cfg(test)]
    pub(crate) fn of(self, v: f64) -> f64 {
        match self {
            Activation::None => v,
            Activation::Relu => v.max(0.0),
            Activation::Clip { lo, hi } => v.clamp(lo.into(), hi.into()),
            Activation::Leaky { slope } => {
                if v < 0.0 {
                    v * f64::from(slope)
                } else {
                    v
                }
            }
        }
    }
}

/// All activations as one: a lower limit, which may be a part of the value itself, and an upper
/// one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ActivationLimits {
    lo: f32,
    hi: f32,
    slope: Option<f32>,
}

impl ActivationLimits {
    /// Whether the lower limit is a part of the value.
    #[inline(always)]
    pub(crate) fn are_leaky(self) -> bool {
        self.slope.is_some()
    }

    /// The limits in registers. If stores must not wait for a check of `leaky`, it is a constant of
    /// the surrounding code.
    #[inline(always)]
    pub(crate) fn ready_if<S: Simd>(self, s: S, leaky: bool) -> ReadyLimits<S::V> {
        ReadyLimits { leaky, ..self.ready(s) }
    }

    /// The limits in registers.
    #[inline(always)]
    pub(crate) fn ready<S: Simd>(self, s: S) -> ReadyLimits<S::V> {
        let slope = s.splat(self.slope.unwrap_or(1.0));
        ReadyLimits { lo: s.splat(self.lo), hi: s.splat(self.hi), slope, leaky: self.slope.is_some() }
    }
}

/// [`ActivationLimits`] of vectors.
#[derive(Clone, Copy)]
pub(crate) struct ReadyLimits<V> {
    lo: V,
    hi: V,
    slope: V,
    leaky: bool,
}

impl<V: Copy> ReadyLimits<V> {
    #[inline(always)]
    pub(crate) fn apply<S: Simd<V = V>>(&self, s: S, v: V) -> V {
        let lo = if self.leaky { s.mul(v, self.slope) } else { self.lo };
        s.clamp(v, lo, self.hi)
    }
}
