//! `shape_array`, `size_array`: shape and number of elements as arrays.

use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "shape_array",
        aliases: &["_npx_shape_array"],
        doc: "The shape of the input, as an array of int64.",
        ignores_unknown_attrs: true,
        infer_shape: |shapes| shapes.set_output(0, PartialShape::from_dims([shapes.rank(0)])),
        infer_dtype: |dtypes| dtypes.set_output(0, DType::I64),
        bind: |_, signature| bind(shape(signature), signature),
        form: |_, signature| Ok(Some(KernelForm::Numbers(shape(signature)))),
        ..OpDef::BASE
    },
    OpDef {
        name: "size_array",
        doc: "The number of elements of the input, as an array of one int64.",
        ignores_unknown_attrs: true,
        infer_shape: |shapes| shapes.set_output(0, Shape::new(&[1])),
        infer_dtype: |dtypes| dtypes.set_output(0, DType::I64),
        bind: |_, signature| bind(vec![signature.inputs[0].shape.size() as i64], signature),
        form: |_, signature| Ok(Some(KernelForm::Numbers(vec![signature.inputs[0].shape.size() as i64]))),
        ..OpDef::BASE
    },
];

fn shape(signature: &Signature<'_>) -> Vec<i64> {
    signature.inputs[0].shape.iter().map(|extent| *extent as i64).collect()
}

fn bind(values: Vec<i64>, signature: &Signature<'_>) -> BoundKernel {
    Ok(kernel_fn(signature, move |call| {
        elements_mut::<i64>(&mut call.outputs[0])?.copy_from_slice(&values);
        Ok(())
    }))
}
