//! Functions in double precision that are branch-free, so that loops over them vectorise.

use super::ROUND;

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

/// The natural logarithm in double precision: x = 2^n (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)),
/// and ln (1 + f) as f - f^2 / 2 and a minimax fit of our own; error at most 1 ulp.
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

/// e^x - 1 in double precision; error at most 2 ulp.
#[inline(always)]
pub fn expm1_f64(x: f64) -> f64 {
    const LEAST: f64 = -40.0;
    let y = if x > 710.0 { 710.0 } else { x };
    let y = if y < LEAST { LEAST } else { y };
    let (p, n) = expm1_of_rest_f64(y);
    let value = times_pow2_f64(p + (1.0 - times_pow2_f64(1.0, n.wrapping_neg())), n);
    // Zero keeps its sign.
    if x == 0.0 { x } else { value }
}

/// The cosine in double precision of an angle of magnitude up to 2^20; error at most 1e-16, and 1
/// ulp where it is not next to 0. The rest of a division by a quarter of the circle has a Taylor
/// series.
#[inline(always)]
pub fn cos_f64(x: f64) -> f64 {
    /// A quarter of the circle in three parts; whole numbers times the first two are exact.
    const QUARTER: [f64; 3] = [1.570_796_326_734_125_6, 6.077_100_506_303_966e-11, 2.022_266_248_795_950_6e-21];
    let t = x * std::f64::consts::FRAC_2_PI + ROUND;
    let n = t - ROUND;
    let r = x - n * QUARTER[0] - n * QUARTER[1] - n * QUARTER[2];
    let q = r * r;
    // 1 / 3! to 1 / 17!, and 1 / 4! to 1 / 18!.
    let mut sine = -1.0 / 355_687_428_096_000.0;
    sine = sine * q + 1.0 / 1_307_674_368_000.0;
    sine = sine * q - 1.0 / 6_227_020_800.0;
    sine = sine * q + 1.0 / 39_916_800.0;
    sine = sine * q - 1.0 / 362_880.0;
    sine = sine * q + 1.0 / 5040.0;
    sine = sine * q - 1.0 / 120.0;
    sine = sine * q + 1.0 / 6.0;
    let sine = r - r * q * sine;
    let mut cosine = -1.0 / 6_402_373_705_728_000.0;
    cosine = cosine * q + 1.0 / 20_922_789_888_000.0;
    cosine = cosine * q - 1.0 / 87_178_291_200.0;
    cosine = cosine * q + 1.0 / 479_001_600.0;
    cosine = cosine * q - 1.0 / 3_628_800.0;
    cosine = cosine * q + 1.0 / 40_320.0;
    cosine = cosine * q - 1.0 / 720.0;
    cosine = cosine * q + 1.0 / 24.0;
    let half = 0.5 * q;
    let sum = 1.0 - half;
    let cosine = sum + (((1.0 - sum) - half) + q * q * cosine);
    // Quarters 1 and 3 have the sine; 1 and 2 are negative.
    let quarter = t.to_bits();
    let value = if quarter & 1 == 1 { sine } else { cosine };
    if (quarter.wrapping_add(1)) & 2 == 2 { -value } else { value }
}
