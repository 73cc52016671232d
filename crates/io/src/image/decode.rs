//! Decoding of files to pixels.

use super::Pixels;
use super::orientation::{orientation, turned};
use crate::foreign::{HEAD, IMAGE};
use crate::{DataError, recognise};
use std::io::Cursor;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::{ZByteReaderTrait, ZCursor};
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// The channels that are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channels {
    /// One.
    Grey,
    /// Three, red first.
    Rgb,
    /// Three, blue first.
    Bgr,
    /// Four, red first, the last of which is alpha. The file must have them.
    Rgba,
}

/// Longest edge and most pixels, as in OpenCV.
const EDGE: u64 = 1 << 20;
const PIXELS: u64 = 1 << 30;
/// Pixels that one byte of a file can stand for at most, about, and pixels that any file may have.
const PER_BYTE: u64 = 1100;
const ANY: u64 = 1 << 16;

/// The pixels of a JPEG or PNG file. Transparency is dropped.
///
/// A photograph whose file begins with EXIF data is turned as these say; one that begins as JFIF is
/// not, as in MXNet.
pub fn decode(file: &[u8], channels: Channels) -> Result<Pixels, DataError> {
    let mut image = match file {
        [] => return Err(wrong("the file is empty".to_owned())),
        [0xff, 0xd8, ..] if channels == Channels::Rgba => {
            return Err(wrong("Expected 4 channels, got 3: JPEG has no alpha".to_owned()));
        }
        [0xff, 0xd8, ..] => jpeg(file, channels == Channels::Grey)?,
        [0x89, b'P', b'N', b'G', ..] => png(file, channels)?,
        _ => return Err(no_image(file)),
    };
    if channels == Channels::Bgr {
        image.values = image.map(|[r, g, b]| [b, g, r])?;
    }
    Ok(image)
}

/// Facts in the head of an image file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageHead {
    /// height and width, before a photograph is turned
    pub size: [usize; 2],
    /// whether it is a JPEG whose coefficients are kept until its last scan is read: a progressive
    /// one, or one whose first scan has not all components
    pub progressive: bool,
}

/// Reads the head of a JPEG or PNG file.
pub fn head(file: &[u8]) -> Result<ImageHead, DataError> {
    match file {
        [0xff, 0xd8, ..] => jpeg_head(file).map(|(head, _)| head),
        [0x89, b'P', b'N', b'G', ..] => {
            let number =
                |at: usize| file.get(at..at + 4).map(|v| u32::from_be_bytes([v[0], v[1], v[2], v[3]]) as usize);
            let size = number(16).zip(number(20)).ok_or_else(|| wrong("PNG: it ends in its head".to_owned()))?;
            Ok(ImageHead { size: [size.1, size.0], progressive: false })
        }
        _ => Err(no_image(file)),
    }
}

/// Reads the head of a JPEG, and the orientation that it is turned by.
fn jpeg_head(file: &[u8]) -> Result<(ImageHead, Option<u16>), DataError> {
    let no_size = || wrong("JPEG: it has no size".to_owned());
    let mut cursor = Cursor::new(file);
    let mut decoder = decoder_of(&mut cursor);
    decoder.decode_headers().map_err(|error| wrong(format!("JPEG: {error}")))?;
    let info = decoder.info().ok_or_else(no_size)?;
    let way = turn(decoder.exif(), file);
    drop(decoder);
    let read = &file[..file.len().min(cursor.position() as usize)];
    let progressive = !info.sof.is_sequential_dct() || (1..info.components.min(5)).any(|count| is_scan_of(count, read));
    Ok((ImageHead { size: [info.height.into(), info.width.into()], progressive }, way))
}

/// Whether a file, read to the end of the head of its first scan, may have a scan of this number of
/// components there. If these are not all, the coefficients of all scans are kept.
fn is_scan_of(components: u8, read: &[u8]) -> bool {
    // Its marker, its length, and the number: the rest has two bytes for each component and three.
    let length = 6 + 2 * components;
    let begin = read.len().checked_sub(usize::from(length) + 1);
    begin.is_some_and(|begin| read[begin..].starts_with(&[0xda, 0, length, components]))
}

/// A decoder of a JPEG whose edges may be as long as those of any image.
fn decoder_of<T: ZByteReaderTrait>(file: T) -> JpegDecoder<T> {
    let options = DecoderOptions::default().set_max_width(EDGE as usize).set_max_height(EDGE as usize);
    JpegDecoder::new_with_options(file, options)
}

/// Height and width of the pixels that [`decode`] makes of a file, with its limits.
pub fn upright_size(file: &[u8]) -> Result<[usize; 2], DataError> {
    let (head, way) = if file.starts_with(&[0xff, 0xd8]) { jpeg_head(file)? } else { (head(file)?, None) };
    let [height, width] = head.size;
    check_size(width as u64, height as u64, file)?;
    Ok(if way.is_some_and(|way| way >= 5) { [width, height] } else { [height, width] })
}

/// The orientation that a photograph is turned by, by its EXIF data.
fn turn(exif: Option<&Vec<u8>>, file: &[u8]) -> Option<u16> {
    let jfif = file.get(2..4) == Some(&[0xff, 0xe0]) && file.get(6..11) == Some(b"JFIF\0");
    exif.and_then(|exif| orientation(exif)).filter(|_| !jfif)
}

/// Describes a file that is neither JPEG nor PNG.
fn no_image(file: &[u8]) -> DataError {
    let head = &file[..file.len().min(HEAD)];
    wrong(match recognise(head).filter(|advice| *advice != IMAGE) {
        Some(advice) => format!("it is neither JPEG nor PNG. {advice}"),
        None => {
            let start = &file[..file.len().min(4)];
            format!("it is neither JPEG nor PNG: it begins with {start:02x?}. Convert the image to one of them")
        }
    })
}

pub(super) fn wrong(problem: String) -> DataError {
    // Some words of decoders end in a line of their own.
    let problem = problem.split_whitespace().collect::<Vec<_>>().join(" ");
    DataError::Content { place: "Decoding failed. Invalid image file".to_owned(), problem }
}

/// Checks a size before memory is asked for.
fn check_size(width: u64, height: u64, file: &[u8]) -> Result<(), DataError> {
    let pixels = width.saturating_mul(height);
    let most = (file.len() as u64 * PER_BYTE + ANY).min(PIXELS);
    if pixels == 0 || width > EDGE || height > EDGE || pixels > most {
        return Err(wrong(format!("it has {} bytes and says it were {width} x {height} pixels", file.len())));
    }
    Ok(())
}

/// Room for values.
pub(super) fn room(bytes: usize) -> Result<Vec<u8>, DataError> {
    let mut values = Vec::new();
    values
        .try_reserve_exact(bytes)
        .map_err(|_| DataError::Memory(format!("there is no memory for the {bytes} bytes of an image")))?;
    values.resize(bytes, 0);
    Ok(values)
}

fn jpeg(file: &[u8], grey: bool) -> Result<Pixels, DataError> {
    let failed = |error: zune_jpeg::errors::DecodeErrors| wrong(format!("JPEG: {error}"));
    if !is_complete(file) {
        return Err(wrong("JPEG: the file is truncated".to_owned()));
    }
    let mut decoder = decoder_of(ZCursor::new(file));
    decoder.decode_headers().map_err(failed)?;
    // Four inks are made colours first.
    let inks = matches!(decoder.input_colorspace(), Some(ColorSpace::CMYK | ColorSpace::YCCK));
    let made = if grey && !inks { ColorSpace::Luma } else { ColorSpace::RGB };
    decoder.set_options(decoder.options().jpeg_set_out_colorspace(made));
    let (width, height) = decoder.dimensions().ok_or_else(|| wrong("JPEG: it has no size".to_owned()))?;
    check_size(width as u64, height as u64, file)?;
    let size = decoder.output_buffer_size().ok_or_else(|| wrong("JPEG: it has no size".to_owned()))?;
    let channels = made.num_components();
    if size != width * height * channels {
        return Err(wrong("JPEG: its colours are of an unknown kind".to_owned()));
    }
    let mut values = room(size)?;
    decoder.decode_into(&mut values).map_err(failed)?;
    let mut image = Pixels { height, width, channels, values };
    if grey && inks {
        let values = image.map(|[r, g, b]| [rounded_grey_of(r, g, b)])?;
        image = Pixels { channels: 1, values, ..image };
    }
    Ok(match turn(decoder.exif(), file) {
        Some(way) => turned(&image, way),
        None => image,
    })
}

/// Whether the end of a JPEG file is there: the marker of the end follows that of pixels.
fn is_complete(file: &[u8]) -> bool {
    let mut at = 2;
    loop {
        match file.get(at..at + 4) {
            Some([0xff, 0xda, ..]) => break,
            Some([0xff, 0xff, ..]) => at += 1,
            Some([0xff, _, high, low]) => at += 2 + usize::from(u16::from_be_bytes([*high, *low])),
            Some(_) => at += 1,
            None => return false,
        }
    }
    file[at..].windows(2).any(|pair| pair == [0xff, 0xd9])
}

fn png(file: &[u8], channels: Channels) -> Result<Pixels, DataError> {
    let grey = channels == Channels::Grey;
    let failed = |error: png::DecodingError| wrong(format!("PNG: {error}"));
    if let Some([w0, w1, w2, w3, h0, h1, h2, h3]) = file.get(16..24) {
        let [width, height] = [[*w0, *w1, *w2, *w3], [*h0, *h1, *h2, *h3]].map(|v| u64::from(u32::from_be_bytes(v)));
        check_size(width, height, file)?;
    }
    let mut decoder = png::Decoder::new(Cursor::new(file));
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
    let mut reader = decoder.read_info().map_err(failed)?;
    let size = reader.output_buffer_size().ok_or_else(|| wrong("PNG: it is too large".to_owned()))?;
    let mut values = room(size)?;
    let frame = reader.next_frame(&mut values).map_err(failed)?;
    // What follows the pixels is read too: a file that ends early is damaged.
    reader.finish().map_err(failed)?;
    values.truncate(frame.buffer_size());
    let (height, width) = (frame.height as usize, frame.width as usize);
    let image = Pixels { height, width, channels: 1, values };
    if channels == Channels::Rgba {
        let values = match frame.color_type {
            png::ColorType::Rgba => image.values,
            png::ColorType::GrayscaleAlpha => image.map(|[v, a]| [v, v, v, a])?,
            other => return Err(wrong(format!("Expected 4 channels, got {}", other.samples()))),
        };
        return Ok(Pixels { height, width, channels: 4, values });
    }
    let values = match (frame.color_type, grey) {
        (png::ColorType::Grayscale, true) | (png::ColorType::Rgb, false) => image.values,
        (png::ColorType::Grayscale, false) => image.map(|[v]| [v; 3])?,
        (png::ColorType::GrayscaleAlpha, true) => image.map(|[v, _]| [v])?,
        (png::ColorType::GrayscaleAlpha, false) => image.map(|[v, _]| [v; 3])?,
        (png::ColorType::Rgb, true) => image.map(|[r, g, b]| [grey_of(r, g, b)])?,
        (png::ColorType::Rgba, true) => image.map(|[r, g, b, _]| [grey_of(r, g, b)])?,
        (png::ColorType::Rgba, false) => image.map(|[r, g, b, _]| [r, g, b])?,
        (other, _) => return Err(wrong(format!("PNG: colours of kind {other:?}"))),
    };
    Ok(Pixels { height, width, channels: if grey { 1 } else { 3 }, values })
}

/// The grey of a colour, as libpng makes it: its shares of 32768 are rounded down, except for
/// blue's.
fn grey_of(r: u8, g: u8, b: u8) -> u8 {
    if r == g && g == b {
        return r;
    }
    ((u32::from(r) * 9797 + u32::from(g) * 19234 + u32::from(b) * 3737) >> 15) as u8
}

/// The grey of a colour, as OpenCV makes it where the file has no brightness of its own.
fn rounded_grey_of(r: u8, g: u8, b: u8) -> u8 {
    ((u32::from(r) * 4899 + u32::from(g) * 9617 + u32::from(b) * 1868 + 8192) >> 14) as u8
}

#[cfg(test)]
mod tests {
    use super::super::{Format, encode};
    use super::*;

    #[test]
    fn a_file_that_ends_too_early_is_described_in_one_line() {
        let image = Pixels { height: 16, width: 16, channels: 3, values: (0..=255).cycle().take(768).collect() };
        for format in [Format::Jpeg { quality: 90 }, Format::Png { compression: 3 }] {
            let file = encode(&image, format).expect("an image");
            for end in 0..file.len() {
                let errors = [decode(&file[..end], Channels::Rgb).err(), head(&file[..end]).err()];
                for text in errors.into_iter().flatten().map(|error| error.to_string()) {
                    assert!(!text.contains('\n') && !text.contains("  "), "the first {end} bytes: {text:?}");
                }
            }
        }
    }
}
