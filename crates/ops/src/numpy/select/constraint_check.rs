//! `_npx_constraint_check`: an error unless all elements are true.

use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npx_constraint_check",
    doc: "True where all elements of the input are; else an error with the message.",
    inputs: Inputs::Fixed(&["input"]),
    attrs: &[AttrDef::new("msg", AttrKind::Str, "Constraint violated.", "The message.")],
    infer_shape: |shapes| shapes.set_output(0, PartialShape::from_dims([])),
    infer_dtype: |dtypes| {
        dtypes.set_input(0, "input", DType::Bool)?;
        dtypes.set_output(0, DType::Bool)
    },
    bind: |attrs, signature| {
        let message = attrs.str("msg").to_owned();
        Ok(kernel_fn(signature, move |call| {
            if elements::<u8>(&call.inputs[0])?.contains(&0) {
                return Err(value_error(message.clone()));
            }
            elements_mut::<u8>(&mut call.outputs[0])?.fill(1);
            Ok(())
        }))
    },
    ..OpDef::BASE
}];
