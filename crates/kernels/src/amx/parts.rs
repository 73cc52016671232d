//! Float32 as the sum of three bf16.

/// Parts of a float32.
pub(super) const PARTS: usize = 3;

/// The least magnitude that has no parts: its first one may round to infinity.
pub(super) const LIMIT: f32 = f32::from_bits(0x7f00_0000);

/// The parts of a number as bits of bf16, the largest first: each is what those before it left,
/// rounded to nearest even. Denormal rests count as zero, as they do for the processor, so that
/// numbers below 2^-103 may lose up to 2^-126.
pub(super) fn parts_of(x: f32) -> [u16; PARTS] {
    let mut rest = x;
    std::array::from_fn(|_| {
        let part = round(rest);
        rest -= value(part);
        part
    })
}

/// The number whose parts these are.
pub(super) fn sum_of(parts: [u16; PARTS]) -> f32 {
    (value(parts[0]) + value(parts[1])) + value(parts[2])
}

/// Whether products of the number's parts are products of the number.
#[cfg(test)]
pub(super) fn has_parts(x: f32) -> bool {
    x.abs() < LIMIT
}

fn value(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// The nearest bf16, as the processor's conversion rounds.
fn round(x: f32) -> u16 {
    let bits = x.to_bits();
    if x.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    if x.is_subnormal() {
        return (bits >> 16) as u16 & 0x8000;
    }
    (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_the_sum_of_its_parts() {
        let mut bits = 12345u32;
        for _ in 0..100_000 {
            bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let x = f32::from_bits(bits);
            let sum = sum_of(parts_of(x));
            if x.abs() < LIMIT && x.abs() >= 2f32.powi(-103) {
                assert_eq!(sum.to_bits(), bits, "{x}");
            } else if x.abs() < LIMIT {
                // Parts may be denormal, which count as zero.
                assert!((sum - x).abs() <= f32::MIN_POSITIVE, "{x}");
            }
        }
        assert_eq!(sum_of(parts_of(0.0)), 0.0);
        assert!(!has_parts(f32::INFINITY) && !has_parts(f32::NAN) && !has_parts(-f32::MAX) && has_parts(-1.5));
    }
}
