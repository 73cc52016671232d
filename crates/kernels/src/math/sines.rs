//! Sines and cosines of one number, branch-free.

use super::{EXP, ROUND};

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
