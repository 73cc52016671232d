//! Changes of colours, as the augmenters of MXNet's iterators make them.

use crate::image::Pixels;

/// Main directions of the colours of ImageNet, times their deviations: one row for each channel.
const DIRECTIONS: [[f32; 3]; 3] = [
    [55.46 * -0.5675, 4.794 * 0.7192, 1.148 * 0.4009],
    [55.46 * -0.5808, 4.794 * -0.0045, 1.148 * -0.8140],
    [55.46 * -0.5836, 4.794 * -0.6948, 1.148 * 0.4203],
];

/// The nearest value that a pixel can have.
fn rounded(v: f32) -> u8 {
    v.round_ties_even().clamp(0.0, 255.0) as u8
}

/// The grey of a colour. MXNet takes the share of red from blue here, and the other way round.
fn grey([r, g, b]: [u8; 3]) -> u8 {
    ((u32::from(b) * 4899 + u32::from(g) * 9617 + u32::from(r) * 1868 + 8192) >> 14) as u8
}

/// `v * factor + shift` for each value.
fn scaled(image: &mut Pixels, factor: f32, shift: f32) {
    let table: [u8; 256] = std::array::from_fn(|v| rounded(v as f32 * factor + shift));
    image.values.iter_mut().for_each(|v| *v = table[usize::from(*v)]);
}

/// Multiplies by a factor.
pub(super) fn brightness(image: &mut Pixels, factor: f32) {
    scaled(image, factor, 0.0);
}

/// Multiplies the distance to the mean grey by a factor.
pub(super) fn contrast(image: &mut Pixels, factor: f32) {
    let (pixels, _) = image.values.as_chunks::<3>();
    let sum: u64 = pixels.iter().map(|pixel| u64::from(grey(*pixel))).sum();
    let mean = sum as f32 / pixels.len().max(1) as f32;
    scaled(image, factor, (1.0 - factor) * mean);
}

/// Multiplies the distance to the pixel's grey by a factor.
pub(super) fn saturation(image: &mut Pixels, factor: f32) {
    for pixel in image.values.as_chunks_mut::<3>().0 {
        let shift = f32::from(grey(*pixel)) * (1.0 - factor);
        *pixel = pixel.map(|v| rounded(f32::from(v) * factor + shift));
    }
}

/// Adds to hue (of 180), lightness and saturation (of 255).
pub(super) fn hls(image: &mut Pixels, shift: [i32; 3]) {
    const LIMITS: [i32; 3] = [180, 255, 255];
    for pixel in image.values.as_chunks_mut::<3>().0 {
        let mut hls = to_hls(*pixel);
        for (v, (shift, limit)) in hls.iter_mut().zip(shift.into_iter().zip(LIMITS)) {
            *v = (*v + shift).clamp(0, limit);
        }
        *pixel = from_hls(hls);
    }
}

/// Adds this much of each main direction of ImageNet's colours.
pub(super) fn lighting(image: &mut Pixels, alpha: [f32; 3]) {
    let shift = DIRECTIONS.map(|row| row[0] * alpha[0] + row[1] * alpha[1] + row[2] * alpha[2]);
    for pixel in image.values.as_chunks_mut::<3>().0 {
        for (v, shift) in pixel.iter_mut().zip(shift) {
            *v = (f32::from(*v) + shift).trunc().clamp(0.0, 255.0) as u8;
        }
    }
}

fn to_hls(rgb: [u8; 3]) -> [i32; 3] {
    let [r, g, b] = rgb.map(|v| f32::from(v) / 255.0);
    let (high, low) = (r.max(g).max(b), r.min(g).min(b));
    let (lightness, range) = ((high + low) * 0.5, high - low);
    let (mut hue, mut saturation) = (0.0, 0.0);
    if range > f32::EPSILON {
        saturation = range / if lightness < 0.5 { high + low } else { 2.0 - high - low };
        let sixth = 60.0 / range;
        hue = match () {
            () if high == r => (g - b) * sixth,
            () if high == g => (b - r) * sixth + 120.0,
            () => (r - g) * sixth + 240.0,
        };
        if hue < 0.0 {
            hue += 360.0;
        }
    }
    [hue * 0.5, lightness * 255.0, saturation * 255.0].map(|v| v.round_ties_even() as i32)
}

fn from_hls([hue, lightness, saturation]: [i32; 3]) -> [u8; 3] {
    let (lightness, saturation) = (lightness as f32 / 255.0, saturation as f32 / 255.0);
    let high =
        if lightness <= 0.5 { lightness * (1.0 + saturation) } else { lightness + saturation - lightness * saturation };
    let low = 2.0 * lightness - high;
    let channel = |turn: f32| {
        let sixths = (hue as f32 / 30.0 + turn).rem_euclid(6.0);
        let share = match sixths {
            s if s < 1.0 => s,
            s if s < 3.0 => 1.0,
            s if s < 4.0 => 4.0 - s,
            _ => 0.0,
        };
        rounded((low + (high - low) * share) * 255.0)
    };
    [channel(2.0), channel(0.0), channel(-2.0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(values: &[u8]) -> Pixels {
        Pixels { height: 1, width: values.len() / 3, channels: 3, values: values.to_vec() }
    }

    #[test]
    fn colours_come_back_from_hue_lightness_and_saturation_nearly() {
        for rgb in [[0, 0, 0], [255, 255, 255], [200, 30, 90], [10, 250, 100], [7, 8, 200], [128, 128, 128]] {
            let back = from_hls(to_hls(rgb));
            assert!(back.iter().zip(rgb).all(|(a, b)| a.abs_diff(b) <= 4), "{rgb:?} {back:?}");
        }
        assert_eq!(to_hls([255, 0, 0]), [0, 128, 255]);
        assert_eq!(to_hls([0, 255, 0]), [60, 128, 255]);
    }

    #[test]
    fn changes_are_rounded_and_cut_off() {
        let mut made = image(&[10, 100, 200]);
        brightness(&mut made, 1.5);
        assert_eq!(made.values, [15, 150, 255]);
        let mut made = image(&[10, 10, 10, 30, 30, 30]);
        contrast(&mut made, 2.0);
        assert_eq!(made.values, [0, 0, 0, 40, 40, 40]);
        let mut made = image(&[50, 50, 50]);
        saturation(&mut made, 3.0);
        assert_eq!(made.values, [50, 50, 50]);
    }
}
