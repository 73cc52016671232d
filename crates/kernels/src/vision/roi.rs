//! Pooling of regions of interest.

use crate::element::{Element, Float};
use crate::error::{KernelError, check_len};
use crate::par::{Par, chunk_by_work, par_chunks_mut};
use std::ops::Range;

/// Regions of a batch of images, and what they are pooled to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Regions {
    /// Batch, channels, height and width of the images.
    pub data: [usize; 4],
    /// Rows and columns that each region is divided into.
    pub pooled: [usize; 2],
    /// Pixels of `data` for a unit of the regions' coordinates.
    pub scale: f64,
}

/// Samples along an axis of a bin that a region may have: more would be a mistake in its
/// coordinates.
pub(super) const MOST_SAMPLES: f64 = 4096.0;

/// Planes of a region that are computed together.
pub(super) const MOST_PLANES: usize = 32;

/// The reasons why a region cannot be pooled.
pub const NO_SIDES: &str = "its sides must be positive with aligned=True";
/// The error of bins that are too long.
pub const LONG_BINS: &str = "its bins must be at most 4096 pixels long";

impl Regions {
    fn check<T>(&self, x: &[T], regions: &[T], channels: usize, out: &[T]) {
        let count = regions.len() / 5;
        check_len("the input", x.len(), self.data.iter().product());
        check_len("the regions", regions.len(), count * 5);
        check_len("the output", out.len(), count * channels * self.pooled[0] * self.pooled[1]);
    }

    /// The image of a region; `None` for a negative number, which stands for a region to be left
    /// out.
    pub(super) fn image<T: Element>(&self, region: &[T]) -> Result<Option<usize>, KernelError> {
        let image = region[0].to_i64();
        match usize::try_from(image) {
            Err(_) => Ok(None),
            Ok(image) if image < self.data[0] => Ok(Some(image)),
            Ok(_) => Err(KernelError::IndexOutOfRange { index: image, axis: 0, size: self.data[0], low: 0 }),
        }
    }

    /// Runs `body(region, channel, plane of the output)` for all planes.
    pub(super) fn planes<T: Element>(
        &self,
        par: &dyn Par,
        channels: usize,
        work: usize,
        out: &mut [T],
        body: impl Fn(usize, usize, &mut [T]) + Sync,
    ) {
        self.bands(par, channels, work, out, |region, first, out| {
            let planes = out.chunks_exact_mut(self.pooled[0] * self.pooled[1]);
            planes.enumerate().for_each(|(i, out)| body(region, first + i, out));
        });
    }

    /// Runs `body(region, first channel, planes of the output)` for all planes, up to [`MOST_PLANES`]
    /// of a region together.
    pub(super) fn bands<T: Element>(
        &self,
        par: &dyn Par,
        channels: usize,
        work: usize,
        out: &mut [T],
        body: impl Fn(usize, usize, &mut [T]) + Sync,
    ) {
        let plane = self.pooled[0] * self.pooled[1];
        if out.is_empty() {
            return;
        }
        let band = chunk_by_work(work * plane);
        par_chunks_mut(par, out, band * plane, |chunk, mut out| {
            let mut at = chunk * band;
            while !out.is_empty() {
                let count = (channels - at % channels).min(out.len() / plane).min(MOST_PLANES);
                let (planes, rest) = out.split_at_mut(count * plane);
                body(at / channels, at % channels, planes);
                (at, out) = (at + count, rest);
            }
        });
    }
}

/// Means of bilinear samples: He et al., "Mask R-CNN" (2017).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoiAlign {
    /// Images and bins.
    pub regions: Regions,
    /// Samples along an axis of a bin; if there is none, as many as pixels, rounded up.
    pub samples: Option<usize>,
    /// Whether every bin reads channels of its own.
    pub position_sensitive: bool,
    /// Whether coordinates are those of pixel edges (half a pixel less).
    pub aligned: bool,
}

/// Two pixels of an axis and their shares in a sample; both shares are zero outside of the image.
#[derive(Clone, Copy)]
struct Sample<A> {
    low: usize,
    high: usize,
    share: [A; 2],
}

/// A region along an axis: where it begins, the size of a bin, and samples in a bin.
#[derive(Clone, Copy)]
struct Extent<A> {
    start: A,
    bin: A,
    samples: usize,
}

impl<A: Float> Extent<A> {
    /// Whether the coordinates of the region are infinite or no numbers.
    fn is_nan(&self) -> bool {
        self.start.nan()
    }

    /// Sample `i` of bin `bin`, on an axis with `size` pixels.
    fn sample(&self, bin: usize, i: usize, size: usize) -> Sample<A> {
        let within = A::from_f64(f64::from(i as f32 + 0.5)) * self.bin / A::from_i64(self.samples as i64);
        let mut at = self.start + A::from_i64(bin as i64) * self.bin + within;
        let outside = Sample { low: 0, high: 0, share: [A::ZERO; 2] };
        if !(at >= A::from_f64(-1.0) && at <= A::from_i64(size as i64)) {
            return outside;
        }
        if at <= A::ZERO {
            at = A::ZERO;
        }
        let low = (at.to_i64() as usize).min(size - 1);
        if low == size - 1 {
            return Sample { low, high: low, share: [A::ONE, A::ZERO] };
        }
        let share = at - A::from_i64(low as i64);
        Sample { low, high: low + 1, share: [A::ONE - share, share] }
    }
}

/// The samples of all bins along an axis.
struct AxisSamples<A> {
    extent: Extent<A>,
    size: usize,
    /// Empty if they are too many.
    made: Vec<Sample<A>>,
}

/// Samples of an axis that are computed once for all planes; more are computed at each use.
const MOST_MADE: usize = 1 << 12;

impl<A: Float> AxisSamples<A> {
    fn new(extent: Extent<A>, bins: usize, size: usize) -> Self {
        let mut made = Vec::new();
        if bins.saturating_mul(extent.samples) <= MOST_MADE {
            made.extend((0..bins).flat_map(|bin| (0..extent.samples).map(move |i| extent.sample(bin, i, size))));
        }
        AxisSamples { extent, size, made }
    }

    /// The samples of a bin.
    fn of(&self, bin: usize) -> impl Iterator<Item = Sample<A>> + '_ {
        let first = bin * self.extent.samples;
        (0..self.extent.samples).map(move |i| match self.made.get(first + i) {
            Some(sample) => *sample,
            None => self.extent.sample(bin, i, self.size),
        })
    }
}

/// The inputs of a region: nothing, because its image does not exist; nothing with a position; or
/// samples of an image.
enum RegionSamples<A> {
    Absent,
    Nowhere,
    Inside { image: usize, axes: [AxisSamples<A>; 2] },
}

impl RoiAlign {
    /// Channels of the output.
    pub fn channels(&self) -> usize {
        let [_, channels, ..] = self.regions.data;
        if self.position_sensitive { channels / (self.regions.pooled[0] * self.regions.pooled[1]) } else { channels }
    }

    /// Pools `regions`, `[n, 5]` (image, left, top, right, bottom), into `[n, channels, rows,
    /// columns]`. Regions of a negative image give zeros.
    ///
    /// # Errors
    /// For an image that is not there, a region with bins of more than 4096 pixels, or an empty one
    /// (only if aligned).
    ///
    /// # Panics
    /// If the lengths contradict each other.
    pub fn run<T: Element>(&self, par: &dyn Par, x: &[T], regions: &[T], out: &mut [T]) -> Result<(), KernelError> {
        let channels = self.channels();
        self.regions.check(x, regions, channels, out);
        for (i, region) in regions.chunks_exact(5).enumerate() {
            if self.regions.image(region)?.is_some() {
                self.extents::<T>(region).map_err(|reason| KernelError::Region { region: i, reason })?;
            }
        }
        let bins = self.regions.pooled[0] * self.regions.pooled[1];
        let band = chunk_by_work(8 * self.samples.unwrap_or(2).pow(2) * bins);
        if out.is_empty() {
            return Ok(());
        }
        par_chunks_mut(par, out, band * bins, |chunk, out| {
            // The channels of a region are sampled alike.
            let mut sampled = None;
            for (i, out) in out.chunks_exact_mut(bins).enumerate() {
                let (region, channel) = ((chunk * band + i) / channels, (chunk * band + i) % channels);
                let samples = match &sampled {
                    Some((of, samples)) if *of == region => samples,
                    _ => &sampled.insert((region, self.region_samples(&regions[region * 5..][..5]))).1,
                };
                self.channel(x, samples, channel, out);
            }
        });
        Ok(())
    }

    /// Computes the bins of a region in a channel.
    fn channel<T: Element>(&self, x: &[T], samples: &RegionSamples<T::Acc>, channel: usize, out: &mut [T]) {
        let [_, planes, height, width] = self.regions.data;
        let (image, axes) = match samples {
            RegionSamples::Absent => return out.fill(T::ZERO),
            RegionSamples::Nowhere => return out.fill(T::from_f64(f64::NAN)),
            RegionSamples::Inside { image, axes } => (image, axes),
        };
        let bins = out.len();
        for (bin, out) in out.iter_mut().enumerate() {
            let plane = if self.position_sensitive { channel * bins + bin } else { channel };
            let x = &x[(image * planes + plane) * height * width..][..height * width];
            *out = self.bin(x, axes, bin);
        }
    }

    /// The inputs of a region in every plane.
    fn region_samples<T: Element>(&self, region: &[T]) -> RegionSamples<T::Acc> {
        let [_, _, height, width] = self.regions.data;
        let (Ok(Some(image)), Ok([down, across])) = (self.regions.image(region), self.extents(region)) else {
            return RegionSamples::Absent;
        };
        if down.is_nan() || across.is_nan() {
            return RegionSamples::Nowhere;
        }
        let [rows, columns] = self.regions.pooled;
        let axes = [AxisSamples::new(down, rows, height), AxisSamples::new(across, columns, width)];
        RegionSamples::Inside { image, axes }
    }

    /// The extents of a region down and across.
    fn extents<T: Element>(&self, region: &[T]) -> Result<[Extent<T::Acc>; 2], &'static str> {
        let scale = T::Acc::from_f64(self.regions.scale);
        let offset = T::Acc::from_f64(if self.aligned { 0.5 } else { 0.0 });
        let [left, top, right, bottom]: [T::Acc; 4] = std::array::from_fn(|i| region[1 + i].acc() * scale - offset);
        let one = <T::Acc as Element>::ONE;
        let extent = |start: T::Acc, end: T::Acc, bins: usize| {
            let bins = T::Acc::from_i64(bins as i64);
            let mut size = end - start;
            if self.aligned && size.to_f64() <= 0.0 {
                return Err(NO_SIDES);
            }
            if !self.aligned && size < one {
                size = one;
            }
            let bin = size / bins;
            let samples = self.samples.map_or(bin.to_f64().ceil(), |n| n as f64);
            if !(bin.to_f64().is_finite() && start.to_f64().is_finite()) {
                let nowhere = T::Acc::from_f64(f64::NAN);
                return Ok(Extent { start: nowhere, bin: nowhere, samples: 0 });
            }
            if samples > MOST_SAMPLES {
                return Err(LONG_BINS);
            }
            Ok(Extent { start, bin, samples: samples as usize })
        };
        Ok([extent(top, bottom, self.regions.pooled[0])?, extent(left, right, self.regions.pooled[1])?])
    }

    fn bin<T: Element>(&self, x: &[T], [down, across]: &[AxisSamples<T::Acc>; 2], bin: usize) -> T {
        let width = across.size;
        let (row, column) = (bin / self.regions.pooled[1], bin % self.regions.pooled[1]);
        let mut sum = <T::Acc as Element>::ZERO;
        for y in down.of(row) {
            let (above, below) = (&x[y.low * width..][..width], &x[y.high * width..][..width]);
            for x in across.of(column) {
                sum += y.share[0] * x.share[0] * above[x.low].acc()
                    + y.share[0] * x.share[1] * above[x.high].acc()
                    + y.share[1] * x.share[0] * below[x.low].acc()
                    + y.share[1] * x.share[1] * below[x.high].acc();
            }
        }
        T::from_acc(sum / T::Acc::from_i64((down.extent.samples * across.extent.samples) as i64))
    }
}

/// Pixels of a bin along an axis: from the floor of its start to the ceiling of its end, within the
/// image.
fn pixels<A: Float>(bin: usize, size: A, offset: f64, shift: i64, length: usize) -> Range<usize> {
    let at = |i: usize| (A::from_i64(i as i64) * size).to_f64() + offset;
    let cut = |v: f64| (v as i64).saturating_add(shift).clamp(0, length as i64) as usize;
    cut(at(bin).floor())..cut(at(bin + 1).ceil())
}

/// The largest pixel of every bin: Girshick, "Fast R-CNN" (2015). An empty bin gives zero.
///
/// # Panics
/// If the lengths contradict each other.
pub fn roi_max_pool<T: Element>(par: &dyn Par, how: Regions, x: &[T], regions: &[T], out: &mut [T]) {
    let [_, channels, height, width] = how.data;
    how.check(x, regions, channels, out);
    let scale = T::Acc::from_f64(how.scale);
    how.planes(par, channels, 32, out, |region, channel, out| {
        let region = &regions[region * 5..][..5];
        let [left, top, right, bottom] = [1, 2, 3, 4].map(|i| (region[i].acc() * scale).to_f64().round() as i64);
        let size = |start: i64, end: i64, bins: usize| {
            let size = end.saturating_sub(start).saturating_add(1).max(1);
            T::Acc::from_i64(size) / T::Acc::from_i64(bins as i64)
        };
        let (rows, columns) = (size(top, bottom, how.pooled[0]), size(left, right, how.pooled[1]));
        let Ok(Some(image)) = how.image(region) else { return out.fill(T::ZERO) };
        let x = &x[(image * channels + channel) * height * width..][..height * width];
        for (bin, out) in out.iter_mut().enumerate() {
            let rows = pixels(bin / how.pooled[1], rows, 0.0, top, height);
            let columns = pixels(bin % how.pooled[1], columns, 0.0, left, width);
            if rows.is_empty() || columns.is_empty() {
                *out = T::ZERO;
                continue;
            }
            *out = T::from_f64(f64::from(f32::MIN));
            for row in rows {
                for v in &x[row * width..][columns.clone()] {
                    if *v > *out {
                        *out = *v;
                    }
                }
            }
        }
    });
}

/// Means of bins that read channels of their own: Dai et al., "R-FCN" (2016).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PositionSensitivePool {
    /// Images and bins.
    pub regions: Regions,
    /// Channels of the output.
    pub channels: usize,
    /// Rows and columns of groups of channels.
    pub groups: usize,
}

impl PositionSensitivePool {
    /// Pools `regions`, `[n, 5]` (image, left, top, right, bottom), into `[n, channels, rows,
    /// columns]`; an empty bin gives zero.
    ///
    /// # Errors
    /// For an image that is not there.
    ///
    /// # Panics
    /// If the lengths contradict each other.
    pub fn run<T: Element>(&self, par: &dyn Par, x: &[T], regions: &[T], out: &mut [T]) -> Result<(), KernelError> {
        let how = self.regions;
        let [_, planes, height, width] = how.data;
        how.check(x, regions, self.channels, out);
        for region in regions.chunks_exact(5) {
            if how.image(region)?.is_none() {
                let (index, size) = (region[0].to_i64(), how.data[0]);
                return Err(KernelError::IndexOutOfRange { index, axis: 0, size, low: 0 });
            }
        }
        let scale = T::Acc::from_f64(how.scale);
        let least = T::Acc::from_f64(0.1);
        how.planes(par, self.channels, 32, out, |region, channel, out| {
            let region = &regions[region * 5..][..5];
            let at = |i: usize, extra: f64| T::Acc::from_f64(region[i].to_f64().round() + extra) * scale;
            let extent = |start: T::Acc, end: T::Acc, bins: usize| {
                let size = end - start;
                (if size > least { size } else { least }) / T::Acc::from_i64(bins as i64)
            };
            let (left, top) = (at(1, 0.0), at(2, 0.0));
            let (rows, columns) = (extent(top, at(4, 1.0), how.pooled[0]), extent(left, at(3, 1.0), how.pooled[1]));
            let Ok(Some(image)) = how.image(region) else { return out.fill(T::ZERO) };
            for (bin, out) in out.iter_mut().enumerate() {
                let [row, column] = [bin / how.pooled[1], bin % how.pooled[1]];
                let group = |at: usize, bins: usize| (at * self.groups / bins).min(self.groups - 1);
                let group = group(row, how.pooled[0]) * self.groups + group(column, how.pooled[1]);
                let plane = channel * self.groups * self.groups + group;
                let x = &x[(image * planes + plane) * height * width..][..height * width];
                let rows = pixels(row, rows, top.to_f64(), 0, height);
                let columns = pixels(column, columns, left.to_f64(), 0, width);
                *out = mean_of(x, width, rows, columns);
            }
        });
        Ok(())
    }
}

fn mean_of<T: Element>(x: &[T], width: usize, rows: Range<usize>, columns: Range<usize>) -> T {
    let area = rows.len() * columns.len();
    if area == 0 {
        return T::ZERO;
    }
    let mut sum = <T::Acc as Element>::ZERO;
    for row in rows {
        x[row * width..][columns.clone()].iter().for_each(|v| sum += v.acc());
    }
    T::from_acc(sum / T::Acc::from_i64(area as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads, assert_close, random};

    /// Pixel (row, column) has the value 10 * row + column, in the second channel negative.
    fn slope() -> Vec<f32> {
        let plane: Vec<f32> = (0..64).map(|i| (i / 8 * 10 + i % 8) as f32).collect();
        plane.iter().copied().chain(plane.iter().map(|v| -v)).collect()
    }

    const REGIONS: Regions = Regions { data: [1, 2, 8, 8], pooled: [2, 2], scale: 0.5 };
    const ALIGN: RoiAlign = RoiAlign { regions: REGIONS, samples: Some(2), position_sensitive: false, aligned: false };

    #[test]
    fn samples_of_a_plane_average_to_the_center_of_the_bin() {
        let mut out = [0.0f32; 8];
        // Rows 2 to 6, columns 1 to 5 after scaling: bin centers at 3 and 5, and at 2 and 4.
        ALIGN.run(&Threads(2), &slope(), &[0.0, 2.0, 4.0, 10.0, 12.0], &mut out).unwrap();
        assert_close(&out[..4], &[32.0, 34.0, 52.0, 54.0], 1e-6);
        assert_close(&out[4..], &[-32.0, -34.0, -52.0, -54.0], 1e-6);
        let aligned = RoiAlign { aligned: true, ..ALIGN };
        aligned.run(&Serial, &slope(), &[0.0, 2.0, 4.0, 10.0, 12.0], &mut out).unwrap();
        assert_close(&out[..4], &[26.5, 28.5, 46.5, 48.5], 1e-6);
    }

    #[test]
    fn bad_regions_are_errors_and_absent_ones_zeros() {
        let mut out = [7.0f32; 8];
        let mut run = |align: RoiAlign, region: [f32; 5]| {
            let result = align.run(&Serial, &slope(), &region, &mut out);
            result.map(|()| out)
        };
        assert!(run(ALIGN, [1.0, 0.0, 0.0, 4.0, 4.0]).is_err());
        assert!(run(ALIGN, [0.0, 0.0, 0.0, f32::NAN, 4.0]).unwrap().iter().all(|v| v.is_nan()));
        assert!(run(ALIGN, [0.0, f32::NEG_INFINITY, 0.0, 4.0, 4.0]).unwrap().iter().all(|v| v.is_nan()));
        assert!(run(RoiAlign { samples: None, ..ALIGN }, [0.0, 0.0, 0.0, 1e30, 4.0]).is_err());
        assert!(run(RoiAlign { aligned: true, ..ALIGN }, [0.0, 4.0, 0.0, 4.0, 4.0]).is_err());
        assert_eq!(run(ALIGN, [-1.0, 0.0, 0.0, 4.0, 4.0]).unwrap(), [0.0; 8]);
    }

    #[test]
    fn position_sensitive_bins_read_their_own_channels() {
        let x: Vec<f32> = (0..8 * 64).map(|i| (i / 64) as f32).collect();
        let regions = Regions { data: [1, 8, 8, 8], ..REGIONS };
        let mut out = [0.0f32; 8];
        let align = RoiAlign { regions, position_sensitive: true, ..ALIGN };
        align.run(&Reverse, &x, &[0.0, 0.0, 0.0, 8.0, 8.0], &mut out).unwrap();
        assert_eq!(out, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        let pool = PositionSensitivePool { regions, channels: 2, groups: 2 };
        pool.run(&Serial, &x, &[0.0, 0.0, 0.0, 7.0, 7.0], &mut out).unwrap();
        assert_eq!(out, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        assert!(pool.run(&Serial, &x, &[-1.0, 0.0, 0.0, 7.0, 7.0], &mut out).is_err());
    }

    #[test]
    fn the_largest_pixel_of_a_bin_is_taken_and_empty_bins_are_zero() {
        let mut out = [7.0f32; 16];
        let regions = [0.0, 2.0, 4.0, 8.0, 10.0, 0.0, 30.0, 30.0, 40.0, 40.0];
        roi_max_pool(&Threads(2), REGIONS, &slope(), &regions, &mut out);
        // Rows 2 to 5 and columns 1 to 4, two pixels a bin.
        assert_eq!(out[..8], [32.0, 34.0, 52.0, 54.0, -21.0, -23.0, -41.0, -43.0]);
        assert_eq!(out[8..], [0.0; 8]);
        roi_max_pool(&Serial, REGIONS, &slope(), &[0.0, f32::NAN, f32::MAX, f32::MIN, f32::INFINITY], &mut out[..8]);
    }

    #[test]
    fn results_do_not_depend_on_threads() {
        let regions = Regions { data: [2, 3, 20, 30], pooled: [7, 7], scale: 0.25 };
        let x = random(2 * 3 * 600, 1);
        let boxes: Vec<f32> = random(40 * 5, 2)
            .chunks(5)
            .flat_map(|v| {
                let [x, y] = [60.0 + v[1] * 70.0, 40.0 + v[2] * 50.0];
                [if v[0] > 0.0 { 1.0 } else { 0.0 }, x, y, x + v[3].abs() * 60.0, y + v[4].abs() * 40.0]
            })
            .collect();
        let align = RoiAlign { regions, samples: None, ..ALIGN };
        let results = [&Serial as &dyn Par, &Reverse, &Threads(3)].map(|par| {
            let mut out = vec![0.0; 40 * 3 * 49];
            align.run(par, &x, &boxes, &mut out).unwrap();
            out
        });
        assert!(results.iter().all(|r| *r == results[0]));
    }
}
