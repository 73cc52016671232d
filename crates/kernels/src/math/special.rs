//! Functions that are computed in double precision for single precision too, branch-free, so that
//! loops over them vectorise.

use super::{ROUND, exp_f64, ln_f64};
use crate::vectorize::vectorized;

/// `c[0] + c[1] r + ... + c[7] r^7`.
#[inline(always)]
fn polynomial(c: &[f64; 8], r: f64) -> f64 {
    // In pairs, for a shorter chain.
    let q = r * r;
    let pairs = [c[0] + c[1] * r, c[2] + c[3] * r, c[4] + c[5] * r, c[6] + c[7] * r];
    pairs[0] + q * (pairs[1] + q * (pairs[2] + q * pairs[3]))
}

/// Numerator and denominator of a quotient of polynomials.
type Quotient = [[f64; 8]; 2];

/// Quotients of M. J. Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution"
/// (1988): in the middle, and by the root of a logarithm up to 5 and beyond.
const MIDDLE: Quotient = [
    [
        3.387_132_872_796_366_5,
        133.141_667_891_784_38,
        1_971.590_950_306_551_3,
        13_731.693_765_509_46,
        45_921.953_931_549_87,
        67_265.770_927_008_7,
        33_430.575_583_588_13,
        2_509.080_928_730_122_7,
    ],
    [
        1.0,
        42.313_330_701_600_91,
        687.187_007_492_057_9,
        5_394.196_021_424_751,
        21_213.794_301_586_597,
        39_307.895_800_092_71,
        28_729.085_735_721_943,
        5_226.495_278_852_854,
    ],
];
const NEAR: Quotient = [
    [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        0.241_780_725_177_450_6,
        0.022_723_844_989_269_184,
        7.745_450_142_783_414e-4,
    ],
    [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        0.689_767_334_985_1,
        0.148_103_976_427_480_08,
        0.015_198_666_563_616_457,
        5.475_938_084_995_345e-4,
        1.050_750_071_644_416_9e-9,
    ],
];
const FAR: Quotient = [
    [
        6.657_904_643_501_103,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        0.296_560_571_828_504_87,
        0.026_532_189_526_576_124,
        1.242_660_947_388_078_4e-3,
        2.711_555_568_743_487_6e-5,
        2.010_334_399_292_288_1e-7,
    ],
    [
        1.0,
        0.599_832_206_555_887_9,
        0.136_929_880_922_735_8,
        0.014_875_361_290_850_615,
        7.868_691_311_456_133e-4,
        1.846_318_317_510_054_8e-5,
        1.421_511_758_316_446e-7,
        2.044_263_103_389_939_8e-15,
    ],
];

#[inline(always)]
fn quotient([above, below]: &Quotient, r: f64) -> f64 {
    polynomial(above, r) / polynomial(below, r)
}

/// The inverse of the error function, for numbers that differ from 1 and -1 by as much as those of
/// single precision do, or by less.
#[inline(always)]
fn erfinv_of<const FAR_TOO: bool>(x: f64) -> f64 {
    const HALF_SCALE: f64 = 0.5 * std::f64::consts::FRAC_1_SQRT_2;
    let a = x.abs();
    // Half of x is the argument, which has no last bit where x is next to zero.
    let middle = x * (HALF_SCALE * quotient(&MIDDLE, 0.180625 - 0.25 * x * x));
    // The rest of 1 is exact above 1/2.
    let root = (-ln_f64(0.5 * (1.0 - a))).sqrt();
    let mut outer = quotient(&NEAR, root - 1.6);
    if FAR_TOO {
        let far = quotient(&FAR, root - 5.0);
        outer = if root > 5.0 { far } else { outer };
    }
    let outer = (outer * std::f64::consts::FRAC_1_SQRT_2).copysign(x);
    let value = if a <= 0.85 { middle } else { outer };
    let value = if a == 1.0 { f64::INFINITY.copysign(x) } else { value };
    if a <= 1.0 { value } else { f64::NAN }
}

/// The inverse of the error function; infinite at -1 and 1, NaN outside. A step of Halley's iteration
/// on erf and erfc sets the last bits right.
pub fn erfinv(x: f64) -> f64 {
    let (a, y) = (x.abs(), erfinv_of::<true>(x).abs());
    if !y.is_finite() || y == 0.0 {
        return y.copysign(x);
    }
    // 1 - a is exact above 1/2, where erfc keeps the digits erf has lost.
    let miss = if a > 0.5 { (1.0 - a) - libm::erfc(y) } else { libm::erf(y) - a };
    let step = miss / (std::f64::consts::FRAC_2_SQRT_PI * (-y * y).exp());
    (y - step / (1.0 + y * step)).copysign(x)
}

/// The inverse of the error function, rounded once.
#[inline(always)]
pub fn erfinv_f32(x: f32) -> f32 {
    erfinv_of::<false>(x.into()) as f32
}

/// The sine of pi times `x`.
#[inline(always)]
fn sine_of_half_turns(x: f64) -> f64 {
    // Numbers that large are whole, and so are even.
    let turns = x + ROUND;
    let r = (x - (turns - ROUND)) * std::f64::consts::PI;
    let q = r * r;
    // 1 / 3! to 1 / 19!.
    const TERMS: [f64; 9] = [
        1.0 / 121_645_100_408_832_000.0,
        1.0 / 355_687_428_096_000.0,
        1.0 / 1_307_674_368_000.0,
        1.0 / 6_227_020_800.0,
        1.0 / 39_916_800.0,
        1.0 / 362_880.0,
        1.0 / 5040.0,
        1.0 / 120.0,
        1.0 / 6.0,
    ];
    let mut p = TERMS[0];
    for term in &TERMS[1..] {
        p = term - q * p;
    }
    let sine = r * (1.0 - q * p);
    f64::from_bits(sine.to_bits() ^ (turns.to_bits() & 1) << 63)
}

/// The gamma function of single precision, computed in double precision and rounded once: Stirling's
/// series eight places further up, and the reflection for numbers below 1/2. NaN at negative
/// integers.
#[inline(always)]
pub fn gamma_f32(x: f32) -> f32 {
    let x = f64::from(x);
    let reflected = x < 0.5;
    let z = if reflected { 1.0 - x } else { x };
    // Beyond it all is infinite, also in double precision.
    let z = if z > 200.0 { 200.0 } else { z };
    let y = z + 8.0;
    // Bernoulli's numbers by 2n (2n - 1), of y^-1 to y^-13.
    const SERIES: [f64; 7] =
        [1.0 / 156.0, -691.0 / 360_360.0, 1.0 / 1188.0, -1.0 / 1680.0, 1.0 / 1260.0, -1.0 / 360.0, 1.0 / 12.0];
    let inverse = 1.0 / y;
    let q = inverse * inverse;
    let mut series = SERIES[0];
    for term in &SERIES[1..] {
        series = series * q + term;
    }
    /// Half the logarithm of 2 pi.
    const HALF_LN_TURN: f64 = 0.918_938_533_204_672_7;
    let exponent = (y - 0.5) * ln_f64(y) - y + (HALF_LN_TURN + series * inverse);
    let below = (z * (z + 1.0)) * ((z + 2.0) * (z + 3.0)) * (((z + 4.0) * (z + 5.0)) * ((z + 6.0) * (z + 7.0)));
    let value = exp_f64(exponent) / below;
    let sine = sine_of_half_turns(x);
    let mirrored = std::f64::consts::PI / (sine * value);
    let value = if reflected { mirrored } else { value };
    (if x < 0.0 && sine == 0.0 { f64::NAN } else { value }) as f32
}

vectorized! {
    /// [`erfinv_f32`] of every element. It is too long to be inlined into a loop that takes any
    /// function, which would call it for each element, without vectors.
    pub(crate) fn erfinv_f32s[](x: &[f32], out: &mut [f32]) {
        for (out, x) in out.iter_mut().zip(x) {
            *out = erfinv_f32(*x);
        }
    }
}

vectorized! {
    /// [`gamma_f32`] of every element, as [`erfinv_f32s`].
    pub(crate) fn gamma_f32s[](x: &[f32], out: &mut [f32]) {
        for (out, x) in out.iter_mut().zip(x) {
            *out = gamma_f32(*x);
        }
    }
}
