//! Training targets of single-shot detectors: Liu et al., "SSD: Single Shot MultiBox Detector"
//! (2016).

use super::boxes::shared_length;
use crate::element::{Element, Float};
use crate::error::{KernelError, check_len};
use crate::par::{Par, par_chunks_mut, par_chunks_mut2};
use crate::scratch::{Scratch, ScratchList};
use std::sync::{Mutex, PoisonError};

/// Objects for the anchors of single-shot detectors. Everything is computed in single precision, as
/// in MXNet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MultiBoxTarget {
    /// Anchors.
    pub anchors: usize,
    /// Objects that an image can have.
    pub labels: usize,
    /// Numbers of a label: class, four corners, and others that are not read.
    pub width: usize,
    /// Classes that are predicted, the background (number 0) among them.
    pub classes: usize,
    /// Intersection over union from which on an anchor shows an object; if not positive, only the
    /// best anchor of each object does.
    pub overlap: f32,
    /// Class of anchors that do not count.
    pub ignore: f32,
    /// Background anchors for each anchor with an object; all others if not positive.
    pub negatives: f32,
    /// Intersection over union from which on an anchor is not taken for background.
    pub negative_overlap: f32,
    /// Divisors of the encoded numbers.
    pub variances: [f32; 4],
}

/// The results of a [`MultiBoxTarget`].
#[derive(Debug)]
pub struct MultiBoxTargets<'a, T> {
    /// `[batch, anchors * 4]`: boxes of the objects relative to the anchors.
    pub locations: &'a mut [T],
    /// `[batch, anchors * 4]`: 1 where the location counts.
    pub mask: &'a mut [T],
    /// `[batch, anchors]`: the class of the object plus 1, 0 for the background.
    pub classes: &'a mut [T],
}

/// The error of a label that is there in part.
pub const WRONG_LABEL: &str = "a label of class -1 must have only -1 in its corners";
/// The error of a search for background that finds too little.
pub const FEW_BACKGROUNDS: &str = "there are fewer background anchors than negative_mining_ratio asks for";

/// The object of an anchor.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Shown {
    #[default]
    Ignored,
    Background,
    Object(usize),
}

/// The object that overlaps an anchor most.
#[derive(Clone, Copy)]
struct Best {
    overlap: f32,
    object: Option<usize>,
}

impl MultiBoxTarget {
    /// Targets out of `anchors` (`[anchors, 4]`), `labels` (`[batch, labels, width]`; those after
    /// the first of class -1 are not there) and `predictions` (`[batch, classes, anchors]`).
    ///
    /// # Errors
    /// If a label of class -1 has other numbers than -1, or there are too few background anchors.
    ///
    /// # Panics
    /// If the lengths contradict each other.
    pub fn run<T: Element>(
        &self,
        par: &dyn Par,
        anchors: &[T],
        labels: &[T],
        predictions: &[T],
        out: MultiBoxTargets<'_, T>,
    ) -> Result<(), KernelError> {
        let n = self.anchors;
        if out.classes.is_empty() {
            return Ok(());
        }
        let batch = out.classes.len() / n;
        check_len("the classes", out.classes.len(), batch * n);
        check_len("the locations", out.locations.len(), batch * n * 4);
        check_len("the mask", out.mask.len(), batch * n * 4);
        check_len("the anchors", anchors.len(), n * 4);
        check_len("the labels", labels.len(), batch * self.labels * self.width);
        check_len("the predictions", predictions.len(), batch * self.classes * n);
        let label = self.labels * self.width;
        let shown = self.assign_all(par, anchors, labels, predictions, batch)?;
        let shown_in = |image: usize| &shown[image * n..][..n];
        par_chunks_mut(par, out.classes, n, |i, out| {
            for (shown, out) in shown_in(i).iter().zip(out) {
                *out = match shown {
                    Shown::Ignored => T::from_f64(f64::from(self.ignore)),
                    Shown::Background => T::ZERO,
                    Shown::Object(object) => labels[i * label + object * self.width].plus(T::ONE),
                };
            }
        });
        par_chunks_mut2(par, out.locations, n * 4, out.mask, n * 4, |i, locations, mask| {
            self.encode_all(anchors, &labels[i * label..][..label], shown_in(i), locations, mask);
        });
        Ok(())
    }

    /// Finds what the anchors of each image show. The error is that of the first image with one.
    fn assign_all<T: Element>(
        &self,
        par: &dyn Par,
        anchors: &[T],
        labels: &[T],
        predictions: &[T],
        batch: usize,
    ) -> Result<Scratch<Shown>, KernelError> {
        let (n, label) = (self.anchors, self.labels * self.width);
        let mut shown = Scratch::filled(par, batch * n, Shown::Ignored);
        let first_error = Mutex::new((batch, Ok(())));
        par_chunks_mut(par, &mut shown, n, |i, shown| {
            let predictions = &predictions[i * self.classes * n..][..self.classes * n];
            let result = self.assign(par, anchors, &labels[i * label..][..label], predictions, shown);
            let mut first = first_error.lock().unwrap_or_else(PoisonError::into_inner);
            if result.is_err() && i < first.0 {
                *first = (i, result);
            }
        });
        first_error.into_inner().unwrap_or_else(PoisonError::into_inner).1?;
        Ok(shown)
    }

    /// Encodes the objects of an image's anchors; locations of anchors without an object are zero.
    fn encode_all<T: Element>(
        &self,
        anchors: &[T],
        labels: &[T],
        shown: &[Shown],
        locations: &mut [T],
        mask: &mut [T],
    ) {
        let boxes = anchors.chunks_exact(4).zip(locations.chunks_exact_mut(4)).zip(mask.chunks_exact_mut(4));
        for (((anchor, location), mask), shown) in boxes.zip(shown) {
            if let Shown::Object(object) = shown {
                mask.fill(T::ONE);
                self.encode(anchor, &labels[object * self.width + 1..][..4], location);
            } else {
                mask.fill(T::ZERO);
                location.fill(T::ZERO);
            }
        }
    }

    /// Assigns an object to every anchor of an image.
    fn assign<T: Element>(
        &self,
        par: &dyn Par,
        anchors: &[T],
        labels: &[T],
        predictions: &[T],
        shown: &mut [Shown],
    ) -> Result<(), KernelError> {
        let objects = self.objects(par, labels)?;
        if objects.is_empty() {
            return Ok(());
        }
        let best_of = |anchor: usize, taken: &[bool]| {
            let mut best = Best { overlap: -1.0, object: None };
            for (object, label) in objects.iter().enumerate().filter(|(object, _)| !taken[*object]) {
                let overlap = overlap(&anchors[anchor * 4..][..4], &label[1..5]);
                if overlap > best.overlap {
                    best = Best { overlap, object: Some(object) };
                }
            }
            best
        };
        let mut taken = Scratch::filled(par, objects.len(), false);
        let best = Scratch::collect(par, self.anchors, (0..self.anchors).map(|anchor| best_of(anchor, &taken)));
        self.match_best(&mut taken, &mut Scratch::copy_of(par, &best), best_of, shown);
        if self.overlap > 0.0 {
            for (shown, best) in shown.iter_mut().zip(&best) {
                if let (Shown::Ignored, Some(object), true) = (*shown, best.object, best.overlap > self.overlap) {
                    *shown = Shown::Object(object);
                }
            }
        }
        if self.negatives > 0.0 {
            return self.choose_background(par, &best, predictions, shown);
        }
        shown.iter_mut().filter(|shown| **shown == Shown::Ignored).for_each(|shown| *shown = Shown::Background);
        Ok(())
    }

    /// The labels before the first of class -1.
    fn objects<'a, T: Element>(
        &self,
        par: &'a dyn Par,
        labels: &'a [T],
    ) -> Result<ScratchList<'a, &'a [T]>, KernelError> {
        let none = |v: &T| v.to_f64() == -1.0;
        let mut objects = ScratchList::new(par);
        for label in labels.chunks_exact(self.width) {
            if !none(&label[0]) {
                objects.push(label);
            } else if label[1..5].iter().all(none) {
                break;
            } else {
                return Err(KernelError::Values(WRONG_LABEL));
            }
        }
        Ok(objects)
    }

    /// Gives every object the anchor that it overlaps most, the best pair first; of equal ones the
    /// first anchor, then the first object.
    fn match_best(
        &self,
        taken: &mut [bool],
        best: &mut [Best],
        best_of: impl Fn(usize, &[bool]) -> Best,
        shown: &mut [Shown],
    ) {
        for _ in 0..taken.len() {
            let mut found = (1e-6, None);
            for (anchor, best) in best.iter().enumerate() {
                if shown[anchor] == Shown::Ignored && best.overlap > found.0 {
                    found = (best.overlap, best.object.map(|object| (anchor, object)));
                }
            }
            let Some((anchor, object)) = found.1 else { return };
            shown[anchor] = Shown::Object(object);
            taken[object] = true;
            for (anchor, best) in best.iter_mut().enumerate() {
                if best.object == Some(object) {
                    *best = best_of(anchor, taken);
                }
            }
        }
    }

    /// Takes the anchors whose background is predicted worst; of equal ones the first.
    fn choose_background<T: Element>(
        &self,
        par: &dyn Par,
        best: &[Best],
        predictions: &[T],
        shown: &mut [Shown],
    ) -> Result<(), KernelError> {
        let positive = shown.iter().filter(|shown| **shown != Shown::Ignored).count();
        let wanted = ((positive as f32 * self.negatives) as usize).min(self.anchors - positive);
        if wanted == 0 {
            return Ok(());
        }
        let candidates = (0..self.anchors)
            .filter(|i| shown[*i] == Shown::Ignored && best[*i].overlap < self.negative_overlap)
            .map(|anchor| (self.background(predictions, anchor), anchor));
        let mut candidates = Scratch::collect(par, self.anchors, candidates);
        if candidates.len() < wanted {
            return Err(KernelError::Values(FEW_BACKGROUNDS));
        }
        let order = |a: &(T::Acc, usize), b: &(T::Acc, usize)| {
            a.0.partial_cmp(&b.0).unwrap_or_else(|| a.0.nan().cmp(&b.0.nan())).then(a.1.cmp(&b.1))
        };
        candidates.sort_unstable_by(order);
        candidates[..wanted].iter().for_each(|(_, anchor)| shown[*anchor] = Shown::Background);
        Ok(())
    }

    /// The predicted probability of the background.
    fn background<T: Element>(&self, predictions: &[T], anchor: usize) -> T::Acc {
        let prediction = |class: usize| predictions[class * self.anchors + anchor].acc();
        let first = prediction(0);
        let max = (1..self.classes).map(prediction).fold(first, |max, v| if v > max { v } else { max });
        let mut sum = <T::Acc as Element>::ZERO;
        (0..self.classes).for_each(|class| sum += Float::exp(prediction(class) - max));
        Float::exp(first - max) / sum
    }

    /// A box relative to an anchor.
    fn encode<T: Element>(&self, anchor: &[T], corners: &[T], out: &mut [T]) {
        let center = |b: &[T]| {
            let [left, top, right, bottom]: [f32; 4] = std::array::from_fn(|i| b[i].to_f64() as f32);
            [(left + right) * 0.5, (top + bottom) * 0.5, right - left, bottom - top]
        };
        let ([x, y, w, h], [gx, gy, gw, gh]) = (center(anchor), center(corners));
        let encoded = [(gx - x) / w, (gy - y) / h, (gw / w).ln(), (gh / h).ln()];
        for ((out, v), variance) in out.iter_mut().zip(encoded).zip(self.variances) {
            *out = T::from_f64(f64::from(v / variance));
        }
    }
}

/// Intersection over union of two boxes; zero where their union is.
fn overlap<T: Element>(a: &[T], b: &[T]) -> f32 {
    let corners = |b: &[T]| -> [T::Acc; 4] { std::array::from_fn(|i| b[i].acc()) };
    let ([l, t, r, d], [l2, t2, r2, d2]) = (corners(a), corners(b));
    let zero = <T::Acc as Element>::ZERO;
    let shared = shared_length([l, r], [l2, r2], zero) * shared_length([t, d], [t2, d2], zero);
    let union = (r - l) * (d - t) + (r2 - l2) * (d2 - t2) - shared;
    if union == zero { 0.0 } else { (shared / union).to_f64() as f32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads, assert_close, random};

    const TARGET: MultiBoxTarget = MultiBoxTarget {
        anchors: 4,
        labels: 2,
        width: 5,
        classes: 2,
        overlap: 0.5,
        ignore: -1.0,
        negatives: -1.0,
        negative_overlap: 0.5,
        variances: [0.1, 0.1, 0.2, 0.2],
    };
    const ANCHORS: [f32; 16] = [0.0, 0.0, 0.5, 0.5, 0.5, 0.5, 1.0, 1.0, 0.0, 0.0, 0.4, 0.5, 0.6, 0.0, 0.8, 0.1];

    fn run(target: MultiBoxTarget, labels: &[f32], predictions: &[f32]) -> Result<[Vec<f32>; 3], KernelError> {
        let n = target.anchors;
        let batch = labels.len() / target.labels / target.width;
        let mut out = [vec![9.0; batch * n * 4], vec![9.0; batch * n * 4], vec![9.0; batch * n]];
        let [locations, mask, classes] = &mut out;
        let targets = MultiBoxTargets { locations, mask, classes };
        let anchors = if n == 4 { ANCHORS.to_vec() } else { random(n * 4, 7) };
        target.run(&Serial, &anchors, labels, predictions, targets)?;
        Ok(out)
    }

    #[test]
    fn objects_go_to_the_anchors_that_they_overlap() {
        let labels = [2.0, 0.0, 0.0, 0.5, 0.5, -1.0, -1.0, -1.0, -1.0, -1.0];
        let [locations, mask, classes] = run(TARGET, &labels, &[0.0; 8]).unwrap();
        assert_eq!(classes, [3.0, 0.0, 3.0, 0.0]);
        assert_eq!(mask[..8], [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(locations[..8], [0.0; 8]);
        let want = [0.05 / 0.4 / 0.1, 0.0, (0.5f64 / 0.4).ln() / 0.2, 0.0];
        assert_close(&locations[8..12], &want, 1e-5);
        // Without a threshold only the best anchor shows the object.
        let [_, _, classes] = run(MultiBoxTarget { overlap: 0.0, ..TARGET }, &labels, &[0.0; 8]).unwrap();
        assert_eq!(classes, [3.0, 0.0, 0.0, 0.0]);
        let [_, mask, classes] = run(MultiBoxTarget { ignore: 7.0, ..TARGET }, &[-1.0; 10], &[0.0; 8]).unwrap();
        assert_eq!((classes, mask), (vec![7.0; 4], vec![0.0; 16]));
    }

    #[test]
    fn background_is_where_it_is_predicted_worst() {
        let labels = [2.0, 0.0, 0.0, 0.5, 0.5, -1.0, -1.0, -1.0, -1.0, -1.0];
        let mining = MultiBoxTarget { negatives: 0.5, ..TARGET };
        let [_, _, classes] = run(mining, &labels, &[0.0, 3.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]).unwrap();
        assert_eq!(classes, [3.0, -1.0, 3.0, 0.0]);
        let strict = MultiBoxTarget { negative_overlap: 0.0, ..mining };
        assert!(run(strict, &labels, &[0.0; 8]).is_err());
        assert!(run(TARGET, &[-1.0, 0.0, -1.0, -1.0, -1.0, 0.0, 0.0, 0.0, 1.0, 1.0], &[0.0; 8]).is_err());
    }

    #[test]
    fn results_do_not_depend_on_threads_and_no_number_panics() {
        let target =
            MultiBoxTarget { anchors: 50, labels: 6, width: 6, negatives: 0.2, negative_overlap: 2.0, ..TARGET };
        let (mut labels, predictions, anchors) = (random(3 * 36, 1), random(300, 2), random(200, 3));
        labels[..3].copy_from_slice(&[1.0, f32::NAN, f32::INFINITY]);
        let results = [&Serial as &dyn Par, &Reverse, &Threads(2)].map(|par| {
            let mut out = [vec![9.0; 600], vec![9.0; 600], vec![9.0; 150]];
            let [locations, mask, classes] = &mut out;
            target.run(par, &anchors, &labels, &predictions, MultiBoxTargets { locations, mask, classes }).unwrap();
            out.map(|v| v.iter().map(|v: &f32| v.to_bits()).collect::<Vec<_>>())
        });
        assert!(results.iter().all(|r| *r == results[0]));
    }
}
