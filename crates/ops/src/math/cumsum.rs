//! `_np_cumsum`: running sums.

use super::cast::convert;
use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::reduce::cumsum;
use mxrt_tensor::{Shape, TensorMut};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_np_cumsum",
    aliases: &["cumsum"],
    doc: "Running sums along an axis, or of the flattened array.",
    inputs: Inputs::Fixed(&["a"]),
    attrs: &[
        AttrDef::new("axis", AttrKind::OptInt, "None", "The axis; the flattened array if not given."),
        AttrDef::new(
            "dtype",
            AttrKind::DType(&["None", "float16", "float32", "float64", "int32", "int64", "int8"]),
            "None",
            "dtype of the result; that of the input if not given.",
        ),
    ],
    infer_shape: |shapes| match shapes.attrs.opt_int("axis") {
        Some(_) => shapes.same_as_first(),
        None => match shapes.input(0) {
            Some(shape) => shapes.set_output(0, Shape::new(&[shape.size()])),
            None => Ok(()),
        },
    },
    infer_dtype: |dtypes| match dtypes.attrs.opt_dtype("dtype").or(dtypes.inputs[0]) {
        Some(dtype) => dtypes.set_output(0, dtype),
        None => Ok(()),
    },
    bind,
    form,
    ..OpDef::BASE
}];

fn form(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let data = &signature.inputs[0];
    for_numeric(data.dtype, KernelForm::RunningSum { split: split_or_all(attrs.opt_int("axis"), &data.shape)? })
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let split = split_or_all(attrs.opt_int("axis"), &signature.inputs[0].shape)?;
    let (from, to) = (signature.inputs[0].dtype, signature.outputs[0].dtype);
    if from == to {
        return dispatch!(to, numeric, T => Ok(kernel_fn(signature, move |call| {
            cumsum::<T, T>(call.par, elements(&call.inputs[0])?, split, elements_mut(&mut call.outputs[0])?);
            Ok(())
        })));
    }
    check_numeric(from)?;
    dispatch!(to, numeric, T => Ok(kernel_fn(signature, move |call| {
        let x = &call.inputs[0];
        let mut converted = vec![<T as mxrt_kernels::Element>::ZERO; x.len()];
        convert(call.par, x, &mut TensorMut::new(to, x.shape, bytemuck::cast_slice_mut(&mut converted)))?;
        cumsum::<T, T>(call.par, &converted, split, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}
