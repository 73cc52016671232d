//! Changes of brightness, contrast and colour, as MXNet computes them.

use crate::element::{Element, is_same};
use crate::par::{Par, par_chunks_mut};

/// Pixels that are widened together.
const BLOCK: usize = 256;
/// Elements that one thread changes.
const CHUNK: usize = 8 * 3 * BLOCK;
/// Shares of red, green and blue in grey.
const GREY: [f32; 3] = [0.299, 0.587, 0.114];
/// Main directions of the colours of ImageNet, times their deviations: one row for each channel.
const COLOURS: [[f32; 3]; 3] = [
    [55.46 * -0.5675, 4.794 * 0.7192, 1.148 * 0.4009],
    [55.46 * -0.5808, 4.794 * -0.0045, 1.148 * -0.8140],
    [55.46 * -0.5836, 4.794 * -0.6948, 1.148 * 0.4203],
];

/// A change of all pixels of an image.
#[derive(Clone, Copy, Debug)]
pub enum Adjust {
    /// Multiplies by a factor.
    Brightness(f32),
    /// Multiplies the distance to the mean grey by a factor.
    Contrast(f32),
    /// Multiplies colours by a factor `f` and adds `1 - f` times 0.114 of blue. MXNet means all of
    /// grey there, but adds the last term of it only.
    Saturation(f32),
    /// Turns the hue by this number of circles.
    Hue(f32),
    /// Adds this much of each main direction of ImageNet's colours.
    Lighting([f32; 3]),
}

impl Adjust {
    /// Changes the pixels of one image with 1 or 3 channels in place. Values of `u8` are cut off at
    /// their limits, and fractions everywhere where the type has none.
    ///
    /// # Panics
    /// If there are other numbers of channels.
    pub fn apply<T: Element>(self, par: &dyn Par, channels: usize, pixels: &mut [T]) {
        assert!(channels == 1 || channels == 3, "{channels} channels");
        let change: &(dyn Fn(&mut [f32]) + Sync) = match self {
            Adjust::Brightness(factor) => &move |values| values.iter_mut().for_each(|v| *v *= factor),
            Adjust::Contrast(factor) => {
                let grey: f32 = match channels {
                    1 => pixels.iter().map(|v| wide(*v)).sum(),
                    _ => pixels.iter().enumerate().map(|(i, v)| wide(*v) * GREY[i % 3]).sum(),
                };
                let shift = (1.0 - factor) * (grey / (pixels.len() / channels) as f32);
                &move |values| values.iter_mut().for_each(|v| *v = *v * factor + shift)
            }
            // The others change colours only.
            _ if channels == 1 => return,
            _ => &move |values| self.change_colours(values.as_chunks_mut().0),
        };
        par_chunks_mut(par, pixels, CHUNK, |_, pixels| {
            let mut block = [0.0; 3 * BLOCK];
            for pixels in pixels.chunks_mut(block.len()) {
                let wider = &mut block[..pixels.len()];
                wider.iter_mut().zip(&*pixels).for_each(|(wider, v)| *wider = wide(*v));
                change(wider);
                pixels.iter_mut().zip(wider).for_each(|(v, changed)| *v = narrowed(*changed));
            }
        });
    }

    /// Changes red, green and blue from 0 to 255; compiled once and not for every element type.
    fn change_colours(self, pixels: &mut [[f32; 3]]) {
        match self {
            Adjust::Brightness(_) | Adjust::Contrast(_) => {}
            Adjust::Saturation(factor) => pixels.iter_mut().for_each(|rgb| {
                let grey = rgb[2] * GREY[2] * (1.0 - factor);
                *rgb = rgb.map(|v| grey + v * factor);
            }),
            Adjust::Hue(turn) => pixels.iter_mut().for_each(|rgb| {
                let [hue, lightness, saturation] = to_hls(*rgb);
                *rgb = from_hls([hue + turn * 360.0, lightness, saturation]);
            }),
            Adjust::Lighting(alpha) => {
                let shift = COLOURS.map(|row| row[0] * alpha[0] + row[1] * alpha[1] + row[2] * alpha[2]);
                pixels.iter_mut().for_each(|rgb| *rgb = [rgb[0] + shift[0], rgb[1] + shift[1], rgb[2] + shift[2]]);
            }
        }
    }
}

fn wide<T: Element>(v: T) -> f32 {
    v.to_f64() as f32
}

fn narrowed<T: Element>(v: f32) -> T {
    T::from_f64(f64::from(if is_same::<T, u8>() { v.clamp(0.0, 255.0) } else { v }))
}

/// Hue in degrees, lightness and saturation of red, green and blue from 0 to 255.
fn to_hls(rgb: [f32; 3]) -> [f32; 3] {
    let [r, g, b] = rgb.map(|v| v / 255.0);
    let (high, low) = (r.max(g).max(b), r.min(g).min(b));
    let lightness = (high + low) * 0.5;
    let range = high - low;
    if range <= f32::EPSILON {
        return [0.0, lightness, 0.0];
    }
    let saturation = range / if lightness < 0.5 { high + low } else { 2.0 - high - low };
    let step = 60.0 / range;
    let hue = if high == r {
        (g - b) * step
    } else if high == g {
        (b - r) * step + 120.0
    } else {
        (r - g) * step + 240.0
    };
    [if hue < 0.0 { hue + 360.0 } else { hue }, lightness, saturation]
}

/// The way back.
fn from_hls([hue, lightness, saturation]: [f32; 3]) -> [f32; 3] {
    if saturation == 0.0 {
        return [lightness * 255.0; 3];
    }
    let high =
        if lightness <= 0.5 { lightness * (1.0 + saturation) } else { lightness + saturation - lightness * saturation };
    let low = 2.0 * lightness - high;
    // In these steps, as MXNet: bytes are cut off, so the last bit counts.
    let mut sixths = hue * (1.0 / 60.0);
    if !(-6e4..6e4).contains(&sixths) {
        sixths = sixths.rem_euclid(6.0);
    }
    while sixths < 0.0 {
        sixths += 6.0;
    }
    while sixths >= 6.0 {
        sixths -= 6.0;
    }
    let part = sixths - sixths.floor();
    let (falling, rising) = (low + (high - low) * (1.0 - part), low + (high - low) * part);
    let rgb = match sixths as usize {
        0 => [high, rising, low],
        1 => [falling, high, low],
        2 => [low, high, rising],
        3 => [low, falling, high],
        4 => [rising, low, high],
        _ => [high, low, falling],
    };
    rgb.map(|v| v * 255.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Threads, assert_close};

    fn adjusted(change: Adjust, channels: usize, mut pixels: Vec<f32>) -> Vec<f32> {
        change.apply(&Threads(2), channels, &mut pixels);
        pixels
    }

    #[test]
    fn brightness_and_contrast_are_linear_and_bytes_are_cut_off() {
        assert_eq!(adjusted(Adjust::Brightness(1.5), 1, vec![2.0, -4.0]), [3.0, -6.0]);
        let mut bytes = [100u8, 200];
        Adjust::Brightness(1.505).apply(&Threads(2), 1, &mut bytes);
        assert_eq!(bytes, [150, 255]);
        assert_eq!(adjusted(Adjust::Contrast(2.0), 1, vec![1.0, 3.0]), [0.0, 4.0]);
        // The grey of (10, 20, 30) is 18.15.
        assert_close(&adjusted(Adjust::Contrast(0.0), 3, vec![10.0, 20.0, 30.0]), &[18.15; 3], 1e-4);
    }

    #[test]
    fn a_whole_turn_of_the_hue_changes_nothing_and_a_third_moves_channels() {
        let rgb = vec![200.0, 40.0, 90.0, 10.0, 20.0, 30.0, 7.0, 7.0, 7.0];
        assert_close(
            &adjusted(Adjust::Hue(1.0), 3, rgb.clone()),
            &rgb.iter().map(|v| f64::from(*v)).collect::<Vec<_>>(),
            1e-3,
        );
        assert_close(&adjusted(Adjust::Hue(1.0 / 3.0), 3, vec![200.0, 40.0, 90.0]), &[90.0, 200.0, 40.0], 1e-3);
        assert_close(&adjusted(Adjust::Hue(-1.0 / 3.0), 3, vec![200.0, 40.0, 90.0]), &[40.0, 90.0, 200.0], 1e-3);
    }

    #[test]
    fn lighting_adds_one_colour_to_all_pixels() {
        let shift = [-31.473550, -32.211168, -32.366456];
        assert_close(&adjusted(Adjust::Lighting([1.0, 0.0, 0.0]), 3, vec![0.0; 3]), &shift, 1e-4);
        assert_eq!(adjusted(Adjust::Lighting([1.0; 3]), 1, vec![5.0; 3]), [5.0; 3]);
    }

    const BYTES: [u8; 24] =
        [172, 47, 117, 84, 203, 68, 226, 107, 13, 211, 217, 151, 93, 174, 149, 53, 48, 94, 163, 83, 76, 148, 173, 185];
    const RECORDED_STILL: [u8; 24] =
        [172, 46, 116, 83, 203, 67, 226, 107, 12, 211, 217, 151, 92, 174, 149, 53, 48, 94, 163, 82, 75, 148, 173, 185];
    const RECORDED_TENTH: [u8; 24] =
        [172, 52, 46, 67, 203, 133, 217, 226, 12, 171, 217, 151, 92, 150, 174, 80, 48, 94, 163, 135, 75, 148, 150, 185];
    const RECORDED_TURNS: [u8; 24] =
        [46, 91, 172, 203, 79, 67, 149, 12, 226, 217, 151, 197, 174, 165, 92, 48, 94, 62, 100, 75, 163, 165, 185, 148];

    /// Compares with `mx.nd.image.random_hue` of MXNet 1.9.1, which cuts bytes off, so that the last bit
    /// of each step counts.
    #[test]
    fn bytes_are_those_of_mxnet() {
        for (turn, wanted) in [(0.0, RECORDED_STILL), (0.1, RECORDED_TENTH), (1.7, RECORDED_TURNS)] {
            let mut pixels = BYTES.to_vec();
            Adjust::Hue(turn).apply(&Threads(2), 3, &mut pixels);
            assert_eq!(pixels, wanted, "{turn}");
        }
    }
}
