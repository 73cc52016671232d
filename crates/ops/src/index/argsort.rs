//! `argsort`: positions of elements in order.

use super::sort::{ASCEND, AXIS, infer_shape, order_form, whole_order};
use crate::prelude::*;
use mxrt_kernels::sort::{Order, argsort};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
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
}];

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
        let y = OpTest::new("argsort").attr("is_ascend", "0").f32([3], &[3.0, 1.0, 2.0]).run();
        assert_eq!(f32s(&y, [3]), [0.0, 2.0, 1.0]);
    }
}
