//! Sorting along one axis. Equal elements keep their order; NaN comes last in either direction.
//! (MXNet leaves both to chance: it sorts unstably, with a comparison that NaN breaks.)

use crate::element::Element;
use crate::error::check_len;
use crate::par::{Par, chunk_by_work, par_chunks_mut_scratch, par_chunks_mut2_scratch};
use crate::vectorize::vectorized;
use bytemuck::Pod;

/// The part of every column of `[outer, n, inner]` to keep: the first `k` in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// How many; at most `n`.
    pub k: usize,
    /// Smallest first, else largest first.
    pub ascending: bool,
}

/// The keys by which elements are sorted: numbers in the order of the elements, and for equal ones
/// in that of their positions. So two functions sort all types, and no comparison reads memory at a
/// position.
#[doc(hidden)]
pub trait SortKey: Pod + Ord + Send + Sync {
    /// The highest rank.
    const LAST: u64;
    /// The key of an element with this rank.
    fn new(rank: u64, position: u32) -> Self;
    /// The position of the element.
    fn position(self) -> usize;
}

impl SortKey for u64 {
    const LAST: u64 = u32::MAX as u64;

    fn new(rank: u64, position: u32) -> u64 {
        rank << 32 | u64::from(position)
    }

    fn position(self) -> usize {
        self as u32 as usize
    }
}

impl SortKey for u128 {
    const LAST: u64 = u64::MAX;

    fn new(rank: u64, position: u32) -> u128 {
        u128::from(rank) << 32 | u128::from(position)
    }

    fn position(self) -> usize {
        self as u32 as usize
    }
}

/// The key of the element at a position. NaN has the last rank, which no number of its type has.
#[inline(always)]
fn key<T: Element>(v: T, position: usize, ascending: bool) -> T::Key {
    let rank = match v.nan() {
        true => T::Key::LAST,
        false if ascending => v.rank(),
        false => T::Key::LAST - v.rank(),
    };
    T::Key::new(rank, position as u32)
}

/// Puts the first `k` to the front, in any order.
fn select_first<K: Ord>(keys: &mut [K], k: usize) {
    if keys.len() > k {
        keys.select_nth_unstable(k - 1);
    }
}

/// The first `order.k` of the column of `n` elements that starts at `x[0]`, in order.
fn ranks<'a, T: Element>(x: &[T], n: usize, inner: usize, order: Order, keys: &'a mut [T::Key]) -> &'a [T::Key] {
    let (keys, k) = (&mut keys[..n], order.k.min(n));
    if k == 0 {
        return &[];
    }
    let few = Few { k, ascending: order.ascending };
    let collected = if inner == 1 && n >= 4 * Few::room(k) { few.collect(&x[..n], keys) } else { None };
    let count = collected.unwrap_or_else(|| {
        keys.iter_mut().enumerate().for_each(|(p, place)| *place = key(x[p * inner], p, order.ascending));
        n
    });
    select_first(&mut keys[..count], k);
    // Unstable is enough: no two keys are equal.
    keys[..k].sort_unstable();
    &keys[..k]
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

    /// Collects elements with the best among them; how many. `None` where most are NaN.
    fn collect<T: Element>(self, x: &[T], keys: &mut [T::Key]) -> Option<usize> {
        let keys = &mut keys[..Few::room(self.k)];
        let (mut next, mut count) = (self.k + BLOCK, self.k + BLOCK);
        keys[..count].iter_mut().zip(x).enumerate().for_each(|(p, (place, v))| *place = key(*v, p, self.ascending));
        while next < x.len() {
            select_first(&mut keys[..count], self.k);
            let threshold = x[keys[self.k - 1].position()];
            if threshold.nan() {
                return None;
            }
            count = self.k;
            // Of equal elements the earlier come first, and those are collected already.
            collect_better(x, threshold, self.ascending, &mut next, keys, &mut count);
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
        found: &mut [T::Key],
        count: &mut usize,
    ) {
        let better = |v: T| if ascending { v < threshold } else { v > threshold };
        while *next < x.len() && *count + BLOCK <= found.len() {
            let block = &x[*next..x.len().min(*next + BLOCK)];
            if block.iter().fold(false, |any, &v| any | better(v)) {
                for (i, v) in block.iter().enumerate().filter(|(_, v)| better(**v)) {
                    found[*count] = key(*v, *next + i, ascending);
                    *count += 1;
                }
            }
            *next += block.len();
        }
    }
}

/// Outer indices per chunk, and the bytes that the keys of one column take.
fn split<T: Element>(n: usize, inner: usize) -> (usize, usize) {
    assert!(u32::try_from(n).is_ok(), "sorting along an axis of {n} elements");
    (chunk_by_work(8 * n * inner), n * size_of::<T::Key>())
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
    let keys: &mut [T::Key] = bytemuck::cast_slice_mut(&mut scratch[..n * size_of::<T::Key>()]);
    for i in 0..inner {
        for (k, key) in ranks(&x[i..], n, inner, order, keys).iter().enumerate() {
            body(i, k, key.position());
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
    let ((per_chunk, bytes), piece) = (split::<T>(n, inner), order.k * inner);
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
    let ((per_chunk, bytes), piece) = (split::<T>(n, inner), order.k * inner);
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
    let ((per_chunk, bytes), piece) = (split::<T>(n, inner), order.k * inner);
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
    let ((per_chunk, bytes), piece) = (split::<T>(n, inner), n * inner);
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

    #[test]
    fn keys_have_the_order_of_the_elements() {
        fn follow<T: Element>(values: &[T]) {
            for (i, u) in values.iter().enumerate() {
                for (j, v) in values.iter().enumerate() {
                    let order = u.partial_cmp(v).unwrap_or_else(|| u.nan().cmp(&v.nan()));
                    for ascending in [true, false] {
                        let order = if ascending || u.nan() || v.nan() { order } else { order.reverse() };
                        assert_eq!(
                            key(*u, i, ascending).cmp(&key(*v, j, ascending)),
                            order.then(i.cmp(&j)),
                            "{u:?} {v:?}"
                        );
                        assert_eq!(key(*v, j, ascending).position(), j);
                    }
                }
            }
        }
        let floats = [-0.0, 0.0, f64::MIN_POSITIVE / 2.0, -1.5, 1.5, f64::MIN, f64::MAX, f64::INFINITY];
        let floats: Vec<f64> = [&floats[..], &[f64::NEG_INFINITY, f64::NAN, -f64::NAN, 1e-40, -1e-40, 3.0]].concat();
        follow(&floats);
        follow(&floats.iter().map(|v| *v as f32).collect::<Vec<f32>>());
        follow(&floats.iter().map(|v| half::f16::from_f64(*v)).collect::<Vec<half::f16>>());
        follow(&[0u8, 1, 127, 128, 255]);
        follow(&[0i8, -1, 1, i8::MIN, i8::MAX]);
        follow(&[0i32, -1, 1, i32::MIN, i32::MAX]);
        follow(&[0i64, -1, 1, i64::MIN, i64::MAX, 1 << 40]);
        follow(&[crate::element::Bool(0), crate::element::Bool(1)]);
    }
}
