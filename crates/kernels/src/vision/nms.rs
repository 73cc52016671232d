//! Non-maximum suppression: of boxes that overlap, the one with the highest score stays.

use super::boxes::{BoxFormat, by_score};
use crate::element::{Element, Float};
use crate::error::check_len;
use crate::par::{Par, par_chunks_mut_scratch};
use crate::vectorize::vectorized;

/// The condition under which a better box suppresses another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SuppressRule<A> {
    /// Intersection over union from which on boxes count as one.
    pub threshold: A,
    /// Whether the threshold itself suppresses.
    pub inclusive: bool,
    /// 1 where the ends of boxes are pixels that belong to them, else 0.
    pub extra: A,
}

/// Sorted boxes, one array for each of their numbers.
pub(crate) struct SortedBoxes<'a, A> {
    pub left: &'a mut [A],
    pub top: &'a mut [A],
    pub right: &'a mut [A],
    pub bottom: &'a mut [A],
    pub area: &'a mut [A],
    /// Boxes of different classes do not suppress each other.
    pub class: &'a mut [A],
    /// 1 for boxes that stay, 0 for suppressed ones.
    pub stays: &'a mut [A],
}

impl<'a, A: Float> SortedBoxes<'a, A> {
    /// Numbers that are needed for each box.
    pub const NUMBERS: usize = 7;

    /// `count` boxes in memory for at least [`NUMBERS`](Self::NUMBERS) times as many numbers.
    pub fn new(memory: &'a mut [A], count: usize) -> Self {
        let mut parts = memory[..Self::NUMBERS * count].chunks_exact_mut(count.max(1));
        let mut next = || parts.next().unwrap_or_default();
        let [left, top, right, bottom, area, class, stays] = std::array::from_fn(|_| next());
        SortedBoxes { left, top, right, bottom, area, class, stays }
    }

    /// Writes box number `i`: left, top, right, bottom, area and class.
    pub fn set(&mut self, i: usize, [left, top, right, bottom, area]: [A; 5], class: A) {
        (self.left[i], self.top[i], self.right[i], self.bottom[i]) = (left, top, right, bottom);
        (self.area[i], self.class[i], self.stays[i]) = (area, class, A::ONE);
    }

    /// Suppresses what overlaps with a better box; ends when `limit` boxes stay. Their number.
    pub fn suppress(&mut self, rule: SuppressRule<A>, limit: usize) -> usize {
        let mut kept = 0;
        for i in 0..self.stays.len() {
            if self.stays[i] == A::ZERO {
                continue;
            }
            kept += 1;
            if kept == limit {
                // What follows was not compared with all better boxes.
                self.stays[i + 1..].fill(A::ZERO);
                break;
            }
            let (left, top) = ((self.left[i], &self.left[i + 1..]), (self.top[i], &self.top[i + 1..]));
            let (right, bottom) = ((self.right[i], &self.right[i + 1..]), (self.bottom[i], &self.bottom[i + 1..]));
            let (area, class) = ((self.area[i], &self.area[i + 1..]), (self.class[i], &self.class[i + 1..]));
            suppress_by(rule, left, top, right, bottom, area, class, &mut self.stays[i + 1..]);
        }
        kept
    }
}

vectorized! {
    fn suppress_by[A: Float](
        rule: SuppressRule<A>,
        left: (A, &[A]),
        top: (A, &[A]),
        right: (A, &[A]),
        bottom: (A, &[A]),
        area: (A, &[A]),
        class: (A, &[A]),
        stays: &mut [A],
    ) {
        let n = stays.len();
        let (lefts, tops, rights, bottoms) = (&left.1[..n], &top.1[..n], &right.1[..n], &bottom.1[..n]);
        let (areas, classes) = (&area.1[..n], &class.1[..n]);
        for i in 0..n {
            let start_x = if left.0 > lefts[i] { left.0 } else { lefts[i] };
            let end_x = if right.0 < rights[i] { right.0 } else { rights[i] };
            let start_y = if top.0 > tops[i] { top.0 } else { tops[i] };
            let end_y = if bottom.0 < bottoms[i] { bottom.0 } else { bottoms[i] };
            let (w, h) = (end_x - start_x + rule.extra, end_y - start_y + rule.extra);
            let w = if w > A::ZERO { w } else { A::ZERO };
            let h = if h > A::ZERO { h } else { A::ZERO };
            let shared = w * h;
            let overlap = shared / (area.0 + areas[i] - shared);
            let over = (overlap > rule.threshold) | (rule.inclusive & (overlap == rule.threshold));
            let gone = over & (class.0 == classes[i]);
            stays[i] = if gone { A::ZERO } else { stays[i] };
        }
    }
}

/// Suppression of boxes in rows of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoxNms {
    /// Numbers in a row.
    pub width: usize,
    /// Rows that belong together.
    pub count: usize,
    /// Intersection over union above which the lower score goes.
    pub overlap: f64,
    /// Boxes whose score is not above it go.
    pub valid: f64,
    /// How many of the best boxes take part; the others go.
    pub limit: Option<usize>,
    /// Position of the four coordinates.
    pub coordinates: usize,
    /// Position of the score.
    pub score: usize,
    /// Position of the class, if there is one.
    pub class: Option<usize>,
    /// Boxes of this class go.
    pub background: f64,
    /// Whether boxes of different classes suppress each other.
    pub across_classes: bool,
    /// Format of the coordinates.
    pub from: BoxFormat,
    /// Format that they get.
    pub to: BoxFormat,
}

impl BoxNms {
    /// Writes the rows that stay, best score first and equal scores in their order; the rest is
    /// filled with -1.
    ///
    /// # Panics
    /// If the lengths contradict each other, or a position is not in a row.
    pub fn run<T: Element>(&self, par: &dyn Par, x: &[T], out: &mut [T]) {
        check_len("the output", out.len(), x.len());
        if out.is_empty() {
            return;
        }
        let limit = self.limit.unwrap_or(self.count).min(self.count);
        if limit == 0 {
            return out.copy_from_slice(x);
        }
        let size = self.width * self.count;
        let numbers = SortedBoxes::<T::Acc>::NUMBERS * limit * size_of::<T::Acc>();
        let bytes = numbers + self.count * size_of::<u32>();
        par_chunks_mut_scratch(par, out, size, bytes, |i, out, scratch| {
            let (numbers, order) = scratch[..bytes].split_at_mut(numbers);
            let order = self.order(&x[i * size..][..size], bytemuck::cast_slice_mut(order), limit);
            self.suppress(&x[i * size..][..size], order, bytemuck::cast_slice_mut(numbers), out);
        });
    }

    fn row<'a, T>(&self, x: &'a [T], i: u32) -> &'a [T] {
        &x[i as usize * self.width..][..self.width]
    }

    /// Valid boxes, best first, at most `limit`.
    fn order<'a, T: Element>(&self, x: &[T], order: &'a mut [u32], limit: usize) -> &'a [u32] {
        // In the precision of the elements, as MXNet compares.
        let (valid, background) = (T::from_f64(self.valid), T::from_f64(self.background));
        let mut count = 0;
        for (i, row) in (0u32..).zip(x.chunks_exact(self.width)) {
            if row[self.score] > valid && self.class.is_none_or(|class| row[class] != background) {
                order[count] = i;
                count += 1;
            }
        }
        let order = &mut order[..count];
        let score = |i: u32| self.row(x, i)[self.score].to_f64();
        let compare = |a: &u32, b: &u32| by_score(score(*a), score(*b)).then(a.cmp(b));
        if limit < count {
            order.select_nth_unstable_by(limit, compare);
        }
        let order = &mut order[..limit.min(count)];
        order.sort_unstable_by(compare);
        order
    }

    fn suppress<T: Element>(&self, x: &[T], order: &[u32], numbers: &mut [T::Acc], out: &mut [T]) {
        let zero = <T::Acc as Element>::ZERO;
        let mut boxes = SortedBoxes::new(numbers, order.len());
        for (i, &row) in order.iter().enumerate() {
            let row = self.row(x, row);
            let class = self.class.filter(|_| !self.across_classes);
            let class = class.map_or(zero, |class| T::Acc::from_f64(row[class].to_f64().trunc()));
            boxes.set(i, self.from.read(&row[self.coordinates..][..4]), class);
        }
        let rule = SuppressRule { threshold: T::Acc::from_f64(self.overlap), inclusive: false, extra: zero };
        boxes.suppress(rule, usize::MAX);
        let stays = order.iter().zip(boxes.stays.iter()).filter(|(_, stays)| **stays != zero);
        let mut rows = out.chunks_exact_mut(self.width);
        for ((&i, _), out) in stays.zip(&mut rows) {
            out.copy_from_slice(self.row(x, i));
            self.convert(&mut out[self.coordinates..][..4]);
        }
        rows.for_each(|row| row.fill(T::from_f64(-1.0)));
    }

    /// Changes the format; boxes whose first number is negative do not change, as in MXNet.
    fn convert<T: Element>(&self, b: &mut [T]) {
        if self.from == self.to || b[0] < T::ZERO {
            return;
        }
        let two = T::Acc::from_i64(2);
        let [a1, a2, a3, a4] = [b[0].acc(), b[1].acc(), b[2].acc(), b[3].acc()];
        let converted = match self.to {
            BoxFormat::Center => [(a1 + a3) / two, (a2 + a4) / two, a3 - a1, a4 - a2],
            BoxFormat::Corner => [a1 - a3 / two, a2 - a4 / two, a1 + a3 / two, a2 + a4 / two],
        };
        b.iter_mut().zip(converted).for_each(|(b, v)| *b = T::from_acc(v));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads, random};

    const NMS: BoxNms = BoxNms {
        width: 6,
        count: 4,
        overlap: 0.5,
        valid: 0.0,
        limit: None,
        coordinates: 2,
        score: 1,
        class: Some(0),
        background: -1.0,
        across_classes: false,
        from: BoxFormat::Corner,
        to: BoxFormat::Corner,
    };

    #[rustfmt::skip]
    const BOXES: [f32; 24] = [
        0.0, 0.5, 0.1, 0.1, 0.2, 0.2,
        1.0, 0.4, 0.1, 0.1, 0.2, 0.2,
        0.0, 0.3, 0.1, 0.1, 0.14, 0.14,
        2.0, 0.6, 0.5, 0.5, 0.7, 0.8,
    ];

    #[test]
    fn overlapping_boxes_of_a_class_leave_the_best() {
        let mut out = [0.0; 24];
        NMS.run(&Serial, &BOXES, &mut out);
        assert_eq!([0, 6, 12, 18].map(|i| out[i + 1]), [0.6, 0.5, 0.4, 0.3]);
        BoxNms { across_classes: true, ..NMS }.run(&Serial, &BOXES, &mut out);
        assert_eq!([0, 6, 12, 18].map(|i| out[i + 1]), [0.6, 0.5, 0.3, -1.0]);
        BoxNms { limit: Some(1), to: BoxFormat::Center, ..NMS }.run(&Serial, &BOXES, &mut out);
        assert!(out[..6].iter().zip([2.0, 0.6, 0.6, 0.65, 0.2, 0.3]).all(|(a, b)| (a - b).abs() < 1e-6));
        assert_eq!(out[6..], [-1.0; 18]);
        BoxNms { valid: 0.45, background: 2.0, ..NMS }.run(&Serial, &BOXES, &mut out);
        assert_eq!([0, 6].map(|i| out[i + 1]), [0.5, -1.0]);
        BoxNms { limit: Some(0), ..NMS }.run(&Serial, &BOXES, &mut out);
        assert_eq!(out, BOXES);
    }

    /// One box at a time, in double precision.
    fn reference(x: &[f32], overlap: f64) -> Vec<usize> {
        let rows: Vec<&[f32]> = x.chunks(6).collect();
        let mut order: Vec<usize> = (0..rows.len()).filter(|i| rows[*i][1] > 0.0).collect();
        order.sort_by(|a, b| rows[*b][1].total_cmp(&rows[*a][1]));
        let mut kept: Vec<usize> = Vec::new();
        for i in order {
            let iou = |a: &[f32], b: &[f32]| {
                let w = (a[4].min(b[4]) - a[2].max(b[2])).max(0.0);
                let h = (a[5].min(b[5]) - a[3].max(b[3])).max(0.0);
                let area = |b: &[f32]| f64::from((b[4] - b[2]) * (b[5] - b[3]));
                let shared = f64::from(w * h);
                shared / (area(a) + area(b) - shared)
            };
            if kept.iter().all(|k| rows[*k][0] != rows[i][0] || iou(rows[*k], rows[i]) <= overlap) {
                kept.push(i);
            }
        }
        kept
    }

    #[test]
    fn many_boxes_agree_with_a_reference_on_any_number_of_threads() {
        let count = 700;
        let x: Vec<f32> = random(2 * count * 6, 9)
            .chunks(6)
            .enumerate()
            .flat_map(|(i, v)| {
                let [x, y] = [v[2], v[3]];
                [(i % 3) as f32, v[1], x, y, x + 0.05 + v[4].abs() * 0.5, y + 0.05 + v[5].abs() * 0.5]
            })
            .collect();
        let results = [&Serial as &dyn Par, &Reverse, &Threads(2)].map(|par| {
            let mut out = vec![0.0; x.len()];
            BoxNms { count, overlap: 0.3, ..NMS }.run(par, &x, &mut out);
            out
        });
        assert!(results.iter().all(|r| *r == results[0]));
        for (x, out) in x.chunks(count * 6).zip(results[0].chunks(count * 6)) {
            let want = reference(x, 0.3);
            for (out, i) in out.chunks(6).zip(&want) {
                assert_eq!(out, &x[i * 6..][..6]);
            }
            assert!(out[want.len() * 6..].iter().all(|v| *v == -1.0));
        }
    }

    #[test]
    fn no_number_panics() {
        let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, f32::MAX, -0.0];
        let x: Vec<f32> = (0..600).map(|i| special[(i * 7 + i / 6) % 6]).collect();
        let mut out = vec![0.0; 600];
        BoxNms { count: 100, ..NMS }.run(&Serial, &x, &mut out);
        BoxNms { count: 100, from: BoxFormat::Center, limit: Some(7), ..NMS }.run(&Serial, &x, &mut out);
    }
}
