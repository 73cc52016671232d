//! Preprocessing of images: decoding, resizing, cropping and scaling by a model's settings.

use crate::refusal::{Cause, Refusal, room};
use mxrt_io::DataError;
use mxrt_io::image::{Channels, decode, head};
use mxrt_kernels::Serial;
use mxrt_kernels::image::resize::{Interpolation, Resize};
use mxrt_tensor::{DType, Shape, TensorType};

/// Steps that turn an image into an input.
#[derive(Clone, Debug, PartialEq)]
pub struct Preprocess {
    /// rows and columns of the input, cropped from the middle
    pub size: [usize; 2],
    /// pixels of the shorter side after resizing; none: the image is resized to `size`
    pub resize: Option<usize>,
    /// whether there is one channel, instead of three with red first
    pub grey: bool,
    /// factor for the values, which are from 0 to 255
    pub scale: f32,
    /// values that are then subtracted from the channels
    pub mean: Vec<f32>,
    /// divisors of the channels after that
    pub std: Vec<f32>,
    /// whether channels come last, instead of before rows and columns
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

/// Returns whether the bytes begin like a JPEG or PNG.
pub(crate) fn is_image(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0xff, 0xd8]) || bytes.starts_with(b"\x89PNG")
}

/// Memory for each pixel of a file while it is decoded: before and after conversion of its
/// channels.
const BYTES_PER_PIXEL: usize = 7;
/// Memory for each pixel of a JPEG of up to four channels whose coefficients are kept until its
/// last scan: a progressive one, or one whose scans do not have all channels.
const BYTES_PER_PROGRESSIVE_PIXEL: usize = 13;

/// Returns the number of pixels of an image, or refuses too many.
fn bounded([rows, columns]: [usize; 2], most: usize, what: &str) -> Result<usize, Refusal> {
    let pixels = rows.saturating_mul(columns);
    if pixels > most {
        let words = format!("{what} {rows} x {columns} pixels; this server takes at most {most} (max_pixels)");
        return Err(Refusal::invalid(words));
    }
    Ok(pixels)
}

fn unreadable(error: &DataError) -> Refusal {
    match error {
        DataError::Memory(_) => Refusal::new(Cause::Memory, format!("the image: {error}")).retry_after(1),
        _ => Refusal::invalid(format!("the image: {error}")),
    }
}

impl Preprocess {
    fn channels(&self) -> usize {
        if self.grey { 1 } else { 3 }
    }

    /// Returns the type of one preprocessed image.
    pub(crate) fn tensor(&self, dtype: DType) -> TensorType {
        let ([rows, columns], channels) = (self.size, self.channels());
        let shape = if self.channels_last { [1, rows, columns, channels] } else { [1, channels, rows, columns] };
        TensorType::new(dtype, Shape::new(&shape))
    }

    /// Makes the elements of an input of this type from an image. The image has at most `most`
    /// pixels, both in its file and after resizing. `charge` is called before memory is taken.
    pub(crate) fn run(
        &self,
        file: &[u8],
        dtype: DType,
        most: usize,
        charge: &mut dyn FnMut(usize) -> Result<(), Refusal>,
    ) -> Result<Vec<u8>, Refusal> {
        if !matches!(dtype, DType::F32 | DType::U8) {
            return Err(Refusal::invalid("images become inputs of the types FP32 and UINT8 alone"));
        }
        let head = head(file).map_err(|error| unreadable(&error))?;
        let pixels = bounded(head.size, most, "the image has")?;
        bounded(self.resized(head.size), most, "resized it would have")?;
        charge(pixels.saturating_mul(if head.progressive { BYTES_PER_PROGRESSIVE_PIXEL } else { BYTES_PER_PIXEL }))?;
        let channels = if self.grey { Channels::Grey } else { Channels::Rgb };
        let image = decode(file, channels).map_err(|error| unreadable(&error))?;
        let channels = self.channels();
        // Decoding may have rotated a photograph.
        let from = [image.height, image.width];
        let to = self.resized(from);
        bounded(to, most, "resized it would have")?;
        let [rows, columns] = self.size;
        let [top, left] = [0, 1].map(|axis| (to[axis] - self.size[axis]) / 2);
        let elements = rows * columns * channels;
        charge(elements * (1 + dtype.size()))?;
        let mut pixels = Vec::new();
        room(&mut pixels, elements)?;
        pixels.resize(elements, 0u8);
        let window = [top..top + rows, left..left + columns];
        let resize = Resize { from, to, channels, interpolation: Interpolation::Linear };
        resize.run_window(&Serial, window, &image.values, &mut pixels);
        self.elements(&pixels, dtype)
    }

    /// Scales the pixels of the crop, and puts them into the order of the input.
    fn elements(&self, pixels: &[u8], dtype: DType) -> Result<Vec<u8>, Refusal> {
        let ([rows, columns], channels) = (self.size, self.channels());
        let of =
            |list: &[f32], channel: usize, usual: f32| list.get(channel).or(list.first()).copied().unwrap_or(usual);
        let mut bytes = Vec::new();
        room(&mut bytes, pixels.len() * dtype.size())?;
        let mut put = |pixel: usize, channel: usize| {
            let value = pixels[pixel * channels + channel];
            let scaled = (f32::from(value) * self.scale - of(&self.mean, channel, 0.0)) / of(&self.std, channel, 1.0);
            match dtype {
                DType::F32 => bytes.extend_from_slice(&scaled.to_le_bytes()),
                _ => bytes.push(value),
            }
        };
        if self.channels_last {
            (0..rows * columns).for_each(|pixel| (0..channels).for_each(|channel| put(pixel, channel)));
        } else {
            (0..channels).for_each(|channel| (0..rows * columns).for_each(|pixel| put(pixel, channel)));
        }
        Ok(bytes)
    }

    /// Checks that there is one number for all channels, or one for each.
    pub(crate) fn check(&self) -> Result<(), String> {
        let channels = self.channels();
        for (key, numbers) in [("mean", &self.mean), ("std", &self.std)] {
            if !matches!(numbers.len(), 0 | 1) && numbers.len() != channels {
                let count = numbers.len();
                return Err(format!("{key} has {count} numbers; expected 1, or {channels}: one for each channel"));
            }
        }
        Ok(())
    }

    /// Returns the rows and columns before cropping, at least as many as the input has.
    fn resized(&self, [height, width]: [usize; 2]) -> [usize; 2] {
        let Some(shorter) = self.resize else { return self.size };
        let least = height.min(width).max(1);
        let scaled = |extent: usize| extent.saturating_mul(shorter).saturating_add(least / 2) / least;
        [scaled(height).max(self.size[0]), scaled(width).max(self.size[1])]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mxrt_io::image::{Format, Pixels, encode};

    #[test]
    fn progressive_jpegs_are_charged_for_their_coefficients() {
        let pixels = Pixels { height: 16, width: 16, channels: 3, values: vec![9; 768] };
        let mut file = encode(&pixels, Format::Jpeg { quality: 90 }).expect("an image");
        let first_charge = |file: &[u8]| {
            let mut first = None;
            let mut charge = |bytes: usize| {
                first.get_or_insert(bytes);
                Ok(())
            };
            let _ = Preprocess { size: [8, 8], ..Preprocess::default() }.run(file, DType::F32, 1 << 20, &mut charge);
            first
        };
        assert_eq!(first_charge(&file), Some(256 * BYTES_PER_PIXEL));
        let frame = file.windows(2).position(|mark| mark == [0xff, 0xc0]).expect("the frame");
        file[frame + 1] = 0xc2;
        assert_eq!(first_charge(&file), Some(256 * BYTES_PER_PROGRESSIVE_PIXEL));
        // So are those whose first scan has not all components: the decoder keeps them all.
        file[frame + 1] = 0xc0;
        let scan = file.windows(5).position(|mark| mark == [0xff, 0xda, 0, 12, 3]).expect("the scan");
        let (first, last) = ([file[scan + 5], file[scan + 6]], [0, 63, 0]);
        file.splice(scan..scan + 14, [&[0xff, 0xda, 0, 8, 1], &first[..], &last].concat());
        assert_eq!(first_charge(&file), Some(256 * BYTES_PER_PROGRESSIVE_PIXEL));
    }

    fn png(height: usize, width: usize, value: impl Fn(usize, usize, usize) -> u8) -> Vec<u8> {
        let values = (0..height * width * 3).map(|i| value(i / 3 / width, i / 3 % width, i % 3)).collect();
        encode(&Pixels { height, width, channels: 3, values }, Format::Png { compression: 3 }).expect("an image")
    }

    fn run(preprocess: &Preprocess, file: &[u8], dtype: DType) -> Result<Vec<u8>, Refusal> {
        preprocess.run(file, dtype, 1 << 20, &mut |_| Ok(()))
    }

    #[test]
    fn pixels_are_cut_scaled_and_put_in_order() {
        let file = png(4, 6, |row, column, channel| (row * 60 + column * 10 + channel) as u8);
        let cut = Preprocess { size: [2, 2], resize: Some(4), ..Preprocess::default() };
        let bytes = run(&cut, &file, DType::U8).expect("an input");
        let wanted: Vec<u8> = (0..3).flat_map(|c| [80 + c, 90 + c, 140 + c, 150 + c]).collect();
        assert_eq!(bytes, wanted);
        assert_eq!(cut.tensor(DType::U8).shape.to_vec(), [1, 3, 2, 2]);
        let last = Preprocess { channels_last: true, mean: vec![10.0], std: vec![2.0], scale: 0.5, ..cut };
        let bytes = run(&last, &file, DType::F32).expect("an input");
        let first = f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        assert_eq!((first, bytes.len()), ((80.0 * 0.5 - 10.0) / 2.0, 4 * 12));
        assert!(run(&last, &file, DType::F64).is_err());
        assert!(run(&last, &file[..20], DType::F32).is_err());
    }

    #[test]
    fn pixels_are_bounded_and_charged_before_they_are_made() {
        let preprocess = Preprocess { size: [2, 2], resize: Some(4), ..Preprocess::default() };
        let narrow = png(1, 600_000, |_, column, _| column as u8);
        let refused = run(&preprocess, &narrow, DType::U8).expect_err("too many");
        assert!(refused.message.contains("resized it would have 4 x 2400000 pixels"), "{}", refused.message);
        let large = png(2000, 1000, |_, _, _| 7);
        let refused = run(&preprocess, &large, DType::U8).expect_err("too many");
        assert!(refused.message.contains("the image has 2000 x 1000 pixels"), "{}", refused.message);
        let mut charged = Vec::new();
        let mut charge = |bytes| {
            charged.push(bytes);
            Ok(())
        };
        preprocess.run(&png(10, 10, |_, _, _| 7), DType::F32, 100, &mut charge).expect("an input");
        assert_eq!(charged, [700, 12 * 5]);
        let none = preprocess.run(&png(10, 10, |_, _, _| 7), DType::F32, 100, &mut |_| Err(Refusal::late()));
        assert!(none.is_err_and(|refusal| refusal.cause == Cause::Late));
    }
}
