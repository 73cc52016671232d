//! `sort`, `argsort`: elements, or their positions, in order.

use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::sort::{Order, argsort, sort};
use mxrt_tensor::{DType, PartialShape, Shape};

const AXIS: AttrDef = AttrDef::new("axis", AttrKind::OptInt, "-1", "The axis; the flattened array if None.");
const ASCEND: AttrDef = AttrDef::new("is_ascend", AttrKind::Bool, "True", "Smallest first.");

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
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
    },
    OpDef {
        name: "argsort",
        aliases: &["_npi_argsort"],
        doc: "The positions along an axis of the elements in order, float32 unless dtype is given.",
        attrs: &[
            AXIS,
            ASCEND,
            AttrDef::new(
                "dtype",
                AttrKind::DType(&["float16", "float32", "float64", "int32", "int64", "uint8"]),
                "float32",
                "dtype of the positions.",
            ),
        ],
        infer_shape,
        infer_dtype: |dtypes| {
            let dtype = dtypes.attrs.opt_dtype("dtype").unwrap_or(DType::F32);
            dtypes.set_output(0, dtype)
        },
        bind: |attrs, signature| {
            let (split, order) = whole_order(attrs, signature)?;
            bind_positions(split, order, signature)
        },
        form: |attrs, signature| {
            let (split, order) = whole_order(attrs, signature)?;
            order_form(split, order, Ordered::Positions, signature)
        },
        ..OpDef::BASE
    },
];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
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
fn whole_order(attrs: &Attrs, signature: &Signature<'_>) -> Result<([usize; 3], Order), OpError> {
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

/// The positions of the first elements in order. Kernels are compiled for `f32`, the default, and
/// `i64`; other dtypes are converted.
pub(crate) fn bind_positions(split: [usize; 3], order: Order, signature: &Signature<'_>) -> BoundKernel {
    let to = signature.outputs[0].dtype;
    dispatch!(signature.inputs[0].dtype, numeric, T => match to {
        DType::F32 => Ok(kernel_fn(signature, move |call| {
            let x = elements::<T>(&call.inputs[0])?;
            argsort::<T, f32>(call.par, x, split, order, elements_mut(&mut call.outputs[0])?);
            Ok(())
        })),
        _ => Ok(kernel_fn(signature, move |call| {
            let mut positions = Scratch::<i64>::new(call.par, call.outputs[0].len());
            argsort::<T, i64>(call.par, elements(&call.inputs[0])?, split, order, &mut positions);
            store_integers(&positions, &mut call.outputs[0])
        })),
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn order_may_be_reversed() {
        let x = [3.0f32, 1.0, 2.0];
        assert_eq!(f32s(&OpTest::new("sort").f32([3], &x).run(), [3]), [1.0, 2.0, 3.0]);
        let y = OpTest::new("argsort").attr("is_ascend", "0").f32([3], &x).run();
        assert_eq!(f32s(&y, [3]), [0.0, 2.0, 1.0]);
        OpTest::new("sort").attr("axis", "1").f32([3], &x).error();
    }
}
