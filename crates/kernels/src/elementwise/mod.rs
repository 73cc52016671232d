//! Element by element: functions of one array, of two, of an array and a number.
//!
//! The tables `unary.rs` and `binary.rs` have the functions, for blocks of elements. Here blocks
//! are cut, broadcast and divided among threads.

use crate::element::Element;
use crate::error::check_len;
use crate::par::{Par, chunk_elems, par_chunks_mut};
use crate::strides::{Space, broadcast};

mod around;
mod binary;
mod comparison;
mod functions;
mod unary;

pub use around::around;
pub use binary::Binary;
pub use comparison::{Comparison, Question, ask, compare, compare_number};
pub use functions::FunctionCost;
pub use unary::Unary;

/// Elements that scalars are spread over and in-place operands are copied to.
pub(crate) const BLOCK: usize = 256;

/// `out[i] = op(x[i])`.
pub fn unary<T: Element>(par: &dyn Par, op: Unary, x: &[T], out: &mut [T]) {
    check_len("the input", x.len(), out.len());
    let chunk = chunk_elems::<T>();
    par_chunks_mut(par, out, chunk, |i, out| {
        T::unary_block(op, &x[i * chunk..][..out.len()], out);
    });
}

/// `x[i] = op(x[i])`.
pub fn unary_inplace<T: Element>(par: &dyn Par, op: Unary, x: &mut [T]) {
    par_chunks_mut(par, x, chunk_elems::<T>(), |_, x| {
        let mut block = [T::ZERO; BLOCK];
        for x in x.chunks_mut(BLOCK) {
            let before = &mut block[..x.len()];
            before.copy_from_slice(x);
            T::unary_block(op, before, x);
        }
    });
}

/// `out[i] = op(a[i], b[i])`.
pub fn binary<T: Element>(par: &dyn Par, op: Binary, a: &[T], b: &[T], out: &mut [T]) {
    check_len("the first input", a.len(), out.len());
    check_len("the second input", b.len(), out.len());
    let chunk = chunk_elems::<T>();
    par_chunks_mut(par, out, chunk, |i, out| {
        let (start, n) = (i * chunk, out.len());
        T::binary_block(op, &a[start..][..n], &b[start..][..n], out);
    });
}

/// `a[i] = op(a[i], b[i])`.
pub fn binary_inplace<T: Element>(par: &dyn Par, op: Binary, a: &mut [T], b: &[T]) {
    check_len("the second input", b.len(), a.len());
    let chunk = chunk_elems::<T>();
    par_chunks_mut(par, a, chunk, |i, a| {
        let mut block = [T::ZERO; BLOCK];
        for (a, b) in a.chunks_mut(BLOCK).zip(b[i * chunk..].chunks(BLOCK)) {
            let before = &mut block[..a.len()];
            before.copy_from_slice(a);
            T::binary_block(op, before, &b[..a.len()], a);
        }
    });
}

/// `out[i] = op(x[i], scalar)`. MXNet converts the scalar to the type of the array first:
/// [`Element::from_f64`].
pub fn binary_scalar<T: Element>(par: &dyn Par, op: Binary, x: &[T], scalar: T, out: &mut [T]) {
    check_len("the input", x.len(), out.len());
    let chunk = chunk_elems::<T>();
    par_chunks_mut(par, out, chunk, |i, out| {
        row(op, &x[i * chunk..][..out.len()], 1, &[scalar], 0, out);
    });
}

/// `out[i] = op(scalar, x[i])`.
pub fn scalar_binary<T: Element>(par: &dyn Par, op: Binary, scalar: T, x: &[T], out: &mut [T]) {
    check_len("the input", x.len(), out.len());
    let chunk = chunk_elems::<T>();
    par_chunks_mut(par, out, chunk, |i, out| {
        row(op, &[scalar], 0, &x[i * chunk..][..out.len()], 1, out);
    });
}

/// `out = op(a, b)` where `a` and `b` broadcast to `out_shape`: axes are matched from the right,
/// axes of size 1 repeat.
///
/// # Panics
/// If a shape does not broadcast to `out_shape`.
pub fn binary_broadcast<T: Element>(
    par: &dyn Par,
    op: Binary,
    a: &[T],
    a_shape: &[usize],
    b: &[T],
    b_shape: &[usize],
    out: &mut [T],
    out_shape: &[usize],
) {
    check_len("the first input", a.len(), a_shape.iter().product());
    check_len("the second input", b.len(), b_shape.iter().product());
    check_len("the output", out.len(), out_shape.iter().product());
    let space = Space::new(out_shape, [&broadcast(a_shape, out_shape), &broadcast(b_shape, out_shape)]);
    let [sa, sb] = space.inner.1;
    let chunk = chunk_elems::<T>();
    par_chunks_mut(par, out, chunk, |i, out| {
        space.for_rows(i * chunk, out.len(), |[a0, b0], column, start, n| {
            let a = &a[a0 as usize + column * sa as usize..];
            let b = &b[b0 as usize + column * sb as usize..];
            row(op, a, sa, b, sb, &mut out[start..][..n]);
        });
    });
}

/// One row; operands advance by their stride, 1 or 0.
fn row<T: Element>(op: Binary, a: &[T], sa: isize, b: &[T], sb: isize, out: &mut [T]) {
    let n = out.len();
    match (sa, sb) {
        (1, 1) => T::binary_block(op, &a[..n], &b[..n], out),
        (1, _) => {
            let scalars = [b[0]; BLOCK];
            for (out, a) in out.chunks_mut(BLOCK).zip(a[..n].chunks(BLOCK)) {
                T::binary_block(op, a, &scalars[..out.len()], out);
            }
        }
        (_, 1) => {
            let scalars = [a[0]; BLOCK];
            for (out, b) in out.chunks_mut(BLOCK).zip(b[..n].chunks(BLOCK)) {
                T::binary_block(op, &scalars[..out.len()], b, out);
            }
        }
        _ => {
            let mut value = [T::ZERO];
            T::binary_block(op, &a[..1], &b[..1], &mut value);
            out.fill(value[0]);
        }
    }
}

/// `out = inputs[0] + inputs[1] + ...`, added in that order; nothing gives zeros.
pub fn add_n<T: Element>(par: &dyn Par, inputs: &[&[T]], out: &mut [T]) {
    inputs.iter().for_each(|x| check_len("an input", x.len(), out.len()));
    let chunk = chunk_elems::<T>();
    par_chunks_mut(par, out, chunk, |i, out| {
        let mut sum = [T::ZERO; BLOCK];
        for (j, out) in out.chunks_mut(BLOCK).enumerate() {
            let (start, n) = (i * chunk + j * BLOCK, out.len());
            match inputs {
                [] => out.fill(T::ZERO),
                [first, rest @ ..] => {
                    out.copy_from_slice(&first[start..][..n]);
                    for x in rest {
                        sum[..n].copy_from_slice(out);
                        T::binary_block(Binary::Add, &sum[..n], &x[start..][..n], out);
                    }
                }
            }
        }
    });
}

#[cfg(test)]
mod tests;
