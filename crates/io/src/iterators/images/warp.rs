//! Affine maps of images, as OpenCV computes them.

use super::augment::Method;
use crate::image::Pixels;

/// Bits after the binary point of coordinates while they are summed, and of the weights that mix
/// pixels.
const SUM_BITS: u32 = 10;
const MIX_BITS: u32 = 5;

/// The image of `to` rows and columns whose place `(x, y)` comes from where `map` takes to it:
/// rows of factors for x, y and 1. What comes from outside is `fill`, in the first three channels.
pub(super) fn warped(image: &Pixels, map: [[f32; 3]; 2], to: [usize; 2], method: Method, fill: u8) -> Pixels {
    let channels = image.channels;
    let mut values = Vec::with_capacity(to[0] * to[1] * channels);
    let [[a, b, c], [d, e, f]] = inverse(map.map(|row| row.map(f64::from)));
    let one = f64::from(1_u32 << SUM_BITS);
    let fixed = |v: f64| (v * one).round_ties_even().clamp(f64::from(i32::MIN), f64::from(i32::MAX)) as i64;
    let fills = [fill, fill, fill, 0];
    let pixel = |x: i64, y: i64| -> &[u8] {
        let inside = (0..image.width as i64).contains(&x) && (0..image.height as i64).contains(&y);
        if !inside {
            return &fills[..channels];
        }
        &image.values[(y as usize * image.width + x as usize) * channels..][..channels]
    };
    for y in 0..to[0] {
        let (x0, y0) = (fixed(b * y as f64 + c), fixed(e * y as f64 + f));
        for x in 0..to[1] {
            let (sx, sy) = (x0 + fixed(a * x as f64), y0 + fixed(d * x as f64));
            if method == Method::Nearest {
                let half = 1 << (SUM_BITS - 1);
                values.extend_from_slice(pixel((sx + half) >> SUM_BITS, (sy + half) >> SUM_BITS));
                continue;
            }
            let shift = SUM_BITS - MIX_BITS;
            let half = 1 << (shift - 1);
            let (sx, sy) = ((sx + half) >> shift, (sy + half) >> shift);
            let (px, py) = (sx >> MIX_BITS, sy >> MIX_BITS);
            let whole = 1 << MIX_BITS;
            let (fx, fy) = (sx & (whole - 1), sy & (whole - 1));
            let taps = [pixel(px, py), pixel(px + 1, py), pixel(px, py + 1), pixel(px + 1, py + 1)];
            let shares = [(whole - fx) * (whole - fy), fx * (whole - fy), (whole - fx) * fy, fx * fy];
            for channel in 0..channels {
                let sum: i64 = taps.iter().zip(shares).map(|(tap, share)| i64::from(tap[channel]) * share).sum();
                values.push(((sum + whole * whole / 2) / (whole * whole)) as u8);
            }
        }
    }
    Pixels { height: to[0], width: to[1], channels, values }
}

/// The map back; of one that takes everything to a line, that takes everything to the first pixel.
fn inverse([[a, b, c], [d, e, f]]: [[f64; 3]; 2]) -> [[f64; 3]; 2] {
    let determinant = a * e - b * d;
    let scale = if determinant == 0.0 { 0.0 } else { 1.0 / determinant };
    let [a, b, d, e] = [e * scale, -b * scale, -d * scale, a * scale];
    [[a, b, -a * c - b * f], [d, e, -d * c - e * f]]
}
