//! `im2col` and `col2im`: the pixels that every window of a convolution sees, as columns of a
//! matrix, and back.

use crate::element::Element;
use crate::error::check_len;
use crate::par::{Par, chunk_by_work, par_chunks_mut};
use crate::window::{inside, three};

/// Windows over images of one to three spatial axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnWindows {
    /// Extents of a window.
    pub kernel: [usize; 3],
    /// Distances between windows.
    pub stride: [usize; 3],
    /// Distances between taps.
    pub dilate: [usize; 3],
    /// Zeros around the images.
    pub pad: [usize; 3],
    /// Spatial sizes of the images.
    pub image: [usize; 3],
    /// Numbers of windows.
    pub windows: [usize; 3],
}

impl ColumnWindows {
    /// Windows with these sizes; each slice has a number for every spatial axis, at most three.
    pub fn new(
        kernel: &[usize],
        stride: &[usize],
        dilate: &[usize],
        pad: &[usize],
        image: &[usize],
        windows: &[usize],
    ) -> Self {
        ColumnWindows {
            kernel: three(kernel, 1),
            stride: three(stride, 1),
            dilate: three(dilate, 1),
            pad: three(pad, 0),
            image: three(image, 1),
            windows: three(windows, 1),
        }
    }

    fn taps(&self) -> usize {
        self.kernel.iter().product()
    }

    fn pixels(&self) -> usize {
        self.image.iter().product()
    }

    fn columns(&self) -> usize {
        self.windows.iter().product()
    }

    /// Calls `body(first window, first pixel, count)` for the runs of windows along the last axis
    /// whose pixel of this tap lies inside of the image; pixels of a run are a stride apart.
    fn runs(&self, tap: usize, mut body: impl FnMut(usize, usize, usize)) {
        let [_, kh, kw] = self.kernel;
        let position = [tap / (kh * kw), tap / kw % kh, tap % kw];
        let [d, h, w] = [0, 1, 2]
            .map(|a| inside(position[a] * self.dilate[a], self.stride[a], self.pad[a], self.image[a], self.windows[a]));
        if w.is_empty() {
            return;
        }
        let pixel = |a: usize, window: usize| window * self.stride[a] + position[a] * self.dilate[a] - self.pad[a];
        for od in d {
            for oh in h.clone() {
                let window = (od * self.windows[1] + oh) * self.windows[2] + w.start;
                let first = (pixel(0, od) * self.image[1] + pixel(1, oh)) * self.image[2] + pixel(2, w.start);
                body(window, first, w.len());
            }
        }
    }

    /// Writes `[batch, channels * taps, windows]` out of `[batch, channels, spatial...]`; pixels
    /// outside are zero.
    ///
    /// # Panics
    /// If the lengths contradict the sizes.
    pub fn gather<T: Element>(&self, par: &dyn Par, planes: usize, x: &[T], out: &mut [T]) {
        let (taps, columns, pixels) = (self.taps(), self.columns(), self.pixels());
        check_len("the input", x.len(), planes * pixels);
        check_len("the output", out.len(), planes * taps * columns);
        if out.is_empty() {
            return;
        }
        let band = chunk_by_work(2 * columns);
        par_chunks_mut(par, out, band * columns, |chunk, out| {
            for (i, out) in out.chunks_exact_mut(columns).enumerate() {
                let row = chunk * band + i;
                let x = &x[row / taps * pixels..][..pixels];
                out.fill(T::ZERO);
                self.runs(row % taps, |window, first, count| {
                    let pixels = x[first..].iter().step_by(self.stride[2]);
                    out[window..window + count].iter_mut().zip(pixels).for_each(|(out, v)| *out = *v);
                });
            }
        });
    }

    /// Adds the columns `[batch, channels * taps, windows]` up at their pixels: `[batch, channels,
    /// spatial...]`.
    ///
    /// # Panics
    /// If the lengths contradict the sizes.
    pub fn scatter<T: Element>(&self, par: &dyn Par, planes: usize, x: &[T], out: &mut [T]) {
        let (taps, columns, pixels) = (self.taps(), self.columns(), self.pixels());
        check_len("the input", x.len(), planes * taps * columns);
        check_len("the output", out.len(), planes * pixels);
        if out.is_empty() {
            return;
        }
        let band = chunk_by_work(2 * taps * columns + pixels);
        par_chunks_mut(par, out, band * pixels, |chunk, out| {
            for (i, out) in out.chunks_exact_mut(pixels).enumerate() {
                let x = &x[(chunk * band + i) * taps * columns..][..taps * columns];
                out.fill(T::ZERO);
                for tap in 0..taps {
                    let x = &x[tap * columns..][..columns];
                    self.runs(tap, |window, first, count| {
                        let pixels = out[first..].iter_mut().step_by(self.stride[2]);
                        x[window..window + count].iter().zip(pixels).for_each(|(v, out)| *out = out.plus(*v));
                    });
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads, random64};

    #[test]
    fn columns_hold_what_the_windows_see() {
        let windows = ColumnWindows::new(&[2, 2], &[1, 1], &[1, 1], &[0, 0], &[2, 3], &[1, 2]);
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let mut out = [0.0; 8];
        windows.gather(&Threads(2), 1, &x, &mut out);
        assert_eq!(out, [1.0, 2.0, 2.0, 3.0, 4.0, 5.0, 5.0, 6.0]);
    }

    #[test]
    fn scattering_is_the_transpose_of_gathering() {
        let cases: [[&[usize]; 6]; 3] = [
            [&[3, 2], &[2, 1], &[2, 3], &[1, 2], &[7, 6], &[3, 7]],
            [&[3], &[3], &[1], &[1], &[10], &[4]],
            [&[2, 1, 2], &[1, 2, 2], &[1, 1, 1], &[0, 1, 0], &[3, 4, 5], &[2, 3, 2]],
        ];
        for [kernel, stride, dilate, pad, image, count] in cases {
            let windows = ColumnWindows::new(kernel, stride, dilate, pad, image, count);
            let planes = 3;
            let (inner, wide) = (planes * windows.taps() * windows.columns(), planes * windows.pixels());
            let (x, y) = (random64(wide, 1), random64(inner, 2));
            let (mut columns, mut image) = (vec![0.0; inner], vec![0.0; wide]);
            windows.gather(&Serial, planes, &x, &mut columns);
            windows.scatter(&Reverse, planes, &y, &mut image);
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            assert!((dot(&columns, &y) - dot(&x, &image)).abs() < 1e-9);
        }
    }
}
