//! Other shapes and places for the same elements.

pub mod broadcast_to;
pub mod copy;
pub mod flip;
pub mod moveaxis;
pub mod npx_reshape;
pub mod reshape;
pub mod roll;
pub mod rot90;
pub mod squeeze;
pub mod transpose;

use crate::prelude::*;
use crate::shape::{PartialDims, Strided, bind_copy, bind_strided};
use mxrt_kernels::strides::contiguous;

const IDENTITY: OpDef = OpDef {
    inputs: Inputs::Fixed(&["a"]),
    bind: bind_copy,
    rewrites: &Rewrites { is_identity: |_| true, ..Rewrites::NONE },
    ..OpDef::BASE
};

const ORDER: AttrDef = AttrDef::new("order", AttrKind::Str, "C", "Order of the elements; only C is possible.");

const MOVED: OpDef = OpDef { inputs: Inputs::Fixed(&["a"]), ..OpDef::BASE };

fn check_order(attrs: &Attrs) -> Result<(), OpError> {
    match attrs.str("order") {
        "C" => Ok(()),
        other => Err(value_error(format!("order={other} is not supported, only C"))),
    }
}

fn misfit(data: &Shape, newshape: &[i64]) -> OpError {
    let list: Vec<String> = newshape.iter().map(i64::to_string).collect();
    shape_error(format!("cannot reshape array of shape {data} into shape ({})", list.join(", ")))
}

/// The axis of the input for every axis of the output.
type Order = fn(&Attrs, usize) -> Result<Dims, OpError>;

/// Axes that must all be different, in the order given.
fn different(name: &str, axes: &[i64], rank: usize) -> Result<Dims, OpError> {
    let resolved = axes.iter().map(|axis| resolve_axis(*axis, rank)).collect::<Result<Dims, OpError>>()?;
    match (1..resolved.len()).find(|i| resolved[..*i].contains(&resolved[*i])) {
        Some(i) => Err(value_error(format!("repeated axis {} in {name}", axes[i]))),
        None => Ok(resolved),
    }
}

fn infer_order(shapes: &mut Shapes<'_>, order: Order) -> Result<(), OpError> {
    if let Some(dims) = shapes.dims(0) {
        let order = order(shapes.attrs, dims.len())?;
        shapes.set_output(0, PartialShape::from_dims(order.iter().map(|axis| dims[*axis])))?;
    }
    let known = shapes.outputs[0].dims().map(PartialDims::from_slice);
    let Some(dims) = known else { return Ok(()) };
    let order = order(shapes.attrs, dims.len())?;
    let mut data: PartialDims = smallvec::smallvec![None; dims.len()];
    order.iter().zip(dims).for_each(|(axis, n)| data[*axis] = n);
    shapes.set_input(0, "a", PartialShape::from_dims(data))
}

fn ordered(order: Order, attrs: &Attrs, signature: &Signature<'_>) -> Result<Strided, OpError> {
    let shape = &signature.inputs[0].shape;
    let steps = contiguous(shape);
    let order = order(attrs, shape.len())?;
    Ok(Strided {
        offset: 0,
        strides: order.iter().map(|axis| steps[*axis]).collect(),
        shape: order.iter().map(|axis| shape[*axis]).collect(),
    })
}

fn bind_order(order: Order, attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    bind_strided(ordered(order, attrs, signature)?, signature)
}

/// Reads an axis from its end.
fn reverse(view: &mut Strided, axis: usize) {
    let last = view.shape[axis].saturating_sub(1) as isize * view.strides[axis];
    view.offset = view.offset.saturating_add_signed(last);
    view.strides[axis] = -view.strides[axis];
}
