//! `_npi_bitwise_not`: all bits inverted.

use super::questions::{bind_question, equals};
use crate::prelude::*;
use mxrt_kernels::elementwise::{Binary, Question};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npi_bitwise_not",
    doc: "All bits inverted; of bool, the opposite.",
    inputs: Inputs::Fixed(&["x"]),
    ignores_unknown_attrs: true,
    bind: |_, signature| {
        if signature.inputs[0].dtype == DType::Bool {
            return bind_question(Question::Zero, signature);
        }
        dispatch!(signature.inputs[0].dtype, whole, T => Ok(kernel_fn(signature, move |call| {
            let (x, out) = (elements::<T>(&call.inputs[0])?, elements_mut::<T>(&mut call.outputs[0])?);
            out.iter_mut().zip(x).for_each(|(out, x)| *out = T::from_i64(!x.to_i64()));
            Ok(())
        })))
    },
    form: |_, signature| match signature.inputs[0].dtype {
        dtype if dtype.is_float() => Ok(None),
        DType::Bool => for_all(DType::Bool, equals(0.0)),
        // All bits but the own ones.
        dtype => for_all(dtype, KernelForm::WithNumber { function: Binary::BitXor, number: -1.0, first: false }),
    },
    ..OpDef::BASE
}];
