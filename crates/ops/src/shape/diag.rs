//! `diag`: a diagonal, or a matrix made of one.

use super::{Strided, bind_strided, placed_form, strided_form};
use crate::prelude::*;
use mxrt_kernels::strides::contiguous;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "diag",
    doc: "The k-th diagonal of the plane of two axes, as the last axis; of a vector, the square \
        matrix that has it as its k-th diagonal.",
    attrs: &[
        AttrDef::new("k", AttrKind::Int, "0", "Which diagonal: above the main one if positive, below if negative."),
        AttrDef::new("axis1", AttrKind::Int, "0", "First axis of the plane."),
        AttrDef::new("axis2", AttrKind::Int, "1", "Second axis of the plane."),
    ],
    infer_shape,
    bind,
    form: |attrs, signature| match signature.inputs[0].shape.len() {
        1 => placed_form(start(attrs.int("k"))?, signature),
        _ => strided_form(&view(attrs, signature)?),
    },
    ..OpDef::BASE
}];

/// Row and column where the diagonal begins.
fn start(k: i64) -> Result<(usize, usize), OpError> {
    let far = usize::try_from(k.unsigned_abs()).map_err(|_| value_error(format!("k={k} is too large")))?;
    Ok(if k < 0 { (far, 0) } else { (0, far) })
}

fn plane(attrs: &Attrs, rank: usize) -> Result<(usize, usize), OpError> {
    let (a, b) = (resolve_axis(attrs.int("axis1"), rank)?, resolve_axis(attrs.int("axis2"), rank)?);
    if a == b {
        return Err(value_error(format!("axis1 and axis2 cannot refer to the same axis {a}")));
    }
    Ok((a, b))
}

/// Number of elements on the diagonal.
fn length(shape: &[usize], (a, b): (usize, usize), k: i64) -> Result<usize, OpError> {
    let (row, column) = start(k)?;
    let n = shape[a].saturating_sub(row).min(shape[b].saturating_sub(column));
    if n == 0 {
        return Err(value_error(format!("k={k} lies outside of a plane of {} x {}", shape[a], shape[b])));
    }
    Ok(n)
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    if shapes.rank(0) == Some(1) {
        shapes.set_output(0, PartialShape::of_rank(2))?;
    }
    let Some(data) = shapes.input(0) else { return Ok(()) };
    let k = shapes.attrs.int("k");
    if let [n] = data[..] {
        let (row, column) = start(k)?;
        let edge = n.checked_add(row.max(column)).ok_or_else(|| value_error(format!("k={k} is too large")))?;
        return shapes.set_output(0, Shape::new(&[edge, edge]));
    }
    let (a, b) = plane(shapes.attrs, data.len())?;
    let mut out: Vec<usize> = (0..data.len()).filter(|i| *i != a && *i != b).map(|i| data[i]).collect();
    out.push(length(&data, (a, b), k)?);
    shapes.set_output(0, Shape::from(out))
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let data = &signature.inputs[0].shape;
    let k = attrs.int("k");
    let (row, column) = start(k)?;
    if let [_] = data[..] {
        let edge = signature.outputs[0].shape[0];
        return dispatch_size!(signature.inputs[0].dtype, T => Ok(kernel_fn(signature, move |call| {
            let x = elements::<T>(&call.inputs[0])?;
            let out = elements_mut::<T>(&mut call.outputs[0])?;
            out.fill(0);
            let diagonal = out.iter_mut().skip(row * edge + column).step_by(edge + 1);
            diagonal.zip(x).for_each(|(out, x)| *out = *x);
            Ok(())
        })));
    }
    bind_strided(view(attrs, signature)?, signature)
}

/// The diagonal of the planes of an array.
fn view(attrs: &Attrs, signature: &Signature<'_>) -> Result<Strided, OpError> {
    let data = &signature.inputs[0].shape;
    let (row, column) = start(attrs.int("k"))?;
    let (a, b) = plane(attrs, data.len())?;
    let steps = contiguous(data);
    let rest = (0..data.len()).filter(|i| *i != a && *i != b);
    let mut strides: Vec<isize> = rest.map(|i| steps[i]).collect();
    strides.push(steps[a] + steps[b]);
    let offset = row * steps[a] as usize + column * steps[b] as usize;
    Ok(Strided { offset, strides, shape: signature.outputs[0].shape.to_vec() })
}
