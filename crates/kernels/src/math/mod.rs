//! Functions of one number.
//!
//! The `_f32` functions are branch-free, so that loops over them vectorise, and give the same bits
//! at every vector width. The rest is computed by the standard library or `libm`.

mod double;
mod sines;
mod special;

pub use double::{cos_f64, exp_f64, expm1_f64, ln_f64, tanh_f64};
pub use sines::{cos_f32, far_cos_f32, far_sin_f32, sin_f32};
pub use special::{erfinv, erfinv_f32, gamma_f32};
pub(crate) use special::{erfinv_f32s, gamma_f32s};

/// Adding and subtracting it rounds to the nearest integer.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// Constants of [`exp_f32`].
pub(crate) struct Exp {
    /// Arguments beyond these have the result of these.
    pub least: f32,
    pub most: f32,
    /// Adding and subtracting it rounds to the nearest integer.
    pub round: f32,
    /// ln 2 in two parts; the first has few bits, so that whole numbers times it are exact.
    pub ln2: [f32; 2],
    /// 1 / 7! to 1 / 2!.
    pub series: [f32; 6],
}

pub(crate) const EXP: Exp = Exp {
    least: -104.0,
    most: 89.0,
    round: 12582912.0,
    ln2: [0.693_359_4, -2.121_944_4e-4],
    series: [1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5],
};

/// e^r - 1 of the rest r of a division of x by ln 2 (Cody and Waite), |r| <= ln 2 / 2, by its
/// Taylor series; and the quotient.
#[inline(always)]
fn expm1_of_rest_f32(x: f32) -> (f32, i32) {
    let t = x * std::f32::consts::LOG2_E + EXP.round;
    let n = t - EXP.round;
    let r = x - n * EXP.ln2[0] - n * EXP.ln2[1];
    // In pairs: the shorter the chain of operations that wait for each other, the more values are
    // in progress at once.
    let [c7, c6, c5, c4, c3, c2] = EXP.series;
    let square = r * r;
    let high = (r * c7 + c6) * square + (r * c5 + c4);
    let p = (high * square + (r * c3 + c2)) * square + r;
    (p, (t.to_bits() as i32).wrapping_sub(EXP.round.to_bits() as i32))
}

/// e^x; error at most 1.1 ulp.
#[inline(always)]
pub fn exp_f32(x: f32) -> f32 {
    let x = if x > EXP.most { EXP.most } else { x };
    let x = if x < EXP.least { EXP.least } else { x };
    let (p, n) = expm1_of_rest_f32(x);
    times_pow2_f32(p + 1.0, n)
}

/// `v` times 2^n, exact except for results below the normal numbers. It takes two factors, because
/// 2^n itself may be infinite or below the normal numbers.
#[inline(always)]
pub(crate) fn times_pow2_f32(v: f32, n: i32) -> f32 {
    let half = n >> 1;
    let pow2 = |k: i32| f32::from_bits((k.wrapping_add(127) << 23) as u32);
    v * pow2(half) * pow2(n.wrapping_sub(half))
}

/// ln(1 + e) for 0 <= e <= 1, as twice the inverse hyperbolic tangent of e / (2 + e) <= 1/3.
#[inline(always)]
fn log1p_unit_f32(e: f32) -> f32 {
    let s = e / (2.0 + e);
    let q = s * s;
    let mut p = 1.0 / 15.0;
    p = p * q + 1.0 / 13.0;
    p = p * q + 1.0 / 11.0;
    p = p * q + 1.0 / 9.0;
    p = p * q + 1.0 / 7.0;
    p = p * q + 1.0 / 5.0;
    p = p * q + 1.0 / 3.0;
    p = p * q + 1.0;
    2.0 * s * p
}

/// The natural logarithm: x = 2^n m with m in [sqrt(1/2), sqrt(2)), and ln m as twice an inverse
/// hyperbolic tangent.
#[inline(always)]
pub fn ln_f32(x: f32) -> f32 {
    const SQRT_HALF_BITS: u32 = 0x3f35_04f3;
    let tiny = x < f32::MIN_POSITIVE;
    let y = if tiny { x * 8388608.0 } else { x };
    let bits = y.to_bits().wrapping_sub(SQRT_HALF_BITS);
    let n = (bits as i32) >> 23;
    let m = f32::from_bits((bits & 0x007f_ffff).wrapping_add(SQRT_HALF_BITS));
    let n = n as f32 - if tiny { 23.0 } else { 0.0 };
    let s = (m - 1.0) / (m + 1.0);
    let q = s * s;
    let mut p = 1.0 / 9.0;
    p = p * q + 1.0 / 7.0;
    p = p * q + 1.0 / 5.0;
    p = p * q + 1.0 / 3.0;
    let small = 2.0 * s + 2.0 * s * q * p;
    let value = n * 0.693_359_4 + (n * -2.121_944_4e-4 + small);
    let value = if x == f32::INFINITY { x } else { value };
    let value = if x == 0.0 { f32::NEG_INFINITY } else { value };
    if x >= 0.0 { value } else { f32::NAN }
}

/// Half of e^|x|: of the quotient of [`exp_f32`] one less, which is exact, so that it is infinite no
/// sooner than the function that needs it.
#[inline(always)]
fn half_exp_f32(x: f32) -> f32 {
    const MOST: f32 = 90.0;
    let a = x.abs();
    let (p, n) = expm1_of_rest_f32(if a > MOST { MOST } else { a });
    times_pow2_f32(p + 1.0, n - 1)
}

/// The hyperbolic cosine; error at most 2 ulp.
#[inline(always)]
pub fn cosh_f32(x: f32) -> f32 {
    let half = half_exp_f32(x);
    half + 0.25 / half
}

/// The hyperbolic sine: its Taylor series below 1; error at most 2.5 ulp.
#[inline(always)]
pub fn sinh_f32(x: f32) -> f32 {
    let q = x * x;
    let p = ((q * (1.0 / 362_880.0) + 1.0 / 5040.0) * q + 1.0 / 120.0) * q + 1.0 / 6.0;
    let small = x + x * q * p;
    let half = half_exp_f32(x);
    let large = (half - 0.25 / half).copysign(x);
    if q < 1.0 { small } else { large }
}

/// The hyperbolic tangent: its Taylor series below 1/2, 1 - 2 / (e^2x + 1) above; error at most 2
/// ulp.
#[inline(always)]
pub fn tanh_f32(x: f32) -> f32 {
    let a = x.abs();
    let q = x * x;
    let mut p = -929569.0 / 638512875.0;
    p = p * q + 21844.0 / 6081075.0;
    p = p * q - 1382.0 / 155925.0;
    p = p * q + 62.0 / 2835.0;
    p = p * q - 17.0 / 315.0;
    p = p * q + 2.0 / 15.0;
    p = p * q - 1.0 / 3.0;
    let small = x + x * q * p;
    let large = 1.0 - 2.0 / (exp_f32(2.0 * a) + 1.0);
    // Zero keeps its sign.
    (if a < 0.5 { small } else { large }).copysign(x)
}

/// e^x - 1: e^r - 1 of the rest of [`exp_f32`]'s division, and 2^n - 1 of the quotient; error at
/// most 2 ulp.
#[inline(always)]
pub fn expm1_f32(x: f32) -> f32 {
    const LEAST: f32 = -20.0;
    let y = if x > EXP.most { EXP.most } else { x };
    let y = if y < LEAST { LEAST } else { y };
    let (p, n) = expm1_of_rest_f32(y);
    let value = times_pow2_f32(p + (1.0 - times_pow2_f32(1.0, n.wrapping_neg())), n);
    // Zero keeps its sign.
    if x == 0.0 { x } else { value }
}

/// ln(1 + x): the logarithm of the rounded sum, and what rounding took away; error at most 2 ulp.
#[inline(always)]
pub fn ln_1p_f32(x: f32) -> f32 {
    let sum = 1.0 + x;
    let lost = x - (sum - 1.0);
    let value = ln_f32(sum) + lost / sum;
    let ends = x == 0.0 || x == f32::INFINITY;
    let value = if x == -1.0 { f32::NEG_INFINITY } else { value };
    if ends { x } else { value }
}

/// The inverse tangent: its Taylor series up to the tangent of an eighth of a half circle, to which
/// larger arguments are brought; error at most 2 ulp.
#[inline(always)]
pub fn atan_f32(x: f32) -> f32 {
    use std::f32::consts::{FRAC_PI_2, FRAC_PI_4};
    /// The tangents of an eighth and of three eighths of a half circle.
    const EIGHTHS: [f32; 2] = [0.414_213_57, 2.414_213_7];
    /// The digits of a quarter of a half circle that single precision lacks.
    const REST: f32 = -2.185_569_4e-8;
    let a = x.abs();
    let (some, most) = (a > EIGHTHS[0], a > EIGHTHS[1]);
    let above = if most { -1.0 } else { a - 1.0 };
    let below = if most { a } else { a + 1.0 };
    let z = (if some { above } else { a }) / (if some { below } else { 1.0 });
    let angle = if most { FRAC_PI_2 } else { FRAC_PI_4 };
    let rest = if most { 2.0 * REST } else { REST };
    let (angle, rest) = (if some { angle } else { 0.0 }, if some { rest } else { 0.0 });
    let q = z * z;
    let mut p = 1.0 / 19.0;
    p = 1.0 / 17.0 - p * q;
    p = 1.0 / 15.0 - p * q;
    p = 1.0 / 13.0 - p * q;
    p = 1.0 / 11.0 - p * q;
    p = 1.0 / 9.0 - p * q;
    p = 1.0 / 7.0 - p * q;
    p = 1.0 / 5.0 - p * q;
    p = 1.0 / 3.0 - p * q;
    (angle + (z - (z * q * p - rest))).copysign(x)
}

/// 1 / (1 + e^-x); error at most 2.5 ulp.
#[inline(always)]
pub fn sigmoid_f32(x: f32) -> f32 {
    1.0 / (1.0 + exp_f32(-x))
}

/// ln(1 + e^x), also called softplus.
#[inline(always)]
pub fn softrelu_f32(x: f32) -> f32 {
    // A NaN fails the comparison and comes back through the exponential.
    let top = if x > 0.0 { x } else { 0.0 };
    top + log1p_unit_f32(exp_f32(-x.abs()))
}

/// Constants of [`erf_f32`], highest powers first.
pub(crate) struct Erf {
    /// Coefficients of the odd polynomial up to 1, without the last one.
    pub near: [f32; 6],
    /// Coefficients of ln erfc above it.
    pub far: [f32; 9],
    /// Arguments beyond it have the result of this one.
    pub most: f32,
}

pub(crate) const ERF: Erf = Erf {
    near: [7.882_497e-5, -8.018_855e-4, 5.189_312e-3, -2.685_432_9e-2, 1.128_359_7e-1, -3.761_263e-1],
    far: [
        1.614_061_6e-6,
        -4.559_062_3e-5,
        5.927_695_4e-4,
        -4.740_222_4e-3,
        2.636_471_7e-2,
        -1.099_782_4e-1,
        -6.319_371e-1,
        -1.130_166_7,
        3.032_13e-4,
    ],
    most: 4.0,
};

/// The error function. Up to 1 an odd polynomial, above 1 - e^q(x); both are Chebyshev fits of our
/// own to the 50-digit function, of degree 6 in x^2 and of degree 8 for ln erfc on [1, 4]; error at
/// most 2.5 ulp.
#[inline(always)]
pub fn erf_f32(x: f32) -> f32 {
    let a = x.abs();
    let q = x * x;
    let mut p = ERF.near[0];
    for c in &ERF.near[1..] {
        p = p * q + c;
    }
    let small = x * (p * q + std::f32::consts::FRAC_2_SQRT_PI);
    let b = if a > ERF.most { ERF.most } else { a };
    // In pairs of terms, because the exponential waits for this.
    let [c8, c7, c6, c5, c4, c3, c2, c1, c0] = ERF.far;
    let square = b * b;
    let fourth = square * square;
    let high = (c7 * b + c6) * square + (c5 * b + c4);
    let low = (c3 * b + c2) * square + (c1 * b + c0);
    let large = (1.0 - exp_f32((c8 * fourth + high) * fourth + low)).copysign(x);
    if a <= 1.0 { small } else { large }
}

/// The Gaussian error linear unit with the exact error function; error at most 2 ulp of the result
/// from 0 on, of the argument below.
#[inline(always)]
pub fn gelu_f32(x: f32) -> f32 {
    0.5 * x * (1.0 + erf_f32(x * std::f32::consts::FRAC_1_SQRT_2))
}

/// 1 / (1 + e^-x).
pub fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// ln(1 + e^x).
pub fn softrelu(x: f64) -> f64 {
    if x > 0.0 { x + (-x).exp().ln_1p() } else { x.exp().ln_1p() }
}

/// The error function.
pub fn erf(x: f64) -> f64 {
    libm::erf(x)
}

/// The Gaussian error linear unit with the exact error function.
pub fn gelu(x: f64) -> f64 {
    0.5 * x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

/// The inverse hyperbolic cosine; NaN below 1, where that of `libm` may be a number.
pub fn acosh(x: f64) -> f64 {
    if x < 1.0 { f64::NAN } else { libm::acosh(x) }
}

/// The gamma function; NaN at negative integers.
pub fn gamma(x: f64) -> f64 {
    libm::tgamma(x)
}

/// The logarithm of the absolute value of the gamma function.
pub fn gammaln(x: f64) -> f64 {
    libm::lgamma(x)
}

/// The constants of SELU: the factor of the exponential, and that of all. MXNet's are in single
/// precision.
const SELU: [f32; 2] = [1.673_263_2, 1.050_701];

/// Scaled exponential linear unit.
pub fn selu(x: f64) -> f64 {
    let [alpha, lambda] = SELU.map(f64::from);
    lambda * if x > 0.0 { x } else { alpha * x.exp_m1() }
}

/// Scaled exponential linear unit; error at most 4 ulp.
#[inline(always)]
pub fn selu_f32(x: f32) -> f32 {
    let [alpha, lambda] = SELU;
    lambda * if x > 0.0 { x } else { alpha * expm1_f32(x) }
}

/// Rounds to the nearest integer, halves towards minus infinity.
#[inline(always)]
pub fn rint(x: f64) -> f64 {
    let (floor, ceil) = (x.floor(), x.ceil());
    if x - floor <= ceil - x { floor } else { ceil }
}

/// Rounds to the nearest integer, halves towards minus infinity.
#[inline(always)]
pub fn rint_f32(x: f32) -> f32 {
    let (floor, ceil) = (x.floor(), x.ceil());
    if x - floor <= ceil - x { floor } else { ceil }
}

/// Rounds to the nearest integer, halves away from zero: what is added is just below a half, so that
/// no number below one reaches it.
#[inline(always)]
pub fn round_f32(x: f32) -> f32 {
    (x + 0.5f32.next_down().copysign(x)).trunc()
}

/// The least common multiple, not negative; 0 where one number is 0. It wraps around.
pub fn least_common_multiple(a: i64, b: i64) -> i64 {
    let (mut divisor, mut rest) = (a.unsigned_abs(), b.unsigned_abs());
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    a.unsigned_abs().checked_div(divisor).map_or(0, |times| times.wrapping_mul(b.unsigned_abs()) as i64)
}

/// MXNet's `mod`: the sign follows the divisor, and x mod 0 is 0. A remainder of zero is positive where
/// the signs differ.
pub fn modulo(a: f64, b: f64) -> f64 {
    if b == 0.0 {
        return 0.0;
    }
    let r = a % b;
    match (a < 0.0) == (b < 0.0) {
        true => r,
        false => r + if r == 0.0 { 0.0 } else { b },
    }
}

#[cfg(test)]
mod tests;
