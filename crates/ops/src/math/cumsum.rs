//! `_np_cumsum`: running sums.

use crate::execution::in_single;
use crate::prelude::*;
use mxrt_kernels::reduce::cumsum;
use mxrt_tensor::{TensorMut, TensorRef};

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
            AttrKind::OptDType(&["float16", "float32", "float64", "int32", "int64", "int8"]),
            "None",
            "dtype of the result; if not given that of the input, and int64 for bool.",
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
        Some(DType::Bool) => dtypes.set_output(0, DType::I64),
        Some(dtype) => dtypes.set_output(0, dtype),
        None => Ok(()),
    },
    bind,
    form,
    ..OpDef::BASE
}];

fn form(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let data = &signature.inputs[0];
    for_all(data.dtype, KernelForm::RunningSum { split: split_or_all(attrs.opt_int("axis"), &data.shape)? })
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let split = split_or_all(attrs.opt_int("axis"), &signature.inputs[0].shape)?;
    in_single(signature, |signature| bind_sums(split, signature))
}

fn bind_sums(split: [usize; 3], signature: &Signature<'_>) -> BoundKernel {
    let (from, to) = (signature.inputs[0].dtype, signature.outputs[0].dtype);
    if from == to {
        return dispatch!(to, numeric, T => Ok(kernel_fn(signature, move |call| {
            cumsum::<T, T>(call.par, elements(&call.inputs[0])?, split, elements_mut(&mut call.outputs[0])?);
            Ok(())
        })));
    }
    if from != DType::Bool {
        check_numeric(from)?;
    }
    if to == DType::F16 {
        // Sums of half precision are made in single precision, and each is rounded once.
        return Ok(kernel_fn(signature, move |call| {
            let mut sums = Scratch::<f32>::new(call.par, call.outputs[0].len());
            cumsum::<f32, f32>(call.par, &converted(call, DType::F32)?, split, &mut sums);
            let sums = TensorRef::new(DType::F32, call.inputs[0].shape, bytemuck::cast_slice(&sums));
            convert(call.par, &sums, &mut call.outputs[0])
        }));
    }
    dispatch!(to, numeric, T => Ok(kernel_fn(signature, move |call| {
        cumsum::<T, T>(call.par, &converted(call, to)?, split, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}

/// The elements of the input as those of another dtype.
pub(crate) fn converted<T: Element>(call: &KernelCall<'_, '_>, dtype: DType) -> Result<Scratch<T>, OpError> {
    let x = &call.inputs[0];
    let mut made = Scratch::<T>::new(call.par, x.len());
    convert(call.par, x, &mut TensorMut::new(dtype, x.shape, bytemuck::cast_slice_mut(&mut made)))?;
    Ok(made)
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f16s};
    use mxrt_tensor::DType;

    #[test]
    fn half_precision_is_summed_in_single_precision() {
        let sums = f16s(&OpTest::new("cumsum").f16([4096], &vec![1.0; 4096]).run(), [4096]);
        assert_eq!([sums[0], sums[2047], sums[4095]], [1.0, 2048.0, 4096.0]);
        let whole = OpTest::new("cumsum").attr("dtype", "float16").i32([4096], &vec![1; 4096]);
        assert_eq!(f16s(&whole.run(), [4096])[4095], 4096.0);
    }

    #[test]
    fn bool_is_counted() {
        let counts = OpTest::new("cumsum").bools(&[4], &[true, false, true, true]).run();
        assert_eq!((counts.tensor.dtype, counts.values::<i64>()), (DType::I64, vec![1, 1, 2, 3]));
    }
}
