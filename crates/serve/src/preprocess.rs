//! Images that become inputs: decoded, resized, cut and scaled as a model's settings say.

use mxrt_io::image::{Channels, decode};
use mxrt_kernels::Serial;
use mxrt_kernels::image::resize::{Interpolation, Resize};
use mxrt_tensor::{DType, Shape, TensorType};

/// What is done with an image.
#[derive(Clone, Debug, PartialEq)]
pub struct Preprocess {
    /// rows and columns of the input, cut out of the middle
    pub size: [usize; 2],
    /// pixels of the shorter side before that; none: the image is resized to `size` itself
    pub resize: Option<usize>,
    /// one channel, instead of three with red first
    pub grey: bool,
    /// factor of the values, which are from 0 to 255
    pub scale: f32,
    /// subtracted from each channel then
    pub mean: Vec<f32>,
    /// each channel is divided by it then
    pub std: Vec<f32>,
    /// channels come last, instead of before rows and columns
    pub channels_last: bool,
}

impl Default for Preprocess {
    fn default() -> Preprocess {
        Preprocess {
            size: [224, 224],
            resize: None,
            grey: false,
            scale: 1.0,
            mean: Vec::new(),
            std: Vec::new(),
            channels_last: false,
        }
    }
}

/// Whether these are bytes of a JPEG or PNG.
pub(crate) fn is_image(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0xff, 0xd8]) || bytes.starts_with(b"\x89PNG")
}

impl Preprocess {
    fn channels(&self) -> usize {
        if self.grey { 1 } else { 3 }
    }

    /// Type of one image.
    pub(crate) fn tensor(&self, dtype: DType) -> TensorType {
        let ([rows, columns], channels) = (self.size, self.channels());
        let shape = if self.channels_last { [1, rows, columns, channels] } else { [1, channels, rows, columns] };
        TensorType::new(dtype, Shape::new(&shape))
    }

    /// The elements of an input of this type. The error is a text for the client.
    pub(crate) fn run(&self, file: &[u8], dtype: DType) -> Result<Vec<u8>, String> {
        let channels = if self.grey { Channels::Grey } else { Channels::Rgb };
        let image = decode(file, channels).map_err(|error| format!("the image: {error}"))?;
        let channels = self.channels();
        let from = [image.height, image.width];
        let to = self.resized(from);
        let mut pixels = vec![0u8; to[0] * to[1] * channels];
        Resize { from, to, channels, interpolation: Interpolation::Linear }.run(&Serial, &image.values, &mut pixels);
        let [top, left] = [0, 1].map(|axis| (to[axis] - self.size[axis]) / 2);
        let [rows, columns] = self.size;
        let value = |row: usize, column: usize, channel: usize| {
            let pixel = pixels[((top + row) * to[1] + left + column) * channels + channel];
            let of = |list: &[f32], usual: f32| list.get(channel).or(list.first()).copied().unwrap_or(usual);
            (pixel, (f32::from(pixel) * self.scale - of(&self.mean, 0.0)) / of(&self.std, 1.0))
        };
        let mut bytes = Vec::with_capacity(rows * columns * channels * dtype.size());
        let mut put = |(pixel, value): (u8, f32)| match dtype {
            DType::F32 => bytes.extend_from_slice(&value.to_le_bytes()),
            _ => bytes.push(pixel),
        };
        if !matches!(dtype, DType::F32 | DType::U8) {
            return Err("images become inputs of the types FP32 and UINT8 alone".to_owned());
        }
        if self.channels_last {
            for row in 0..rows {
                for column in 0..columns {
                    (0..channels).for_each(|channel| put(value(row, column, channel)));
                }
            }
        } else {
            for channel in 0..channels {
                for row in 0..rows {
                    (0..columns).for_each(|column| put(value(row, column, channel)));
                }
            }
        }
        Ok(bytes)
    }

    /// Rows and columns before the cut: at least as many as are wanted.
    fn resized(&self, [height, width]: [usize; 2]) -> [usize; 2] {
        let Some(shorter) = self.resize else { return self.size };
        let least = height.min(width).max(1);
        let scaled = |extent: usize| (extent * shorter + least / 2) / least;
        [scaled(height).max(self.size[0]), scaled(width).max(self.size[1])]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mxrt_io::image::{Format, Pixels, encode};

    fn png(height: usize, width: usize, value: impl Fn(usize, usize, usize) -> u8) -> Vec<u8> {
        let values = (0..height * width * 3).map(|i| value(i / 3 / width, i / 3 % width, i % 3)).collect();
        encode(&Pixels { height, width, channels: 3, values }, Format::Png { compression: 3 }).expect("an image")
    }

    #[test]
    fn pixels_are_cut_scaled_and_put_in_order() {
        let file = png(4, 6, |row, column, channel| (row * 60 + column * 10 + channel) as u8);
        let cut = Preprocess { size: [2, 2], resize: Some(4), ..Preprocess::default() };
        let bytes = cut.run(&file, DType::U8).expect("an input");
        let wanted: Vec<u8> = (0..3).flat_map(|c| [80 + c, 90 + c, 140 + c, 150 + c]).collect();
        assert_eq!(bytes, wanted);
        assert_eq!(cut.tensor(DType::U8).shape.to_vec(), [1, 3, 2, 2]);
        let last = Preprocess { channels_last: true, mean: vec![10.0], std: vec![2.0], scale: 0.5, ..cut };
        let bytes = last.run(&file, DType::F32).expect("an input");
        let first = f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        assert_eq!((first, bytes.len()), ((80.0 * 0.5 - 10.0) / 2.0, 4 * 12));
        assert!(last.run(&file, DType::F64).is_err());
        assert!(last.run(&file[..20], DType::F32).is_err());
    }
}
