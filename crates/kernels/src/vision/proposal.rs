//! Region proposals: Ren et al., "Faster R-CNN" (2015).

use super::boxes::by_score;
use super::nms::{SortedBoxes, SuppressRule};
use crate::error::check_len;
use crate::par::{Par, par_chunks_mut2_scratch};

/// How proposals are made of a feature map. All in single precision, as in MXNet.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposals {
    /// Height and width of the feature map.
    pub size: [usize; 2],
    /// Pixels of the image between two of the feature map.
    pub stride: usize,
    /// Sizes of anchors in strides.
    pub scales: Vec<f32>,
    /// Ratios of height and width of anchors.
    pub ratios: Vec<f32>,
    /// How many of the best boxes take part in suppression.
    pub before: usize,
    /// How many proposals there are.
    pub after: usize,
    /// Intersection over union above which the lower score goes.
    pub overlap: f32,
    /// Sides of the image that are less, times the scale of the image, cost a box its score.
    pub least: f32,
    /// Whether deltas are those of corners and not of centers and logarithms of sides.
    pub corner_deltas: bool,
}

/// Numbers of a proposal: left, top, right, bottom, score.
const WIDTH: usize = 5;

impl Proposals {
    /// Anchors at every pixel.
    pub fn anchors(&self) -> usize {
        self.scales.len() * self.ratios.len()
    }

    /// Boxes of an image.
    pub fn boxes(&self) -> usize {
        self.anchors() * self.size[0] * self.size[1]
    }

    /// Boxes of an image that take part in suppression.
    pub fn sorted(&self) -> usize {
        self.before.min(self.boxes())
    }

    /// Describes an image of `[height, width]` pixels that a feature map of `size` does not cover.
    pub fn too_large(image: [f32; 2], size: [usize; 2], stride: usize) -> String {
        let ([rows, columns], [height, width]) = (image, size);
        let stride = stride as f32;
        format!(
            "im_info says {rows} x {columns} pixels, but {height} x {width} pixels of cls_prob with \
             feature_stride={stride} cover less"
        )
    }

    /// Writes `[batch * after, 5]` (image, left, top, right, bottom) and the scores, `[batch *
    /// after]`; the first ones again where fewer remain. `scores` has shape `[batch, 2 * anchors,
    /// height, width]` (background first), `deltas` `[batch, 4 * anchors, height, width]`, `images`
    /// `[batch, 3]`: height, width, scale.
    ///
    /// # Panics
    /// If the lengths contradict each other, or there is no box.
    pub fn run(
        &self,
        par: &dyn Par,
        scores: &[f32],
        deltas: &[f32],
        images: &[f32],
        out: &mut [f32],
        out_scores: &mut [f32],
    ) {
        let (boxes, batch) = (self.boxes(), images.len() / 3);
        check_len("the scores", scores.len(), batch * 2 * boxes);
        check_len("the deltas", deltas.len(), batch * 4 * boxes);
        check_len("the output", out.len(), batch * self.after * WIDTH);
        check_len("the scores of the output", out_scores.len(), batch * self.after);
        assert!(boxes > 0, "there is no anchor to propose");
        let numbers = (WIDTH + 1) * boxes + SortedBoxes::<f32>::NUMBERS * self.sorted();
        let bytes = numbers * size_of::<f32>();
        let (out_len, scores_len) = (self.after * WIDTH, self.after);
        par_chunks_mut2_scratch(par, out, out_len, out_scores, scores_len, bytes, |i, out, out_scores, scratch| {
            let memory: &mut [f32] = bytemuck::cast_slice_mut(&mut scratch[..bytes]);
            let (proposals, rest) = memory.split_at_mut(WIDTH * boxes);
            let (order, sorted) = rest.split_at_mut(boxes);
            let scores = &scores[(2 * i + 1) * boxes..][..boxes];
            self.enumerate(scores, &deltas[i * 4 * boxes..][..4 * boxes], &images[i * 3..][..3], proposals);
            let chosen = self.choose(proposals, bytemuck::cast_slice_mut(order), sorted);
            for (j, (out, score)) in out.chunks_exact_mut(WIDTH).zip(out_scores).enumerate() {
                let row = &proposals[chosen[j % chosen.len()] as usize * WIDTH..][..WIDTH];
                out[0] = i as f32;
                out[1..].copy_from_slice(&row[..4]);
                *score = row[4];
            }
        });
    }

    /// The anchors of a pixel at the origin.
    pub fn base(&self) -> Vec<[f32; 4]> {
        let side = self.stride as f32;
        let center = 0.5 * (side - 1.0);
        let anchor = |ratio: f32, scale: f32| {
            let w = ((side * side / ratio).floor().sqrt() + 0.5).floor() * scale;
            let h = (w / scale * ratio + 0.5).floor() * scale;
            let [x, y] = [0.5 * (w - 1.0), 0.5 * (h - 1.0)];
            [center - x, center - y, center + x, center + y]
        };
        self.ratios.iter().flat_map(|ratio| self.scales.iter().map(|scale| anchor(*ratio, *scale))).collect()
    }

    /// Boxes of all anchors with their scores; boxes of the padding and small ones have the score
    /// -1.
    fn enumerate(&self, scores: &[f32], deltas: &[f32], image: &[f32], out: &mut [f32]) {
        let ([height, width], base) = (self.size, self.base());
        let plane = height * width;
        let stride = self.stride as f32;
        let real = [(image[0] / stride) as usize, (image[1] / stride) as usize];
        let least = self.least * image[2];
        for (at, out) in out.chunks_exact_mut(WIDTH).enumerate() {
            let (anchor, pixel) = (at % base.len(), at / base.len());
            let (row, column) = (pixel / width, pixel % width);
            let (x, y) = ((column * self.stride) as f32, (row * self.stride) as f32);
            let [left, top, right, bottom] = base[anchor];
            let delta: [f32; 4] = std::array::from_fn(|j| deltas[(anchor * 4 + j) * plane + pixel]);
            let moved = self.moved([left + x, top + y, right + x, bottom + y], delta);
            let limit = [image[1] - 1.0, image[0] - 1.0];
            for (j, (out, v)) in out.iter_mut().zip(moved).enumerate() {
                *out = v.min(limit[j % 2]).max(0.0);
            }
            out[4] = scores[anchor * plane + pixel];
            if row >= real[0] || column >= real[1] {
                out[4] = -1.0;
            }
            if out[2] - out[0] + 1.0 < least || out[3] - out[1] + 1.0 < least {
                for (out, sign) in out.iter_mut().zip([-1.0, -1.0, 1.0, 1.0]) {
                    *out += sign * least / 2.0;
                }
                out[4] = -1.0;
            }
        }
    }

    /// A box moved by deltas. Halves are taken in double precision, as in MXNet.
    fn moved(&self, b: [f32; 4], delta: [f32; 4]) -> [f32; 4] {
        if self.corner_deltas {
            return std::array::from_fn(|i| b[i] + delta[i]);
        }
        let axis = |start: f32, end: f32, shift: f32, growth: f32| {
            let size = end - start + 1.0;
            let center = (f64::from(start) + 0.5 * (f64::from(size) - 1.0)) as f32;
            let (center, size) = (shift * size + center, growth.exp() * size);
            let half = 0.5 * (f64::from(size) - 1.0);
            [(f64::from(center) - half) as f32, (f64::from(center) + half) as f32]
        };
        let [left, right] = axis(b[0], b[2], delta[0], delta[2]);
        let [top, bottom] = axis(b[1], b[3], delta[1], delta[3]);
        [left, top, right, bottom]
    }

    /// The boxes that stay, best first.
    fn choose<'a>(&self, proposals: &[f32], order: &'a mut [u32], numbers: &mut [f32]) -> &'a [u32] {
        order.iter_mut().zip(0..).for_each(|(order, i)| *order = i);
        let row = |i: u32| &proposals[i as usize * WIDTH..][..WIDTH];
        let score = |i: u32| f64::from(row(i)[4]);
        let compare = |a: &u32, b: &u32| by_score(score(*a), score(*b)).then(a.cmp(b));
        let count = self.sorted();
        if count < order.len() {
            order.select_nth_unstable_by(count, compare);
        }
        let order = &mut order[..count];
        order.sort_unstable_by(compare);
        let mut boxes = SortedBoxes::new(numbers, count);
        for (i, &from) in order.iter().enumerate() {
            let [left, top, right, bottom] = std::array::from_fn(|j| row(from)[j]);
            let area = (right - left + 1.0) * (bottom - top + 1.0);
            boxes.set(i, [left, top, right, bottom, area], 0.0);
        }
        let rule = SuppressRule { threshold: self.overlap, inclusive: false, extra: 1.0 };
        let kept = boxes.suppress(rule, self.after.min(count));
        let mut next = 0;
        for i in 0..count {
            if boxes.stays[i] != 0.0 {
                order[next] = order[i];
                next += 1;
            }
        }
        &order[..kept]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads, assert_close, random};

    fn proposals() -> Proposals {
        Proposals {
            size: [3, 4],
            stride: 16,
            scales: vec![1.0, 2.0],
            ratios: vec![1.0],
            before: 100,
            after: 4,
            overlap: 0.7,
            least: 1.0,
            corner_deltas: false,
        }
    }

    #[test]
    fn without_deltas_the_best_anchors_are_proposed() {
        let mut scores = vec![0.0; 2 * 24];
        // The small anchor of row 1, column 2, and the large one of row 0, column 1.
        scores[24 + 6] = 0.9;
        scores[24 + 12 + 1] = 0.8;
        let (mut out, mut best) = (vec![0.0; 20], vec![0.0; 4]);
        proposals().run(&Serial, &scores, &[0.0; 96], &[48.0, 64.0, 1.0], &mut out, &mut best);
        assert_close(&out[..5], &[0.0, 32.0, 16.0, 47.0, 31.0], 1e-6);
        assert_close(&out[5..10], &[0.0, 8.0, 0.0, 39.0, 23.0], 1e-6);
        assert_eq!(best, [0.9, 0.8, 0.0, 0.0]);
    }

    #[test]
    fn fewer_proposals_are_repeated_and_the_padding_has_no_score() {
        let how = Proposals { before: 2, after: 3, overlap: 0.0, scales: vec![8.0], ..proposals() };
        let (mut out, mut best) = (vec![0.0; 15], vec![0.0; 3]);
        let scores: Vec<f32> = (0..24).map(|v| v as f32).collect();
        how.run(&Serial, &scores, &[0.0; 48], &[32.0, 64.0, 1.0], &mut out, &mut best);
        // Row 2 is padding: the best is the last pixel of row 1, which covers the image and
        // suppresses the other one.
        assert_eq!(best, [19.0; 3]);
        assert_eq!(out[5..10], out[..5]);
    }

    #[test]
    fn results_do_not_depend_on_threads_and_no_number_panics() {
        let mut scores = random(3 * 48, 1);
        scores[24..27].copy_from_slice(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY]);
        let deltas = random(3 * 96, 2);
        let images = [48.0, 64.0, 1.0, 20.0, 64.0, 0.5, f32::NAN, 1e30, -1.0];
        for corner_deltas in [false, true] {
            let results = [&Serial as &dyn Par, &Reverse, &Threads(2)].map(|par| {
                let (mut out, mut best) = (vec![0.0; 60], vec![0.0; 12]);
                let how = Proposals { corner_deltas, ..proposals() };
                how.run(par, &scores, &deltas, &images, &mut out, &mut best);
                out.iter().chain(&best).map(|v| v.to_bits()).collect::<Vec<_>>()
            });
            assert!(results.iter().all(|r| *r == results[0]));
        }
    }
}
