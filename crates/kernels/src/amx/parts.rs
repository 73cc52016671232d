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
