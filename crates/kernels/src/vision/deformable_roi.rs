//! Position-sensitive pooling of regions whose bins are moved.

use super::roi::Regions;
use crate::element::Element;
use crate::error::{KernelError, check_len};
use crate::par::Par;

/// Means of bilinear samples in bins that offsets move, where every bin reads channels of its own:
/// Dai et al., "Deformable Convolutional Networks" (2017).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeformableRoiPool {
    /// Images and bins.
    pub regions: Regions,
    /// Channels of the output.
    pub channels: usize,
    /// Rows and columns of groups of channels.
    pub groups: usize,
    /// Rows and columns of the offsets of a region.
    pub parts: usize,
    /// Samples along an axis of a bin.
    pub samples: usize,
    /// Size of an offset of one, as a share of the region.
    pub deviation: f64,
}

impl DeformableRoiPool {
    /// Pools `regions`, `[n, 5]` (image, left, top, right, bottom), into `[n, channels, rows,
    /// columns]`. `offsets` are `[n, 2 * classes, parts, parts]`, or none. Regions of a negative
    /// image give zeros.
    ///
    /// # Errors
    /// For an image that is not there.
    ///
    /// # Panics
    /// If the lengths contradict each other.
    pub fn run<T: Element>(
        &self,
        par: &dyn Par,
        x: &[T],
        regions: &[T],
        offsets: Option<&[T]>,
        out: &mut [T],
    ) -> Result<(), KernelError> {
        let [_, planes, height, width] = self.regions.data;
        let count = regions.len() / 5;
        let pooled = self.regions.pooled;
        check_len("the input", x.len(), self.regions.data.iter().product());
        check_len("the channels", planes, self.channels * self.groups * self.groups);
        check_len("the output", out.len(), count * self.channels * pooled[0] * pooled[1]);
        let parts = self.parts * self.parts;
        let classes = offsets.map_or(1, |offsets| offsets.len() / (count * 2 * parts).max(1)).max(1);
        for region in regions.chunks_exact(5) {
            self.regions.image(region)?;
        }
        let per_class = (self.channels / classes).max(1);
        let work = 12 * self.samples.pow(2);
        self.regions.planes(par, self.channels, work, out, |n, channel, out| {
            let region = &regions[n * 5..][..5];
            let Ok(Some(image)) = self.regions.image(region) else { return out.fill(T::ZERO) };
            let image = &x[image * planes * height * width..][..planes * height * width];
            let class = (channel / per_class).min(classes - 1);
            let offset = |axis: usize, part: usize| match offsets {
                Some(offsets) => offsets[((n * classes + class) * 2 + axis) * parts + part].acc(),
                None => <T::Acc as Element>::ZERO,
            };
            for (bin, out) in out.iter_mut().enumerate() {
                *out = T::from_acc(self.bin(image, region, channel, bin, &offset));
            }
        });
        Ok(())
    }

    fn bin<T: Element>(
        &self,
        image: &[T],
        region: &[T],
        channel: usize,
        bin: usize,
        offset: &dyn Fn(usize, usize) -> T::Acc,
    ) -> T::Acc {
        let [_, _, height, width] = self.regions.data;
        let pooled = self.regions.pooled;
        let number = |n: usize| T::Acc::from_i64(n as i64);
        let real = T::Acc::from_f64;
        let scale = real(self.regions.scale);
        let edge = |i: usize, more: f64| real(region[i].to_f64().round() + more) * scale - real(0.5);
        let place = [bin / pooled[1], bin % pooled[1]];
        let part = [0, 1].map(|axis| place[axis] * self.parts / pooled[axis]);
        let part = part[0] * self.parts + part[1];
        // Down, then across; the first offset is that across.
        let (mut first, mut step) = ([<T::Acc as Element>::ZERO; 2], [<T::Acc as Element>::ZERO; 2]);
        for axis in [0, 1] {
            let start = edge(2 - axis, 0.0);
            let length = edge(4 - axis, 1.0) - start;
            let length = if length < real(0.1) { real(0.1) } else { length };
            let size = length / number(pooled[axis]);
            step[axis] = size / number(self.samples);
            let moved = offset(1 - axis, part) * real(self.deviation);
            first[axis] = number(place[axis]) * size + start + moved * length;
        }
        let group = [0, 1].map(|axis| (place[axis] * self.groups / pooled[axis]).min(self.groups - 1));
        let plane = (channel * self.groups + group[0]) * self.groups + group[1];
        let plane = &image[plane * height * width..][..height * width];
        mean_of_samples(plane, [height, width], self.samples, first, step)
    }
}

/// The mean of `samples` positions along each axis of a plane, without those outside of it.
#[inline(always)]
fn mean_of_samples<T: Element>(
    plane: &[T],
    [height, width]: [usize; 2],
    samples: usize,
    first: [T::Acc; 2],
    step: [T::Acc; 2],
) -> T::Acc {
    let number = |n: usize| T::Acc::from_i64(n as i64);
    let half = T::Acc::from_f64(0.5);
    let inside = |at: T::Acc, size: usize| at >= T::Acc::from_f64(-0.5) && at <= number(size) - half;
    let (mut sum, mut count) = (<T::Acc as Element>::ZERO, 0);
    for iy in 0..samples {
        for ix in 0..samples {
            let (h, w) = (first[0] + number(iy) * step[0], first[1] + number(ix) * step[1]);
            if inside(h, height) && inside(w, width) {
                sum += bilinear(plane, [h, w], [height, width]);
                count += 1;
            }
        }
    }
    if count == 0 { sum } else { sum / number(count) }
}

/// The value at a position, which is moved to the nearest pixel of the edge if it is beyond.
fn bilinear<T: Element>(plane: &[T], at: [T::Acc; 2], size: [usize; 2]) -> T::Acc {
    let (zero, one) = (<T::Acc as Element>::ZERO, <T::Acc as Element>::ONE);
    let [y, x] = [0, 1].map(|axis| {
        let last = T::Acc::from_i64(size[axis] as i64 - 1);
        let at = if at[axis] < zero { zero } else { at[axis] };
        let at = if at > last { last } else { at };
        let low = at.to_i64() as usize;
        (low, (low + 1).min(size[axis] - 1), at - T::Acc::from_i64(low as i64))
    });
    let value = |row: usize, column: usize| plane[row * size[1] + column].acc();
    (one - x.2) * (one - y.2) * value(y.0, x.0)
        + (one - x.2) * y.2 * value(y.1, x.0)
        + x.2 * (one - y.2) * value(y.0, x.1)
        + x.2 * y.2 * value(y.1, x.1)
}
