//! The element types kernels are generic over, with C's conversions between them.

use bytemuck::Pod;
use half::f16;

use crate::elementwise::{Binary, Unary};
use crate::sort::SortKey;

/// Truth as one byte, 0 or 1, the way arrays of booleans store it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Bool(pub u8);

/// A type arrays are made of.
pub trait Element: Pod + PartialOrd + Default + std::fmt::Debug + Send + Sync + 'static {
    /// Type of sums and function values: `f32` for `f32` and `f16`, `f64` otherwise.
    type Acc: Float;
    /// Type of keys by which elements are sorted.
    #[doc(hidden)]
    type Key: SortKey;
    /// Whether the type is a floating-point type.
    const FLOAT: bool;
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// The lowest finite value.
    const LOWEST: Self;
    /// The highest finite value.
    const HIGHEST: Self;
    /// The value below or equal to all others: minus infinity where there is one.
    const BOTTOM: Self;
    /// The value above or equal to all others: infinity where there is one.
    const TOP: Self;
    /// The value as `f64` (rounded where it is an integer beyond 2^53).
    fn to_f64(self) -> f64;
    /// C's conversion from `double`: truncates towards zero; what does not fit becomes what x86
    /// makes of it.
    fn from_f64(v: f64) -> Self;
    /// The nearest value of this type: out-of-range values become the lowest or highest, NaN zero
    /// in integer types.
    fn saturated(v: f64) -> Self;
    /// The value in the type of sums.
    fn acc(self) -> Self::Acc;
    /// C's conversion from the type of sums.
    fn from_acc(v: Self::Acc) -> Self;
    /// [`acc`](Self::acc) of as many values.
    #[inline(always)]
    fn acc_all(x: &[Self], out: &mut [Self::Acc]) {
        out.iter_mut().zip(x).for_each(|(out, v)| *out = v.acc());
    }
    /// [`from_acc`](Self::from_acc) of as many values.
    #[inline(always)]
    fn from_acc_all(x: &[Self::Acc], out: &mut [Self]) {
        out.iter_mut().zip(x).for_each(|(out, v)| *out = Self::from_acc(*v));
    }
    /// C's conversion to `int64_t`.
    fn to_i64(self) -> i64;
    /// C's conversion from `int64_t`.
    fn from_i64(v: i64) -> Self;
    /// Whether the value is NaN.
    fn nan(self) -> bool;
    /// A number in the order of the values other than NaN, at most `Key::LAST`; both zeros have the
    /// same.
    #[doc(hidden)]
    fn rank(self) -> u64;
    /// The sum; integers wrap around.
    fn plus(self, b: Self) -> Self;
    /// The difference; integers wrap around.
    fn minus(self, b: Self) -> Self;
    /// The product; integers wrap around.
    fn times(self, b: Self) -> Self;
    /// The quotient; integers truncate, and give 0 where the divisor is 0.
    fn over(self, b: Self) -> Self;
    /// `out[i] = op(x[i])` for a block of elements.
    #[doc(hidden)]
    fn unary_block(op: Unary, x: &[Self], out: &mut [Self]);
    /// `out[i] = op(a[i], b[i])` for a block of elements.
    #[doc(hidden)]
    fn binary_block(op: Binary, a: &[Self], b: &[Self], out: &mut [Self]);
}

/// `f32` or `f64`: an element type that functions are computed in.
pub trait Float:
    Element<Acc = Self>
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
    + std::ops::Neg<Output = Self>
    + std::ops::AddAssign
{
    /// The square root.
    fn sqrt(self) -> Self;
    /// The absolute value.
    fn abs(self) -> Self;
    /// e to the power of the value; vectorisable for `f32`.
    fn exp(self) -> Self;
    /// `e^(x - max)` in place of every element of a row; their sum. The lines at the two addresses
    /// `soon` are requested at the pace of the row; these need not be valid.
    #[inline(always)]
    fn exponentials(x: &mut [Self], max: Self, _soon: [*const u8; 2]) -> f64 {
        let mut sum = 0.0;
        for v in x {
            *v = (*v - max).exp();
            sum += v.to_f64();
        }
        sum
    }
    /// Computes a row of columns, each with its own maximum and a sum that is added to. Maxima and
    /// sums fill vectors of 16.
    #[inline(always)]
    fn exponentials_of_columns(x: &mut [Self], max: &[Self], sums: &mut [Self], _soon: [*const u8; 2]) {
        for ((v, max), sum) in x.iter_mut().zip(max).zip(sums) {
            *v = (*v - *max).exp();
            *sum += *v;
        }
    }
    /// The natural logarithm.
    fn ln(self) -> Self;
    /// The value to a power.
    fn powf(self, e: Self) -> Self;
    /// The cube root.
    fn cbrt(self) -> Self;
}

/// Whether two types are one.
pub(crate) fn is_same<A: 'static, B: 'static>() -> bool {
    std::any::TypeId::of::<A>() == std::any::TypeId::of::<B>()
}

/// C's `(int32_t)v` on x86: what does not fit is `INT32_MIN`.
#[inline(always)]
pub(crate) fn c_i32(v: f64) -> i32 {
    if v > -2147483649.0 && v < 2147483648.0 { v as i32 } else { i32::MIN }
}

/// C's `(int64_t)v` on x86: what does not fit is `INT64_MIN`.
#[inline(always)]
pub(crate) fn c_i64(v: f64) -> i64 {
    if (-9223372036854775808.0..9223372036854775808.0).contains(&v) { v as i64 } else { i64::MIN }
}

macro_rules! float_element {
    ($t:ty, $block:ident, $key:ty) => {
        impl Element for $t {
            type Acc = $t;
            type Key = $key;
            #[inline]
            fn unary_block(op: Unary, x: &[Self], out: &mut [Self]) {
                op.$block(x, out)
            }
            #[inline]
            fn binary_block(op: Binary, a: &[Self], b: &[Self], out: &mut [Self]) {
                op.$block(a, b, out)
            }
            const FLOAT: bool = true;
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const LOWEST: Self = <$t>::MIN;
            const HIGHEST: Self = <$t>::MAX;
            const BOTTOM: Self = <$t>::NEG_INFINITY;
            const TOP: Self = <$t>::INFINITY;
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn from_f64(v: f64) -> Self {
                v as $t
            }
            #[inline(always)]
            fn saturated(v: f64) -> Self {
                v as $t
            }
            #[inline(always)]
            fn acc(self) -> $t {
                self
            }
            #[inline(always)]
            fn from_acc(v: $t) -> Self {
                v
            }
            #[inline(always)]
            fn to_i64(self) -> i64 {
                c_i64(self as f64)
            }
            #[inline(always)]
            fn from_i64(v: i64) -> Self {
                v as $t
            }
            #[inline(always)]
            fn nan(self) -> bool {
                self != self
            }
            #[inline(always)]
            fn rank(self) -> u64 {
                // The sum makes +0 of -0. Of negative numbers the bits count down.
                let bits = (self + 0.0).to_bits();
                let sign = !(<$t>::MAX.to_bits() | <$t>::INFINITY.to_bits());
                (if bits & sign != 0 { !bits } else { bits | sign }).into()
            }
            #[inline(always)]
            fn plus(self, b: Self) -> Self {
                self + b
            }
            #[inline(always)]
            fn minus(self, b: Self) -> Self {
                self - b
            }
            #[inline(always)]
            fn times(self, b: Self) -> Self {
                self * b
            }
            #[inline(always)]
            fn over(self, b: Self) -> Self {
                self / b
            }
        }
    };
}
float_element!(f32, f32s, u64);
float_element!(f64, f64s, u128);

impl Float for f32 {
    #[inline(always)]
    fn sqrt(self) -> f32 {
        f32::sqrt(self)
    }
    #[inline(always)]
    fn abs(self) -> f32 {
        f32::abs(self)
    }
    #[inline(always)]
    fn exp(self) -> f32 {
        crate::math::exp_f32(self)
    }
    fn exponentials(x: &mut [f32], max: f32, soon: [*const u8; 2]) -> f64 {
        crate::exponentials::of_row(x, max, soon)
    }
    fn exponentials_of_columns(x: &mut [f32], max: &[f32], sums: &mut [f32], soon: [*const u8; 2]) {
        crate::exponentials::of_columns(x, max, sums, soon)
    }
    #[inline(always)]
    fn ln(self) -> f32 {
        f32::ln(self)
    }
    #[inline(always)]
    fn powf(self, e: f32) -> f32 {
        f32::powf(self, e)
    }
    #[inline(always)]
    fn cbrt(self) -> f32 {
        f32::cbrt(self)
    }
}

impl Float for f64 {
    #[inline(always)]
    fn sqrt(self) -> f64 {
        f64::sqrt(self)
    }
    #[inline(always)]
    fn abs(self) -> f64 {
        f64::abs(self)
    }
    #[inline(always)]
    fn exp(self) -> f64 {
        f64::exp(self)
    }
    #[inline(always)]
    fn ln(self) -> f64 {
        f64::ln(self)
    }
    #[inline(always)]
    fn powf(self, e: f64) -> f64 {
        f64::powf(self, e)
    }
    #[inline(always)]
    fn cbrt(self) -> f64 {
        f64::cbrt(self)
    }
}

impl Element for f16 {
    type Acc = f32;
    type Key = u64;
    #[inline]
    fn unary_block(op: Unary, x: &[Self], out: &mut [Self]) {
        op.f16s(x, out)
    }
    #[inline]
    fn binary_block(op: Binary, a: &[Self], b: &[Self], out: &mut [Self]) {
        op.f16s(a, b, out)
    }
    const FLOAT: bool = true;
    const ZERO: Self = f16::ZERO;
    const ONE: Self = f16::ONE;
    const LOWEST: Self = f16::MIN;
    const HIGHEST: Self = f16::MAX;
    const BOTTOM: Self = f16::NEG_INFINITY;
    const TOP: Self = f16::INFINITY;
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self.to_f32() as f64
    }
    /// Through `float`, which rounds twice, as MXNet does.
    #[inline(always)]
    fn from_f64(v: f64) -> Self {
        f16::from_f32(v as f32)
    }
    #[inline(always)]
    fn saturated(v: f64) -> Self {
        f16::from_f32(v as f32)
    }
    #[inline(always)]
    fn acc(self) -> f32 {
        self.to_f32()
    }
    #[inline(always)]
    fn from_acc(v: f32) -> Self {
        f16::from_f32(v)
    }
    fn acc_all(x: &[Self], out: &mut [f32]) {
        crate::halves::widen(x, out);
    }
    fn from_acc_all(x: &[f32], out: &mut [Self]) {
        crate::halves::narrow(x, out);
    }
    #[inline(always)]
    fn to_i64(self) -> i64 {
        c_i64(self.to_f32() as f64)
    }
    #[inline(always)]
    fn from_i64(v: i64) -> Self {
        f16::from_f32(v as f32)
    }
    #[inline(always)]
    fn nan(self) -> bool {
        self.is_nan()
    }
    #[inline(always)]
    fn rank(self) -> u64 {
        self.to_f32().rank()
    }
    #[inline(always)]
    fn plus(self, b: Self) -> Self {
        f16::from_f32(self.to_f32() + b.to_f32())
    }
    #[inline(always)]
    fn minus(self, b: Self) -> Self {
        f16::from_f32(self.to_f32() - b.to_f32())
    }
    #[inline(always)]
    fn times(self, b: Self) -> Self {
        f16::from_f32(self.to_f32() * b.to_f32())
    }
    #[inline(always)]
    fn over(self, b: Self) -> Self {
        f16::from_f32(self.to_f32() / b.to_f32())
    }
}

macro_rules! int_element {
    ($t:ty, $from_f64:expr, $key:ty) => {
        impl Element for $t {
            type Acc = f64;
            type Key = $key;
            #[inline]
            fn unary_block(op: Unary, x: &[Self], out: &mut [Self]) {
                op.integers(x, out)
            }
            #[inline]
            fn binary_block(op: Binary, a: &[Self], b: &[Self], out: &mut [Self]) {
                op.integers(a, b, out)
            }
            const FLOAT: bool = false;
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const LOWEST: Self = <$t>::MIN;
            const HIGHEST: Self = <$t>::MAX;
            const BOTTOM: Self = <$t>::MIN;
            const TOP: Self = <$t>::MAX;
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn from_f64(v: f64) -> Self {
                $from_f64(v) as $t
            }
            #[inline(always)]
            fn saturated(v: f64) -> Self {
                v as $t
            }
            #[inline(always)]
            fn acc(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn from_acc(v: f64) -> Self {
                $from_f64(v) as $t
            }
            #[inline(always)]
            fn to_i64(self) -> i64 {
                self as i64
            }
            #[inline(always)]
            fn from_i64(v: i64) -> Self {
                v as $t
            }
            #[inline(always)]
            fn nan(self) -> bool {
                false
            }
            #[inline(always)]
            fn rank(self) -> u64 {
                (self as i64).wrapping_sub(<$t>::MIN as i64) as u64
            }
            #[inline(always)]
            fn plus(self, b: Self) -> Self {
                self.wrapping_add(b)
            }
            #[inline(always)]
            fn minus(self, b: Self) -> Self {
                self.wrapping_sub(b)
            }
            #[inline(always)]
            fn times(self, b: Self) -> Self {
                self.wrapping_mul(b)
            }
            #[inline(always)]
            fn over(self, b: Self) -> Self {
                if b == 0 { 0 } else { self.wrapping_div(b) }
            }
        }
    };
}
int_element!(u8, c_i32, u64);
int_element!(i8, c_i32, u64);
int_element!(i32, c_i32, u64);
int_element!(i64, c_i64, u128);

/// Arithmetic on booleans is C's on 0 and 1 followed by the conversion back: addition is "or",
/// multiplication "and", subtraction "differs".
impl Element for Bool {
    type Acc = f64;
    type Key = u64;
    #[inline]
    fn unary_block(op: Unary, x: &[Self], out: &mut [Self]) {
        op.integers(x, out)
    }
    #[inline]
    fn binary_block(op: Binary, a: &[Self], b: &[Self], out: &mut [Self]) {
        op.integers(a, b, out)
    }
    const FLOAT: bool = false;
    const ZERO: Self = Bool(0);
    const ONE: Self = Bool(1);
    const LOWEST: Self = Bool(0);
    const HIGHEST: Self = Bool(1);
    const BOTTOM: Self = Bool(0);
    const TOP: Self = Bool(1);
    #[inline(always)]
    fn to_f64(self) -> f64 {
        (self.0 != 0) as u8 as f64
    }
    #[inline(always)]
    fn from_f64(v: f64) -> Self {
        Bool((v != 0.0) as u8)
    }
    #[inline(always)]
    fn saturated(v: f64) -> Self {
        Bool((v != 0.0) as u8)
    }
    #[inline(always)]
    fn acc(self) -> f64 {
        self.to_f64()
    }
    #[inline(always)]
    fn from_acc(v: f64) -> Self {
        Bool((v != 0.0) as u8)
    }
    #[inline(always)]
    fn to_i64(self) -> i64 {
        (self.0 != 0) as i64
    }
    #[inline(always)]
    fn from_i64(v: i64) -> Self {
        Bool((v != 0) as u8)
    }
    #[inline(always)]
    fn nan(self) -> bool {
        false
    }
    #[inline(always)]
    fn rank(self) -> u64 {
        self.0.into()
    }
    #[inline(always)]
    fn plus(self, b: Self) -> Self {
        Bool((self.0 != 0 || b.0 != 0) as u8)
    }
    #[inline(always)]
    fn minus(self, b: Self) -> Self {
        Bool(((self.0 != 0) != (b.0 != 0)) as u8)
    }
    #[inline(always)]
    fn times(self, b: Self) -> Self {
        Bool((self.0 != 0 && b.0 != 0) as u8)
    }
    #[inline(always)]
    fn over(self, b: Self) -> Self {
        self.times(b)
    }
}
