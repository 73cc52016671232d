//! Encoding of pixels to files.

use super::Pixels;
use crate::DataError;
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

/// Kinds of files.
#[derive(Clone, Copy, Debug)]
pub enum Format {
    /// JPEG.
    Jpeg {
        /// quality from 1 to 100
        quality: u8,
    },
    /// PNG.
    Png {
        /// compression from 0, which is fast, to 9, which is small
        compression: u8,
    },
}

/// The file of an image with 1 or 3 channels, red first.
pub fn encode(image: &Pixels, format: Format) -> Result<Vec<u8>, DataError> {
    let Pixels { height, width, channels, values } = image;
    if *channels != 1 && *channels != 3 || values.len() != height * width * channels || values.is_empty() {
        let problem = format!("an image of {height} x {width} pixels with {channels} channels cannot be encoded");
        return Err(DataError::Argument(format!("{problem}; expected 1 or 3 channels and pixels")));
    }
    match format {
        Format::Jpeg { quality } => jpeg(image, quality),
        Format::Png { compression } => png(image, compression),
    }
}

fn failed(error: &dyn std::fmt::Display) -> DataError {
    DataError::Argument(format!("the image cannot be encoded: {error}"))
}

fn jpeg(image: &Pixels, quality: u8) -> Result<Vec<u8>, DataError> {
    let size = |n: usize| {
        u16::try_from(n).map_err(|_| failed(&format!("JPEG has at most 65535 pixels along an edge, not {n}")))
    };
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, quality);
    // Colours at half the resolution, as OpenCV stores them.
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    let color = if image.channels == 1 { ColorType::Luma } else { ColorType::Rgb };
    encoder.encode(&image.values, size(image.width)?, size(image.height)?, color).map_err(|e| failed(&e))?;
    Ok(file)
}

fn png(image: &Pixels, compression: u8) -> Result<Vec<u8>, DataError> {
    let size = |n: usize| u32::try_from(n).map_err(|_| failed(&format!("PNG has no edges of {n} pixels")));
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, size(image.width)?, size(image.height)?);
    encoder.set_color(if image.channels == 1 { png::ColorType::Grayscale } else { png::ColorType::Rgb });
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(match compression {
        0..=3 => png::Compression::Fast,
        4..=6 => png::Compression::Balanced,
        _ => png::Compression::High,
    });
    let mut writer = encoder.write_header().map_err(|e| failed(&e))?;
    writer.write_image_data(&image.values).map_err(|e| failed(&e))?;
    writer.finish().map_err(|e| failed(&e))?;
    Ok(file)
}
