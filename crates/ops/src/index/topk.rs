//! `topk`: the first elements in order.

use super::argsort::bind_positions;
use super::sort::{bind_values, order_form, split};
use crate::prelude::*;
use mxrt_kernels::sort::{Order, top_k, top_k_mask};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "topk",
    aliases: &["_npx_topk"],
    doc: "The k largest (or smallest) elements along an axis: their values, positions, both, or a \
        mask of them.",
    outputs: Outputs::Named(|attrs| match attrs.str("ret_typ") {
        "both" => &["output0", "output1"],
        "value" => &["output0"],
        _ => &["output"],
    }),
    hidden_outputs: |attrs| usize::from(attrs.str("ret_typ") == "value"),
    attrs: &[
        AttrDef::new("axis", AttrKind::OptInt, "-1", "The axis; the flattened array if None."),
        AttrDef::new("k", AttrKind::Int, "1", "How many; all if less than 1."),
        AttrDef::new("ret_typ", AttrKind::Enum(&["both", "indices", "mask", "value"]), "indices", "What to return."),
        AttrDef::new("is_ascend", AttrKind::Bool, "False", "Smallest first."),
        AttrDef::new(
            "dtype",
            AttrKind::DType(&["float16", "float32", "float64", "int32", "int64", "uint8"]),
            "float32",
            "dtype of positions.",
        ),
    ],
    infer_shape,
    infer_dtype,
    bind,
    form,
    ..OpDef::BASE
}];

/// How many of `n` elements are kept.
fn kept(attrs: &Attrs, n: usize) -> Result<usize, OpError> {
    match attrs.int("k") {
        k if k < 1 => Ok(n),
        k => usize::try_from(k)
            .ok()
            .filter(|k| *k <= n)
            .ok_or_else(|| value_error(format!("k must be no more than the {n} elements of the axis, got k={k}"))),
    }
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
    let axis = shapes.attrs.opt_int("axis").map(|axis| resolve_axis(axis, dims.len())).transpose()?;
    let mask = shapes.attrs.str("ret_typ") == "mask";
    let out = match (axis, shapes.input(0)) {
        (Some(axis), _) => {
            let k = dims[axis].map(|n| kept(shapes.attrs, n)).transpose()?;
            dims[axis] = if mask { dims[axis] } else { k };
            PartialShape::from_dims(dims)
        }
        (None, Some(shape)) => {
            let k = kept(shapes.attrs, shape.size())?;
            if mask { shape.into() } else { Shape::new(&[k]).into() }
        }
        (None, None) => return Ok(()),
    };
    for i in 0..shapes.outputs.len() {
        shapes.set_output(i, out.clone())?;
    }
    Ok(())
}

fn infer_dtype(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    let positions = dtypes.attrs.opt_dtype("dtype").unwrap_or(DType::F32);
    match dtypes.attrs.str("ret_typ") {
        "indices" => return dtypes.set_output(0, positions),
        "both" => dtypes.set_output(1, positions)?,
        _ => {}
    }
    match dtypes.inputs[0] {
        Some(dtype) => dtypes.set_output(0, dtype),
        None => Ok(()),
    }
}

/// The axes, and the order along the middle one.
fn order(attrs: &Attrs, signature: &Signature<'_>) -> Result<([usize; 3], Order), OpError> {
    let split = split(attrs, &signature.inputs[0].shape)?;
    Ok((split, Order { k: kept(attrs, split[1])?, ascending: attrs.bool("is_ascend") }))
}

fn form(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let (split, order) = order(attrs, signature)?;
    let give = match attrs.str("ret_typ") {
        "value" => Ordered::Values,
        "indices" => Ordered::Positions,
        "mask" => Ordered::Mask,
        _ => Ordered::Both,
    };
    order_form(split, order, give, signature)
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (split, order) = order(attrs, signature)?;
    match attrs.str("ret_typ") {
        "value" => bind_values(split, order, signature),
        "indices" => bind_positions(split, order, signature),
        "mask" => bind_mask(split, order, signature),
        _ => bind_both(split, order, signature),
    }
}

fn bind_mask(split: [usize; 3], order: Order, signature: &Signature<'_>) -> BoundKernel {
    dispatch!(signature.inputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
        let out = elements_mut::<T>(&mut call.outputs[0])?;
        top_k_mask::<T, T>(call.par, elements(&call.inputs[0])?, split, order, out);
        Ok(())
    })))
}

fn bind_both(split: [usize; 3], order: Order, signature: &Signature<'_>) -> BoundKernel {
    dispatch!(signature.inputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
        let ([x], [values, positions]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let mut found = Scratch::<i64>::new(call.par, positions.len());
        top_k::<T, i64>(call.par, elements(x)?, split, order, elements_mut(values)?, &mut found);
        store_integers(&found, positions)
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn values_positions_or_a_mask_come_back() {
        let of =
            |ret: &str| OpTest::new("topk").attr("k", "2").attr("ret_typ", ret).f32([1, 3], &[3.0, 1.0, 2.0]).run_all();
        assert_eq!(f32s(&of("indices")[0], [1, 2]), [0.0, 2.0]);
        assert_eq!(f32s(&of("mask")[0], [1, 3]), [1.0, 0.0, 1.0]);
        let both = of("both");
        assert_eq!([f32s(&both[0], [1, 2]), f32s(&both[1], [1, 2])], [[3.0, 2.0], [0.0, 2.0]]);
        OpTest::new("topk").attr("k", "4").f32([3], &[0.0; 3]).error();
    }
}
