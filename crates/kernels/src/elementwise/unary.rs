//! The table of functions of one number: a row each, with the name and documentation of its
//! operator and its code.

use super::BLOCK;
use super::functions::{FunctionCost, clip, each, in_double, truth, vectors};
use crate::element::Element;
use crate::erf;
use crate::halves::{narrow, widen};
use crate::math;
use crate::vectorize::{Loop, vectorize};
use half::f16;

/// A function of one number, for every element type.
trait UnaryFunction: Copy {
    /// The estimate of its time.
    const COST: FunctionCost = FunctionCost::SLOW_CALL;

    /// The function in double precision, which every type without a loop of its own computes in.
    fn f64(self, x: f64) -> f64;

    /// A block in single precision.
    fn f32s(self, x: &[f32], out: &mut [f32]) {
        each(x, out, |x| self.f64(x as f64) as f32);
    }

    /// A block in double precision.
    fn f64s(self, x: &[f64], out: &mut [f64]) {
        each(x, out, |x| self.f64(x));
    }

    /// A block of integers.
    fn integers<T: Element>(self, x: &[T], out: &mut [T]) {
        in_double(x, out, &|x, out| self.f64s(x, out));
    }
}

/// Calls the macro `$then` with the table.
///
/// A row: name of the function; in brackets name and aliases of its operator, if it has one;
/// documentation; code.
/// * `f64: |x| …` is the function in double precision. Every type without its own loop computes in
///   it.
/// * `f32: vectors |x| …` is a loop in single precision, compiled for every vector width; half
///   precision uses it too. `each` instead of `vectors` compiles it once, for functions that are
///   calls; `whole` names a function of slices. `near` takes two values: the second replaces a first
///   one that is NaN, and where both are the function is computed in double precision. `f64s:` and
///   `integers:` are such loops for double precision and for integers of type `T`.
/// * `cost: …`, at the end after a semicolon, is a [`FunctionCost`]; without it `SLOW_CALL`.
///
/// Functions with parameters follow, with their documentation; their code stands below the table.
#[macro_export]
macro_rules! unary_functions {
    ($then:ident) => { $then! {
        Identity "The input." {
            f64: |x| x, f32: vectors |x| x, integers: each |x| x; cost: Streaming
        }
        Abs ["abs" "_sparse_abs"] "The absolute value." {
            f64: |x| x.abs(), f32: vectors |x| x.abs(), f64s: vectors |x| x.abs(); cost: Vectors(0)
        }
        Sign ["sign" "_contrib_sign_ste" "_sparse__contrib_sign_ste" "_sparse_sign"] "The sign: -1, 0 or 1." {
            f64: |x| truth::<f64>(x > 0.0) - truth::<f64>(x < 0.0),
            f32: vectors |x| truth::<f32>(x > 0.0) - truth::<f32>(x < 0.0),
            f64s: vectors |x| truth::<f64>(x > 0.0) - truth::<f64>(x < 0.0); cost: Vectors(0)
        }
        Negative ["negative" "_sparse_negative"] "The negative." {
            f64: |x| -x, f32: vectors |x| -x, f64s: vectors |x| -x, integers: each |x| T::ZERO.minus(x); cost: Streaming
        }
        // MXNet squares and inverts integers in single precision.
        Square ["square" "_sparse_square"] "The square." {
            f64: |x| x * x, f32: vectors |x| x * x, f64s: vectors |x| x * x,
            integers: each |x| { let x = x.to_f64() as f32; T::from_f64((x * x) as f64) }; cost: Vectors(0)
        }
        Sqrt ["sqrt" "_sparse_sqrt"] "The square root." {
            f64: |x| x.sqrt(), f32: vectors |x| x.sqrt(), f64s: vectors |x| x.sqrt(); cost: Vectors(0)
        }
        Rsqrt ["rsqrt" "_sparse_rsqrt"] "The reciprocal of the square root." {
            f64: |x| 1.0 / x.sqrt(), f32: vectors |x| 1.0 / x.sqrt(); cost: Vectors(0)
        }
        Cbrt ["cbrt" "_sparse_cbrt"] "The cube root." { f64: |x| x.cbrt() }
        Rcbrt ["rcbrt"] "The reciprocal of the cube root." { f64: |x| 1.0 / x.cbrt() }
        Reciprocal ["reciprocal"] "The reciprocal." {
            f64: |x| 1.0 / x, f32: vectors |x| 1.0 / x, f64s: vectors |x| 1.0 / x,
            integers: each |x| T::from_f64((1.0 / x.to_f64() as f32) as f64); cost: Vectors(0)
        }
        Exp ["exp" "_sparse_exp"] "e to the power." {
            f64: |x| x.exp(), f32: vectors |x| math::exp_f32(x), f64s: vectors |x| math::exp_f64(x); cost: Vectors(300)
        }
        Expm1 ["expm1" "_sparse_expm1"] "e to the power minus 1, precise near 0." {
            f64: |x| x.exp_m1(), f32: vectors |x| math::expm1_f32(x); cost: Vectors(400)
        }
        Ln ["log" "_sparse_log"] "The natural logarithm." {
            f64: |x| x.ln(), f32: vectors |x| math::ln_f32(x), f64s: vectors |x| math::ln_f64(x); cost: Vectors(300)
        }
        Log2 ["log2" "_sparse_log2"] "The logarithm to base 2." { f64: |x| x.log2(), f32: each |x| x.log2(); cost: CALL }
        Log10 ["log10" "_sparse_log10"] "The logarithm to base 10." { f64: |x| x.log10(), f32: each |x| x.log10(); cost: CALL }
        Log1p ["log1p" "_sparse_log1p"] "The natural logarithm of 1 plus the input, precise near 0." {
            f64: |x| x.ln_1p(), f32: vectors |x| math::ln_1p_f32(x); cost: Vectors(400)
        }
        Sin ["sin" "_sparse_sin"] "The sine." {
            f64: |x| x.sin(), f32: near |x| [math::sin_f32(x), math::far_sin_f32(x)]; cost: Vectors(500)
        }
        Cos ["cos" "_sparse_cos"] "The cosine." {
            f64: |x| x.cos(), f32: near |x| [math::cos_f32(x), math::far_cos_f32(x)]; cost: Vectors(500)
        }
        Tan ["tan" "_sparse_tan"] "The tangent." { f64: |x| x.tan(), f32: each |x| x.tan() }
        Asin ["arcsin" "_sparse_arcsin"] "The inverse sine." { f64: |x| x.asin(), f32: each |x| x.asin() }
        Acos ["arccos" "_sparse_arccos"] "The inverse cosine." { f64: |x| x.acos(), f32: each |x| x.acos() }
        Atan ["arctan" "_sparse_arctan"] "The inverse tangent." {
            f64: |x| x.atan(), f32: vectors |x| math::atan_f32(x); cost: Vectors(500)
        }
        Sinh ["sinh" "_sparse_sinh"] "The hyperbolic sine." {
            f64: |x| x.sinh(), f32: vectors |x| math::sinh_f32(x); cost: Vectors(500)
        }
        Cosh ["cosh" "_sparse_cosh"] "The hyperbolic cosine." {
            f64: |x| x.cosh(), f32: vectors |x| math::cosh_f32(x); cost: Vectors(400)
        }
        Tanh ["tanh" "_sparse_tanh"] "The hyperbolic tangent." {
            f64: |x| x.tanh(), f32: vectors |x| math::tanh_f32(x), f64s: vectors |x| math::tanh_f64(x); cost: Vectors(300)
        }
        Asinh ["arcsinh" "_sparse_arcsinh"] "The inverse hyperbolic sine." { f64: |x| libm::asinh(x) }
        Acosh ["arccosh" "_sparse_arccosh"] "The inverse hyperbolic cosine." { f64: |x| math::acosh(x) }
        Atanh ["arctanh" "_sparse_arctanh"] "The inverse hyperbolic tangent." { f64: |x| libm::atanh(x) }
        Degrees ["degrees" "_sparse_degrees"] "The angle in degrees, of one in radians." {
            f64: |x| DEGREES as f64 * x, f32: vectors |x| DEGREES * x; cost: Vectors(0)
        }
        Radians ["radians" "_sparse_radians"] "The angle in radians, of one in degrees." {
            f64: |x| RADIANS as f64 * x, f32: vectors |x| RADIANS * x; cost: Vectors(0)
        }
        Floor ["floor" "_sparse_floor"] "The largest integer that is not greater." {
            f64: |x| x.floor(), f32: vectors |x| x.floor(), f64s: vectors |x| x.floor(),
            integers: each |x| x; cost: Vectors(0)
        }
        Ceil ["ceil" "_sparse_ceil"] "The smallest integer that is not less." {
            f64: |x| x.ceil(), f32: vectors |x| x.ceil(), f64s: vectors |x| x.ceil(),
            integers: each |x| x; cost: Vectors(0)
        }
        Trunc ["trunc" "_sparse_trunc"] "The integer part." {
            f64: |x| x.trunc(), f32: vectors |x| x.trunc(), f64s: vectors |x| x.trunc(),
            integers: each |x| x; cost: Vectors(0)
        }
        Fix ["fix" "_sparse_fix"] "The nearest integer towards zero." {
            f64: |x| x.trunc(), f32: vectors |x| x.trunc(), f64s: vectors |x| x.trunc(),
            integers: each |x| x; cost: Vectors(0)
        }
        Rint ["rint" "_sparse_rint"] "The nearest integer, halves going down." {
            f64: |x| math::rint(x), f32: vectors |x| math::rint_f32(x), f64s: vectors |x| math::rint(x),
            integers: each |x| x; cost: Vectors(0)
        }
        Round ["round" "_contrib_round_ste" "_sparse__contrib_round_ste" "_sparse_round"] "The nearest integer, halves going away from zero." {
            f64: |x| x.round(), f32: vectors |x| math::round_f32(x), integers: each |x| x; cost: Vectors(0)
        }
        Sigmoid ["sigmoid" "_sparse_sigmoid"] "The logistic function 1 / (1 + exp(-x))." {
            f64: |x| math::sigmoid(x), f32: vectors |x| math::sigmoid_f32(x); cost: Vectors(300)
        }
        Softrelu "ln(1 + e^x)." {
            f64: |x| math::softrelu(x), f32: vectors |x| math::softrelu_f32(x); cost: Vectors(700)
        }
        Softsign ["softsign"] "x / (1 + |x|)." {
            f64: |x| x / (1.0 + x.abs()), f32: vectors |x| x / (1.0 + x.abs()); cost: Vectors(0)
        }
        Relu ["relu" "_sparse_relu"] "max(x, 0)." {
            f64: |x| if x > 0.0 || x.is_nan() { x } else { 0.0 },
            f32: vectors |x| if x > 0.0 || x.is_nan() { x } else { 0.0 },
            f64s: vectors |x| if x > 0.0 || x.is_nan() { x } else { 0.0 },
            integers: each |x| if x > T::ZERO { x } else { T::ZERO }; cost: Streaming
        }
        Gelu "The Gaussian error linear unit." {
            f64: |x| math::gelu(x), f32: whole |x| erf::gelu; cost: Vectors(400)
        }
        Selu "The scaled exponential linear unit." {
            f64: |x| math::selu(x), f32: vectors |x| math::selu_f32(x); cost: Vectors(400)
        }
        Erf ["erf" "_npx_erf"] "The error function." {
            f64: |x| math::erf(x), f32: whole |x| erf::erf; cost: Vectors(400)
        }
        Erfinv ["erfinv" "_npx_erfinv"] "The inverse of the error function." {
            f64: |x| math::erfinv(x), f32: whole |x| math::erfinv_f32s; cost: Vectors(4_000)
        }
        Gamma ["gamma" "_npx_gamma" "_sparse_gamma"] "The gamma function." {
            f64: |x| math::gamma(x), f32: whole |x| math::gamma_f32s; cost: Vectors(4_000)
        }
        Gammaln ["gammaln" "_npx_gammaln" "_sparse_gammaln"]
            "The logarithm of the absolute value of the gamma function." { f64: |x| math::gammaln(x) }
        LogicalNot ["logical_not"] "1 where the input is 0, else 0, in the dtype of the input." {
            f64: |x| truth(x == 0.0), f32: vectors |x| truth(x == 0.0),
            integers: each |x| truth(x == T::ZERO); cost: Streaming
        }
        IsNan "1 where x is NaN, else 0." {
            f64: |x| truth(x.is_nan()), f32: vectors |x| truth(x.is_nan()); cost: Vectors(0)
        }
        IsInf "1 where x is infinite, else 0." {
            f64: |x| truth(x.is_infinite()), f32: vectors |x| truth(x.is_infinite()); cost: Vectors(0)
        }
        IsFinite "1 where x is neither NaN nor infinite, else 0." {
            f64: |x| truth(x.is_finite()), f32: vectors |x| truth(x.is_finite()); cost: Vectors(0)
        }
        => with parameters
        Clip { low, high } "x limited to low..=high; NaN stays NaN."
        LeakyRelu { slope } "x where positive, else slope * x."
        Elu { slope } "x where positive, else slope * (e^x - 1)."
        HardSigmoid { alpha, beta } "alpha * x + beta limited to 0..=1."
        SmoothL1 { sigma } "The smooth L1 loss: quadratic within 1 / sigma^2 of zero."
    } };
}

/// One loop of a row.
macro_rules! unary_loop {
    (f32, near, $x:ident, $values:expr) => {
        fn f32s(self, x: &[f32], out: &mut [f32]) {
            near(x, out, |$x: f32| $values[0], |$x: f32| $values[1], |x| self.f64(f64::from(x)) as f32);
        }
    };
    (f32, whole, $x:ident, $function:expr) => {
        fn f32s(self, $x: &[f32], out: &mut [f32]) {
            $function($x, out)
        }
    };
    (f32, $loop:ident, $x:ident, $value:expr) => {
        fn f32s(self, x: &[f32], out: &mut [f32]) {
            $loop(x, out, |$x: f32| $value)
        }
    };
    (f64s, $loop:ident, $x:ident, $value:expr) => {
        fn f64s(self, x: &[f64], out: &mut [f64]) {
            $loop(x, out, |$x: f64| $value)
        }
    };
    (integers, $loop:ident, $x:ident, $value:expr) => {
        fn integers<T: Element>(self, x: &[T], out: &mut [T]) {
            $loop(x, out, |$x: T| $value)
        }
    };
}

/// `first`; `second` where that is NaN; and `exact` where both are NaN although the argument is
/// finite. A result depends on its own argument only. Each function is called in one place, where
/// it is inlined: a call for each element would take ten times as long.
fn near(
    x: &[f32],
    out: &mut [f32],
    first: impl Fn(f32) -> f32,
    second: impl Fn(f32) -> f32,
    exact: impl Fn(f32) -> f32,
) {
    let any_nan = |x: &[f32]| {
        let mut any = false;
        vectorize(AnyNan { x, any: &mut any });
        any
    };
    for (x, out) in x.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
        vectors(x, out, &first);
        if any_nan(out) {
            let far = &mut [0.0; BLOCK][..x.len()];
            vectors(x, far, &second);
            out.iter_mut().zip(far).for_each(|(out, far)| *out = if out.is_nan() { *far } else { *out });
        }
        if any_nan(out) {
            let wrong = x.iter().zip(out).filter(|(x, out)| out.is_nan() && x.is_finite());
            wrong.for_each(|(x, out)| *out = exact(*x));
        }
    }
}

/// Whether an element is NaN.
struct AnyNan<'a> {
    x: &'a [f32],
    any: &'a mut bool,
}

impl Loop for AnyNan<'_> {
    #[inline(always)]
    fn run(self) {
        *self.any = self.x.iter().fold(false, |any, x| any | x.is_nan());
    }
}

/// Makes [`Unary`], its functions and the choice between them from the table.
macro_rules! define_unary {
    (
        $($name:ident $([$($operator:literal)*])? $doc:literal {
            f64: |$x:ident| $f64:expr
            $(, $type:ident: $loop:ident |$v:ident| $value:expr)*
            $(; cost: $cost:ident $(($picoseconds:literal))?)?
        })*
        => with parameters
        $($with:ident { $($parameter:ident),* } $with_doc:literal)*
    ) => {
        /// A function of one number.
        ///
        /// Integer types compute transcendental functions in `f64` and convert as C does.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Unary {
            $(#[doc = $doc] $name,)*
            $(#[doc = $with_doc] #[allow(missing_docs)] $with { $($parameter: f64),* },)*
        }

        $(
            #[derive(Clone, Copy)]
            struct $name;

            impl UnaryFunction for $name {
                $(const COST: FunctionCost = FunctionCost::$cost $(($picoseconds))?;)?
                #[inline(always)]
                fn f64(self, $x: f64) -> f64 {
                    $f64
                }
                $(unary_loop!($type, $loop, $v, $value);)*
            }
        )*

        $(
            #[derive(Clone, Copy)]
            struct $with { $($parameter: f64),* }
        )*

        impl Unary {
            /// The estimate of its time.
            pub fn cost(self) -> FunctionCost {
                fn cost<F: UnaryFunction>(_: F) -> FunctionCost {
                    F::COST
                }
                match self {
                    $(Unary::$name => cost($name),)*
                    $(Unary::$with { $($parameter),* } => cost($with { $($parameter),* }),)*
                }
            }

            pub(crate) fn f32s(self, x: &[f32], out: &mut [f32]) {
                match self {
                    $(Unary::$name => $name.f32s(x, out),)*
                    $(Unary::$with { $($parameter),* } => $with { $($parameter),* }.f32s(x, out),)*
                }
            }

            pub(crate) fn f64s(self, x: &[f64], out: &mut [f64]) {
                match self {
                    $(Unary::$name => $name.f64s(x, out),)*
                    $(Unary::$with { $($parameter),* } => $with { $($parameter),* }.f64s(x, out),)*
                }
            }

            pub(crate) fn integers<T: Element>(self, x: &[T], out: &mut [T]) {
                match self {
                    $(Unary::$name => $name.integers(x, out),)*
                    $(Unary::$with { $($parameter),* } => $with { $($parameter),* }.integers(x, out),)*
                }
            }
        }
    };
}

unary_functions!(define_unary);

impl Unary {
    /// Half precision: blocks are widened, computed in single precision and rounded.
    pub(crate) fn f16s(self, x: &[f16], out: &mut [f16]) {
        let (mut wide, mut result) = ([0f32; BLOCK], [0f32; BLOCK]);
        for (x, out) in x.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
            let (wide, result) = (&mut wide[..x.len()], &mut result[..x.len()]);
            widen(x, wide);
            self.f32s(wide, result);
            narrow(result, out);
        }
    }
}

const PI_F32: f32 = std::f32::consts::PI;
/// MXNet's factors, rounded to single precision whatever the type.
const DEGREES: f32 = 180.0 / PI_F32;
const RADIANS: f32 = PI_F32 / 180.0;

impl UnaryFunction for Clip {
    const COST: FunctionCost = FunctionCost::Streaming;

    fn f64(self, x: f64) -> f64 {
        clip(x, self.low, self.high)
    }

    fn f32s(self, x: &[f32], out: &mut [f32]) {
        let (low, high) = (self.low as f32, self.high as f32);
        vectors(x, out, move |x| clip(x, low, high));
    }

    /// Compares in single precision, as MXNet does; a limit that the type cannot hold wraps around
    /// where it applies.
    fn integers<T: Element>(self, x: &[T], out: &mut [T]) {
        let (low, high) = (self.low as f32, self.high as f32);
        let [lowest, highest] = [low, high].map(|limit| T::from_f64(limit.into()));
        vectors(x, out, move |x| {
            let wide = x.to_f64() as f32;
            if wide > high {
                highest
            } else if wide < low {
                lowest
            } else {
                x
            }
        });
    }
}

impl UnaryFunction for LeakyRelu {
    const COST: FunctionCost = FunctionCost::Vectors(0);

    fn f64(self, x: f64) -> f64 {
        if x > 0.0 { x } else { self.slope * x }
    }

    fn f32s(self, x: &[f32], out: &mut [f32]) {
        let slope = self.slope as f32;
        vectors(x, out, move |x| if x > 0.0 { x } else { slope * x });
    }
}

impl UnaryFunction for Elu {
    const COST: FunctionCost = FunctionCost::Vectors(400);

    fn f64(self, x: f64) -> f64 {
        if x > 0.0 { x } else { self.slope * x.exp_m1() }
    }

    fn f32s(self, x: &[f32], out: &mut [f32]) {
        let slope = self.slope as f32;
        vectors(x, out, move |x| if x > 0.0 { x } else { slope * math::expm1_f32(x) });
    }
}

impl UnaryFunction for HardSigmoid {
    const COST: FunctionCost = FunctionCost::Vectors(0);

    fn f64(self, x: f64) -> f64 {
        clip(self.alpha * x + self.beta, 0.0, 1.0)
    }

    fn f32s(self, x: &[f32], out: &mut [f32]) {
        let (alpha, beta) = (self.alpha as f32, self.beta as f32);
        vectors(x, out, move |x| clip(alpha * x + beta, 0.0, 1.0));
    }
}

impl UnaryFunction for SmoothL1 {
    const COST: FunctionCost = FunctionCost::CALL;

    fn f64(self, x: f64) -> f64 {
        let (square, limit) = (self.sigma * self.sigma, 1.0 / (self.sigma * self.sigma));
        if x > limit {
            x - 0.5 * limit
        } else if x < -limit {
            -x - 0.5 * limit
        } else {
            0.5 * x * x * square
        }
    }

    /// Makes a whole number of the parameter, as MXNet does; the rest is in single precision.
    fn integers<T: Element>(self, x: &[T], out: &mut [T]) {
        let sigma = T::from_f64(self.sigma).to_i64();
        let square = if size_of::<T>() == 8 { sigma.wrapping_mul(sigma) } else { (sigma * sigma) as i32 as i64 };
        let (square, limit) = (square as f32, 1.0 / square as f32);
        each(x, out, |x| {
            let x = x.to_f64() as f32;
            let value = if x > limit {
                x - 0.5 * limit
            } else if x < -limit {
                -x - 0.5 * limit
            } else {
                0.5 * x * x * square
            };
            T::from_f64(value.into())
        });
    }
}
