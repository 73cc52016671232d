//! Diagonals, matrices made of them, and triangles.

pub mod diag;
pub mod diag_indices_from;
pub mod diagflat;
pub mod diagonal;
pub mod trace;
pub mod tril;

use crate::prelude::*;
use crate::shape::Strided;
use mxrt_kernels::strides::contiguous;

const OFFSET: AttrDef =
    AttrDef::new("offset", AttrKind::Int, "0", "Which diagonal: above the main one if positive, below if negative.");
const K: AttrDef =
    AttrDef::new("k", AttrKind::Int, "0", "Which diagonal: above the main one if positive, below if negative.");
const AXIS1: AttrDef = AttrDef::new("axis1", AttrKind::Int, "0", "First axis of the plane.");
const AXIS2: AttrDef = AttrDef::new("axis2", AttrKind::Int, "1", "Second axis of the plane.");

/// Row and column where a diagonal begins.
fn start(k: i64) -> (usize, usize) {
    let far = usize::try_from(k.unsigned_abs()).unwrap_or(usize::MAX);
    if k < 0 { (far, 0) } else { (0, far) }
}

/// The shape of the square matrix that has `n` elements on its k-th diagonal.
fn square(n: usize, k: i64) -> Result<Shape, OpError> {
    let edge = usize::try_from(k.unsigned_abs()).ok().and_then(|far| n.checked_add(far));
    let edge = edge.ok_or_else(|| value_error(format!("k={k} is too large")))?;
    checked_product(&[edge, edge])?;
    Ok(Shape::new(&[edge, edge]))
}

/// The diagonal of a plane; without elements where it is outside.
fn diagonal(shape: &[usize], (a, b): (usize, usize), k: i64) -> Result<Strided, OpError> {
    let (row, column) = start(k);
    let n = shape[a].saturating_sub(row).min(shape[b].saturating_sub(column));
    let steps = contiguous(shape);
    let rest = (0..shape.len()).filter(|axis| *axis != a && *axis != b);
    let (mut strides, mut extents): (Vec<isize>, Vec<usize>) = rest.map(|axis| (steps[axis], shape[axis])).unzip();
    strides.push(steps[a] + steps[b]);
    extents.push(n);
    let offset = if n == 0 { 0 } else { row * steps[a] as usize + column * steps[b] as usize };
    Ok(Strided { offset, strides, shape: extents })
}

fn of_plane(attrs: &Attrs, shape: &[usize]) -> Result<Strided, OpError> {
    if shape.len() < 2 {
        return Err(shape_error(format!("the input has {} axes; a diagonal needs two at least", shape.len())));
    }
    let axes = (resolve_axis(attrs.int("axis1"), shape.len())?, resolve_axis(attrs.int("axis2"), shape.len())?);
    if axes.0 == axes.1 {
        return Err(value_error("axis1 and axis2 cannot be the same"));
    }
    diagonal(shape, axes, attrs.int("offset"))
}

/// A matrix of zeros with the input as its k-th diagonal.
fn bind_placed(k: i64, signature: &Signature<'_>) -> BoundKernel {
    let (row, column) = start(k);
    let edge = signature.outputs[0].shape[0];
    dispatch_size!(signature.inputs[0].dtype, T => Ok(kernel_fn(signature, move |call| {
        let (x, out) = (elements::<T>(&call.inputs[0])?, elements_mut::<T>(&mut call.outputs[0])?);
        out.fill(0);
        let places = out.iter_mut().skip(row * edge + column).step_by(edge + 1);
        places.zip(x).for_each(|(out, x)| *out = *x);
        Ok(())
    })))
}
