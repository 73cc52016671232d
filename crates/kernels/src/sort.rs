//! Sorting along one axis. Equal elements keep their order; NaN comes last in either direction.
//! (MXNet leaves both to chance: it sorts unstably, with a comparison that NaN breaks.)

use crate::element::Element;
use crate::error::check_len;
use crate::par::{Par, chunk_by_work, par_chunks_mut_scratch, par_chunks_mut2_scratch};
use crate::vectorize::vectorized;
use std::cmp::Ordering;

/// What to keep of every column of `[outer, n, inner]`: the first `k` in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// How many; at most `n`.
    pub k: usize,
    /// Smallest first, else largest first.
    pub ascending: bool,
}

/// The position of the element that comes first.
fn compare<T: Element>(x: &[T], inner: usize, ascending: bool, a: u32, b: u32) -> Ordering {
    let (u, v) = (x[a as usize * inner], x[b as usize * inner]);
    let order = match u.partial_cmp(&v) {
        Some(order) if ascending => order,
        Some(order) => order.reverse(),
        None => u.nan().cmp(&v.nan()),
    };
    order.then(a.cmp(&b))
}

/// The first `order.k` positions of the column of `n` elements that starts at `x[0]`, in order.
fn ranks<'a, T: Element>(x: &[T], n: usize, inner: usize, order: Order, positions: &'a mut [u32]) -> &'a [u32] {
    let positions = &mut positions[..n];
    let k = order.k.min(n);
    let by = |a: &u32, b: &u32| compare(x, inner, order.ascending, *a, *b);
    if k == 0 {
        return &[];
    }
    if inner == 1 && n >= 4 * Few::room(k) {
        let few = Few { k, ascending: order.ascending };
        if let Some(count) = few.collect(&x[..n], positions) {
            few.select(x, &mut positions[..count]);
            positions[..k].sort_unstable_by(by);
            return &positions[..k];
        }
    }
    positions.iter_mut().enumerate().for_each(|(i, p)| *p = i as u32);
    if k < n {
        positions.select_nth_unstable_by(k - 1, by);
    }
    // Unstable is enough: no two positions compare equal.
    positions[..k].sort_unstable_by(by);
    &positions[..k]
}

/// Elements that are compared with the threshold together.
const BLOCK: usize = 32;

/// The first few of many: only what comes before the worst of those collected so far is looked at.
#[derive(Clone, Copy)]
struct Few {
    k: usize,
    ascending: bool,
}

impl Few {
    /// Positions that are collected before the best are chosen.
    fn room(k: usize) -> usize {
        2 * (k + BLOCK)
    }

    /// Puts the best to the front.
    fn select<T: Element>(self, x: &[T], positions: &mut [u32]) {
        if positions.len() > self.k {
            positions.select_nth_unstable_by(self.k - 1, |a, b| compare(x, 1, self.ascending, *a, *b));
        }
    }

    /// Collects positions with the best among them; how many. `None` where most are NaN.
    fn collect<T: Element>(self, x: &[T], positions: &mut [u32]) -> Option<usize> {
        let positions = &mut positions[..Few::room(self.k)];
        let (mut next, mut count) = (self.k + BLOCK, self.k + BLOCK);
        positions[..count].iter_mut().enumerate().for_each(|(i, p)| *p = i as u32);
        while next < x.len() {
            self.select(x, &mut positions[..count]);
            let threshold = x[positions[self.k - 1] as usize];
            if threshold.nan() {
                return None;
            }
            count = self.k;
            // Of equal elements the earlier come first, and those are collected already.
            collect_better(x, threshold, self.ascending, &mut next, positions, &mut count);
        }
        Some(count)
    }
}

vectorized! {
    fn collect_better[T: Element](
        x: &[T],
        threshold: T,
        ascending: bool,
        next: &mut usize,
        found: &mut [u32],
        count: &mut usize,
    ) {
        let better = |v: T| if ascending { v < threshold } else { v > threshold };
        while *next < x.len() && *count + BLOCK <= found.len() {
            let block = &x[*next..x.len().min(*next + BLOCK)];
            if block.iter().fold(false, |any, &v| any | better(v)) {
                for (i, _) in block.iter().enumerate().filter(|(_, v)| better(**v)) {
                    found[*count] = (*next + i) as u32;
                    *count += 1;
                }
            }
            *next += block.len();
        }
    }
}

/// Outer indices per chunk, and the bytes that the positions of one column take.
fn split(n: usize, inner: usize) -> (usize, usize) {
    assert!(u32::try_from(n).is_ok(), "sorting along an axis of {n} elements");
    (chunk_by_work(8 * n * inner), n * size_of::<u32>())
}

/// Calls `body(column, k, position)` for the first `order.k` of every column of one outer index.
fn each_rank<T: Element>(
    x: &[T],
    n: usize,
    inner: usize,
    order: Order,
    scratch: &mut [u8],
    mut body: impl FnMut(usize, usize, usize),
) {
    let positions: &mut [u32] = bytemuck::cast_slice_mut(&mut scratch[..n * size_of::<u32>()]);
    for i in 0..inner {
        for (k, &p) in ranks(&x[i..], n, inner, order, positions).iter().enumerate() {
            body(i, k, p as usize);
        }
    }
}

fn check<T>(x: &[T], [outer, n, inner]: [usize; 3], order: Order, out: usize) {
    check_len("the input", x.len(), outer * n * inner);
    assert!(order.k <= n, "the first {} of {n} elements", order.k);
    check_len("the output", out, outer * order.k * inner);
}

/// The first `order.k` values of every column of `x`, of shape `[outer, n, inner]`, in order; `out`
/// has shape `[outer, k, inner]`.
pub fn sort<T: Element>(par: &dyn Par, x: &[T], shape: [usize; 3], order: Order, out: &mut [T]) {
    let [_, n, inner] = shape;
    check(x, shape, order, out.len());
    let ((per_chunk, bytes), piece) = (split(n, inner), order.k * inner);
    par_chunks_mut_scratch(par, out, per_chunk * piece, bytes, |c, out, scratch| {
        for (j, out) in out.chunks_mut(piece).enumerate() {
            let x = &x[(c * per_chunk + j) * n * inner..][..n * inner];
            each_rank(x, n, inner, order, scratch, |i, k, p| out[k * inner + i] = x[p * inner + i]);
        }
    });
}

/// The positions along the axis of what [`sort`] gives.
pub fn argsort<T: Element, I: Element>(par: &dyn Par, x: &[T], shape: [usize; 3], order: Order, out: &mut [I]) {
    let [_, n, inner] = shape;
    check(x, shape, order, out.len());
    let ((per_chunk, bytes), piece) = (split(n, inner), order.k * inner);
    par_chunks_mut_scratch(par, out, per_chunk * piece, bytes, |c, out, scratch| {
        for (j, out) in out.chunks_mut(piece).enumerate() {
            let x = &x[(c * per_chunk + j) * n * inner..][..n * inner];
            each_rank(x, n, inner, order, scratch, |i, k, p| out[k * inner + i] = I::from_i64(p as i64));
        }
    });
}

/// [`sort`] and [`argsort`] at once.
pub fn top_k<T: Element, I: Element>(
    par: &dyn Par,
    x: &[T],
    shape: [usize; 3],
    order: Order,
    values: &mut [T],
    indices: &mut [I],
) {
    let [_, n, inner] = shape;
    check(x, shape, order, values.len());
    check(x, shape, order, indices.len());
    let ((per_chunk, bytes), piece) = (split(n, inner), order.k * inner);
    let len = per_chunk * piece;
    par_chunks_mut2_scratch(par, values, len, indices, len, bytes, |c, values, indices, scratch| {
        for (j, (values, indices)) in values.chunks_mut(piece).zip(indices.chunks_mut(piece)).enumerate() {
            let x = &x[(c * per_chunk + j) * n * inner..][..n * inner];
            each_rank(x, n, inner, order, scratch, |i, k, p| {
                values[k * inner + i] = x[p * inner + i];
                indices[k * inner + i] = I::from_i64(p as i64);
            });
        }
    });
}

/// 1 at the elements that [`sort`] keeps, else 0; `out` has the shape of `x`.
pub fn top_k_mask<T: Element, I: Element>(par: &dyn Par, x: &[T], shape: [usize; 3], order: Order, out: &mut [I]) {
    let [outer, n, inner] = shape;
    check(x, shape, order, outer * order.k * inner);
    check_len("the output", out.len(), x.len());
    let ((per_chunk, bytes), piece) = (split(n, inner), n * inner);
    par_chunks_mut_scratch(par, out, per_chunk * piece, bytes, |c, out, scratch| {
        out.fill(I::ZERO);
        for (j, out) in out.chunks_mut(piece).enumerate() {
            let x = &x[(c * per_chunk + j) * piece..][..piece];
            each_rank(x, n, inner, order, scratch, |i, _, p| out[p * inner + i] = I::ONE);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads, random};

    #[test]
    fn the_first_k_of_every_column_come_in_order_and_equals_keep_theirs() {
        for shape in [[3, 50, 1], [2, 17, 9], [1, 1, 4], [40, 300, 1], [2, 5000, 1]] {
            let [outer, n, inner] = shape;
            // Few distinct values, so that many are equal.
            let x: Vec<f32> = random(outer * n * inner, 1).iter().map(|v| (v * 8.0).round()).collect();
            for k in [1, n / 3 + 1, n].map(|k| k.min(n)) {
                for ascending in [true, false] {
                    let order = Order { k, ascending };
                    let (mut values, mut indices) = (vec![0f32; outer * k * inner], vec![0i32; outer * k * inner]);
                    let mut mask = vec![9u8; x.len()];
                    top_k(&Threads(3), &x, shape, order, &mut values, &mut indices);
                    top_k_mask(&Reverse, &x, shape, order, &mut mask);
                    let (mut sorted, mut places) = (values.clone(), vec![0i64; indices.len()]);
                    sort(&Serial, &x, shape, order, &mut sorted);
                    argsort(&Reverse, &x, shape, order, &mut places);
                    assert_eq!(sorted, values);
                    assert!(places.iter().zip(&indices).all(|(a, b)| *a == *b as i64));
                    for o in 0..outer {
                        for i in 0..inner {
                            let mut column: Vec<(f32, usize)> =
                                (0..n).map(|p| (x[(o * n + p) * inner + i], p)).collect();
                            column.sort_by(|a, b| {
                                let order = a.0.partial_cmp(&b.0).unwrap();
                                if ascending { order } else { order.reverse() }
                            });
                            for (rank, &(value, place)) in column.iter().enumerate() {
                                let at = (o * k + rank) * inner + i;
                                if rank < k {
                                    assert_eq!((values[at], indices[at] as usize), (value, place));
                                }
                                assert_eq!(mask[(o * n + place) * inner + i], (rank < k) as u8);
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn nan_comes_last_in_both_directions() {
        let x = [2.0, f32::NAN, 1.0, f32::NAN, 3.0];
        let mut out = [0i32; 5];
        argsort(&Serial, &x, [1, 5, 1], Order { k: 5, ascending: true }, &mut out);
        assert_eq!(out, [2, 0, 4, 1, 3]);
        argsort(&Serial, &x, [1, 5, 1], Order { k: 5, ascending: false }, &mut out);
        assert_eq!(out, [4, 0, 2, 1, 3]);
        for nans in [0..1000, 900..2000] {
            let mut many: Vec<f32> = random(2000, 2);
            many[nans.clone()].fill(f32::NAN);
            let mut want: Vec<usize> = (0..2000).filter(|i| !nans.contains(i)).collect();
            want.sort_by(|a, b| many[*b].total_cmp(&many[*a]));
            let mut few = [0i64; 20];
            argsort(&Serial, &many, [1, 2000, 1], Order { k: 20, ascending: false }, &mut few);
            assert!(few.iter().zip(&want).all(|(a, b)| *a as usize == *b));
        }
    }
}
