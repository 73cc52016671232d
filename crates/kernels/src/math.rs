//! Functions of one number.
//!
//! The `_f32` functions are branch-free, so that loops over them vectorise, and give the same bits
//! at every vector width. The rest is computed by the standard library or `libm`.

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

/// e^r - 1 of the rest r of a division of x by ln 2 (Cody and Waite), |r| <= ln 2 / 2, by its Taylor
/// series; and the quotient.
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
    let large = (1.0 - 2.0 / (exp_f32(2.0 * a) + 1.0)).copysign(x);
    if a < 0.5 { small } else { large }
}

/// Adding and subtracting it rounds to the nearest integer.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// Pi / 2 in four parts; those before the last have up to 11 bits, so that numbers of quarters
/// below 2^13 times them are exact.
const QUARTER: [f32; 4] = [1.570_312_5, 4.837_513e-4, 7.549_533_6e-8, 2.563_344_2e-12];
/// Largest argument of [`sin_f32`] and [`cos_f32`], 8149 quarters.
const MOST_TURNS: f32 = 12_800.0;
/// Pi / 2 in two parts; the first has 33 bits, so that numbers of quarters below 2^20 times it are
/// exact.
const QUARTER_F64: [f64; 2] = [1.570_796_326_734_125_6, 6.077_100_506_506_192e-11];
/// Largest argument of [`far_sin_f32`] and [`far_cos_f32`].
const MOST_TURNS_F64: f32 = 1_000_000.0;

/// The sine of an angle, or its cosine, NaN beyond [`MOST_TURNS`]: series for the rest of a
/// division by a quarter of a circle, minimax fits of our own.
#[inline(always)]
fn sine_or_cosine<const COSINE: bool>(x: f32) -> f32 {
    const SINE: [f32; 3] = [-0.166_666_55, 8.332_174e-3, -1.951_665_6e-4];
    const COSINES: [f32; 3] = [4.166_664_6e-2, -1.388_731e-3, 2.443_241_4e-5];
    let a = x.abs();
    let t = a * std::f32::consts::FRAC_2_PI + EXP.round;
    let n = t - EXP.round;
    // The rest, and what rounding took away from it.
    let two = a - n * QUARTER[0] - n * QUARTER[1];
    let third = n * QUARTER[2];
    let r = two - third;
    let low = (two - r) - third - n * QUARTER[3];
    let q = r * r;
    let sine = r + (low + r * q * (SINE[0] + q * (SINE[1] + q * SINE[2])));
    let half = 0.5 * q;
    let most = 1.0 - half;
    let terms = q * q * (COSINES[0] + q * (COSINES[1] + q * COSINES[2])) - r * low;
    let cosine = most + (((1.0 - most) - half) + terms);
    let quarter = t.to_bits().wrapping_add(COSINE as u32);
    let value = if quarter & 1 == 0 { sine } else { cosine };
    // The second bit of the quarter is the sign.
    let sign = if COSINE { 0 } else { x.to_bits() & 1 << 31 };
    let value = f32::from_bits(value.to_bits() ^ (quarter & 2) << 30 ^ sign);
    if a <= MOST_TURNS { value } else { f32::NAN }
}

/// The sine; NaN for arguments beyond 12,800. Error at most 1 ulp.
#[inline(always)]
pub fn sin_f32(x: f32) -> f32 {
    sine_or_cosine::<false>(x)
}

/// The cosine; NaN for arguments beyond 12,800. Error at most 1 ulp.
#[inline(always)]
pub fn cos_f32(x: f32) -> f32 {
    sine_or_cosine::<true>(x)
}

/// The sine of an angle and a number of quarters of a circle, NaN beyond [`MOST_TURNS_F64`]: in
/// double precision the rest of a division by a quarter is as precise as single precision needs.
#[inline(always)]
fn sine_of_quarters(x: f32, quarters: u64) -> f32 {
    let wide = x as f64;
    let t = wide * std::f64::consts::FRAC_2_PI + ROUND;
    let n = t - ROUND;
    let r = wide - n * QUARTER_F64[0] - n * QUARTER_F64[1];
    let q = r * r;
    let sine = r * (1.0 + q * (-1.0 / 6.0 + q * (1.0 / 120.0 + q * (-1.0 / 5040.0 + q * (1.0 / 362_880.0)))));
    let cosine = 1.0 + q * (-0.5 + q * (1.0 / 24.0 + q * (-1.0 / 720.0 + q * (1.0 / 40_320.0 - q / 3_628_800.0))));
    let quarter = t.to_bits().wrapping_add(quarters);
    let value = if quarter & 1 == 0 { sine } else { cosine };
    // The second bit of the quarter is the sign.
    let value = f64::from_bits(value.to_bits() ^ (quarter & 2) << 62) as f32;
    if x.abs() <= MOST_TURNS_F64 { value } else { f32::NAN }
}

/// The sine; NaN for arguments beyond a million. Error at most 1 ulp.
#[inline(always)]
pub fn far_sin_f32(x: f32) -> f32 {
    sine_of_quarters(x, 0)
}

/// The cosine; NaN for arguments beyond a million. Error at most 1 ulp.
#[inline(always)]
pub fn far_cos_f32(x: f32) -> f32 {
    sine_of_quarters(x, 1)
}

/// e^x - 1: e^r - 1 of the rest of [`exp_f32`]'s division, and 2^n - 1 of the quotient; error at most
/// 2 ulp.
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

/// ln 2 in two parts; the first has 32 bits, so that whole numbers times it are exact.
const LN2: [f64; 2] = [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10];

/// e^r - 1 of the rest r of a division of x by ln 2, and the quotient.
#[inline(always)]
fn expm1_of_rest_f64(x: f64) -> (f64, i64) {
    let t = x * std::f64::consts::LOG2_E + ROUND;
    let n = t - ROUND;
    let r = x - n * LN2[0] - n * LN2[1];
    let q = r * r;
    // 1 / 2! to 1 / 13!, in pairs.
    let pair = |a: f64, b: f64| 1.0 / a + r * (1.0 / b);
    let mut p = pair(479_001_600.0, 6_227_020_800.0);
    p = p * q + pair(3_628_800.0, 39_916_800.0);
    p = p * q + pair(40_320.0, 362_880.0);
    p = p * q + pair(720.0, 5040.0);
    p = p * q + pair(24.0, 120.0);
    p = p * q + pair(2.0, 6.0);
    (r + p * q, (t.to_bits() as i64).wrapping_sub(ROUND.to_bits() as i64))
}

/// `v` times 2^n, as [`times_pow2_f32`].
#[inline(always)]
fn times_pow2_f64(v: f64, n: i64) -> f64 {
    let half = n >> 1;
    let pow2 = |k: i64| f64::from_bits((k.wrapping_add(1023) << 52) as u64);
    v * pow2(half) * pow2(n.wrapping_sub(half))
}

/// e^x in double precision; error at most 1.1 ulp.
#[inline(always)]
pub fn exp_f64(x: f64) -> f64 {
    let x = if x > 710.0 { 710.0 } else { x };
    let x = if x < -746.0 { -746.0 } else { x };
    let (p, n) = expm1_of_rest_f64(x);
    times_pow2_f64(p + 1.0, n)
}

/// The natural logarithm in double precision: x = 2^n (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), and
/// ln (1 + f) as f - f^2 / 2 and a minimax fit of our own; error at most 1 ulp.
#[inline(always)]
pub fn ln_f64(x: f64) -> f64 {
    const SQRT_HALF_BITS: u64 = 0x3fe6_a09e_667f_3bcd;
    /// Coefficients of ln ((1 + s) / (1 - s)) / s - 2, |s| <= 0.1716, from s^2 on.
    const FIT: [f64; 7] = [
        0.666_666_666_666_673_5,
        0.399_999_999_994_139_4,
        0.285_714_287_425_663_75,
        0.222_221_985_534_203_42,
        0.181_835_654_242_492_8,
        0.153_140_207_097_534_6,
        0.147_962_651_523_387_43,
    ];
    let tiny = x < f64::MIN_POSITIVE;
    let y = if tiny { x * 18_014_398_509_481_984.0 } else { x };
    let bits = y.to_bits().wrapping_sub(SQRT_HALF_BITS);
    let m = f64::from_bits((bits & 0x000f_ffff_ffff_ffff).wrapping_add(SQRT_HALF_BITS));
    // The exponent as a number, without a conversion that AVX2 has not.
    let n = f64::from_bits((((bits as i64) >> 52) as u64).wrapping_add(ROUND.to_bits()));
    let n = n - if tiny { ROUND + 54.0 } else { ROUND };
    let f = m - 1.0;
    let s = f / (m + 1.0);
    let q = s * s;
    let square = q * q;
    // In pairs, for a shorter chain.
    let p = (FIT[4] + q * FIT[5]) + square * FIT[6];
    let p = (FIT[0] + q * FIT[1]) + square * ((FIT[2] + q * FIT[3]) + square * p);
    let half = 0.5 * f * f;
    let value = n * LN2[0] - ((half - (s * (half + p * q) + n * LN2[1])) - f);
    // Infinity and NaN are their own logarithms.
    let value = if x < f64::INFINITY { value } else { x };
    let value = if x == 0.0 { f64::NEG_INFINITY } else { value };
    if x >= 0.0 { value } else { f64::NAN }
}

/// The hyperbolic tangent in double precision, (e^2x - 1) / (e^2x + 1); error at most 3 ulp.
#[inline(always)]
pub fn tanh_f64(x: f64) -> f64 {
    let a = x.abs();
    let a = if a > 22.0 { 22.0 } else { a };
    let (p, n) = expm1_of_rest_f64(2.0 * a);
    let e = times_pow2_f64(p + (1.0 - times_pow2_f64(1.0, n.wrapping_neg())), n);
    (e / (e + 2.0)).copysign(x)
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

/// The error function. Up to 1 an odd polynomial, above 1 - e^q(x); both are Chebyshev fits of our
/// own to the 50-digit function, of degree 6 in x^2 and of degree 8 for ln erfc on [1, 4]; error at
/// most 2.5 ulp.
#[inline(always)]
pub fn erf_f32(x: f32) -> f32 {
    let a = x.abs();
    let q = x * x;
    let mut p = 7.882_497e-5;
    p = p * q - 8.018_855e-4;
    p = p * q + 5.189_312e-3;
    p = p * q - 2.685_432_9e-2;
    p = p * q + 1.128_359_7e-1;
    p = p * q - 3.761_263e-1;
    p = p * q + std::f32::consts::FRAC_2_SQRT_PI;
    let small = x * p;
    let b = if a > 4.0 { 4.0 } else { a };
    let mut e = 1.614_061_6e-6;
    e = e * b - 4.559_062_3e-5;
    e = e * b + 5.927_695_4e-4;
    e = e * b - 4.740_222_4e-3;
    e = e * b + 2.636_471_7e-2;
    e = e * b - 1.099_782_4e-1;
    e = e * b - 6.319_371e-1;
    e = e * b - 1.130_166_7;
    e = e * b + 3.032_13e-4;
    let large = (1.0 - exp_f32(e)).copysign(x);
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

/// The gamma function; NaN at negative integers.
pub fn gamma(x: f64) -> f64 {
    libm::tgamma(x)
}

/// The logarithm of the absolute value of the gamma function.
pub fn gammaln(x: f64) -> f64 {
    libm::lgamma(x)
}

/// The inverse of the error function; infinite at -1 and 1, NaN outside.
///
/// Starts from S. Winitzki's elementary approximation ("A handy approximation for the error
/// function and its inverse", 2008), within 2e-3 everywhere; Halley's iteration on erf and erfc
/// does the rest.
pub fn erfinv(x: f64) -> f64 {
    let a = x.abs();
    if a >= 1.0 || a.is_nan() {
        return if a == 1.0 { f64::INFINITY.copysign(x) } else { f64::NAN };
    }
    const A: f64 = 0.147;
    let l = ((1.0 - a) * (1.0 + a)).ln();
    let b = 2.0 / (std::f64::consts::PI * A) + l / 2.0;
    let mut y = ((b * b - l / A).sqrt() - b).max(0.0).sqrt();
    for _ in 0..4 {
        // 1 - a is exact above 1/2, where erfc keeps the digits erf has lost.
        let miss = if a > 0.5 { (1.0 - a) - libm::erfc(y) } else { libm::erf(y) - a };
        let slope = std::f64::consts::FRAC_2_SQRT_PI * (-y * y).exp();
        let step = miss / slope;
        y -= step / (1.0 + y * step);
    }
    y.copysign(x)
}

/// Scaled exponential linear unit; the constants are MXNet's single-precision ones.
pub fn selu(x: f64) -> f64 {
    const ALPHA: f64 = 1.673_263_2_f32 as f64;
    const LAMBDA: f64 = 1.050_701_f32 as f64;
    LAMBDA * if x > 0.0 { x } else { ALPHA * x.exp_m1() }
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

/// The least common multiple, not negative; 0 where one number is 0. It wraps around.
pub fn least_common_multiple(a: i64, b: i64) -> i64 {
    let (mut divisor, mut rest) = (a.unsigned_abs(), b.unsigned_abs());
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    a.unsigned_abs().checked_div(divisor).map_or(0, |times| times.wrapping_mul(b.unsigned_abs()) as i64)
}

/// MXNet's `mod`: the sign follows the divisor, and x mod 0 is 0.
pub fn modulo(a: f64, b: f64) -> f64 {
    if b == 0.0 {
        return 0.0;
    }
    let r = a % b;
    if r != 0.0 && (r < 0.0) != (b < 0.0) { r + b } else { r }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The distance between numbers in single precision that are as large as this one.
    fn ulp(value: f64) -> f64 {
        let least = f64::from(f32::MIN_POSITIVE);
        2f64.powi(value.abs().max(least).log2().floor() as i32 - 23)
    }

    /// Every 2003rd number in single precision between `low` and `high`.
    fn numbers(low: f32, high: f32) -> impl Iterator<Item = f32> {
        let most = low.abs().max(high.abs()).to_bits();
        let all = (0..=most).step_by(2003).flat_map(|bits| [bits, bits | 1 << 31]).map(f32::from_bits);
        all.filter(move |x| (low..=high).contains(x))
    }

    /// The errors that `docs/differences.md` states.
    #[test]
    fn errors_of_functions_are_those_that_are_stated() {
        type Row = (&'static str, [f32; 2], fn(f32) -> f32, fn(f64) -> f64, f64);
        let rows: [Row; 16] = [
            ("sin", [-12_800.0, 12_800.0], sin_f32, f64::sin, 1.0),
            ("cos", [-12_800.0, 12_800.0], cos_f32, f64::cos, 1.0),
            ("sin of large angles", [-1e6, 1e6], far_sin_f32, f64::sin, 1.0),
            ("cos of large angles", [-1e6, 1e6], far_cos_f32, f64::cos, 1.0),
            ("exp", [-87.3, 88.7], exp_f32, f64::exp, 1.1),
            ("exp below the normal numbers", [-104.0, -87.3], exp_f32, f64::exp, 1.1),
            ("ln", [1e-38, 1e38], ln_f32, f64::ln, 2.0),
            ("tanh", [-20.0, 20.0], tanh_f32, f64::tanh, 2.0),
            ("sigmoid", [-87.0, 87.0], sigmoid_f32, sigmoid, 2.5),
            ("softrelu", [-87.0, 87.0], softrelu_f32, softrelu, 3.5),
            ("expm1", [-30.0, 88.7], expm1_f32, f64::exp_m1, 2.0),
            ("log1p", [-0.999, 1.0], ln_1p_f32, f64::ln_1p, 2.5),
            ("log1p of large numbers", [1.0, 3e38], ln_1p_f32, f64::ln_1p, 2.0),
            ("arctan", [-3e38, 3e38], atan_f32, f64::atan, 2.0),
            ("erf", [-6.0, 6.0], erf_f32, libm::erf, 2.5),
            ("gelu", [0.0, 100.0], gelu_f32, gelu, 2.0),
        ];
        for (name, [low, high], function, reference, most) in rows {
            for x in numbers(low, high) {
                let (got, want) = (f64::from(function(x)), reference(f64::from(x)));
                let error = (got - want).abs() / ulp(want);
                assert!(error <= most, "{name}({x}) = {got}, expected {want}: {error} ulp");
            }
        }
        // Next to whole quarters of a circle the rest of the division has few digits of the angle.
        for quarter in 1..8149 {
            let near = (f64::from(quarter) * std::f64::consts::FRAC_PI_2) as f32;
            for x in [near.next_down(), near, near.next_up()].map(f64::from) {
                for (got, want) in [(sin_f32(x as f32), x.sin()), (cos_f32(x as f32), x.cos())] {
                    let error = (f64::from(got) - want).abs() / ulp(want);
                    assert!(error <= 1.0, "of {x}: {got}, expected {want}: {error} ulp");
                }
            }
        }
        // Below zero the digits of 1 + erf cancel.
        for x in numbers(-100.0, 100.0) {
            let (got, want) = (f64::from(gelu_f32(x)), gelu(f64::from(x)));
            assert!((got - want).abs() <= 2.0 * ulp(f64::from(x)), "gelu({x}) = {got}, expected {want}");
        }
    }

    #[test]
    fn errors_in_double_precision_are_those_that_are_stated() {
        type Row = (&'static str, [f64; 2], fn(f64) -> f64, fn(f64) -> f64, f64);
        let rows: [Row; 3] = [
            ("exp", [-708.0, 709.7], exp_f64, f64::exp, 1.6),
            ("ln", [1e-307, 1e308], ln_f64, f64::ln, 1.5),
            ("tanh", [-30.0, 30.0], tanh_f64, f64::tanh, 3.5),
        ];
        for (name, [low, high], function, reference, most) in rows {
            let top = f64::max(low.abs(), high.abs()).to_bits();
            // The standard library's functions are right to an ulp themselves.
            let all = (0..60_000u64).map(|i| i * (top / 60_000)).flat_map(|bits| [bits, bits | 1 << 63]);
            for x in all.map(f64::from_bits).filter(|x| (low..=high).contains(x)) {
                let (got, want) = (function(x), reference(x));
                let apart = got.to_bits().abs_diff(want.to_bits());
                assert!(apart as f64 <= most, "{name}({x}) = {got}, expected {want}: {apart} ulp");
            }
        }
        assert_eq!(exp_f64(-745.0), (-745.0f64).exp(), "subnormal results are kept");
        assert_eq!([exp_f64(f64::INFINITY), exp_f64(f64::NEG_INFINITY), exp_f64(0.0)], [f64::INFINITY, 0.0, 1.0]);
        assert_eq!([ln_f64(0.0), ln_f64(f64::INFINITY), ln_f64(1.0)], [f64::NEG_INFINITY, f64::INFINITY, 0.0]);
        assert!(ln_f64(-1.0).is_nan() && (ln_f64(5e-324) - 5e-324f64.ln()).abs() < 1e-12);
        assert_eq!([tanh_f64(f64::INFINITY), tanh_f64(-50.0), tanh_f64(1e-300)], [1.0, -1.0, 1e-300]);
        assert!(tanh_f64(-0.0).is_sign_negative());
        assert!([exp_f64, ln_f64, tanh_f64].iter().all(|f| f(f64::NAN).is_nan()));
    }

    #[test]
    fn special_values_come_out_as_mathematics_has_them() {
        assert_eq!(exp_f32(f32::INFINITY), f32::INFINITY);
        assert_eq!(exp_f32(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp_f32(0.0), 1.0);
        assert!(exp_f32(-100.0) > 0.0, "subnormal results are kept");
        for f in [exp_f32, ln_f32, tanh_f32, sigmoid_f32, softrelu_f32, erf_f32, gelu_f32, sin_f32, cos_f32] {
            assert!(f(f32::NAN).is_nan());
        }
        assert_eq!(ln_f32(0.0), f32::NEG_INFINITY);
        assert_eq!(ln_f32(f32::INFINITY), f32::INFINITY);
        assert!(ln_f32(-1.0).is_nan());
        assert_eq!(ln_f32(1.0), 0.0);
        assert_eq!([expm1_f32(f32::INFINITY), expm1_f32(f32::NEG_INFINITY)], [f32::INFINITY, -1.0]);
        assert_eq!([ln_1p_f32(f32::INFINITY), ln_1p_f32(-1.0)], [f32::INFINITY, f32::NEG_INFINITY]);
        assert!(ln_1p_f32(-1.5).is_nan());
        assert_eq!([atan_f32(f32::INFINITY), atan_f32(f32::NEG_INFINITY)], [1.0, -1.0].map(|s| s * 1.570_796_4));
        for f in [expm1_f32, ln_1p_f32, atan_f32] {
            assert!(f(f32::NAN).is_nan());
            assert_eq!([f(-0.0).to_bits(), f(0.0).to_bits(), f(1e-40).to_bits()], [1 << 31, 0, 1e-40f32.to_bits()]);
        }
        assert_eq!(tanh_f32(f32::INFINITY), 1.0);
        assert_eq!(tanh_f32(-50.0), -1.0);
        assert!(sin_f32(-0.0).is_sign_negative() && sin_f32(f32::INFINITY).is_nan());
        for (reach, functions) in [(12_800f32, [sin_f32, cos_f32]), (1e6, [far_sin_f32, far_cos_f32])] {
            for f in functions {
                assert!([reach, -reach].iter().all(|x| !f(*x).is_nan() && f(x * 1.001).is_nan()), "beyond {reach}");
            }
        }
        assert_eq!([-2.5, -0.5, 0.5, 1.5, 1e30].map(rint_f32), [-3.0, -1.0, 0.0, 1.0, 1e30]);
        assert_eq!(sigmoid_f32(f32::NEG_INFINITY), 0.0);
        assert_eq!(softrelu_f32(f32::INFINITY), f32::INFINITY);
        assert_eq!(erf_f32(f32::NEG_INFINITY), -1.0);
        assert_eq!(erfinv(1.0), f64::INFINITY);
        assert_eq!(erfinv(-1.0), f64::NEG_INFINITY);
        assert!(erfinv(1.5).is_nan());
        assert_eq!(erfinv(0.0), 0.0);
    }

    #[test]
    fn erfinv_undoes_erf() {
        for i in 1..2000 {
            let y = i as f64 * 0.0025;
            let x = libm::erf(y);
            if x < 1.0 {
                // Near 1 the argument itself carries only so many digits of the result.
                let slope = std::f64::consts::FRAC_2_SQRT_PI * (-y * y).exp();
                let limit = 1e-13 * y + 2.0 * f64::EPSILON / slope;
                assert!((erfinv(x) - y).abs() <= limit, "erfinv({x}) = {}, expected {y}", erfinv(x));
                assert_eq!(erfinv(-x), -erfinv(x));
            }
        }
        assert!((erfinv(1e-300) / 1e-300 - 0.886226925452758).abs() < 1e-12);
    }

    #[test]
    fn mod_takes_the_sign_of_the_divisor() {
        for (a, b, want) in [(7.0, 3.0, 1.0), (-7.0, 3.0, 2.0), (7.0, -3.0, -2.0), (-7.0, -3.0, -1.0), (6.0, -3.0, 0.0)]
        {
            assert_eq!(modulo(a, b), want);
        }
        assert_eq!(modulo(5.0, 0.0), 0.0);
    }

    #[test]
    fn rint_sends_halves_down() {
        for (x, want) in [(1.5, 1.0), (-0.5, -1.0), (2.5, 2.0), (2.6, 3.0), (-2.6, -3.0)] {
            assert_eq!(rint(x), want);
        }
    }
}
