//! Functions that layers of integers apply to their results.

use crate::math::{exp_f32, gelu_f32, sigmoid_f32, softrelu_f32, tanh_f32};

/// A function of one number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Function {
    /// Negative numbers become zero.
    Relu,
    /// Negative numbers are multiplied.
    Leaky(f32),
    /// Numbers are limited.
    Clip(f32, f32),
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// The hyperbolic tangent.
    Tanh,
    /// `log(1 + exp(x))`.
    Softrelu,
    /// `x / (1 + |x|)`.
    Softsign,
    /// `x` times the normal distribution function.
    Gelu,
    /// The square.
    Square,
    /// The square root.
    Sqrt,
    /// The exponential function.
    Exp,
    /// The magnitude.
    Abs,
}

impl Function {
    /// Applies it to a number given in steps: `steps` of them are one.
    #[inline(always)]
    pub fn apply(self, value: f32, steps: f32) -> f32 {
        match self {
            Function::Relu => value.max(0.0),
            Function::Leaky(slope) if value < 0.0 => value * slope,
            Function::Leaky(_) => value,
            Function::Clip(low, high) => value.max(low * steps).min(high * steps),
            Function::Abs => value.abs(),
            other => other.of_number(value / steps) * steps,
        }
    }

    /// The functions that do not pass factors on.
    fn of_number(self, v: f32) -> f32 {
        match self {
            Function::Sigmoid => sigmoid_f32(v),
            Function::Tanh => tanh_f32(v),
            Function::Softrelu => softrelu_f32(v),
            Function::Softsign => v / (1.0 + v.abs()),
            Function::Gelu => gelu_f32(v),
            Function::Square => v * v,
            Function::Sqrt => v.sqrt(),
            Function::Exp => exp_f32(v),
            Function::Relu | Function::Leaky(_) | Function::Clip(..) | Function::Abs => self.apply(v, 1.0),
        }
    }
}
