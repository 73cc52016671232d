//! Elements picked by a condition, and places of those that are not 0.

pub mod boolean_mask_assign;
pub mod constraint_check;
pub mod nonzero;
pub mod share_memory;
pub mod where_op;

use crate::prelude::*;
use mxrt_kernels::Par;
use mxrt_kernels::shape::copy_strided;
use mxrt_kernels::strides::broadcast;

pub(super) fn common_shape(all: &[Shape]) -> Result<Shape, OpError> {
    let rank = all.iter().map(|s| s.len()).max().unwrap_or(0);
    let mut common = vec![1; rank];
    for shape in all {
        for (want, n) in common[rank - shape.len()..].iter_mut().zip(shape.iter()) {
            if *want == 1 {
                *want = *n;
            } else if *n != 1 && n != want {
                let list: Vec<String> = all.iter().map(Shape::to_string).collect();
                return Err(shape_error(format!(
                    "operands could not be broadcast together with shapes {}",
                    list.join(" ")
                )));
            }
        }
    }
    Ok(Shape::from(common))
}

/// The elements repeated to a shape.
fn spread<'a, T: Element>(
    par: &dyn Par,
    x: &'a [T],
    shape: &[usize],
    out: &[usize],
) -> Result<ReadElements<'a, T>, OpError> {
    if shape == out {
        return Ok(ReadElements::Borrowed(x));
    }
    let mut made = Scratch::new(par, out.iter().product());
    copy_strided(par, x, 0, &broadcast(shape, out), out, &mut made).map_err(kernel_error)?;
    Ok(ReadElements::Made(made))
}

/// The places of what is not 0.
fn places_of(par: &dyn Par, mask: &[u8]) -> Scratch<usize> {
    let count = mask.iter().filter(|mark| **mark != 0).count();
    Scratch::collect(par, count, (0..mask.len()).filter(|i| mask[*i] != 0))
}
