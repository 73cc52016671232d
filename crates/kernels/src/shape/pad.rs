//! Arrays that are continued beyond their edges.

use super::Item;
use crate::KernelError;
use crate::error::check_len;
use crate::par::{Par, chunk_elems, par_chunks_mut};

/// The way in which an array is extended beyond its edges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PadMode<T> {
    /// Pads with this value.
    Constant(T),
    /// Pads with the value at the edge.
    Edge,
    /// Mirrored at the edge element, which is not repeated; to and fro where the pad is wider.
    Reflect,
    /// Mirrored with the edge element; to and fro where the pad is wider.
    Symmetric,
}

/// Pads axis `i` of `x` by `widths[i].0` elements before and `widths[i].1` after.
pub fn pad<T: Item>(
    par: &dyn Par,
    x: &[T],
    shape: &[usize],
    widths: &[(usize, usize)],
    mode: PadMode<T>,
    out: &mut [T],
) -> Result<(), KernelError> {
    check_len("the input", x.len(), shape.iter().product());
    let out_shape: Vec<usize> = shape.iter().zip(widths).map(|(n, (a, b))| n + a + b).collect();
    check_len("the output", out.len(), out_shape.iter().product());
    check_widths(shape, widths, mode)?;
    let (Some(&n), Some(&out_n), Some(&(before, _))) = (shape.last(), out_shape.last(), widths.last()) else {
        out.copy_from_slice(x);
        return Ok(());
    };
    let outer_axes = shape.len() - 1;
    let rows = (chunk_elems::<T>() / out_n.max(1)).max(1);
    par_chunks_mut(par, out, rows * out_n, |chunk, out| {
        for (i, out) in out.chunks_mut(out_n).enumerate() {
            let mut row = chunk * rows + i;
            let (mut source, mut step) = (Some(0), 1);
            for axis in (0..outer_axes).rev() {
                let place = pad_source(row % out_shape[axis], widths[axis].0, shape[axis], mode);
                row /= out_shape[axis];
                source = source.zip(place).map(|(s, p)| s + p * step);
                step *= shape[axis];
            }
            let Some(source) = source else {
                if let PadMode::Constant(v) = mode {
                    out.fill(v);
                }
                continue;
            };
            pad_row(&x[source * n..][..n], before, mode, out);
        }
    });
    Ok(())
}

/// Refuses axes without elements that could be shown.
fn check_widths<T>(shape: &[usize], widths: &[(usize, usize)], mode: PadMode<T>) -> Result<(), KernelError> {
    let is_empty = |axis: &usize| shape[*axis] == 0 && widths[*axis] != (0, 0);
    match (0..shape.len()).find(is_empty) {
        Some(axis) if !matches!(mode, PadMode::Constant(_)) => Err(KernelError::EmptyAxis { axis }),
        _ => Ok(()),
    }
}

/// Pads one row, with `before` elements before it.
#[inline(always)]
fn pad_row<T: Item>(x: &[T], before: usize, mode: PadMode<T>, out: &mut [T]) {
    let n = x.len();
    out[before..][..n].copy_from_slice(x);
    for j in (0..before).chain(before + n..out.len()) {
        out[j] = match (pad_source(j, before, n, mode), mode) {
            (Some(p), _) => x[p],
            (None, PadMode::Constant(v)) => v,
            (None, _) => x[0],
        };
    }
}

/// The source of position `i` of a padded axis; `None` if it is the constant.
fn pad_source<T>(i: usize, before: usize, n: usize, mode: PadMode<T>) -> Option<usize> {
    if (before..before + n).contains(&i) {
        return Some(i - before);
    }
    match mode {
        PadMode::Constant(_) => None,
        PadMode::Edge => Some(if i < before { 0 } else { n - 1 }),
        PadMode::Reflect | PadMode::Symmetric => {
            // What is shown between two edges is shown in descending order beyond the second one.
            let twice = if matches!(mode, PadMode::Reflect) { 2 * n - 2 } else { 2 * n };
            let place = (i as i64 - before as i64).rem_euclid((twice as i64).max(1)) as usize;
            Some(if place < n { place } else { twice - place - usize::from(twice == 2 * n) })
        }
    }
}
