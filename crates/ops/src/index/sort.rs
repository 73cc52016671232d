//! `sort`: elements in order.

use crate::prelude::*;
use mxrt_kernels::sort::{Order, sort};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "sort",
    aliases: &["_npi_sort"],
    doc: "The elements along an axis in order, equal ones as they came.",
    outputs: Outputs::Named(|_| &["output0"]),
    hidden_outputs: |_| 1,
    attrs: &[AXIS, ASCEND],
    infer_shape,
    bind: |attrs, signature| {
        let (split, order) = whole_order(attrs, signature)?;
        bind_values(split, order, signature)
    },
    form: |attrs, signature| {
        let (split, order) = whole_order(attrs, signature)?;
        order_form(split, order, Ordered::Values, signature)
    },
    ..OpDef::BASE
}];

pub(super) const AXIS: AttrDef = AttrDef::new("axis", AttrKind::OptInt, "-1", "The axis; the flattened array if None.");
pub(super) const ASCEND: AttrDef = AttrDef::new("is_ascend", AttrKind::Bool, "True", "Smallest first.");

pub(super) fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(dims) = shapes.dims(0) else { return Ok(()) };
    match shapes.attrs.opt_int("axis") {
        None => match shapes.input(0) {
            Some(shape) => shapes.set_output(0, Shape::new(&[shape.size()])),
            None => Ok(()),
        },
        Some(axis) => {
            resolve_axis(axis, dims.len())?;
            shapes.set_output(0, PartialShape::from_dims(dims))
        }
    }
}

/// Joins the axes before the sorted axis into one, and those after it. Without a sorted axis, all
/// axes become one.
pub(crate) fn split(attrs: &Attrs, shape: &Shape) -> Result<[usize; 3], OpError> {
    let split = split_or_all(attrs.opt_int("axis"), shape)?;
    if u32::try_from(split[1].saturating_mul(split[2])).is_err() {
        return Err(value_error("more than 2^32 elements cannot be sorted"));
    }
    Ok(split)
}

/// The axes, and the order of all elements along the middle one.
pub(super) fn whole_order(attrs: &Attrs, signature: &Signature<'_>) -> Result<([usize; 3], Order), OpError> {
    let split = split(attrs, &signature.inputs[0].shape)?;
    Ok((split, Order { k: split[1], ascending: attrs.bool("is_ascend") }))
}

/// The form of the first elements in order.
pub(crate) fn order_form(split: [usize; 3], order: Order, give: Ordered, signature: &Signature<'_>) -> MaybeForm {
    for_numeric(signature.inputs[0].dtype, KernelForm::Order { split, order, give })
}

/// The first elements in order.
pub(crate) fn bind_values(split: [usize; 3], order: Order, signature: &Signature<'_>) -> BoundKernel {
    dispatch!(signature.inputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
        sort(call.par, elements::<T>(&call.inputs[0])?, split, order, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn elements_ascend() {
        let x = [3.0, 1.0, 2.0];
        assert_eq!(f32s(&OpTest::new("sort").f32([3], &x).run(), [3]), [1.0, 2.0, 3.0]);
        OpTest::new("sort").attr("axis", "1").f32([3], &x).error();
    }
}
