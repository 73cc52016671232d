//! What the element-wise operators compute, for every element type, on blocks of elements.

use crate::element::Element;
use crate::elementwise::BLOCK;
use crate::halves::{narrow, widen};
use crate::math;
use crate::vectorize::{Loop, vectorize};
use half::f16;

/// A function of one number.
///
/// Integer types compute transcendental functions in `f64` and convert as C does.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)] // The names say it; those that do not are documented.
pub enum Unary {
    Identity,
    Negative,
    Abs,
    Sign,
    Square,
    Sqrt,
    /// 1 / sqrt(x).
    Rsqrt,
    Cbrt,
    /// 1 / cbrt(x).
    Rcbrt,
    Reciprocal,
    Exp,
    Expm1,
    Ln,
    Log2,
    Log10,
    Log1p,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Asinh,
    Acosh,
    Atanh,
    Degrees,
    Radians,
    Floor,
    Ceil,
    Trunc,
    /// To the nearest integer, halves away from zero.
    Round,
    /// To the nearest integer, halves towards minus infinity.
    Rint,
    /// Towards zero.
    Fix,
    /// max(x, 0); NaN stays NaN.
    Relu,
    Sigmoid,
    /// ln(1 + e^x).
    Softrelu,
    /// x / (1 + |x|).
    Softsign,
    Gelu,
    Selu,
    Erf,
    Erfinv,
    Gamma,
    /// ln |gamma(x)|.
    Gammaln,
    /// 1 where x is 0, else 0.
    LogicalNot,
    /// 1 where x is NaN, else 0.
    IsNan,
    /// 1 where x is infinite, else 0.
    IsInf,
    /// 1 where x is neither NaN nor infinite, else 0.
    IsFinite,
    /// x limited to low..=high; NaN stays NaN.
    Clip {
        low: f64,
        high: f64,
    },
    /// x where positive, else slope * x.
    LeakyRelu {
        slope: f64,
    },
    /// x where positive, else slope * (e^x - 1).
    Elu {
        slope: f64,
    },
    /// alpha * x + beta limited to 0..=1.
    HardSigmoid {
        alpha: f64,
        beta: f64,
    },
    /// The smooth L1 loss: quadratic within 1 / sigma^2 of zero.
    SmoothL1 {
        sigma: f64,
    },
}

/// A function of two numbers. Comparisons and logic give 1 or 0 in the type of the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The names say it; those that do not are documented.
pub enum Binary {
    Add,
    Sub,
    Mul,
    /// The quotient; integers truncate, and give 0 where the divisor is 0.
    Div,
    /// The remainder with the sign of the divisor; 0 where the divisor is 0.
    Mod,
    Power,
    Hypot,
    Arctan2,
    /// The larger; a NaN on the left wins.
    Maximum,
    /// The smaller; a NaN on the left wins.
    Minimum,
    Equal,
    NotEqual,
    Greater,
    GreaterEqual,
    Lesser,
    LesserEqual,
    LogicalAnd,
    LogicalOr,
    LogicalXor,
    /// a * 2^b.
    Ldexp,
    /// The magnitude of a with the sign of b.
    Copysign,
    /// a where positive, else a * b: a leaky rectifier with its slopes in b.
    Prelu,
    /// a where positive, else b * (e^a - 1).
    Elu,
    /// The quotient computed in floating point even for integers, which MXNet does for "scalar / array".
    FloatDiv,
    /// Bits in both, as 64-bit integers.
    BitAnd,
    /// Bits in either, as 64-bit integers.
    BitOr,
    /// Bits in exactly one, as 64-bit integers.
    BitXor,
}

/// `out[i] = f(x[i])`, compiled for several widths.
pub(crate) struct Map1<'a, T, F> {
    pub x: &'a [T],
    pub out: &'a mut [T],
    pub f: F,
}

impl<T: Copy, F: Fn(T) -> T> Loop for Map1<'_, T, F> {
    #[inline(always)]
    fn run(self) {
        for (out, &x) in self.out.iter_mut().zip(self.x) {
            *out = (self.f)(x);
        }
    }
}

/// `out[i] = f(a[i], b[i])`, compiled for several widths.
pub(crate) struct Map2<'a, T, F> {
    pub a: &'a [T],
    pub b: &'a [T],
    pub out: &'a mut [T],
    pub f: F,
}

impl<T: Copy, F: Fn(T, T) -> T> Loop for Map2<'_, T, F> {
    #[inline(always)]
    fn run(self) {
        for ((out, &a), &b) in self.out.iter_mut().zip(self.a).zip(self.b) {
            *out = (self.f)(a, b);
        }
    }
}

/// A loop not worth several widths: the function is a call anyway.
fn each<T: Copy>(x: &[T], out: &mut [T], f: impl Fn(T) -> T) {
    Map1 { x, out, f }.run();
}

/// As [`each`], with two operands.
fn each2<T: Copy>(a: &[T], b: &[T], out: &mut [T], f: impl Fn(T, T) -> T) {
    Map2 { a, b, out, f }.run();
}

const PI_F32: f32 = std::f32::consts::PI;
/// MXNet's factors, rounded to single precision whatever the type.
const DEGREES: f32 = 180.0 / PI_F32;
const RADIANS: f32 = PI_F32 / 180.0;

fn fix(x: f64) -> f64 {
    let (floor, ceil) = (x.floor(), x.ceil());
    if floor.abs() < ceil.abs() { floor } else { ceil }
}

fn smooth_l1(x: f64, sigma: f64) -> f64 {
    let (square, limit) = (sigma * sigma, 1.0 / (sigma * sigma));
    if x > limit {
        x - 0.5 * limit
    } else if x < -limit {
        -x - 0.5 * limit
    } else {
        0.5 * x * x * square
    }
}

/// 1 or 0.
#[inline(always)]
fn truth<T: Element>(condition: bool) -> T {
    if condition { T::ONE } else { T::ZERO }
}

/// Any function of one number, in double precision.
fn unary_f64(op: Unary, x: f64) -> f64 {
    match op {
        Unary::Identity => x,
        Unary::Negative => -x,
        Unary::Abs => x.abs(),
        Unary::Sign => truth::<f64>(x > 0.0) - truth::<f64>(x < 0.0),
        Unary::Square => x * x,
        Unary::Sqrt => x.sqrt(),
        Unary::Rsqrt => 1.0 / x.sqrt(),
        Unary::Cbrt => x.cbrt(),
        Unary::Rcbrt => 1.0 / x.cbrt(),
        Unary::Reciprocal => 1.0 / x,
        Unary::Exp => x.exp(),
        Unary::Expm1 => x.exp_m1(),
        Unary::Ln => x.ln(),
        Unary::Log2 => x.log2(),
        Unary::Log10 => x.log10(),
        Unary::Log1p => x.ln_1p(),
        Unary::Sin => x.sin(),
        Unary::Cos => x.cos(),
        Unary::Tan => x.tan(),
        Unary::Asin => x.asin(),
        Unary::Acos => x.acos(),
        Unary::Atan => x.atan(),
        Unary::Sinh => x.sinh(),
        Unary::Cosh => x.cosh(),
        Unary::Tanh => x.tanh(),
        Unary::Asinh => libm::asinh(x),
        Unary::Acosh => libm::acosh(x),
        Unary::Atanh => libm::atanh(x),
        Unary::Degrees => DEGREES as f64 * x,
        Unary::Radians => RADIANS as f64 * x,
        Unary::Floor => x.floor(),
        Unary::Ceil => x.ceil(),
        Unary::Trunc => x.trunc(),
        Unary::Round => x.round(),
        Unary::Rint => math::rint(x),
        Unary::Fix => fix(x),
        Unary::Relu => {
            if x > 0.0 || x.is_nan() {
                x
            } else {
                0.0
            }
        }
        Unary::Sigmoid => math::sigmoid(x),
        Unary::Softrelu => math::softrelu(x),
        Unary::Softsign => x / (1.0 + x.abs()),
        Unary::Gelu => math::gelu(x),
        Unary::Selu => math::selu(x),
        Unary::Erf => math::erf(x),
        Unary::Erfinv => math::erfinv(x),
        Unary::Gamma => math::gamma(x),
        Unary::Gammaln => math::gammaln(x),
        Unary::LogicalNot => truth(x == 0.0),
        Unary::IsNan => truth(x.is_nan()),
        Unary::IsInf => truth(x.is_infinite()),
        Unary::IsFinite => truth(x.is_finite()),
        Unary::Clip { low, high } => clip(x, low, high),
        Unary::LeakyRelu { slope } => {
            if x > 0.0 {
                x
            } else {
                slope * x
            }
        }
        Unary::Elu { slope } => {
            if x > 0.0 {
                x
            } else {
                slope * x.exp_m1()
            }
        }
        Unary::HardSigmoid { alpha, beta } => clip(alpha * x + beta, 0.0, 1.0),
        Unary::SmoothL1 { sigma } => smooth_l1(x, sigma),
    }
}

#[inline(always)]
fn clip<T: PartialOrd>(x: T, low: T, high: T) -> T {
    if x > high {
        high
    } else if x < low {
        low
    } else {
        x
    }
}

pub(crate) fn unary_block_f64(op: Unary, x: &[f64], out: &mut [f64]) {
    match op {
        Unary::Identity => out.copy_from_slice(x),
        Unary::Relu => vectorize(Map1 { x, out, f: |x: f64| if x > 0.0 || x.is_nan() { x } else { 0.0 } }),
        Unary::Sqrt => vectorize(Map1 { x, out, f: |x: f64| x.sqrt() }),
        Unary::Square => vectorize(Map1 { x, out, f: |x: f64| x * x }),
        op => each(x, out, |x| unary_f64(op, x)),
    }
}

pub(crate) fn unary_block_f32(op: Unary, x: &[f32], out: &mut [f32]) {
    macro_rules! fast {
        ($f:expr) => {
            vectorize(Map1 { x, out, f: $f })
        };
    }
    match op {
        Unary::Identity => out.copy_from_slice(x),
        Unary::Negative => fast!(|x: f32| -x),
        Unary::Abs => fast!(|x: f32| x.abs()),
        Unary::Square => fast!(|x: f32| x * x),
        Unary::Sqrt => fast!(|x: f32| x.sqrt()),
        Unary::Rsqrt => fast!(|x: f32| 1.0 / x.sqrt()),
        Unary::Reciprocal => fast!(|x: f32| 1.0 / x),
        Unary::Exp => fast!(math::exp_f32),
        Unary::Ln => fast!(math::ln_f32),
        Unary::Tanh => fast!(math::tanh_f32),
        Unary::Sigmoid => fast!(math::sigmoid_f32),
        Unary::Softrelu => fast!(math::softrelu_f32),
        Unary::Erf => fast!(math::erf_f32),
        Unary::Gelu => fast!(math::gelu_f32),
        Unary::Relu => fast!(|x: f32| if x > 0.0 || x.is_nan() { x } else { 0.0 }),
        Unary::Softsign => fast!(|x: f32| x / (1.0 + x.abs())),
        Unary::Sign => fast!(|x: f32| truth::<f32>(x > 0.0) - truth::<f32>(x < 0.0)),
        Unary::Floor => fast!(|x: f32| x.floor()),
        Unary::Ceil => fast!(|x: f32| x.ceil()),
        Unary::Trunc => fast!(|x: f32| x.trunc()),
        Unary::LogicalNot => fast!(|x: f32| truth(x == 0.0)),
        Unary::Clip { low, high } => {
            let (low, high) = (low as f32, high as f32);
            fast!(move |x: f32| clip(x, low, high))
        }
        Unary::LeakyRelu { slope } => {
            let slope = slope as f32;
            fast!(move |x: f32| if x > 0.0 { x } else { slope * x })
        }
        Unary::HardSigmoid { alpha, beta } => {
            let (alpha, beta) = (alpha as f32, beta as f32);
            fast!(move |x: f32| clip(alpha * x + beta, 0.0, 1.0))
        }
        Unary::Degrees => fast!(|x: f32| DEGREES * x),
        Unary::Radians => fast!(|x: f32| RADIANS * x),
        Unary::Expm1 => each(x, out, f32::exp_m1),
        Unary::Log1p => each(x, out, f32::ln_1p),
        Unary::Sin => each(x, out, f32::sin),
        Unary::Cos => each(x, out, f32::cos),
        op => each(x, out, |x| unary_f64(op, x as f64) as f32),
    }
}

/// Integers: exact where the result is an integer anyway, otherwise through `f64` like C's functions.
pub(crate) fn unary_block_int<T: Element>(op: Unary, x: &[T], out: &mut [T]) {
    match op {
        Unary::Identity | Unary::Floor | Unary::Ceil | Unary::Trunc | Unary::Round | Unary::Rint | Unary::Fix => {
            out.copy_from_slice(x)
        }
        Unary::Negative => each(x, out, |x| T::ZERO.minus(x)),
        Unary::Relu => each(x, out, |x| if x > T::ZERO { x } else { T::ZERO }),
        Unary::LogicalNot => each(x, out, |x| truth(x == T::ZERO)),
        Unary::Clip { low, high } => {
            // A limit beyond the type's range never applies, and saturating gives just that.
            let (low, high) = (T::saturated(low), T::saturated(high));
            each(x, out, |x| clip(x, low, high))
        }
        // MXNet squares and inverts integers in single precision.
        Unary::Square => each(x, out, |x| {
            let x = x.to_f64() as f32;
            T::from_f64((x * x) as f64)
        }),
        Unary::Reciprocal => each(x, out, |x| T::from_f64((1.0 / x.to_f64() as f32) as f64)),
        op => each(x, out, |x| T::from_f64(unary_f64(op, x.to_f64()))),
    }
}

/// Half precision: blocks are widened, computed in single precision and rounded.
pub(crate) fn unary_block_f16(op: Unary, x: &[f16], out: &mut [f16]) {
    let (mut wide, mut result) = ([0f32; BLOCK], [0f32; BLOCK]);
    for (x, out) in x.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
        let (wide, result) = (&mut wide[..x.len()], &mut result[..x.len()]);
        widen(x, wide);
        unary_block_f32(op, wide, result);
        narrow(result, out);
    }
}

/// Half precision: blocks are widened, computed in single precision and rounded.
pub(crate) fn binary_block_f16(op: Binary, a: &[f16], b: &[f16], out: &mut [f16]) {
    let (mut wide_a, mut wide_b, mut result) = ([0f32; BLOCK], [0f32; BLOCK], [0f32; BLOCK]);
    for ((a, b), out) in a.chunks(BLOCK).zip(b.chunks(BLOCK)).zip(out.chunks_mut(BLOCK)) {
        let n = out.len();
        widen(a, &mut wide_a[..n]);
        widen(b, &mut wide_b[..n]);
        binary_block_f32(op, &wide_a[..n], &wide_b[..n], &mut result[..n]);
        narrow(&result[..n], out);
    }
}

fn bits(op: Binary, a: i64, b: i64) -> i64 {
    match op {
        Binary::BitAnd => a & b,
        Binary::BitOr => a | b,
        _ => a ^ b,
    }
}

macro_rules! binary_block {
    ($name:ident, $t:ty, $power:expr, $hypot:expr, $arctan2:expr, $ldexp:expr, $elu:expr, $float_div:expr) => {
        pub(crate) fn $name(op: Binary, a: &[$t], b: &[$t], out: &mut [$t]) {
            const ZERO: $t = <$t as Element>::ZERO;
            macro_rules! fast {
                ($f:expr) => {
                    vectorize(Map2 { a, b, out, f: $f })
                };
            }
            match op {
                Binary::Add => fast!(|a: $t, b: $t| a.plus(b)),
                Binary::Sub => fast!(|a: $t, b: $t| a.minus(b)),
                Binary::Mul => fast!(|a: $t, b: $t| a.times(b)),
                Binary::Div => fast!(|a: $t, b: $t| a.over(b)),
                Binary::Maximum => fast!(|a: $t, b: $t| if a.nan() || a > b { a } else { b }),
                Binary::Minimum => fast!(|a: $t, b: $t| if a.nan() || a < b { a } else { b }),
                Binary::Equal => fast!(|a: $t, b: $t| truth(a == b)),
                Binary::NotEqual => fast!(|a: $t, b: $t| truth(a != b)),
                Binary::Greater => fast!(|a: $t, b: $t| truth(a > b)),
                Binary::GreaterEqual => fast!(|a: $t, b: $t| truth(a >= b)),
                Binary::Lesser => fast!(|a: $t, b: $t| truth(a < b)),
                Binary::LesserEqual => fast!(|a: $t, b: $t| truth(a <= b)),
                Binary::LogicalAnd => fast!(|a: $t, b: $t| truth(a != ZERO && b != ZERO)),
                Binary::LogicalOr => fast!(|a: $t, b: $t| truth(a != ZERO || b != ZERO)),
                Binary::LogicalXor => fast!(|a: $t, b: $t| truth((a != ZERO) != (b != ZERO))),
                Binary::Prelu => fast!(|a: $t, b: $t| if a > ZERO { a } else { a.times(b) }),
                Binary::Copysign => each2(a, b, out, |a, b| if (a >= ZERO) == (b >= ZERO) { a } else { ZERO.minus(a) }),
                Binary::Mod => each2(a, b, out, |a, b| <$t>::from_f64(math::modulo(a.to_f64(), b.to_f64()))),
                Binary::Power => each2(a, b, out, $power),
                Binary::Hypot => each2(a, b, out, $hypot),
                Binary::Arctan2 => each2(a, b, out, $arctan2),
                Binary::Ldexp => each2(a, b, out, $ldexp),
                Binary::Elu => each2(a, b, out, $elu),
                Binary::FloatDiv => each2(a, b, out, $float_div),
                Binary::BitAnd | Binary::BitOr | Binary::BitXor => {
                    each2(a, b, out, |a, b| <$t>::from_i64(bits(op, a.to_i64(), b.to_i64())))
                }
            }
        }
    };
    // Integers compute in single precision and convert, as MXNet does.
    ($name:ident, $t:ty) => {
        binary_block!(
            $name,
            $t,
            |a: $t, b: $t| through_f32(a, b, f32::powf),
            |a: $t, b: $t| through_f32(a, b, f32::hypot),
            |a: $t, b: $t| through_f32(a, b, f32::atan2),
            |a: $t, b: $t| through_f32(a, b, |a, b| a * b.exp2()),
            |a: $t, b: $t| if a > <$t as Element>::ZERO { a } else { through_f32(a, b, |a, b| b * a.exp_m1()) },
            |a: $t, b: $t| through_f32(a, b, |a, b| a / b)
        );
    };
}

#[inline(always)]
fn through_f32<T: Element>(a: T, b: T, f: impl Fn(f32, f32) -> f32) -> T {
    T::from_f64(f(a.to_f64() as f32, b.to_f64() as f32) as f64)
}

binary_block!(
    binary_block_f32,
    f32,
    f32::powf,
    f32::hypot,
    f32::atan2,
    |a: f32, b: f32| a * b.exp2(),
    |a: f32, b: f32| if a > 0.0 { a } else { b * a.exp_m1() },
    |a: f32, b: f32| a / b
);
binary_block!(
    binary_block_f64,
    f64,
    f64::powf,
    f64::hypot,
    f64::atan2,
    |a: f64, b: f64| a * b.exp2(),
    |a: f64, b: f64| if a > 0.0 { a } else { b * a.exp_m1() },
    |a: f64, b: f64| a / b
);
binary_block!(binary_block_u8, u8);
binary_block!(binary_block_i8, i8);
binary_block!(binary_block_i32, i32);
binary_block!(binary_block_i64, i64);
binary_block!(binary_block_bool, crate::element::Bool);
