//! Numbers in text, of the forms that files of numbers are full of.

/// Powers of ten that float64 holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// The number that a text begins with, and how many bytes it has: the same float32 as `str::parse`
/// gives. `None` where it takes more care than here, and where there is no number.
pub(super) fn float(text: &[u8]) -> Option<(f32, usize)> {
    let negative = text.first() == Some(&b'-');
    let mut at = usize::from(negative || text.first() == Some(&b'+'));
    let (mut mantissa, whole) = digits(text, &mut at, 0);
    let (mut count, mut exponent) = (whole, 0);
    if text.get(at) == Some(&b'.') {
        at += 1;
        let (longer, fraction) = digits(text, &mut at, mantissa);
        (mantissa, count, exponent) = (longer, whole + fraction, -(fraction as i64));
    }
    // More digits do not fit into the mantissa.
    if count == 0 || count > 18 || mantissa > 1 << 53 {
        return None;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        at += 1;
        let down = text.get(at) == Some(&b'-');
        at += usize::from(down || text.get(at) == Some(&b'+'));
        let (power, places) = digits(text, &mut at, 0);
        if places == 0 || places > 4 {
            return None;
        }
        exponent += if down { -(power as i64) } else { power as i64 };
    }
    let power = *POWERS.get(exponent.unsigned_abs() as usize)?;
    // Both operands are exact, so the result is the float64 nearest to the number.
    let value = if exponent < 0 { mantissa as f64 / power } else { mantissa as f64 * power };
    // It rounds to the float32 nearest to the number, unless it lies between two of them.
    let halfway = value.to_bits() & 0x1FFF_FFFF == 0x1000_0000;
    let normal = value == 0.0 || (f64::from(f32::MIN_POSITIVE)..f64::from(f32::MAX)).contains(&value);
    (normal && !halfway).then_some((if negative { -value } else { value } as f32, at))
}

/// The whole number that a text begins with, and how many bytes it has.
pub(super) fn whole(text: &[u8]) -> Option<(u64, usize)> {
    let mut at = 0;
    let (value, count) = digits(text, &mut at, 0);
    (1..=18).contains(&count).then_some((value, at))
}

/// Appends the digits from `at` on to a number; it and how many they were.
fn digits(text: &[u8], at: &mut usize, mut number: u64) -> (u64, usize) {
    let begin = *at;
    while let Some(digit) = text.get(*at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
        *at += 1;
    }
    (number, *at - begin)
}

#[cfg(test)]
mod tests {
    use super::float;
    use proptest::prelude::*;

    /// Whether the number found here, in a text that ends after it, is the one that `str::parse`
    /// finds.
    fn agrees(text: &str) -> bool {
        match float(text.as_bytes()) {
            Some((value, used)) => {
                let known: f32 = text[..used].parse().expect("a number");
                value.to_bits() == known.to_bits() && used == text.len()
            }
            None => true,
        }
    }

    #[test]
    fn usual_numbers_are_read() {
        for text in ["0", "-0.0", "1", "+2.5", "-0.123457", ".5", "5.", "1e3", "2.5E-7", "123456.789", "1e22"] {
            assert!(float(text.as_bytes()).is_some() && agrees(text), "{text}");
        }
    }

    #[test]
    fn what_takes_more_care_is_left_alone() {
        // Between two float32; too long; subnormal; too large; no numbers.
        let between = ["16777217", "1.00000005960464477539"];
        for text in between.iter().chain(&["1e-40", "1e39", "1e99999", "", "-", ".", "e5", "1e", "inf", "nan", " 1"]) {
            assert_eq!(float(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn numbers_are_those_of_the_standard_library(text in "[-+]?[0-9]{0,12}(\\.[0-9]{0,12})?([eE][-+]?[0-9]{1,2})?") {
            prop_assert!(agrees(&text), "{text}");
        }

        #[test]
        fn floats_come_back_from_their_text(bits in any::<u32>()) {
            let value = f32::from_bits(bits);
            prop_assert!(agrees(&format!("{value:e}")), "{value:e}");
            prop_assert!(agrees(&format!("{value:.6}")), "{value:.6}");
        }
    }
}
