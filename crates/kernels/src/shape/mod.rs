//! Moving elements: transposing, slicing, joining, padding, repeating.
//!
//! Everything that reads its source with strides is [`copy_strided`] with other strides.

use bytemuck::Pod;

use crate::KernelError;
use crate::error::check_len;
use crate::par::{Par, chunk_elems, par_chunks_mut};
use crate::squares;
use crate::strides::{Space, broadcast, contiguous};

/// The values that these kernels move: any plain value.
pub trait Item: Pod + Send + Sync {}
impl<T: Pod + Send + Sync> Item for T {}

/// Edge of the square tiles in which transpositions are copied, and rows of a chunk.
const TILE: usize = 16;

/// `out[i0, i1, ...] = src[offset + i0 * strides[0] + i1 * strides[1] + ...]` over `shape`.
pub fn copy_strided<T: Item>(
    par: &dyn Par,
    src: &[T],
    offset: usize,
    strides: &[isize],
    shape: &[usize],
    out: &mut [T],
) -> Result<(), KernelError> {
    check_len("the output", out.len(), shape.iter().product());
    assert_eq!(strides.len(), shape.len(), "strides {strides:?} do not fit shape {shape:?}");
    if out.is_empty() {
        return Ok(());
    }
    check_reach(src.len(), offset, strides, shape)?;
    let space = Space::new(shape, [strides]);
    let (n, [step]) = space.inner;
    if let Some(&(rows, [1])) = space.outer().last()
        && step != 1
        && step != 0
    {
        transpose_planes(par, src, offset, &space, rows, out);
        return Ok(());
    }
    let chunk = chunk_elems::<T>().max(if step == 1 { n.min(1 << 16) } else { 0 });
    par_chunks_mut(par, out, chunk, |i, out| {
        space.for_rows(i * chunk, out.len(), |[start], column, at, n| {
            let first = offset as isize + start + column as isize * step;
            copy_row(src, first, step, &mut out[at..][..n]);
        });
    });
    Ok(())
}

fn copy_row<T: Item>(src: &[T], first: isize, step: isize, out: &mut [T]) {
    match step {
        1 => out.copy_from_slice(&src[first as usize..][..out.len()]),
        0 => out.fill(src[first as usize]),
        _ => {
            let mut at = first;
            for out in out {
                *out = src[at as usize];
                at += step;
            }
        }
    }
}

fn check_reach(len: usize, offset: usize, strides: &[isize], shape: &[usize]) -> Result<(), KernelError> {
    let (mut low, mut high) = (offset as i128, offset as i128);
    for (&n, &step) in shape.iter().zip(strides) {
        let reach = (n as i128 - 1) * step as i128;
        if reach < 0 { low += reach } else { high += reach }
    }
    if low < 0 || high >= len as i128 {
        let clamp = |v: i128| v.clamp(i64::MIN as i128, i64::MAX as i128) as i64;
        return Err(KernelError::OutOfBounds { low: clamp(low), high: clamp(high), len });
    }
    Ok(())
}

/// Rows of the output are adjacent columns of the source, which is copied plane by plane.
fn transpose_planes<T: Item>(
    par: &dyn Par,
    src: &[T],
    offset: usize,
    space: &Space<1>,
    plane_rows: usize,
    out: &mut [T],
) {
    let (n, [step]) = space.inner;
    let rows_per_chunk = (chunk_elems::<T>() / n).next_multiple_of(2 * TILE).max(2 * TILE);
    par_chunks_mut(par, out, rows_per_chunk * n, |i, out| {
        let (mut row, end) = (i * rows_per_chunk, i * rows_per_chunk + out.len() / n);
        let mut rest = out;
        while row < end {
            // Rows of one plane; the next plane starts elsewhere.
            let rows = (plane_rows - row % plane_rows).min(end - row);
            let (plane, after) = rest.split_at_mut(rows * n);
            let first = offset as isize + space.cursor(row).offset[0];
            transpose_plane(src, first, step, plane, n);
            rest = after;
            row += rows;
        }
    });
}

/// `out[r * n + c] = src[first + c * step + r]` for all rows that `out` has.
fn transpose_plane<T: Item>(src: &[T], first: isize, step: isize, out: &mut [T], n: usize) {
    let fits = |side: usize| side <= n.min(out.len() / n);
    if step > 0 && squares::side(size_of::<T>()).is_some_and(fits) {
        return squares::turn(&src[first as usize..], step as usize, out, n);
    }
    // In tiles, so that both sides use whole cache lines.
    for (tile, out) in out.chunks_mut(TILE * n).enumerate() {
        for c0 in (0..n).step_by(TILE) {
            for (r, out) in out.chunks_mut(n).enumerate() {
                let from = first + (tile * TILE + r) as isize + c0 as isize * step;
                copy_row(src, from, step, &mut out[c0..n.min(c0 + TILE)]);
            }
        }
    }
}

/// `out` is `x` with its axes in the order `axes`: axis `i` of the output is axis `axes[i]` of `x`.
pub fn transpose<T: Item>(
    par: &dyn Par,
    x: &[T],
    shape: &[usize],
    axes: &[usize],
    out: &mut [T],
) -> Result<(), KernelError> {
    check_len("the input", x.len(), shape.iter().product());
    let strides = contiguous(shape);
    let out_shape: Vec<usize> = axes.iter().map(|&a| shape[a]).collect();
    let out_strides: Vec<isize> = axes.iter().map(|&a| strides[a]).collect();
    copy_strided(par, x, 0, &out_strides, &out_shape, out)
}

/// Multiplies strides by steps. No step is taken along an axis of one element, so that it may have
/// any size there.
fn take_steps(strides: &mut [isize], step: &[isize], extents: &[usize]) {
    for ((stride, step), extent) in strides.iter_mut().zip(step).zip(extents) {
        *stride = if *extent > 1 { *stride * step } else { 0 };
    }
}

/// `out[i...] = x[begin + i * step...]` over `out_shape`; steps may be negative.
pub fn slice<T: Item>(
    par: &dyn Par,
    x: &[T],
    shape: &[usize],
    begin: &[usize],
    step: &[isize],
    out_shape: &[usize],
    out: &mut [T],
) -> Result<(), KernelError> {
    check_len("the input", x.len(), shape.iter().product());
    let mut strides = contiguous(shape);
    let offset = begin.iter().zip(&strides).map(|(&b, &s)| b * s as usize).sum();
    take_steps(&mut strides, step, out_shape);
    copy_strided(par, x, offset, &strides, out_shape, out)
}

/// Writes `values` (of shape `part`) to `out[begin + i * step...]`: the counterpart of [`slice()`].
/// Runs in the calling thread.
pub fn assign_slice<T: Item>(
    values: &[T],
    part: &[usize],
    out: &mut [T],
    shape: &[usize],
    begin: &[usize],
    step: &[isize],
) -> Result<(), KernelError> {
    check_len("the values", values.len(), part.iter().product());
    check_len("the output", out.len(), shape.iter().product());
    if values.is_empty() {
        return Ok(());
    }
    let mut strides = contiguous(shape);
    let offset: usize = begin.iter().zip(&strides).map(|(&b, &s)| b * s as usize).sum();
    take_steps(&mut strides, step, part);
    check_reach(out.len(), offset, &strides, part)?;
    let space = Space::new(part, [&strides]);
    let (_, [inner_step]) = space.inner;
    space.for_rows(0, values.len(), |[start], _, at, n| {
        let mut to = offset as isize + start;
        for &v in &values[at..][..n] {
            out[to as usize] = v;
            to += inner_step;
        }
    });
    Ok(())
}

/// `out` is `x` with the marked axes reversed.
pub fn flip<T: Item>(
    par: &dyn Par,
    x: &[T],
    shape: &[usize],
    reversed: &[bool],
    out: &mut [T],
) -> Result<(), KernelError> {
    let begin: Vec<usize> =
        shape.iter().zip(reversed).map(|(&n, &r)| if r { n.saturating_sub(1) } else { 0 }).collect();
    let step: Vec<isize> = reversed.iter().map(|&r| if r { -1 } else { 1 }).collect();
    slice(par, x, shape, &begin, &step, shape, out)
}

/// `out` is `x` repeated along axes of size 1 (and new leading axes) to `out_shape`.
///
/// # Panics
/// If `shape` does not broadcast to `out_shape`.
pub fn broadcast_to<T: Item>(
    par: &dyn Par,
    x: &[T],
    shape: &[usize],
    out: &mut [T],
    out_shape: &[usize],
) -> Result<(), KernelError> {
    check_len("the input", x.len(), shape.iter().product());
    copy_strided(par, x, 0, &broadcast(shape, out_shape), out_shape, out)
}

/// `out` is `x` laid side by side `reps` times along every axis; the shorter of `shape` and `reps`
/// gets leading ones.
pub fn tile<T: Item>(
    par: &dyn Par,
    x: &[T],
    shape: &[usize],
    reps: &[usize],
    out: &mut [T],
) -> Result<(), KernelError> {
    check_len("the input", x.len(), shape.iter().product());
    let rank = shape.len().max(reps.len());
    let (mut out_shape, mut strides) = (Vec::with_capacity(2 * rank), Vec::with_capacity(2 * rank));
    let steps = contiguous(shape);
    for axis in 0..rank {
        let own = (axis + shape.len()).checked_sub(rank);
        out_shape.push((axis + reps.len()).checked_sub(rank).map_or(1, |r| reps[r]));
        strides.push(0);
        out_shape.push(own.map_or(1, |a| shape[a]));
        strides.push(own.map_or(0, |a| steps[a]));
    }
    copy_strided(par, x, 0, &strides, &out_shape, out)
}

/// `out[o, i * repeats + r, j] = x[o, i, j]` for `x` of shape `[outer, n, inner]`.
pub fn repeat<T: Item>(
    par: &dyn Par,
    x: &[T],
    [outer, n, inner]: [usize; 3],
    repeats: usize,
    out: &mut [T],
) -> Result<(), KernelError> {
    check_len("the input", x.len(), outer * n * inner);
    let strides = [(n * inner) as isize, inner as isize, 0, 1];
    copy_strided(par, x, 0, &strides, &[outer, n, repeats, inner], out)
}

/// Joins arrays of shape `[outer, n_k, inner]`, given with their `n_k`, along the middle axis.
pub fn concat<T: Item>(par: &dyn Par, inputs: &[(&[T], usize)], outer: usize, inner: usize, out: &mut [T]) {
    let row: usize = inputs.iter().map(|(_, n)| n * inner).sum();
    check_len("the output", out.len(), outer * row);
    inputs.iter().for_each(|(x, n)| check_len("an input", x.len(), outer * n * inner));
    let chunk = chunk_elems::<T>();
    par_chunks_mut(par, out, chunk, |i, out| {
        let (mut at, end) = (i * chunk, i * chunk + out.len());
        let start = at;
        while at < end {
            let (o, mut column) = (at / row, at % row);
            for (x, n) in inputs {
                let width = n * inner;
                if column < width && at < end {
                    let len = (width - column).min(end - at);
                    out[at - start..][..len].copy_from_slice(&x[o * width + column..][..len]);
                    at += len;
                    column = 0;
                } else {
                    column = column.saturating_sub(width);
                }
            }
        }
    });
}

/// Cuts `x` of shape `[outer, n, inner]` along the middle axis: output `k` gets the next
/// `sizes[k]`.
pub fn split<T: Item>(
    par: &dyn Par,
    x: &[T],
    [outer, n, inner]: [usize; 3],
    sizes: &[usize],
    outputs: &mut [&mut [T]],
) -> Result<(), KernelError> {
    check_len("the input", x.len(), outer * n * inner);
    let mut start = 0;
    for (&size, out) in sizes.iter().zip(outputs) {
        copy_strided(par, x, start * inner, &[(n * inner) as isize, 1], &[outer, size * inner], out)?;
        start += size;
    }
    Ok(())
}

/// The way in which an array is extended beyond its edges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PadMode<T> {
    /// Pads with this value.
    Constant(T),
    /// Pads with the value at the edge.
    Edge,
    /// Mirrored at the edge element, which is not repeated.
    Reflect,
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

/// Refuses widths for which an axis has too few elements.
fn check_widths<T>(shape: &[usize], widths: &[(usize, usize)], mode: PadMode<T>) -> Result<(), KernelError> {
    let padded = |axis: usize| widths[axis] != (0, 0);
    for (axis, &n) in shape.iter().enumerate().filter(|&(axis, _)| padded(axis)) {
        match mode {
            PadMode::Constant(_) => {}
            _ if n == 0 => return Err(KernelError::EmptyAxis { axis }),
            PadMode::Edge => {}
            PadMode::Reflect => {
                let pad = widths[axis].0.max(widths[axis].1);
                if pad >= n {
                    return Err(KernelError::ReflectTooWide { axis, pad, size: n });
                }
            }
        }
    }
    Ok(())
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
            (None, PadMode::Edge | PadMode::Reflect) => x[0],
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
        PadMode::Reflect => Some(if i < before { before - i } else { 2 * n - 2 - (i - before) }),
    }
}

#[cfg(test)]
mod tests;
