//! Conversion of pixels to planes, normalisation of planes, mirroring.

use crate::element::Element;
use crate::error::check_len;
use crate::par::{Par, chunk_elems, par_chunks_mut};

/// Writes images of `pixels` pixels with `channels` values from 0 to 255 as planes of values from 0
/// to 1.
///
/// # Panics
/// If the lengths differ or are no multiple of an image.
pub fn to_planes<T: Element>(par: &dyn Par, [pixels, channels]: [usize; 2], x: &[T], out: &mut [f32]) {
    check_len("the output", out.len(), x.len());
    if out.is_empty() {
        return;
    }
    par_chunks_mut(par, out, pixels, |plane, out| {
        let (image, channel) = (plane / channels, plane % channels);
        let x = x[image * pixels * channels..][..pixels * channels].iter().skip(channel).step_by(channels);
        out.iter_mut().zip(x).for_each(|(out, v)| *out = v.to_f64() as f32 / 255.0);
    });
}

/// Subtracts from plane number `i` the mean of channel `i % channels`, and divides it by the
/// deviation of that channel: `terms[channel] = [mean, deviation]`.
///
/// # Panics
/// If the lengths differ or are no multiple of `pixels`.
pub fn normalize<T: Element>(par: &dyn Par, pixels: usize, terms: &[[f64; 2]], x: &[T], out: &mut [T]) {
    check_len("the output", out.len(), x.len());
    par_chunks_mut(par, out, pixels.max(1), |plane, out| {
        let [mean, deviation] = terms[plane % terms.len()].map(<T::Acc as Element>::from_f64);
        let x = &x[plane * pixels..][..out.len()];
        out.iter_mut().zip(x).for_each(|(out, v)| *out = T::from_acc((v.acc() - mean) / deviation));
    });
}

/// Reverses the order of `count` neighbouring blocks of `block` elements, over and over.
///
/// # Panics
/// If the lengths differ.
pub fn mirror<T: Copy + Send + Sync>(par: &dyn Par, [count, block]: [usize; 2], x: &[T], out: &mut [T]) {
    check_len("the output", out.len(), x.len());
    let row = count * block;
    if row == 0 {
        return;
    }
    let chunk = (chunk_elems::<T>() / row).max(1) * row;
    par_chunks_mut(par, out, chunk, |i, out| {
        let x = &x[i * chunk..][..out.len()];
        for (out, x) in out.chunks_mut(row).zip(x.chunks(row)) {
            out.chunks_mut(block).zip(x.chunks(block).rev()).for_each(|(out, x)| out.copy_from_slice(x));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Threads;

    #[test]
    fn pixels_become_planes_between_zero_and_one() {
        let mut out = [0.0; 12];
        to_planes(&Threads(2), [2, 3], &[0u8, 51, 102, 153, 204, 255, 255, 0, 0, 0, 0, 255], &mut out);
        assert_eq!(out, [0.0, 0.6, 0.2, 0.8, 0.4, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    }

    #[test]
    fn planes_are_normalised_by_their_channel() {
        let mut out = [0.0f32; 8];
        let x: Vec<f32> = (0..8).map(|v| v as f32).collect();
        normalize(&Threads(2), 2, &[[1.0, 2.0], [0.0, 0.5]], &x, &mut out);
        assert_eq!(out, [-0.5, 0.0, 4.0, 6.0, 1.5, 2.0, 12.0, 14.0]);
    }

    #[test]
    fn images_are_mirrored_along_either_axis() {
        let x: Vec<u8> = (0..12).collect(); // 2 rows, 3 columns, 2 channels
        let mut out = [0; 12];
        mirror(&Threads(2), [3, 2], &x, &mut out);
        assert_eq!(out, [4, 5, 2, 3, 0, 1, 10, 11, 8, 9, 6, 7]);
        mirror(&Threads(2), [2, 6], &x, &mut out);
        assert_eq!(out, [6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5]);
    }
}
