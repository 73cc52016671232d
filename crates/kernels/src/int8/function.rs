//! Functions that layers of integers apply to their results.

use crate::math::{exp_f32, expm1_f32, gelu_f32, sigmoid_f32, softrelu_f32, tanh_f32};
use crate::vectorize::vectorized;

/// A function of one number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Function {
    /// Negative numbers become zero.
    Relu,
    /// Negative numbers are multiplied.
    Leaky(f32),
    /// Numbers are limited.
    Clip(f32, f32),
    /// Negative numbers become `exp(x) - 1` times a factor.
    Elu(f32),
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
    #[inline(always)]
    fn of_number(self, v: f32) -> f32 {
        match self {
            Function::Sigmoid => sigmoid_f32(v),
            Function::Tanh => tanh_f32(v),
            Function::Softrelu => softrelu_f32(v),
            Function::Softsign => v / (1.0 + v.abs()),
            Function::Elu(_) if v > 0.0 => v,
            Function::Elu(slope) => slope * expm1_f32(v),
            Function::Gelu => gelu_f32(v),
            Function::Square => v * v,
            Function::Sqrt => v.sqrt(),
            Function::Exp => exp_f32(v),
            Function::Relu | Function::Leaky(_) | Function::Clip(..) | Function::Abs => self.apply(v, 1.0),
        }
    }
}

vectorized! {
    /// Applies a function to numbers given in steps.
    pub(super) fn apply_each[](function: Function, steps: f32, values: &mut [f32]) {
        // A loop of its own for each function: one that chose inside would not be made of vectors.
        macro_rules! of {
            ($($name:ident $(($($field:ident),*))?),*) => {
                match function {
                    $(Function::$name $(($($field),*))? => {
                        // A closure would not be inlined into the loop.
                        for v in values.iter_mut() {
                            *v = Function::$name $(($($field),*))?.apply(*v, steps);
                        }
                    })*
                }
            };
        }
        of!(Relu, Leaky(slope), Clip(low, high), Elu(slope), Sigmoid, Tanh, Softrelu, Softsign, Gelu, Square, Sqrt, Exp, Abs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectorize::Width;

    const ALL: [Function; 13] = [
        Function::Relu,
        Function::Elu(0.25),
        Function::Leaky(0.1),
        Function::Clip(-1.0, 6.0),
        Function::Sigmoid,
        Function::Tanh,
        Function::Softrelu,
        Function::Softsign,
        Function::Gelu,
        Function::Square,
        Function::Sqrt,
        Function::Exp,
        Function::Abs,
    ];

    #[test]
    fn functions_have_the_same_bits_at_every_width_of_vectors_as_for_one_number() {
        let mut numbers: Vec<f32> = (-400..400).map(|i| i as f32 * 0.37).collect();
        numbers.extend([0.0, -0.0, f32::MAX, f32::MIN, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-40, -1e-40]);
        for (function, steps) in ALL.into_iter().flat_map(|function| [1.0, 12.5].map(|steps| (function, steps))) {
            for width in Width::all() {
                for len in [0, 1, 15, 16, 48, numbers.len()] {
                    let mut values = numbers[numbers.len() - len..].to_vec();
                    let want: Vec<f32> = values.iter().map(|v| function.apply(*v, steps)).collect();
                    width.limit(|| apply_each(function, steps, &mut values));
                    let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
                    assert!(values.iter().zip(&want).all(same), "{function:?} {width:?} {values:?} {want:?}");
                }
            }
        }
    }
}
