//! Rounding of numbers to integers, the same on every machine: half to even, limited to the type.

/// The low eight bits of a number of less than 2^22, rounded half to even: they are the last ones of
/// the sum's significand. Casts of numbers to bytes are not compiled for vectors.
#[inline(always)]
fn low_bits(value: f32) -> u8 {
    (value + TO_WHOLE).to_bits() as u8
}

/// An integer type that numbers are rounded to.
pub trait RoundTo: Copy + Send + bytemuck::Pod {
    /// Whether it is signed, if it is a byte.
    const SIGNED_BYTE: Option<bool> = None;

    /// Rounds half to even. Values outside of the type become its ends, NaN becomes 0.
    fn round_to(value: f32) -> Self;
}

/// Adding and subtracting this rounds numbers of less than 2^22 to whole ones.
const TO_WHOLE: f32 = 12_582_912.0;

/// Rounds a number of less than 2^22 half to even.
#[inline(always)]
pub fn round_even(value: f32) -> f32 {
    (value + TO_WHOLE) - TO_WHOLE
}

impl RoundTo for i8 {
    const SIGNED_BYTE: Option<bool> = Some(true);

    #[inline(always)]
    fn round_to(value: f32) -> i8 {
        let value = if value.is_nan() { 0.0 } else { value };
        low_bits(value.clamp(-128.0, 127.0)) as i8
    }
}

impl RoundTo for u8 {
    const SIGNED_BYTE: Option<bool> = Some(false);

    #[inline(always)]
    fn round_to(value: f32) -> u8 {
        let value = if value > 0.0 { value } else { 0.0 };
        low_bits(value.min(255.0))
    }
}

impl RoundTo for i32 {
    #[inline(always)]
    fn round_to(value: f32) -> i32 {
        value.round_ties_even() as i32
    }
}

impl RoundTo for f32 {
    #[inline(always)]
    fn round_to(value: f32) -> f32 {
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_go_to_the_even_neighbour_and_nothing_leaves_the_type() {
        for (value, want) in [(0.5, 0), (1.5, 2), (2.5, 2), (-0.5, 0), (-1.5, -2), (126.5, 126), (127.6, 127)] {
            assert_eq!(i8::round_to(value), want, "{value}");
        }
        assert_eq!([i8::round_to(-1e9), i8::round_to(f32::NEG_INFINITY)], [-128; 2]);
        assert_eq!([u8::round_to(254.5), u8::round_to(1e30), u8::round_to(-3.0)], [254, 255, 0]);
        assert_eq!([i32::round_to(2.5), i32::round_to(-3e9), i32::round_to(1e20)], [2, i32::MIN, i32::MAX]);
        assert_eq!((i8::round_to(f32::NAN), u8::round_to(f32::NAN)), (0, 0));
    }
}
