//! Anchors and detections of single-shot detectors: Liu et al., "SSD: Single Shot MultiBox
//! Detector" (2016).

use super::boxes::by_score;
use super::nms::{SortedBoxes, SuppressRule};
use crate::element::{Element, Float};
use crate::error::check_len;
use crate::par::{Par, chunk_by_work, par_chunks_mut, par_chunks_mut_scratch};
use crate::vectorize::vectorized;

/// Anchors around every pixel of a feature map; numbers are parts of the image.
#[derive(Clone, Copy, Debug)]
pub struct MultiBoxPrior<'a> {
    /// Height and width of the feature map.
    pub image: [usize; 2],
    /// Sizes; all have the first ratio.
    pub sizes: &'a [f32],
    /// Ratios of width and height; the second and later ones have the first size.
    pub ratios: &'a [f32],
    /// Distances between pixels, down and to the right.
    pub steps: [f32; 2],
    /// Position of the center in a pixel, down and to the right.
    pub offsets: [f32; 2],
    /// Whether anchors are cut to the image.
    pub clip: bool,
}

impl MultiBoxPrior<'_> {
    /// Anchors around one pixel.
    pub fn per_pixel(&self) -> usize {
        (self.sizes.len() + self.ratios.len()).saturating_sub(1)
    }

    /// Half the width and half the height of an anchor. Single precision in MXNet's order, as
    /// positions are everywhere here.
    pub fn half_sides(&self, anchor: usize) -> [f32; 2] {
        let [height, width] = self.image.map(|n| n as f32);
        let (size, ratio) = match anchor.checked_sub(self.sizes.len()) {
            None => (self.sizes[anchor], self.ratios[0].sqrt()),
            Some(later) => (self.sizes[0], self.ratios[later + 1].sqrt()),
        };
        [size * height / width * ratio / 2.0, size / ratio / 2.0]
    }

    /// Writes `[height * width * per_pixel, 4]` corners.
    ///
    /// # Panics
    /// If there is no size or no ratio, or the output has another length.
    pub fn run<T: Element>(&self, par: &dyn Par, out: &mut [T]) {
        let (columns, anchors) = (self.image[1], self.per_pixel());
        check_len("the output", out.len(), self.image[0] * columns * anchors * 4);
        if out.is_empty() {
            return;
        }
        let row = columns * anchors * 4;
        let band = chunk_by_work(4 * row);
        par_chunks_mut(par, out, band * row, |chunk, out| {
            for (i, out) in out.chunks_exact_mut(row).enumerate() {
                let y = ((chunk * band + i) as f32 + self.offsets[0]) * self.steps[0];
                for (column, out) in out.chunks_exact_mut(anchors * 4).enumerate() {
                    let x = (column as f32 + self.offsets[1]) * self.steps[1];
                    for (anchor, out) in out.chunks_exact_mut(4).enumerate() {
                        let [w, h] = self.half_sides(anchor);
                        for (out, v) in out.iter_mut().zip([x - w, y - h, x + w, y + h]) {
                            *out = T::from_f64(f64::from(if self.clip { v.clamp(0.0, 1.0) } else { v }));
                        }
                    }
                }
            }
        });
    }
}

/// Detections out of class probabilities and boxes relative to anchors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MultiBoxDetection {
    /// Classes, the background (number 0) among them.
    pub classes: usize,
    /// Anchors.
    pub anchors: usize,
    /// Whether boxes are cut to the image.
    pub clip: bool,
    /// Probability from which on an anchor shows something.
    pub threshold: f64,
    /// Factors of the encoded numbers.
    pub variances: [f32; 4],
    /// Intersection over union from which on the lower score goes; without one nothing is sorted or
    /// suppressed.
    pub overlap: Option<f64>,
    /// Whether boxes of different classes suppress each other.
    pub across_classes: bool,
    /// How many of the best boxes stay.
    pub limit: Option<usize>,
}

/// Numbers of a detection: class, score, left, top, right, bottom.
const WIDTH: usize = 6;
/// Anchors whose classes are compared together.
const BLOCK: usize = 64;

impl MultiBoxDetection {
    /// Writes `[batch, anchors, 6]`: class (-1 for none), score, corners. `probabilities` has shape
    /// `[batch, classes, anchors]`, `locations` `[batch, anchors * 4]`, `anchors` `[anchors, 4]`.
    /// Equal scores stay in their order.
    ///
    /// # Panics
    /// If the lengths contradict each other.
    pub fn run<T: Element>(&self, par: &dyn Par, probabilities: &[T], locations: &[T], anchors: &[T], out: &mut [T]) {
        let n = self.anchors;
        let batch = out.len() / (n * WIDTH).max(1);
        check_len("the output", out.len(), batch * n * WIDTH);
        check_len("the probabilities", probabilities.len(), batch * self.classes * n);
        check_len("the locations", locations.len(), batch * n * 4);
        check_len("the anchors", anchors.len(), n * 4);
        if out.is_empty() {
            return;
        }
        let numbers = SortedBoxes::<T::Acc>::NUMBERS * n * size_of::<T::Acc>();
        let copy = (n * WIDTH * size_of::<T>()).next_multiple_of(8);
        let bytes = numbers + copy + n * size_of::<u32>();
        par_chunks_mut_scratch(par, out, n * WIDTH, bytes, |i, out, scratch| {
            let (numbers, rest) = scratch[..bytes].split_at_mut(numbers);
            let (copy, order) = rest.split_at_mut(copy);
            let probabilities = &probabilities[i * self.classes * n..][..self.classes * n];
            let valid = self.detect(probabilities, &locations[i * n * 4..][..n * 4], anchors, out);
            let copy: &mut [T] = &mut bytemuck::cast_slice_mut(copy)[..valid * WIDTH];
            let order: &mut [u32] = &mut bytemuck::cast_slice_mut(order)[..valid];
            self.suppress(bytemuck::cast_slice_mut(numbers), copy, order, &mut out[..valid * WIDTH]);
        });
    }

    /// Writes what anchors show, in their order; the rest is -1. How many there are.
    fn detect<T: Element>(&self, probabilities: &[T], locations: &[T], anchors: &[T], out: &mut [T]) -> usize {
        let n = self.anchors;
        out.fill(T::from_f64(-1.0));
        let mut valid = 0;
        let threshold = T::Acc::from_f64(self.threshold);
        let (mut scores, mut classes) = ([T::ZERO; BLOCK], [0; BLOCK]);
        for anchor in 0..n {
            if anchor.is_multiple_of(BLOCK) {
                best_classes(probabilities, n, anchor, &mut scores, &mut classes);
            }
            let (class, score) = (classes[anchor % BLOCK], scores[anchor % BLOCK]);
            if class == 0 || score.acc() < threshold {
                continue;
            }
            let out = &mut out[valid * WIDTH..][..WIDTH];
            (out[0], out[1]) = (T::from_i64(i64::from(class) - 1), score);
            self.decode(&locations[anchor * 4..][..4], &anchors[anchor * 4..][..4], &mut out[2..]);
            valid += 1;
        }
        valid
    }

    fn decode<T: Element>(&self, location: &[T], anchor: &[T], out: &mut [T]) {
        let [left, top, right, bottom]: [T::Acc; 4] = std::array::from_fn(|i| anchor[i].acc());
        let [x, y, w, h]: [T::Acc; 4] =
            std::array::from_fn(|i| location[i].acc() * T::Acc::from_f64(f64::from(self.variances[i])));
        let (two, zero, one) = (T::Acc::from_i64(2), <T::Acc as Element>::ZERO, <T::Acc as Element>::ONE);
        let (aw, ah) = (right - left, bottom - top);
        let (cx, cy) = (x * aw + (left + right) / two, y * ah + (top + bottom) / two);
        let (w, h) = (Float::exp(w) * aw / two, Float::exp(h) * ah / two);
        for (out, v) in out.iter_mut().zip([cx - w, cy - h, cx + w, cy + h]) {
            let v = match self.clip {
                true if v < zero => zero,
                true if v > one => one,
                _ => v,
            };
            *out = T::from_acc(v);
        }
    }

    /// Sorts detections by score and marks what better ones suppress, and what is beyond the limit,
    /// with class -1.
    fn suppress<T: Element>(&self, numbers: &mut [T::Acc], copy: &mut [T], order: &mut [u32], out: &mut [T]) {
        let Some(overlap) = self.overlap else { return };
        copy.copy_from_slice(out);
        order.iter_mut().zip(0..).for_each(|(order, i)| *order = i);
        let score = |i: u32| copy[i as usize * WIDTH + 1].to_f64();
        let compare = |a: &u32, b: &u32| by_score(score(*a), score(*b)).then(a.cmp(b));
        let limit = self.limit.unwrap_or(order.len()).min(order.len());
        if limit < order.len() {
            order.select_nth_unstable_by(limit, compare);
        }
        order[..limit].sort_unstable_by(compare);
        let none = T::from_f64(-1.0);
        // Those beyond the limit keep the place that they had before sorting.
        out.chunks_exact_mut(WIDTH).skip(limit).for_each(|row| row[0] = none);
        let zero = <T::Acc as Element>::ZERO;
        let mut boxes = SortedBoxes::new(numbers, limit);
        for (i, (out, &from)) in out.chunks_exact_mut(WIDTH).zip(&order[..limit]).enumerate() {
            out.copy_from_slice(&copy[from as usize * WIDTH..][..WIDTH]);
            let [left, top, right, bottom]: [T::Acc; 4] = std::array::from_fn(|i| out[2 + i].acc());
            let area = (right - left) * (bottom - top);
            boxes.set(i, [left, top, right, bottom, area], if self.across_classes { zero } else { out[0].acc() });
        }
        let rule = SuppressRule { threshold: T::Acc::from_f64(overlap), inclusive: true, extra: zero };
        boxes.suppress(rule, usize::MAX);
        for (row, stays) in out.chunks_exact_mut(WIDTH).zip(boxes.stays.iter()) {
            if *stays == zero {
                row[0] = none;
            }
        }
    }
}

vectorized! {
    /// The most probable class of each anchor of a block but the background, the first of equal
    /// ones, and its probability; class 0 if none is more than -1.
    fn best_classes[T: Element](
        probabilities: &[T],
        anchors: usize,
        first: usize,
        scores: &mut [T; BLOCK],
        classes: &mut [i32; BLOCK],
    ) {
        let count = BLOCK.min(anchors - first);
        *scores = [T::from_f64(-1.0); BLOCK];
        *classes = [0; BLOCK];
        for (class, row) in (0..).zip(probabilities.chunks_exact(anchors)).skip(1) {
            let best = scores.iter_mut().zip(classes.iter_mut());
            for ((score, best), &probability) in best.zip(&row[first..][..count]) {
                let better = probability > *score;
                *score = if better { probability } else { *score };
                *best = if better { class } else { *best };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads, assert_close, random};

    #[test]
    fn anchors_lie_around_every_pixel_in_all_sizes_and_ratios() {
        let prior = MultiBoxPrior {
            image: [1, 2],
            sizes: &[0.5, 0.25],
            ratios: &[1.0, 4.0],
            steps: [1.0, 0.5],
            offsets: [0.5, 0.5],
            clip: false,
        };
        let mut out = [0.0f32; 24];
        prior.run(&Threads(2), &mut out);
        assert_close(&out[..4], &[0.125, 0.25, 0.375, 0.75], 1e-6);
        assert_close(&out[8..16], &[0.0, 0.375, 0.5, 0.625, 0.625, 0.25, 0.875, 0.75], 1e-6);
        MultiBoxPrior { sizes: &[3.0], ratios: &[1.0], clip: true, ..prior }.run(&Serial, &mut out[..8]);
        assert_eq!(out[..8], [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0]);
    }

    const DETECTION: MultiBoxDetection = MultiBoxDetection {
        classes: 3,
        anchors: 3,
        clip: true,
        threshold: 0.1,
        variances: [0.1, 0.1, 0.2, 0.2],
        overlap: Some(0.5),
        across_classes: false,
        limit: None,
    };

    #[test]
    fn the_best_class_of_every_anchor_is_decoded_and_worse_ones_are_marked() {
        let anchors = [0.1f32, 0.1, 0.3, 0.3, 0.1, 0.1, 0.3, 0.3, 0.5, 0.5, 1.2, 0.9];
        // Background, then two classes.
        let probabilities = [0.3, 0.2, 0.9, 0.4, 0.5, 0.05, 0.3, 0.3, 0.02];
        let mut out = [0.0f32; 18];
        DETECTION.run(&Serial, &probabilities, &[0.0; 12], &anchors, &mut out);
        assert_close(&out[..6], &[0.0, 0.5, 0.1, 0.1, 0.3, 0.3], 1e-6);
        assert_close(&out[6..12], &[-1.0, 0.4, 0.1, 0.1, 0.3, 0.3], 1e-6);
        assert_eq!(out[12..], [-1.0; 6]);
        let low = MultiBoxDetection { threshold: 0.0, overlap: None, ..DETECTION };
        low.run(&Serial, &probabilities, &[0.0; 12], &anchors, &mut out);
        assert_close(&out[12..], &[0.0, 0.05, 0.5, 0.5, 1.0, 0.9], 1e-6);
        let one = MultiBoxDetection { limit: Some(1), ..DETECTION };
        one.run(&Serial, &probabilities, &[0.0; 12], &anchors, &mut out);
        assert_eq!((out[0], out[6], out[12]), (0.0, -1.0, -1.0));
    }

    #[test]
    fn results_do_not_depend_on_threads_and_no_number_panics() {
        let (n, batch) = (200, 3);
        let detection = MultiBoxDetection { anchors: n, ..DETECTION };
        let mut probabilities = random(batch * 3 * n, 1);
        probabilities[..3].copy_from_slice(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY]);
        let (locations, anchors) = (random(batch * n * 4, 2), random(n * 4, 3));
        let results = [&Serial as &dyn Par, &Reverse, &Threads(2)].map(|par| {
            let mut out = vec![0.0; batch * n * 6];
            detection.run(par, &probabilities, &locations, &anchors, &mut out);
            out.iter().map(|v: &f32| v.to_bits()).collect::<Vec<_>>()
        });
        assert!(results.iter().all(|r| *r == results[0]));
    }
}
