//! `_npi_share_memory`: whether two arrays share memory.

use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npi_share_memory",
    doc: "Whether two arrays share memory.",
    inputs: Inputs::Fixed(&["a", "b"]),
    ignores_unknown_attrs: true,
    infer_shape: |shapes| shapes.set_output(0, PartialShape::from_dims([])),
    infer_dtype: |dtypes| dtypes.set_output(0, DType::Bool),
    bind: |_, signature| {
        Ok(kernel_fn(signature, |call| {
            let ([a, b], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
            let (a, b) = (a.bytes().as_ptr_range(), b.bytes().as_ptr_range());
            elements_mut::<u8>(out)?.fill((a.start < b.end && b.start < a.end).into());
            Ok(())
        }))
    },
    // What it computes depends on where the arrays are, not on what they hold.
    random: true,
    ..OpDef::BASE
}];
