//! Float32 as the sum of three bf16.

/// Parts of a float32.
pub(crate) const PARTS: usize = 3;

/// The least magnitude that has no parts: its first one may round to infinity.
pub(crate) const LIMIT: f32 = f32::from_bits(0x7f00_0000);

/// The number whose parts these are. One that is its first part keeps the sign of a zero.
pub(crate) fn sum_of(parts: [u16; PARTS]) -> f32 {
    if parts[1] == 0 && parts[2] == 0 {
        return value(parts[0]);
    }
    (value(parts[0]) + value(parts[1])) + value(parts[2])
}

/// The number with these bits of bf16.
pub(crate) fn value(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// The nearest bf16 as the processor's conversion rounds: to even, with denormal numbers taken for
/// zero.
pub(crate) fn round(x: f32) -> u16 {
    let bits = x.to_bits();
    if x.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    if x.is_subnormal() {
        return (bits >> 16) as u16 & 0x8000;
    }
    (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16
}
