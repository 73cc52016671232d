//! Boxes: overlap, encoding relative to anchors, matching.

use crate::element::{Element, Float};
use crate::error::check_len;
use crate::par::{Par, chunk_by_work, chunk_elems, par_chunks_mut, par_chunks_mut2, par_chunks_mut2_scratch};
use std::cmp::Ordering;

/// The meaning of the four numbers of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoxFormat {
    /// Left, top, right, bottom.
    Corner,
    /// Center (x, y), width, height.
    Center,
}

impl BoxFormat {
    /// Left, top, right, bottom and area of a box. The area of a box with a negative side is zero.
    #[inline(always)]
    pub(crate) fn read<T: Element>(self, b: &[T]) -> [T::Acc; 5] {
        let [a1, a2, a3, a4] = [b[0].acc(), b[1].acc(), b[2].acc(), b[3].acc()];
        let zero = <T::Acc as Element>::ZERO;
        let area = |width: T::Acc, height: T::Acc| if width < zero || height < zero { zero } else { width * height };
        match self {
            BoxFormat::Corner => [a1, a2, a3, a4, area(a3 - a1, a4 - a2)],
            BoxFormat::Center => {
                let two = T::Acc::from_i64(2);
                let (w, h) = (a3 / two, a4 / two);
                [a1 - w, a2 - h, a1 + w, a2 + h, area(a3, a4)]
            }
        }
    }
}

/// The length that two ranges share, and at least zero. `extra` is 1 where ends are pixels that
/// belong to the range.
#[inline(always)]
pub(crate) fn shared_length<A: Float>(a: [A; 2], b: [A; 2], extra: A) -> A {
    let start = if a[0] > b[0] { a[0] } else { b[0] };
    let end = if a[1] < b[1] { a[1] } else { b[1] };
    let length = end - start + extra;
    if length > A::ZERO { length } else { A::ZERO }
}

/// Intersection over union of every box of `a` with every box of `b`, as rows of `[a, b]`; zero
/// where boxes share nothing.
///
/// # Panics
/// If the lengths are no boxes or contradict each other.
pub fn overlaps<T: Element>(par: &dyn Par, format: BoxFormat, a: &[T], b: &[T], out: &mut [T]) {
    let (rows, columns) = (a.len() / 4, b.len() / 4);
    check_len("the first boxes", a.len(), rows * 4);
    check_len("the second boxes", b.len(), columns * 4);
    check_len("the output", out.len(), rows * columns);
    if out.is_empty() {
        return;
    }
    let (zero, band) = (<T::Acc as Element>::ZERO, chunk_by_work(8 * columns));
    par_chunks_mut(par, out, band * columns, |chunk, out| {
        for (i, out) in out.chunks_exact_mut(columns).enumerate() {
            let [l, t, r, d, area] = format.read(&a[(chunk * band + i) * 4..][..4]);
            for (out, b) in out.iter_mut().zip(b.chunks_exact(4)) {
                let [l2, t2, r2, d2, area2] = format.read(b);
                let shared = shared_length([l, r], [l2, r2], zero) * shared_length([t, d], [t2, d2], zero);
                *out = if shared <= zero { T::ZERO } else { T::from_acc(shared / (area + area2 - shared)) };
            }
        }
    });
}

/// How boxes are encoded relative to anchors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoxDecoding {
    /// Format of the anchors.
    pub format: BoxFormat,
    /// Factors of encoded numbers.
    pub scale: [f64; 4],
    /// Limit of the logarithms of the sides, if there is one.
    pub clip: Option<f64>,
}

/// Boxes (left, top, right, bottom) out of `x`, of shape `[batch, n, 4]`, which are relative to the
/// `n` anchors.
///
/// # Panics
/// If the lengths contradict each other.
pub fn decode_boxes<T: Element>(par: &dyn Par, how: BoxDecoding, x: &[T], anchors: &[T], out: &mut [T]) {
    check_len("the output", out.len(), x.len());
    if out.is_empty() {
        return;
    }
    assert!(!anchors.is_empty() && x.len().is_multiple_of(anchors.len()), "boxes and anchors differ in number");
    let half = T::Acc::from_f64(0.5);
    let scale = how.scale.map(T::Acc::from_f64);
    let clip = how.clip.map(T::Acc::from_f64);
    let chunk_len = chunk_elems::<T>() / 8;
    par_chunks_mut(par, out, chunk_len, |chunk, out| {
        let first = chunk * chunk_len;
        for (i, out) in out.chunks_exact_mut(4).enumerate() {
            let at = first + i * 4;
            let [mut ax, mut ay, mut aw, mut ah] = std::array::from_fn(|j| anchors[at % anchors.len() + j].acc());
            if how.format == BoxFormat::Corner {
                (aw, ah) = (aw - ax, ah - ay);
                (ax, ay) = (ax + aw * half, ay + ah * half);
            }
            let [x, y, w, h]: [T::Acc; 4] = std::array::from_fn(|j| x[at + j].acc() * scale[j]);
            let clipped = |v: T::Acc| clip.map_or(v, |clip| if v < clip { v } else { clip });
            let (cx, cy) = (x * aw + ax, y * ah + ay);
            let (w, h) = (Float::exp(clipped(w)) * aw * half, Float::exp(clipped(h)) * ah * half);
            for (out, v) in out.iter_mut().zip([cx - w, cy - h, cx + w, cy + h]) {
                *out = T::from_acc(v);
            }
        }
    });
}

/// The inputs of [`encode_boxes`] for `batch` images with `n` anchors and `m` reference boxes each.
#[derive(Clone, Copy, Debug)]
pub struct BoxEncoding<'a, T> {
    /// `[batch, n]`: anchors with more than 0.5 are encoded.
    pub samples: &'a [T],
    /// `[batch, n]`: which reference box belongs to the anchor.
    pub matches: &'a [T],
    /// `[batch, n, 4]`, corners.
    pub anchors: &'a [T],
    /// `[batch, m, 4]`, corners.
    pub references: &'a [T],
    /// Subtracted from the four encoded numbers.
    pub means: &'a [T],
    /// Divisors of the differences.
    pub deviations: &'a [T],
}

/// Center and sides of a box that is given by its corners.
#[inline(always)]
fn center_and_sides<T: Element>(corners: &[T]) -> [T::Acc; 4] {
    let half = T::Acc::from_f64(0.5);
    let [x, y, right, bottom]: [T::Acc; 4] = std::array::from_fn(|j| corners[j].acc());
    let (w, h) = (right - x, bottom - y);
    [x + w * half, y + h * half, w, h]
}

/// Encodes reference boxes relative to anchors: `targets`, and `masks` (1 for encoded anchors),
/// both `[batch, n, 4]`. An anchor whose match is no reference box counts as not sampled.
///
/// # Panics
/// If the lengths contradict each other.
pub fn encode_boxes<T: Element>(
    par: &dyn Par,
    inputs: BoxEncoding<'_, T>,
    [batch, n, m]: [usize; 3],
    targets: &mut [T],
    masks: &mut [T],
) {
    check_len("the samples", inputs.samples.len(), batch * n);
    check_len("the matches", inputs.matches.len(), batch * n);
    check_len("the anchors", inputs.anchors.len(), batch * n * 4);
    check_len("the reference boxes", inputs.references.len(), batch * m * 4);
    check_len("the targets", targets.len(), batch * n * 4);
    check_len("the masks", masks.len(), batch * n * 4);
    check_len("means and deviations", inputs.means.len() + inputs.deviations.len(), 8);
    let chunk_len = chunk_elems::<T>() / 8;
    par_chunks_mut2(par, targets, chunk_len, masks, chunk_len, |chunk, targets, masks| {
        let pairs = targets.chunks_exact_mut(4).zip(masks.chunks_exact_mut(4));
        for (i, (target, mask)) in pairs.enumerate() {
            let anchor = chunk * chunk_len / 4 + i;
            let reference = usize::try_from(inputs.matches[anchor].to_i64()).ok().filter(|r| *r < m);
            let sampled = inputs.samples[anchor].to_f64() > 0.5;
            let Some(reference) = reference.filter(|_| sampled) else {
                target.fill(T::ZERO);
                mask.fill(T::ZERO);
                continue;
            };
            let [ax, ay, aw, ah] = center_and_sides(&inputs.anchors[anchor * 4..][..4]);
            let [rx, ry, rw, rh] = center_and_sides(&inputs.references[(anchor / n * m + reference) * 4..][..4]);
            let encoded = [(rx - ax) / aw, (ry - ay) / ah, Float::ln(rw / aw), Float::ln(rh / ah)];
            for (j, target) in target.iter_mut().enumerate() {
                *target = T::from_acc((encoded[j] - inputs.means[j].acc()) / inputs.deviations[j].acc());
            }
            mask.fill(T::ONE);
        }
    });
}

/// Scores descending, equal ones in their order; a NaN comes last.
pub(crate) fn by_score(a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (false, false) => b.partial_cmp(&a).unwrap_or(Ordering::Equal),
        (a, b) => a.cmp(&b),
    }
}

/// Greedy one-to-one matching of rows and columns by their scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Matching {
    /// Whether low scores come first.
    pub ascending: bool,
    /// Scores beyond it match nothing.
    pub threshold: f64,
    /// Matching ends after one more than this number of matches, as in MXNet; zero or less is no
    /// limit.
    pub limit: i64,
}

/// Matches rows and columns of every `[rows, columns]` matrix of `scores`, best score first, the
/// first of equal ones: the column of each row and the row of each column, -1 for none.
///
/// # Panics
/// If the lengths contradict each other.
pub fn match_greedily<T: Element>(
    par: &dyn Par,
    how: Matching,
    scores: &[T],
    [rows, columns]: [usize; 2],
    of_rows: &mut [T],
    of_columns: &mut [T],
) {
    let size = rows * columns;
    if size == 0 {
        of_rows.fill(T::from_f64(-1.0));
        return of_columns.fill(T::from_f64(-1.0));
    }
    let batch = scores.len() / size;
    check_len("the scores", scores.len(), batch * size);
    check_len("the matches of rows", of_rows.len(), batch * rows);
    check_len("the matches of columns", of_columns.len(), batch * columns);
    let bytes = size * size_of::<u32>();
    par_chunks_mut2_scratch(par, of_rows, rows, of_columns, columns, bytes, |i, of_rows, of_columns, scratch| {
        let none = T::from_f64(-1.0);
        of_rows.fill(none);
        of_columns.fill(none);
        let scores = &scores[i * size..][..size];
        let order: &mut [u32] = bytemuck::cast_slice_mut(&mut scratch[..bytes]);
        order.iter_mut().zip(0..).for_each(|(order, i)| *order = i);
        let sign = if how.ascending { -1.0 } else { 1.0 };
        let score = |i: u32| sign * scores[i as usize].to_f64();
        order.sort_unstable_by(|a, b| by_score(score(*a), score(*b)).then(a.cmp(b)));
        // A score that matches nothing ends it: those after it are worse.
        let good = order.iter().map(|at| (*at as usize, score(*at) > sign * how.threshold));
        match_in_order(good, how.limit, none, of_rows, of_columns);
    });
}

/// Matches rows and columns that have none yet, for positions in a matrix with the best score first,
/// until the first that is no match.
fn match_in_order<T: Element>(
    order: impl Iterator<Item = (usize, bool)>,
    limit: i64,
    none: T,
    of_rows: &mut [T],
    of_columns: &mut [T],
) {
    let (columns, mut count) = (of_columns.len(), 0);
    for (at, is_match) in order {
        let (row, column) = (at / columns, at % columns);
        if of_rows[row] != none || of_columns[column] != none {
            continue;
        }
        if !is_match {
            break;
        }
        of_rows[row] = T::from_i64(column as i64);
        of_columns[column] = T::from_i64(row as i64);
        count += 1;
        if limit > 0 && count > limit {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads, assert_close, random};

    #[test]
    fn overlap_is_the_shared_part_of_the_union_in_both_formats() {
        let a = [0.0f32, 0.0, 2.0, 2.0, 5.0, 5.0, 4.0, 9.0];
        let b = [1.0f32, 1.0, 3.0, 3.0, 0.0, 0.0, 2.0, 2.0, 9.0, 9.0, 10.0, 10.0];
        let mut out = [7.0f32; 6];
        overlaps(&Threads(2), BoxFormat::Corner, &a, &b, &mut out);
        assert_close(&out, &[1.0 / 7.0, 1.0, 0.0, 0.0, 0.0, 0.0], 1e-6);
        let center = |b: &[f32]| -> Vec<f32> {
            b.chunks(4).flat_map(|b| [(b[0] + b[2]) / 2.0, (b[1] + b[3]) / 2.0, b[2] - b[0], b[3] - b[1]]).collect()
        };
        let mut same = [7.0f32; 6];
        overlaps(&Reverse, BoxFormat::Center, &center(&a), &center(&b), &mut same);
        assert_eq!(same, out);
    }

    #[test]
    fn decoding_undoes_encoding() {
        let (batch, n) = (2, 50);
        let boxes = |seed: u64| -> Vec<f64> {
            random(batch * n * 4, seed)
                .chunks(4)
                .flat_map(|v| {
                    let [x, y, w, h] = [0, 1, 2, 3].map(|i| f64::from(v[i]));
                    [x, y, x + 0.1 + w.abs(), y + 0.1 + h.abs()]
                })
                .collect()
        };
        let anchors: Vec<f64> = [&boxes(1)[..n * 4], &boxes(1)[..n * 4]].concat();
        let references = boxes(2);
        let matches: Vec<f64> = (0..batch * n).map(|i| (i % n) as f64).collect();
        let inputs = BoxEncoding {
            samples: &vec![1.0; batch * n],
            matches: &matches,
            anchors: &anchors,
            references: &references,
            means: &[0.0; 4],
            deviations: &[0.1, 0.1, 0.2, 0.2],
        };
        let (mut targets, mut masks) = (vec![0.0; batch * n * 4], vec![0.0; batch * n * 4]);
        encode_boxes(&Threads(3), inputs, [batch, n, n], &mut targets, &mut masks);
        assert!(masks.iter().all(|m| *m == 1.0));
        let how = BoxDecoding { format: BoxFormat::Corner, scale: [0.1, 0.1, 0.2, 0.2], clip: None };
        let mut decoded = vec![0.0; targets.len()];
        decode_boxes(&Reverse, how, &targets, &anchors[..n * 4], &mut decoded);
        assert!(decoded.iter().zip(&references).all(|(a, b)| (a - b).abs() < 1e-9));
    }

    #[test]
    fn matches_outside_of_the_references_are_not_sampled() {
        let inputs = BoxEncoding {
            samples: &[1.0f32, 1.0, 0.0],
            matches: &[-1.0, 7.0, 0.0],
            anchors: &[0.0; 12],
            references: &[0.0; 4],
            means: &[0.0; 4],
            deviations: &[1.0; 4],
        };
        let (mut targets, mut masks) = ([9.0; 12], [9.0; 12]);
        encode_boxes(&Serial, inputs, [1, 3, 1], &mut targets, &mut masks);
        assert_eq!((targets, masks), ([0.0; 12], [0.0; 12]));
    }

    #[test]
    fn the_best_scores_match_first_and_ties_in_their_order() {
        let how = Matching { ascending: false, threshold: 0.1, limit: -1 };
        let (mut rows, mut columns) = ([0.0f32; 4], [0.0f32; 6]);
        let scores = [0.5, 0.9, 0.9, 0.8, 0.0, 0.2, f32::NAN, 0.05, 0.0, 0.7, 0.7, 0.7];
        match_greedily(&Threads(2), how, &scores, [2, 3], &mut rows, &mut columns);
        assert_eq!(rows, [1.0, 0.0, -1.0, 0.0]);
        assert_eq!(columns, [1.0, 0.0, -1.0, 1.0, -1.0, -1.0]);
        let how = Matching { ascending: true, threshold: 0.6, limit: 0 };
        match_greedily(&Serial, how, &scores[..6], [2, 3], &mut rows[..2], &mut columns[..3]);
        assert_eq!((&rows[..2], &columns[..3]), (&[0.0, 1.0][..], &[0.0, 1.0, -1.0][..]));
    }
}
