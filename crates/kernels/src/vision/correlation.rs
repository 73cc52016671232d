//! Correlation of the patches of two images: Dosovitskiy et al., "FlowNet: Learning Optical Flow
//! with Convolutional Networks" (2015).

use crate::element::{Element, Float};
use crate::error::check_len;
use crate::par::{Par, chunk_by_work, par_chunks_mut};
use crate::vectorize::vectorized;

/// Patches of one image, compared with shifted patches of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Correlation {
    /// Channels, height and width of both images.
    pub image: [usize; 3],
    /// Side of a patch.
    pub kernel: usize,
    /// Rows and columns of zeros on every side of both images.
    pub pad: usize,
    /// First row and column of patches, counted in the padded image.
    pub first: usize,
    /// Distance between patches of the first image.
    pub stride: usize,
    /// How many shifts there are in each direction.
    pub radius: usize,
    /// Distance between shifts.
    pub shift: usize,
    /// Rows and columns of the output.
    pub patches: [usize; 2],
    /// Whether numbers are multiplied; otherwise their absolute difference counts.
    pub multiply: bool,
}

impl Correlation {
    /// Shifts in both directions, which are the channels of the output.
    pub fn shifts(&self) -> usize {
        (2 * self.radius + 1) * (2 * self.radius + 1)
    }

    /// Numbers of scratch for each input: the image with its channels last.
    pub fn scratch_len(&self, batch: usize) -> usize {
        batch * self.image.iter().product::<usize>()
    }

    /// Writes `[batch, shifts, rows, columns]`: the mean over the patch and all channels. `a` and
    /// `b` are `[batch, channels, height, width]`, `scratch` two times [`Self::scratch_len`] long.
    ///
    /// # Panics
    /// If the lengths contradict each other.
    pub fn run<T: Element>(&self, par: &dyn Par, a: &[T], b: &[T], scratch: &mut [T::Acc], out: &mut [T]) {
        let [rows, columns] = self.patches;
        let plane = rows * columns;
        if out.is_empty() {
            return;
        }
        let batch = out.len() / (self.shifts() * plane);
        let len = self.scratch_len(batch);
        check_len("the output", out.len(), batch * self.shifts() * plane);
        check_len("the first image", a.len(), len);
        check_len("the second image", b.len(), len);
        check_len("the scratch", scratch.len(), 2 * len);
        let (a_last, b_last) = scratch.split_at_mut(len);
        self.channels_last(par, a, a_last);
        self.channels_last(par, b, b_last);
        let (a_last, b_last): (&[T::Acc], &[T::Acc]) = (a_last, b_last);
        let band = chunk_by_work(
            [columns, self.kernel, self.kernel, self.image[0]].into_iter().fold(1, usize::saturating_mul),
        );
        par_chunks_mut(par, out, band * columns, |chunk, out| {
            for (i, out) in out.chunks_exact_mut(columns).enumerate() {
                let row = chunk * band + i;
                self.row(a_last, b_last, row, out);
            }
        });
    }

    /// `[batch, channels, height, width]` to `[batch, height, width, channels]`.
    fn channels_last<T: Element>(&self, par: &dyn Par, x: &[T], out: &mut [T::Acc]) {
        let [channels, height, width] = self.image;
        let plane = height * width;
        par_chunks_mut(par, out, width * channels, |row, out| {
            let (image, y) = (row / height, row % height);
            for channel in 0..channels {
                let x = &x[image * channels * plane + channel * plane + y * width..][..width];
                for (out, v) in out[channel..].iter_mut().step_by(channels).zip(x) {
                    *out = v.acc();
                }
            }
        });
    }

    /// One row of the output, all of them being counted through.
    fn row<T: Element>(&self, a: &[T::Acc], b: &[T::Acc], row: usize, out: &mut [T]) {
        let [rows, side] = [self.patches[0], 2 * self.radius + 1];
        let (plane, y) = (row / rows, row % rows);
        let (image, shift) = (plane / self.shifts(), plane % self.shifts());
        let size = self.scratch_len(1);
        let (a, b) = (&a[image * size..][..size], &b[image * size..][..size]);
        // The first shift goes back by the radius.
        let moved = |shift: usize| self.first + shift * self.shift - self.radius * self.shift;
        let numbers = T::Acc::from_f64((self.kernel as f64).powi(2) * self.image[0] as f64);
        for (x, out) in out.iter_mut().enumerate() {
            let mut sum = <T::Acc as Element>::ZERO;
            for h in 0..self.kernel {
                for w in 0..self.kernel {
                    let at = [y * self.stride + h, x * self.stride + w];
                    let first = self.pixel(a, [at[0] + self.first, at[1] + self.first]);
                    let second = self.pixel(b, [at[0] + moved(shift / side), at[1] + moved(shift % side)]);
                    self.compare(first, second, &mut sum);
                }
            }
            *out = T::from_acc(sum / numbers);
        }
    }

    /// The channels of a pixel of the padded image; nothing where it is padding.
    fn pixel<'a, A>(&self, image: &'a [A], [y, x]: [usize; 2]) -> Option<&'a [A]> {
        let [channels, height, width] = self.image;
        let (y, x) = (y.checked_sub(self.pad)?, x.checked_sub(self.pad)?);
        (y < height && x < width).then(|| &image[(y * width + x) * channels..][..channels])
    }

    fn compare<A: Float>(&self, a: Option<&[A]>, b: Option<&[A]>, sum: &mut A) {
        match (a, b) {
            (Some(a), Some(b)) if self.multiply => products(a, b, sum),
            (Some(a), Some(b)) => differences(a, b, sum),
            // Zero, but for infinities and NaN.
            (Some(one), None) | (None, Some(one)) if self.multiply => one.iter().for_each(|v| *sum += *v * A::ZERO),
            (Some(one), None) | (None, Some(one)) => one.iter().for_each(|v| *sum += v.abs()),
            (None, None) => {}
        }
    }
}

const LANES: usize = 16;

vectorized! {
    fn products[A: Float](a: &[A], b: &[A], sum: &mut A) {
        let mut sums = [A::ZERO; LANES];
        let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
        for (a, b) in a.iter().zip(b) {
            for i in 0..LANES {
                sums[i] += a[i] * b[i];
            }
        }
        for ((sum, &a), &b) in sums.iter_mut().zip(a_rest).zip(b_rest) {
            *sum += a * b;
        }
        sums.iter().for_each(|lane| *sum += *lane);
    }
}

vectorized! {
    fn differences[A: Float](a: &[A], b: &[A], sum: &mut A) {
        let mut sums = [A::ZERO; LANES];
        let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
        for (a, b) in a.iter().zip(b) {
            for i in 0..LANES {
                sums[i] += (a[i] - b[i]).abs();
            }
        }
        for ((sum, &a), &b) in sums.iter_mut().zip(a_rest).zip(b_rest) {
            *sum += (a - b).abs();
        }
        sums.iter().for_each(|lane| *sum += *lane);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads, assert_close, random};

    fn by_definition(p: Correlation, batch: usize, a: &[f32], b: &[f32]) -> Vec<f64> {
        let [channels, height, width] = p.image;
        let at = |x: &[f32], n: usize, c: usize, y: isize, xx: isize| {
            let (y, xx) = (y - p.pad as isize, xx - p.pad as isize);
            let inside = (0..height as isize).contains(&y) && (0..width as isize).contains(&xx);
            if inside { f64::from(x[((n * channels + c) * height + y as usize) * width + xx as usize]) } else { 0.0 }
        };
        let (side, radius) = (2 * p.radius + 1, p.radius as isize);
        let mut out = Vec::new();
        for i in 0..batch * p.shifts() * p.patches[0] * p.patches[1] {
            let (x, y) = (i % p.patches[1], i / p.patches[1] % p.patches[0]);
            let plane = i / p.patches[1] / p.patches[0];
            let (n, shift) = (plane / p.shifts(), plane % p.shifts());
            let down = ((shift / side) as isize - radius) * p.shift as isize;
            let right = ((shift % side) as isize - radius) * p.shift as isize;
            let mut sum = 0.0;
            for k in 0..p.kernel * p.kernel * channels {
                let (c, h, w) = (k % channels, k / channels / p.kernel, k / channels % p.kernel);
                let (y, x) = ((y * p.stride + p.first + h) as isize, (x * p.stride + p.first + w) as isize);
                let (v, o) = (at(a, n, c, y, x), at(b, n, c, y + down, x + right));
                sum += if p.multiply { v * o } else { (v - o).abs() };
            }
            out.push(sum / (p.kernel * p.kernel * channels) as f64);
        }
        out
    }

    #[test]
    fn every_patch_is_compared_with_its_shifted_ones() {
        let base = Correlation {
            image: [20, 7, 6],
            kernel: 3,
            pad: 3,
            first: 2,
            stride: 2,
            radius: 1,
            shift: 2,
            patches: [3, 3],
            multiply: true,
        };
        let one = Correlation { kernel: 1, radius: 2, shift: 1, pad: 0, stride: 1, patches: [3, 2], ..base };
        for p in [base, Correlation { multiply: false, ..base }, one] {
            let (a, b) = (random(2 * 840, 1), random(2 * 840, 2));
            let want = by_definition(p, 2, &a, &b);
            let results = [&Serial as &dyn Par, &Reverse, &Threads(3)].map(|par| {
                let (mut scratch, mut out) = (vec![f32::NAN; 4 * 840], vec![0.0; want.len()]);
                p.run(par, &a, &b, &mut scratch, &mut out);
                out
            });
            assert_close(&results[0], &want, 1e-5);
            assert!(results.iter().all(|r| *r == results[0]));
        }
    }
}
