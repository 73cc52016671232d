//! Pooling of rotated regions of interest.

use super::roi::{MOST_PLANES, MOST_SAMPLES, Regions};
use crate::element::{Element, Float};
use crate::error::{KernelError, check_len};
use crate::par::Par;

/// Means of bilinear samples in the bins of regions that are turned around their centres: Ma et
/// al., "Arbitrary-Oriented Scene Text Detection via Rotation Proposals" (2018).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RotatedRoiAlign {
    /// Images and bins.
    pub regions: Regions,
    /// Samples along an axis of a bin; if there is none, as many as pixels, rounded up.
    pub samples: Option<usize>,
}

/// A region: its centre, the size of a bin, samples in a bin and the angle, all down and across.
#[derive(Clone, Copy)]
struct Turned<A> {
    centre: [A; 2],
    start: [A; 2],
    bin: [A; 2],
    samples: [usize; 2],
    cos: A,
    sin: A,
}

impl RotatedRoiAlign {
    /// Pools `regions`, `[n, 6]` (image, x and y of the centre, width, height, degrees), into `[n,
    /// channels, rows, columns]`. Regions of a negative image give zeros, those without finite
    /// coordinates NaN.
    ///
    /// # Errors
    /// For an image that is not there, and a region with bins of more than 4096 pixels.
    ///
    /// # Panics
    /// If the lengths contradict each other.
    pub fn run<T: Element>(&self, par: &dyn Par, x: &[T], regions: &[T], out: &mut [T]) -> Result<(), KernelError> {
        let [_, channels, height, width] = self.regions.data;
        let count = regions.len() / 6;
        check_len("the input", x.len(), self.regions.data.iter().product());
        check_len("the regions", regions.len(), count * 6);
        check_len("the output", out.len(), count * channels * self.regions.pooled[0] * self.regions.pooled[1]);
        for (i, region) in regions.chunks_exact(6).enumerate() {
            if self.regions.image(region)?.is_some() {
                self.turned(region).map_err(|reason| KernelError::Region { region: i, reason })?;
            }
        }
        let work = 12 * self.samples.unwrap_or(2).pow(2);
        self.regions.bands(par, channels, work, out, |region, first, out| {
            let region = &regions[region * 6..][..6];
            let (Ok(Some(image)), Ok(turned)) = (self.regions.image(region), self.turned(region)) else {
                return out.fill(T::ZERO);
            };
            let Some(turned) = turned else { return out.fill(T::from_f64(f64::NAN)) };
            let bins = self.regions.pooled[0] * self.regions.pooled[1];
            let planes = &x[(image * channels + first) * height * width..][..out.len() / bins * height * width];
            for bin in 0..bins {
                let means = self.bin(planes, turned, bin);
                out[bin..].iter_mut().step_by(bins).zip(means).for_each(|(out, mean)| *out = T::from_acc(mean));
            }
        });
        Ok(())
    }

    /// The region in pixels; `None` if that is nowhere.
    fn turned<T: Element>(&self, region: &[T]) -> Result<Option<Turned<T::Acc>>, &'static str> {
        let scale = T::Acc::from_f64(self.regions.scale);
        let [x, y, width, height]: [T::Acc; 4] = std::array::from_fn(|i| region[1 + i].acc() * scale);
        let theta = T::Acc::from_f64(region[5].to_f64() * std::f64::consts::PI / 180.0).to_f64();
        if ![x.to_f64(), y.to_f64(), width.to_f64(), height.to_f64(), theta].iter().all(|v| v.is_finite()) {
            return Ok(None);
        }
        let one = <T::Acc as Element>::ONE;
        let extents = [height, width].map(|v| if v < one { one } else { v });
        let bins = self.regions.pooled.map(|n| T::Acc::from_i64(n as i64));
        let bin = [extents[0] / bins[0], extents[1] / bins[1]];
        let samples = bin.map(|v| self.samples.map_or(v.to_f64().ceil(), |n| n as f64));
        if samples.iter().any(|n| *n > MOST_SAMPLES) {
            return Err("its bins must be at most 4096 pixels long");
        }
        let two = T::Acc::from_f64(2.0);
        Ok(Some(Turned {
            centre: [y, x],
            start: extents.map(|v| -v / two),
            bin,
            samples: samples.map(|n| n as usize),
            cos: T::Acc::from_f64(theta.cos()),
            sin: T::Acc::from_f64(theta.sin()),
        }))
    }

    /// The means of a bin in each of the planes `x`: the positions of samples are those of all.
    fn bin<T: Element>(&self, x: &[T], region: Turned<T::Acc>, bin: usize) -> [T::Acc; MOST_PLANES] {
        let [_, _, height, width] = self.regions.data;
        let Turned { centre, start, bin: size, samples, cos, sin } = region;
        let bins = [bin / self.regions.pooled[1], bin % self.regions.pooled[1]];
        // Along an axis of the region, from its centre.
        let along = |axis: usize, i: usize| {
            let half = T::Acc::from_f64(f64::from(i as f32 + 0.5));
            start[axis]
                + T::Acc::from_i64(bins[axis] as i64) * size[axis]
                + half * size[axis] / T::Acc::from_i64(samples[axis] as i64)
        };
        let mut sums = [<T::Acc as Element>::ZERO; MOST_PLANES];
        for iy in 0..samples[0] {
            let down = along(0, iy);
            for ix in 0..samples[1] {
                let across = along(1, ix);
                let at = [down * cos - across * sin + centre[0], across * cos + down * sin + centre[1]];
                if let (Some((y, share_y)), Some((x_at, share_x))) = (place(at[0], height), place(at[1], width)) {
                    let (y2, x2) = ((y + 1).min(height - 1), (x_at + 1).min(width - 1));
                    let places = [y * width + x_at, y * width + x2, y2 * width + x_at, y2 * width + x2];
                    let [a, b, c, d] = [[0, 0], [0, 1], [1, 0], [1, 1]].map(|[y, x]| share_y[y] * share_x[x]);
                    for (sum, x) in sums.iter_mut().zip(x.chunks_exact(height * width)) {
                        let [p, q, r, s] = places.map(|place| x[place].acc());
                        *sum += a * p + b * q + c * r + d * s;
                    }
                }
            }
        }
        let count = T::Acc::from_i64((samples[0] * samples[1]) as i64);
        sums.map(|sum| sum / count)
    }
}

/// The pixel before a position, and the shares of it and of the next; `None` outside of the image.
fn place<A: Float>(at: A, size: usize) -> Option<(usize, [A; 2])> {
    if !(at >= A::from_f64(-1.0) && at <= A::from_i64(size as i64)) {
        return None;
    }
    let at = if at <= A::ZERO { A::ZERO } else { at };
    let low = at.to_i64() as usize;
    if low + 1 >= size {
        return Some((size - 1, [A::ONE, A::ZERO]));
    }
    let share = at - A::from_i64(low as i64);
    Some((low, [A::ONE - share, share]))
}
