//! Moving elements: transposing, slicing, joining, padding, repeating.
//!
//! Everything that reads its source with strides is [`copy_strided`] with other strides.

mod join;
mod pad;
mod strided;

use bytemuck::Pod;

use crate::KernelError;
use crate::error::check_len;
use crate::par::{Par, chunk_elems, par_chunks_mut};
use crate::strides::{Space, broadcast, contiguous};
use strided::check_reach;

pub use join::{Part, concat, join};
pub use pad::{PadMode, pad};
pub use strided::copy_strided;

/// The values that these kernels move: any plain value.
pub trait Item: Pod + Send + Sync {}
impl<T: Pod + Send + Sync> Item for T {}

/// `out` is `x`.
pub fn copy<T: Item>(par: &dyn Par, x: &[T], out: &mut [T]) {
    check_len("the input", x.len(), out.len());
    let chunk = chunk_elems::<T>();
    par_chunks_mut(par, out, chunk, |i, out| out.copy_from_slice(&x[i * chunk..][..out.len()]));
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

#[cfg(test)]
mod tests;
