//! The columns of a deformable convolution: every tap of every window is shifted by an offset of
//! its own.
//!
//! Dai et al., "Deformable Convolutional Networks" (2017); with a mask, Zhu et al., "Deformable
//! ConvNets v2" (2018).

use crate::element::Float;
use crate::error::check_len;
use crate::par::{Par, chunk_by_work, par_chunks_mut, par_chunks_mut_scratch};
use crate::vectorize::vectorized;

/// Windows over planes of `[height, width]` pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeformableWindows {
    /// Height and width of the kernel.
    pub kernel: [usize; 2],
    /// Distances between windows.
    pub stride: [usize; 2],
    /// Distances between taps.
    pub dilate: [usize; 2],
    /// Zeros around the image.
    pub pad: [usize; 2],
    /// Height and width of the image.
    pub image: [usize; 2],
    /// Rows and columns of windows.
    pub windows: [usize; 2],
    /// Groups of channels with offsets of their own.
    pub groups: usize,
}

impl DeformableWindows {
    fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    fn columns(&self) -> usize {
        self.windows[0] * self.windows[1]
    }

    /// Elements of the columns of one image with `channels` channels.
    pub fn column_len(&self, channels: usize) -> usize {
        channels * self.taps() * self.columns()
    }

    /// Writes the columns `[channels * taps, windows]` of one image.
    ///
    /// `offsets` has shape `[groups, taps, 2, windows]`, the shift down before the shift to the
    /// right, in pixels; `mask` `[groups, taps, windows]`, what samples are multiplied by. Without
    /// a mask a tap beyond the last pixel repeats it, and one before the first is zero; with one,
    /// both fade to zero over a pixel (the two operators of MXNet differ in this).
    ///
    /// # Panics
    /// If the lengths contradict the sizes.
    pub fn gather<T: Float>(&self, par: &dyn Par, x: &[T], offsets: &[T], mask: Option<&[T]>, out: &mut [T]) {
        let (taps, columns) = (self.taps(), self.columns());
        let [height, width] = self.image;
        let channels = x.len() / (height * width).max(1);
        check_len("the input", x.len(), channels * height * width);
        check_len("the offsets", offsets.len(), self.groups * taps * 2 * columns);
        check_len("the mask", mask.map_or(0, <[T]>::len), mask.map_or(0, |_| self.groups * taps * columns));
        check_len("the columns", out.len(), self.column_len(channels));
        if out.is_empty() {
            return;
        }
        let channels_of_group = channels / self.groups;
        let band = chunk_by_work(12 * columns);
        par_chunks_mut(par, out, band * columns, |chunk, out| {
            for (i, out) in out.chunks_exact_mut(columns).enumerate() {
                let (channel, tap) = ((chunk * band + i) / taps, (chunk * band + i) % taps);
                let shifts = channel / channels_of_group * taps + tap;
                let (down, right) = offsets[shifts * 2 * columns..][..2 * columns].split_at(columns);
                let x = &x[channel * height * width..][..height * width];
                self.sample(tap, x, down, right, mask.is_some(), out);
                if let Some(mask) = mask {
                    let mask = &mask[shifts * columns..][..columns];
                    out.iter_mut().zip(mask).for_each(|(out, mask)| *out = *out * *mask);
                }
            }
        });
    }

    /// The columns of one image as panels that [`Sgemm`](crate::gemm::Sgemm) multiplies with: for
    /// each of `parts` groups of channels what its `pack` would make of `[channels * taps, windows]`.
    /// Operands as for [`gather`](Self::gather), with the same values. Images have fewer than 2^32
    /// pixels.
    ///
    /// # Panics
    /// If the lengths contradict the sizes.
    pub fn gather_panels(
        &self,
        par: &dyn Par,
        width: usize,
        parts: usize,
        x: &[f32],
        offsets: &[f32],
        mask: Option<&[f32]>,
        out: &mut [f32],
    ) {
        let (taps, columns) = (self.taps(), self.columns());
        let pixels = self.image[0] * self.image[1];
        let channels = x.len() / pixels.max(1);
        check_len("the offsets", offsets.len(), self.groups * taps * 2 * columns);
        check_len("the mask", mask.map_or(0, <[f32]>::len), mask.map_or(0, |_| self.groups * taps * columns));
        let panels = columns.div_ceil(width);
        check_len("the panels", out.len(), panels * width * channels * taps);
        if out.is_empty() {
            return;
        }
        let of_part = channels / parts;
        let table = 8 * taps * width;
        par_chunks_mut_scratch(par, out, of_part * taps * width, table * size_of::<f32>(), |chunk, out, scratch| {
            let (part, first) = (chunk / panels, chunk % panels * width);
            let count = width.min(columns - first);
            let (places, shares) = scratch[..table * size_of::<f32>()].split_at_mut(table / 2 * size_of::<f32>());
            let (places, _) = bytemuck::cast_slice_mut::<u8, u32>(places).as_chunks_mut::<4>();
            let (shares, _) = bytemuck::cast_slice_mut::<u8, f32>(shares).as_chunks_mut::<4>();
            let mut group = usize::MAX;
            for (i, out) in out.chunks_exact_mut(taps * width).enumerate() {
                let channel = part * of_part + i;
                if group != channel / (channels / self.groups) {
                    group = channel / (channels / self.groups);
                    let shifts = &offsets[group * taps * 2 * columns..][..taps * 2 * columns];
                    self.place(first, count, width, shifts, mask.is_some(), places, shares);
                }
                let x = &x[channel * pixels..][..pixels];
                for (tap, out) in out.chunks_exact_mut(width).enumerate() {
                    let (places, shares) = (&places[tap * width..][..count], &shares[tap * width..][..count]);
                    blend(x, places, shares, &mut out[..count]);
                    if let Some(mask) = mask {
                        let mask = &mask[(group * taps + tap) * columns + first..][..count];
                        out.iter_mut().zip(mask).for_each(|(out, mask)| *out *= *mask);
                    }
                    out[count..].fill(0.0);
                }
            }
        });
    }

    /// Pixels and shares of all taps of some windows.
    fn place(
        &self,
        first: usize,
        count: usize,
        width: usize,
        shifts: &[f32],
        fades: bool,
        places: &mut [[u32; 4]],
        shares: &mut [[f32; 4]],
    ) {
        let columns = self.columns();
        for tap in 0..self.taps() {
            let [ky, kx] = [tap / self.kernel[1], tap % self.kernel[1]];
            let (down, right) = shifts[tap * 2 * columns..][..2 * columns].split_at(columns);
            for i in 0..count {
                let (row, column) = ((first + i) / self.windows[1], (first + i) % self.windows[1]);
                let y = (row * self.stride[0] + ky * self.dilate[0]) as i64 - self.pad[0] as i64;
                let x = (column * self.stride[1] + kx * self.dilate[1]) as i64 - self.pad[1] as i64;
                let (y, x) = (y as f32 + down[first + i], x as f32 + right[first + i]);
                let corners = if fades { fading(self.image, y, x) } else { clamped(self.image, y, x) };
                // What lies outside of the image stays there.
                places[tap * width + i] = corners.map(|(place, _)| u32::try_from(place).unwrap_or(u32::MAX));
                shares[tap * width + i] = corners.map(|(_, share)| share);
            }
        }
    }

    /// One tap of all windows in one plane.
    fn sample<T: Float>(&self, tap: usize, x: &[T], down: &[T], right: &[T], fades: bool, out: &mut [T]) {
        let [ky, kx] = [tap / self.kernel[1], tap % self.kernel[1]];
        for row in 0..self.windows[0] {
            let y = (row * self.stride[0] + ky * self.dilate[0]) as i64 - self.pad[0] as i64;
            let line = row * self.windows[1]..(row + 1) * self.windows[1];
            let shifts = down[line.clone()].iter().zip(&right[line.clone()]);
            for (column, (out, (down, right))) in out[line].iter_mut().zip(shifts).enumerate() {
                let x0 = (column * self.stride[1] + kx * self.dilate[1]) as i64 - self.pad[1] as i64;
                let (y, x0) = (T::from_i64(y) + *down, T::from_i64(x0) + *right);
                let corners = if fades { fading(self.image, y, x0) } else { clamped(self.image, y, x0) };
                *out = blend_corners(x, corners);
            }
        }
    }
}

/// Whether a position lies between two ends.
fn lies_in<T: Float>(v: T, low: f64, high: f64) -> bool {
    v > T::from_f64(low) && v < T::from_f64(high)
}

/// Stands for a pixel outside of the image, which is zero.
const OUTSIDE: usize = usize::MAX;

/// The four pixels around a position, and their shares.
type Corners<T> = [(usize, T); 4];

/// Between the last pixels and what repeats them; nothing before the first pixel and from the end
/// on.
fn clamped<T: Float>([height, width]: [usize; 2], y: T, x: T) -> Corners<T> {
    let starts = y >= T::ZERO && x >= T::ZERO;
    if !(starts && y < T::from_i64(height as i64) && x < T::from_i64(width as i64)) {
        return [(OUTSIDE, T::ZERO); 4];
    }
    // The position is not negative and below the size, so truncation is the floor and an index.
    let axis = |v: T, size: usize| {
        let low = (v.to_i64() as usize).min(size - 1);
        let share = if low + 1 >= size { T::ZERO } else { v - T::from_i64(low as i64) };
        (low, (low + 1).min(size - 1), share)
    };
    let ((top, bottom, below), (left, right, after)) = (axis(y, height), axis(x, width));
    let (above, before) = (T::ONE - below, T::ONE - after);
    let pixel = |row: usize, column: usize| row * width + column;
    [
        (pixel(top, left), above * before),
        (pixel(top, right), above * after),
        (pixel(bottom, left), below * before),
        (pixel(bottom, right), below * after),
    ]
}

/// The corners with zeros around the image.
fn fading<T: Float>([height, width]: [usize; 2], y: T, x: T) -> Corners<T> {
    if !(lies_in(y, -1.0, height as f64) && lies_in(x, -1.0, width as f64)) {
        return [(OUTSIDE, T::ZERO); 4];
    }
    let axis = |v: T| {
        let low = v.to_f64().floor();
        (low as i64, v - T::from_f64(low))
    };
    let ((top, below), (left, after)) = (axis(y), axis(x));
    let pixel = |row: i64, column: i64| {
        let inside = (0..height as i64).contains(&row) && (0..width as i64).contains(&column);
        if inside { row as usize * width + column as usize } else { OUTSIDE }
    };
    let (above, before) = (T::ONE - below, T::ONE - after);
    [
        (pixel(top, left), above * before),
        (pixel(top, left + 1), above * after),
        (pixel(top + 1, left), below * before),
        (pixel(top + 1, left + 1), below * after),
    ]
}

#[inline(always)]
fn blend_corners<T: Float>(x: &[T], corners: Corners<T>) -> T {
    let [a, b, c, d] = corners.map(|(place, share)| share * x.get(place).copied().unwrap_or(T::ZERO));
    a + b + c + d
}

vectorized! {
    fn blend[](x: &[f32], places: &[[u32; 4]], shares: &[[f32; 4]], out: &mut [f32]) {
        for ((out, places), shares) in out.iter_mut().zip(places).zip(shares) {
            *out = blend_corners(x, std::array::from_fn(|i| (places[i] as usize, shares[i])));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads, random, random64};
    use crate::vision::columns::ColumnWindows;

    const WINDOWS: DeformableWindows = DeformableWindows {
        kernel: [3, 2],
        stride: [1, 2],
        dilate: [2, 1],
        pad: [2, 1],
        image: [6, 7],
        windows: [6, 4],
        groups: 2,
    };

    #[test]
    fn without_shifts_the_columns_are_those_of_a_convolution() {
        let DeformableWindows { kernel, stride, dilate, pad, image, windows, groups } = WINDOWS;
        let channels = 4;
        let x = random64(channels * 42, 3);
        let zeros = vec![0.0; groups * 6 * 2 * 24];
        let mut want = vec![0.0; WINDOWS.column_len(channels)];
        ColumnWindows::new(&kernel, &stride, &dilate, &pad, &image, &windows).gather(&Serial, channels, &x, &mut want);
        for mask in [None, Some(vec![1.0; groups * 6 * 24])] {
            let mut out = vec![9.0; want.len()];
            WINDOWS.gather(&Threads(3), &x, &zeros, mask.as_deref(), &mut out);
            assert_eq!(out, want);
        }
    }

    #[test]
    fn whole_shifts_move_taps_and_the_mask_scales_them() {
        let one = DeformableWindows {
            kernel: [1, 1],
            stride: [1, 1],
            dilate: [1, 1],
            pad: [0, 0],
            image: [2, 2],
            windows: [2, 2],
            groups: 1,
        };
        let x = [1.0, 2.0, 3.0, 4.0];
        let offsets = [1.0, 1.0, 1.0, 1.0, -0.5, 0.0, 0.0, 0.0];
        let mut out = [0.0; 4];
        one.gather(&Serial, &x, &offsets, None, &mut out);
        assert_eq!(out, [0.0, 4.0, 0.0, 0.0]);
        one.gather(&Serial, &x, &offsets, Some(&[1.0, 0.5, 1.0, 1.0]), &mut out);
        assert_eq!(out, [1.5, 2.0, 0.0, 0.0]);
    }

    #[test]
    fn results_do_not_depend_on_threads_and_no_offset_panics() {
        let x = random(4 * 42, 1);
        let mut offsets: Vec<f32> = random(2 * 6 * 2 * 24, 2).iter().map(|v| v * 4.0).collect();
        offsets[..4].copy_from_slice(&[f32::NAN, f32::INFINITY, f32::MAX, f32::MIN]);
        let mask = random(2 * 6 * 24, 3);
        for mask in [None, Some(&mask[..])] {
            let results = [&Serial as &dyn Par, &Reverse, &Threads(3)].map(|par| {
                let mut out = vec![0.0; WINDOWS.column_len(4)];
                WINDOWS.gather(par, &x, &offsets, mask, &mut out);
                out.iter().map(|v: &f32| v.to_bits()).collect::<Vec<_>>()
            });
            assert!(results.iter().all(|r| *r == results[0]));
            for parts in [1, 2] {
                let mut panels = vec![9.0; 2 * 16 * 4 * 6];
                WINDOWS.gather_panels(&Threads(3), 16, parts, &x, &offsets, mask, &mut panels);
                let rows = 4 * 6 / parts;
                for (i, panel) in panels.chunks_exact(16).enumerate() {
                    let (part, first, row) = (i / (2 * rows), i / rows % 2 * 16, i % rows);
                    for (j, v) in panel.iter().enumerate() {
                        let column = results[0][(part * rows + row) * 24..][..24].get(first + j);
                        assert_eq!(v.to_bits(), *column.unwrap_or(&0), "part {part}, row {row}, column {}", first + j);
                    }
                }
            }
        }
    }
}
