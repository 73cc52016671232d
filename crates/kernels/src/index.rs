//! Picking elements by index.
//!
//! Indices may have any type; floats are truncated towards zero.

use crate::KernelError;
use crate::element::Element;
use crate::error::check_len;
use crate::par::{Par, chunk_elems, par_chunks_mut};
use crate::shape::Item;
use crate::strides::contiguous;

/// The treatment of an index that points outside of its axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutOfRange {
    /// The nearest index inside; negative ones become 0.
    Clip,
    /// The index modulo the size of the axis.
    Wrap,
    /// An error.
    Raise,
}

impl OutOfRange {
    /// The place for `index` on an axis with `size` > 0 elements.
    fn place(self, index: i64, size: usize) -> usize {
        match self {
            OutOfRange::Wrap => index.rem_euclid(size as i64) as usize,
            OutOfRange::Clip | OutOfRange::Raise => index.clamp(0, size as i64 - 1) as usize,
        }
    }
}

/// Finds the first index that is not in `low..size`.
fn check_indices<I: Element>(indices: &[I], axis: usize, size: usize, low: i64) -> Result<(), KernelError> {
    match indices.iter().map(|i| i.to_i64()).find(|i| !(low..size as i64).contains(i)) {
        Some(index) => Err(KernelError::IndexOutOfRange { index, axis, size, low }),
        None => Ok(()),
    }
}

/// `out[o, k, j] = x[o, indices[k], j]` for `x` of shape `[outer, n, inner]`; `axis` is only for
/// messages.
///
/// An embedding is `take` with outer size 1.
pub fn take<T: Item, I: Element>(
    par: &dyn Par,
    x: &[T],
    [outer, n, inner]: [usize; 3],
    indices: &[I],
    mode: OutOfRange,
    axis: usize,
    out: &mut [T],
) -> Result<(), KernelError> {
    check_len("the input", x.len(), outer * n * inner);
    check_len("the output", out.len(), outer * indices.len() * inner);
    if out.is_empty() {
        return Ok(());
    }
    if n == 0 {
        return Err(KernelError::EmptyAxis { axis });
    }
    if mode == OutOfRange::Raise {
        check_indices(indices, axis, n, 0)?;
    }
    let rows = (chunk_elems::<T>() / inner).max(1);
    par_chunks_mut(par, out, rows * inner, |i, out| {
        let (mut block, mut k) = (i * rows / indices.len(), i * rows % indices.len());
        for out in out.chunks_mut(inner) {
            let start = (block * n + mode.place(indices[k].to_i64(), n)) * inner;
            out.copy_from_slice(&x[start..][..inner]);
            k += 1;
            if k == indices.len() {
                (block, k) = (block + 1, 0);
            }
        }
    });
    Ok(())
}

/// `out[o, j] = x[o, indices[o, j], j]` for `x` of shape `[outer, n, inner]`; `axis` is only for
/// messages.
pub fn pick<T: Item, I: Element>(
    par: &dyn Par,
    x: &[T],
    [outer, n, inner]: [usize; 3],
    indices: &[I],
    mode: OutOfRange,
    axis: usize,
    out: &mut [T],
) -> Result<(), KernelError> {
    check_len("the input", x.len(), outer * n * inner);
    check_len("the indices", indices.len(), outer * inner);
    check_len("the output", out.len(), outer * inner);
    if out.is_empty() {
        return Ok(());
    }
    if n == 0 {
        return Err(KernelError::EmptyAxis { axis });
    }
    if mode == OutOfRange::Raise {
        check_indices(indices, axis, n, 0)?;
    }
    let chunk = chunk_elems::<T>();
    par_chunks_mut(par, out, chunk, |i, out| {
        if inner == 1 {
            for ((out, x), index) in out.iter_mut().zip(x[i * chunk * n..].chunks_exact(n)).zip(&indices[i * chunk..]) {
                *out = x[mode.place(index.to_i64(), n)];
            }
            return;
        }
        for (j, out) in out.iter_mut().enumerate() {
            let at = i * chunk + j;
            let place = mode.place(indices[at].to_i64(), n);
            *out = x[(at / inner * n + place) * inner + at % inner];
        }
    });
    Ok(())
}

/// `out[i, d]` is `on` where `indices[i]` is `d`, else `off`; indices outside of `0..depth` give
/// rows of `off`.
pub fn one_hot<T: Item, I: Element>(par: &dyn Par, indices: &[I], depth: usize, on: T, off: T, out: &mut [T]) {
    check_len("the output", out.len(), indices.len() * depth);
    if depth == 0 {
        return;
    }
    let rows = (chunk_elems::<T>() / depth).max(1);
    par_chunks_mut(par, out, rows * depth, |i, out| {
        out.fill(off);
        for (row, index) in out.chunks_mut(depth).zip(&indices[i * rows..]) {
            if let Some(hot) = usize::try_from(index.to_i64()).ok().and_then(|d| row.get_mut(d)) {
                *hot = on;
            }
        }
    });
}

/// `out[i] = if condition[i] != 0 { x[i] } else { y[i] }`.
pub fn select<C: Element, T: Item>(par: &dyn Par, condition: &[C], x: &[T], y: &[T], out: &mut [T]) {
    check_len("the condition", condition.len(), out.len());
    check_len("the first input", x.len(), out.len());
    check_len("the second input", y.len(), out.len());
    let chunk = chunk_elems::<T>();
    par_chunks_mut(par, out, chunk, |i, out| {
        let (start, n) = (i * chunk, out.len());
        let (condition, x, y) = (&condition[start..][..n], &x[start..][..n], &y[start..][..n]);
        for (((out, c), x), y) in out.iter_mut().zip(condition).zip(x).zip(y) {
            *out = if *c != C::ZERO { *x } else { *y };
        }
    });
}

/// [`select`] by rows: row `i` (of `row` elements) comes from `x` or `y` as `condition[i]` says.
pub fn select_rows<C: Element, T: Item>(par: &dyn Par, condition: &[C], x: &[T], y: &[T], row: usize, out: &mut [T]) {
    check_len("the output", out.len(), condition.len() * row);
    check_len("the first input", x.len(), out.len());
    check_len("the second input", y.len(), out.len());
    if row == 0 {
        return;
    }
    let rows = (chunk_elems::<T>() / row).max(1);
    par_chunks_mut(par, out, rows * row, |i, out| {
        for (j, out) in out.chunks_mut(row).enumerate() {
            let at = i * rows + j;
            let from = if condition[at] != C::ZERO { x } else { y };
            out.copy_from_slice(&from[at * row..][..row]);
        }
    });
}

/// The offsets into an array with axes `sizes` that the columns of `indices`, of shape
/// `[sizes.len(), count]`, point to. Negative indices count from the end.
fn nd_offsets<I: Element>(
    indices: &[I],
    sizes: &[usize],
    count: usize,
) -> Result<impl Fn(usize) -> usize, KernelError> {
    for (axis, &size) in sizes.iter().enumerate() {
        check_indices(&indices[axis * count..][..count], axis, size, -(size as i64))?;
    }
    let strides = contiguous(sizes);
    Ok(move |k: usize| {
        let mut offset = 0;
        for (axis, &size) in sizes.iter().enumerate() {
            let index = indices[axis * count + k].to_i64();
            offset += index.rem_euclid(size as i64) as usize * strides[axis] as usize;
        }
        offset
    })
}

/// `out[k, ...] = x[indices[0, k], indices[1, k], ..., ...]`: `sizes` are the axes that are
/// indexed, `inner` the product of the others, `indices` has shape `[sizes.len(), count]`.
pub fn gather_nd<T: Item, I: Element>(
    par: &dyn Par,
    x: &[T],
    sizes: &[usize],
    inner: usize,
    indices: &[I],
    count: usize,
    out: &mut [T],
) -> Result<(), KernelError> {
    check_len("the input", x.len(), sizes.iter().product::<usize>() * inner);
    check_len("the indices", indices.len(), sizes.len() * count);
    check_len("the output", out.len(), count * inner);
    if out.is_empty() {
        return Ok(());
    }
    let offset = nd_offsets(indices, sizes, count)?;
    let rows = (chunk_elems::<T>() / inner).max(1);
    par_chunks_mut(par, out, rows * inner, |i, out| {
        for (j, out) in out.chunks_mut(inner).enumerate() {
            out.copy_from_slice(&x[offset(i * rows + j) * inner..][..inner]);
        }
    });
    Ok(())
}

/// `out[indices[0, k], indices[1, k], ..., ...] = values[k, ...]`, zero elsewhere; of equal indices
/// the last wins. Shapes are those of [`gather_nd`].
pub fn scatter_nd<T: Element, I: Element>(
    values: &[T],
    indices: &[I],
    count: usize,
    out: &mut [T],
    sizes: &[usize],
    inner: usize,
) -> Result<(), KernelError> {
    out.fill(T::ZERO);
    scatter_set_nd(values, indices, count, out, sizes, inner)
}

/// Scatters like [`scatter_nd`], but elements that no index names keep their values.
pub fn scatter_set_nd<T: Item, I: Element>(
    values: &[T],
    indices: &[I],
    count: usize,
    out: &mut [T],
    sizes: &[usize],
    inner: usize,
) -> Result<(), KernelError> {
    check_len("the output", out.len(), sizes.iter().product::<usize>() * inner);
    check_len("the indices", indices.len(), sizes.len() * count);
    check_len("the values", values.len(), count * inner);
    if values.is_empty() {
        return Ok(());
    }
    let offset = nd_offsets(indices, sizes, count)?;
    for (k, values) in values.chunks(inner).enumerate() {
        out[offset(k) * inner..][..inner].copy_from_slice(values);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads};

    #[test]
    fn take_clips_wraps_or_raises() {
        let x = [10, 11, 12];
        let indices = [-1.0f32, 0.9, 5.0, -4.0];
        let mut out = [0; 4];
        take(&Serial, &x, [1, 3, 1], &indices, OutOfRange::Clip, 0, &mut out).unwrap();
        assert_eq!(out, [10, 10, 12, 10]);
        take(&Serial, &x, [1, 3, 1], &indices, OutOfRange::Wrap, 0, &mut out).unwrap();
        assert_eq!(out, [12, 10, 12, 12]);
        let error = take(&Serial, &x, [1, 3, 1], &[0i64, 1, 3, 0], OutOfRange::Raise, 2, &mut out).unwrap_err();
        assert_eq!(error.to_string(), "index 3 is out of range for axis 2 with size 3: expected 0 <= index < 3");
        let error = take::<i32, i64>(&Serial, &[], [1, 0, 1], &[0, 0, 0, 0], OutOfRange::Clip, 1, &mut out);
        assert_eq!(error, Err(KernelError::EmptyAxis { axis: 1 }));
    }

    #[test]
    fn take_along_a_middle_axis_copies_rows() {
        let x: Vec<u32> = (0..2 * 5 * 3000).collect();
        let indices = [4i32, 0, 2];
        for par in [&Serial as &dyn Par, &Reverse, &Threads(3)] {
            let mut out = vec![0; 2 * 3 * 3000];
            take(par, &x, [2, 5, 3000], &indices, OutOfRange::Clip, 1, &mut out).unwrap();
            for (i, &v) in out.iter().enumerate() {
                let (o, k, j) = (i / 9000, i / 3000 % 3, i % 3000);
                assert_eq!(v as usize, (o * 5 + indices[k] as usize) * 3000 + j);
            }
        }
    }

    #[test]
    fn pick_takes_one_element_of_every_column() {
        let x = [1, 2, 3, 4, 5, 6];
        let mut out = [0; 2];
        pick(&Serial, &x, [2, 3, 1], &[1i32, 9], OutOfRange::Clip, 1, &mut out).unwrap();
        assert_eq!(out, [2, 6]);
        let mut out = [0; 3];
        pick(&Serial, &x, [1, 2, 3], &[1i32, 0, -1], OutOfRange::Wrap, 0, &mut out).unwrap();
        assert_eq!(out, [4, 2, 6]);
    }

    #[test]
    fn indices_outside_of_the_depth_give_no_hot_element() {
        let mut out = [0; 9];
        one_hot(&Serial, &[1.7f32, -1.0, 3.0], 3, 7, 1, &mut out);
        assert_eq!(out, [1, 7, 1, 1, 1, 1, 1, 1, 1]);
    }

    #[test]
    fn select_chooses_by_element_row_or_broadcast() {
        let (x, y) = ([1, 2, 3, 4], [-1, -2, -3, -4]);
        let mut out = [0; 4];
        select(&Serial, &[0.5f32, 0.0, f32::NAN, 0.0], &x, &y, &mut out);
        assert_eq!(out, [1, -2, 3, -4]);
        select_rows(&Serial, &[0i8, 1], &x, &y, 2, &mut out);
        assert_eq!(out, [-1, -2, 3, 4]);
    }

    #[test]
    fn gather_and_scatter_are_inverse_and_check_indices() {
        let x: Vec<i32> = (0..12).collect();
        let indices = [0i64, -1, 1, 2];
        let mut out = [0; 4];
        gather_nd(&Serial, &x, &[2, 3], 2, &indices, 2, &mut out).unwrap();
        assert_eq!(out, [2, 3, 10, 11]);
        let mut back = [5; 12];
        scatter_nd(&out, &indices, 2, &mut back, &[2, 3], 2).unwrap();
        assert_eq!(back, [0, 0, 2, 3, 0, 0, 0, 0, 0, 0, 10, 11]);
        let error = gather_nd(&Serial, &x, &[2, 3], 2, &[0i64, 1, 3, 0], 2, &mut out).unwrap_err();
        assert_eq!(error, KernelError::IndexOutOfRange { index: 3, axis: 1, size: 3, low: -3 });
    }
}
