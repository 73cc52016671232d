//! How a photograph was held, by its EXIF data.

use super::Pixels;

/// The orientation in EXIF data, from 2 to 8; `None` if it is upright or not given.
pub(super) fn orientation(exif: &[u8]) -> Option<u16> {
    let exif = exif.strip_prefix(b"Exif\0\0").unwrap_or(exif);
    let little = match exif.get(..2)? {
        b"II" => true,
        b"MM" => false,
        _ => return None,
    };
    let short = |at: usize| {
        let bytes = <[u8; 2]>::try_from(exif.get(at..at.checked_add(2)?)?).ok()?;
        Some(if little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    };
    let bytes = <[u8; 4]>::try_from(exif.get(4..8)?).ok()?;
    let directory = if little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) } as usize;
    for i in 0..usize::from(short(directory)?) {
        let entry = directory.checked_add(2 + 12 * i)?;
        if short(entry)? == 0x112 {
            return short(entry + 8).filter(|way| (2..=8).contains(way));
        }
    }
    None
}

/// The image upright.
pub(super) fn turned(image: &Pixels, way: u16) -> Pixels {
    let Pixels { height, width, channels, values } = image;
    let (rows, columns) = if way < 5 { (*height, *width) } else { (*width, *height) };
    let mut out = Vec::with_capacity(values.len());
    for row in 0..rows {
        for column in 0..columns {
            let (up, left) = match way {
                2 => (row, width - 1 - column),
                3 => (height - 1 - row, width - 1 - column),
                4 => (height - 1 - row, column),
                5 => (column, row),
                6 => (height - 1 - column, row),
                7 => (height - 1 - column, width - 1 - row),
                8 => (column, width - 1 - row),
                _ => (row, column),
            };
            out.extend_from_slice(&values[(up * width + left) * channels..][..*channels]);
        }
    }
    Pixels { height: rows, width: columns, channels: *channels, values: out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_turned_upright() {
        let image = Pixels { height: 2, width: 3, channels: 1, values: b"abcdef".to_vec() };
        let text = |way| {
            let made = turned(&image, way);
            (made.height, String::from_utf8(made.values).unwrap())
        };
        assert_eq!(text(2), (2, "cbafed".to_owned()));
        assert_eq!(text(3), (2, "fedcba".to_owned()));
        assert_eq!(text(4), (2, "defabc".to_owned()));
        assert_eq!(text(5), (3, "adbecf".to_owned()));
        assert_eq!(text(6), (3, "daebfc".to_owned()));
        assert_eq!(text(7), (3, "fcebda".to_owned()));
        assert_eq!(text(8), (3, "cfbead".to_owned()));
    }

    #[test]
    fn the_orientation_is_found_in_both_byte_orders() {
        let little = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0";
        let big = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x03\0\0";
        assert_eq!(orientation(little), Some(6));
        assert_eq!(orientation(big), Some(3));
        for end in 0..big.len() - 2 {
            assert_eq!(orientation(&big[..end]), None);
        }
        assert_eq!(orientation(b"II*\0\xff\xff\xff\xff"), None);
    }
}
