//! Files of images, JPEG and PNG, and their pixels.

mod decode;
mod encode;
mod orientation;

pub use decode::{Channels, ImageHead, decode, head, upright_size};
pub use encode::{Format, encode};

use crate::DataError;

/// The pixels of an image: row after row, the channels of a pixel side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pixels {
    /// Rows.
    pub height: usize,
    /// Pixels of a row.
    pub width: usize,
    /// Values of a pixel: 1, 3 or 4.
    pub channels: usize,
    /// The values.
    pub values: Vec<u8>,
}

impl Pixels {
    /// An image with other channels, made pixel by pixel.
    fn map<const IN: usize, const OUT: usize>(
        &self,
        change: impl Fn([u8; IN]) -> [u8; OUT],
    ) -> Result<Vec<u8>, DataError> {
        let pixels = self.values.as_chunks::<IN>().0;
        let mut made = decode::room(pixels.len() * OUT)?;
        made.as_chunks_mut::<OUT>().0.iter_mut().zip(pixels).for_each(|(to, pixel)| *to = change(*pixel));
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp(height: usize, width: usize, channels: usize) -> Pixels {
        let values = (0..height * width * channels).map(|i| (i * 5 % 256) as u8).collect();
        Pixels { height, width, channels, values }
    }

    #[test]
    fn png_files_come_back_exactly() {
        for channels in [1, 3] {
            let image = ramp(7, 5, channels);
            let file = encode(&image, Format::Png { compression: 6 }).unwrap();
            let wanted = if channels == 1 { Channels::Grey } else { Channels::Rgb };
            assert_eq!(decode(&file, wanted).unwrap(), image);
        }
        let grey = encode(&ramp(2, 3, 1), Format::Png { compression: 1 }).unwrap();
        assert_eq!(decode(&grey, Channels::Rgb).unwrap().values[..9], [0, 0, 0, 5, 5, 5, 10, 10, 10]);
        let red = Pixels { height: 1, width: 1, channels: 3, values: vec![200, 10, 20] };
        let file = encode(&red, Format::Png { compression: 1 }).unwrap();
        assert_eq!(decode(&file, Channels::Bgr).unwrap().values, [20, 10, 200]);
        assert_eq!(decode(&file, Channels::Grey).unwrap().values, [67]);
    }

    #[test]
    fn jpeg_files_come_back_nearly() {
        let values = (0..40 * 48).flat_map(|i| [(i % 48 * 5) as u8, (i / 48 * 6) as u8, 90]).collect();
        let image = Pixels { height: 40, width: 48, channels: 3, values };
        let file = encode(&image, Format::Jpeg { quality: 95 }).unwrap();
        let read = decode(&file, Channels::Rgb).unwrap();
        assert_eq!((read.height, read.width, read.channels), (40, 48, 3));
        assert!(read.values.iter().zip(&image.values).all(|(a, b)| a.abs_diff(*b) < 16));
        assert_eq!(decode(&file, Channels::Grey).unwrap().values.len(), 40 * 48);
    }

    #[test]
    fn what_is_cut_off_is_an_error_at_any_length() {
        for format in [Format::Jpeg { quality: 80 }, Format::Png { compression: 6 }] {
            let file = encode(&ramp(20, 20, 3), format).unwrap();
            for length in 0..file.len() {
                assert!(decode(&file[..length], Channels::Rgb).is_err(), "{format:?} {length} of {}", file.len());
            }
        }
    }

    #[test]
    fn damage_never_panics() {
        for format in [Format::Jpeg { quality: 80 }, Format::Png { compression: 6 }] {
            let file = encode(&ramp(20, 20, 3), format).unwrap();
            for at in 0..file.len() {
                for value in [0, 255, file[at] ^ 1, file[at] ^ 128] {
                    let mut damaged = file.clone();
                    damaged[at] = value;
                    let _ = decode(&damaged, Channels::Grey);
                }
            }
        }
    }

    #[test]
    fn sizes_that_no_such_file_can_have_are_refused_before_memory_is_asked_for() {
        let mut file = encode(&ramp(2, 2, 1), Format::Png { compression: 6 }).unwrap();
        file[16..24].copy_from_slice(&[0, 1, 0, 0, 0, 1, 0, 0]);
        let error = decode(&file, Channels::Rgb).unwrap_err().to_string();
        assert!(error.contains("65536 x 65536"), "{error}");
        assert!(decode(b"", Channels::Rgb).unwrap_err().to_string().contains("empty"));
        for (file, words) in [
            (&b"GIF89a...."[..], "neither JPEG nor PNG: it begins with [47, 49, 46, 38]. Convert"),
            (b"version https://git-lfs.github.com/spec/v1\n", "neither JPEG nor PNG. It is a pointer of Git LFS"),
            (b"<!DOCTYPE html>", "neither JPEG nor PNG. It is HTML"),
        ] {
            for error in [decode(file, Channels::Rgb).unwrap_err(), head(file).unwrap_err()] {
                assert!(error.to_string().contains(words), "{error}");
            }
        }
    }

    #[test]
    fn a_jpeg_may_be_as_long_as_the_format_allows() {
        let file = encode(&ramp(3, 20_000, 1), Format::Jpeg { quality: 80 }).unwrap();
        assert_eq!(head(&file).unwrap(), ImageHead { size: [3, 20_000], progressive: false });
        assert_eq!(upright_size(&file).unwrap(), [3, 20_000]);
        assert_eq!(decode(&file, Channels::Grey).unwrap().width, 20_000);
    }
}
