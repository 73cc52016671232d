//! The table of functions of two numbers: a row each, with the names of its operators and its code.

use super::BLOCK;
use super::functions::{FunctionCost, each2, in_single2, truth, vectors2};
use crate::element::Element;
use crate::halves::{narrow, widen};
use crate::math;
use half::f16;

/// A function of two numbers, for every element type.
trait BinaryFunction {
    /// The estimate of its time.
    const COST: FunctionCost;

    /// A block of any type.
    fn block<T: Element>(a: &[T], b: &[T], out: &mut [T]);

    /// A block in single precision.
    fn f32s(a: &[f32], b: &[f32], out: &mut [f32]) {
        Self::block(a, b, out);
    }

    /// A block in double precision.
    fn f64s(a: &[f64], b: &[f64], out: &mut [f64]) {
        Self::block(a, b, out);
    }
}

/// Calls the macro `$then` with the table.
///
/// A row: name of the function; its result, as the documentation of its operators says it; name and
/// aliases of its operators, of two arrays of one shape (`same_shape`), of arrays that are
/// broadcast, of an array and a number (`scalar`), of a number and an array (`scalar_left`), each
/// if there is one; code.
/// * `any: vectors2 |a, b| …` is a loop for every type `T`, compiled for every vector width.
///   `each2` instead compiles it once, for functions that are calls.
/// * `float: |a, b| …` is a function in single and double precision. Integers compute in single
///   precision and convert, as MXNet does, unless `integers: |a, b| …` says otherwise.
/// * `cost: …`, at the end after a semicolon, is a [`FunctionCost`].
#[macro_export]
macro_rules! binary_functions {
    ($then:ident) => { $then! {
        Add "the sum"
            same_shape ["elemwise_add" "_Plus" "_add" "_plus" "_sparse_elemwise_add"]
            broadcast ["broadcast_add" "_sparse_broadcast_add" "_sparse_broadcast_plus" "broadcast_plus"]
            scalar ["_plus_scalar" "_PlusScalar"]
            { any: vectors2 |a, b| a.plus(b); cost: Streaming }
        Sub "the difference"
            same_shape ["elemwise_sub" "_Minus" "_minus" "_sparse_elemwise_sub" "_sub"]
            broadcast ["broadcast_sub" "_sparse_broadcast_minus" "_sparse_broadcast_sub" "broadcast_minus"]
            scalar ["_minus_scalar" "_MinusScalar"]
            scalar_left ["_rminus_scalar" "_RMinusScalar"]
            { any: vectors2 |a, b| a.minus(b); cost: Streaming }
        Mul "the product"
            same_shape ["elemwise_mul" "_Mul" "_mul" "_sparse_elemwise_mul"]
            broadcast ["broadcast_mul" "_sparse_broadcast_mul"]
            scalar ["_mul_scalar" "_MulScalar"]
            { any: vectors2 |a, b| a.times(b); cost: Streaming }
        Div "the quotient; integers are divided as integers, with 0 where the divisor is 0"
            same_shape ["elemwise_div" "_Div" "_div" "_sparse_elemwise_div"]
            broadcast ["broadcast_div" "_sparse_broadcast_div"]
            scalar ["_div_scalar" "_DivScalar"]
            { any: vectors2 |a, b| a.over(b); cost: Integers(1_000) }
        // MXNet divides numbers by arrays of integers in floating point.
        FloatDiv "the quotient, computed in floating point"
            scalar_left ["_rdiv_scalar" "_RDivScalar"]
            { float: |a, b| a / b; cost: Calls(100) }
        Mod "the remainder, with the sign of the divisor, and 0 where the divisor is 0"
            same_shape ["_mod" "_Mod"]
            broadcast ["broadcast_mod"]
            scalar ["_mod_scalar" "_ModScalar"]
            scalar_left ["_rmod_scalar" "_RModScalar"]
            { any: each2 |a, b| T::from_f64(math::modulo(a.to_f64(), b.to_f64())); cost: EveryType(9_000) }
        Power "the left to the power of the right"
            same_shape ["_power" "_Power"]
            broadcast ["broadcast_power"]
            scalar ["_power_scalar" "_PowerScalar"]
            scalar_left ["_rpower_scalar" "_RPowerScalar"]
            { float: |a, b| a.powf(b); cost: EveryType(3_000) }
        Maximum "the larger; a NaN on the left wins"
            same_shape ["_maximum" "_Maximum"]
            broadcast ["broadcast_maximum" "_npi_maximum"]
            scalar ["_maximum_scalar" "_MaximumScalar" "_npi_maximum_scalar"]
            { any: vectors2 |a, b| if a.nan() || a > b { a } else { b }; cost: Streaming }
        Minimum "the smaller; a NaN on the left wins"
            same_shape ["_minimum" "_Minimum"]
            broadcast ["broadcast_minimum" "_npi_minimum"]
            scalar ["_minimum_scalar" "_MinimumScalar" "_npi_minimum_scalar"]
            { any: vectors2 |a, b| if a.nan() || a < b { a } else { b }; cost: Streaming }
        Hypot "the length of the hypotenuse"
            same_shape ["_hypot" "_Hypot"]
            broadcast ["broadcast_hypot"]
            scalar ["_hypot_scalar" "_HypotScalar" "_npi_hypot_scalar"]
            { float: |a, b| a.hypot(b); cost: EveryType(3_000) }
        Equal "1 where equal, else 0"
            same_shape ["_equal" "_Equal"] broadcast ["broadcast_equal"] scalar ["_equal_scalar" "_EqualScalar"]
            { any: vectors2 |a, b| truth(a == b); cost: Streaming }
        NotEqual "1 where not equal, else 0"
            same_shape ["_not_equal" "_Not_Equal"]
            broadcast ["broadcast_not_equal"]
            scalar ["_not_equal_scalar" "_NotEqualScalar"]
            { any: vectors2 |a, b| truth(a != b); cost: Streaming }
        Greater "1 where the left is greater, else 0"
            same_shape ["_greater" "_Greater"]
            broadcast ["broadcast_greater"]
            scalar ["_greater_scalar" "_GreaterScalar"]
            { any: vectors2 |a, b| truth(a > b); cost: Streaming }
        GreaterEqual "1 where the left is not less, else 0"
            same_shape ["_greater_equal" "_Greater_Equal"]
            broadcast ["broadcast_greater_equal"]
            scalar ["_greater_equal_scalar" "_GreaterEqualScalar"]
            { any: vectors2 |a, b| truth(a >= b); cost: Streaming }
        Lesser "1 where the left is less, else 0"
            same_shape ["_lesser" "_Lesser"] broadcast ["broadcast_lesser"] scalar ["_lesser_scalar" "_LesserScalar"]
            { any: vectors2 |a, b| truth(a < b); cost: Streaming }
        LesserEqual "1 where the left is not greater, else 0"
            same_shape ["_lesser_equal" "_Lesser_Equal"]
            broadcast ["broadcast_lesser_equal"]
            scalar ["_lesser_equal_scalar" "_LesserEqualScalar"]
            { any: vectors2 |a, b| truth(a <= b); cost: Streaming }
        LogicalAnd "1 where both are not 0, else 0"
            same_shape ["_logical_and" "_Logical_And"]
            broadcast ["broadcast_logical_and"]
            scalar ["_logical_and_scalar" "_LogicalAndScalar"]
            { any: vectors2 |a, b| truth(a != T::ZERO && b != T::ZERO); cost: Streaming }
        LogicalOr "1 where one is not 0, else 0"
            same_shape ["_logical_or" "_Logical_Or"]
            broadcast ["broadcast_logical_or"]
            scalar ["_logical_or_scalar" "_LogicalOrScalar"]
            { any: vectors2 |a, b| truth(a != T::ZERO || b != T::ZERO); cost: Streaming }
        LogicalXor "1 where exactly one is not 0, else 0"
            same_shape ["_logical_xor" "_Logical_Xor"]
            broadcast ["broadcast_logical_xor"]
            scalar ["_logical_xor_scalar" "_LogicalXorScalar"]
            { any: vectors2 |a, b| truth((a != T::ZERO) != (b != T::ZERO)); cost: Streaming }
        Arctan2 "the angle of the point (b, a)" { float: |a, b| a.atan2(b); cost: EveryType(3_000) }
        Ldexp "a * 2^b" { float: |a, b| a * b.exp2(); cost: EveryType(3_000) }
        Copysign "the magnitude of a with the sign of b" {
            any: each2 |a, b| if (a >= T::ZERO) == (b >= T::ZERO) { a } else { T::from_f64(-0.0).minus(a) }; cost: Calls(100)
        }
        Prelu "a where positive, else a * b: a leaky rectifier with its slopes in b" {
            any: vectors2 |a, b| if a > T::ZERO { a } else { a.times(b) }; cost: Streaming
        }
        Elu "a where positive, else b * (e^a - 1)" {
            float: |a, b| if a > 0.0 { a } else { b * a.exp_m1() },
            integers: |a, b| if a > T::ZERO { a } else { through_f32(a, b, |a, b| b * a.exp_m1()) };
            cost: EveryType(3_000)
        }
        BitAnd "bits in both, as 64-bit integers" {
            any: each2 |a, b| T::from_i64(a.to_i64() & b.to_i64()); cost: Calls(100)
        }
        BitOr "bits in either, as 64-bit integers" {
            any: each2 |a, b| T::from_i64(a.to_i64() | b.to_i64()); cost: Calls(100)
        }
        BitXor "bits in exactly one, as 64-bit integers" {
            any: each2 |a, b| T::from_i64(a.to_i64() ^ b.to_i64()); cost: Calls(100)
        }
        Lcm "the least common multiple of whole numbers, 0 where one is 0" {
            any: each2 |a, b| T::from_i64(math::least_common_multiple(a.to_i64(), b.to_i64())); cost: Calls(20_000)
        }
    } };
}

/// The code of a row.
macro_rules! binary_loops {
    (any: $loop:ident |$a:ident, $b:ident| $value:expr) => {
        fn block<T: Element>(a: &[T], b: &[T], out: &mut [T]) {
            $loop(a, b, out, |$a: T, $b: T| $value)
        }
    };
    (float: |$a:ident, $b:ident| $value:expr) => {
        fn block<T: Element>(a: &[T], b: &[T], out: &mut [T]) {
            in_single2(a, b, out, &Self::f32s)
        }

        binary_loops!(@floats |$a, $b| $value);
    };
    (float: |$a:ident, $b:ident| $value:expr, integers: |$x:ident, $y:ident| $integer:expr) => {
        fn block<T: Element>(a: &[T], b: &[T], out: &mut [T]) {
            each2(a, b, out, |$x: T, $y: T| $integer)
        }

        binary_loops!(@floats |$a, $b| $value);
    };
    (@floats |$a:ident, $b:ident| $value:expr) => {
        fn f32s(a: &[f32], b: &[f32], out: &mut [f32]) {
            each2(a, b, out, |$a: f32, $b: f32| $value)
        }

        fn f64s(a: &[f64], b: &[f64], out: &mut [f64]) {
            each2(a, b, out, |$a: f64, $b: f64| $value)
        }
    };
}

/// Makes [`Binary`], its functions and the choice between them from the table.
macro_rules! define_binary {
    ($(
        $name:ident $what:literal $($family:ident [$($operator:literal)*])*
        { $type:ident: $($loop:ident)? |$a:ident, $b:ident| $value:expr
          $(, integers: |$x:ident, $y:ident| $integer:expr)?; cost: $cost:ident $(($picoseconds:literal))? }
    )*) => {
        /// A function of two numbers. Comparisons and logic give 1 or 0 in the type of the
        /// operands.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Binary {
            $(#[doc = concat!("Of `a` and `b`, ", $what, ".")] $name,)*
        }

        $(
            struct $name;

            impl BinaryFunction for $name {
                const COST: FunctionCost = FunctionCost::$cost $(($picoseconds))?;
                binary_loops!($type: $($loop)? |$a, $b| $value $(, integers: |$x, $y| $integer)?);
            }
        )*

        impl Binary {
            /// The estimate of its time.
            pub fn cost(self) -> FunctionCost {
                match self {
                    $(Binary::$name => $name::COST,)*
                }
            }

            pub(crate) fn f32s(self, a: &[f32], b: &[f32], out: &mut [f32]) {
                match self {
                    $(Binary::$name => $name::f32s(a, b, out),)*
                }
            }

            pub(crate) fn f64s(self, a: &[f64], b: &[f64], out: &mut [f64]) {
                match self {
                    $(Binary::$name => $name::f64s(a, b, out),)*
                }
            }

            pub(crate) fn integers<T: Element>(self, a: &[T], b: &[T], out: &mut [T]) {
                match self {
                    $(Binary::$name => $name::block(a, b, out),)*
                }
            }
        }
    };
}

binary_functions!(define_binary);

impl Binary {
    /// Half precision: blocks are widened, computed in single precision and rounded.
    pub(crate) fn f16s(self, a: &[f16], b: &[f16], out: &mut [f16]) {
        let (mut wide_a, mut wide_b, mut result) = ([0f32; BLOCK], [0f32; BLOCK], [0f32; BLOCK]);
        for ((a, b), out) in a.chunks(BLOCK).zip(b.chunks(BLOCK)).zip(out.chunks_mut(BLOCK)) {
            let n = out.len();
            widen(a, &mut wide_a[..n]);
            widen(b, &mut wide_b[..n]);
            self.f32s(&wide_a[..n], &wide_b[..n], &mut result[..n]);
            narrow(&result[..n], out);
        }
    }
}

/// A function in single precision, of any numbers.
#[inline(always)]
fn through_f32<T: Element>(a: T, b: T, f: impl Fn(f32, f32) -> f32) -> T {
    T::from_f64(f(a.to_f64() as f32, b.to_f64() as f32) as f64)
}
