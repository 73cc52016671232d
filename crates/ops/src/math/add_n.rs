//! `add_n`: the sum of any number of arrays.

use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::elementwise::{self, Binary};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "add_n",
    aliases: &["ElementWiseSum", "_sparse_ElementWiseSum", "_sparse_add_n"],
    doc: "The sum of all inputs, element by element.",
    inputs: Inputs::Variadic { count: "num_args", prefix: "arg", named: |_| None },
    attrs: &[AttrDef::required("num_args", AttrKind::IntFrom(1), "Number of inputs.")],
    bind,
    form,
    ..OpDef::BASE
}];

fn form(_: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let form = match signature.inputs.len() {
        1 => KernelForm::Copy,
        inputs => KernelForm::folded(Binary::Add, inputs),
    };
    for_all(signature.inputs[0].dtype, form)
}

fn bind(_: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    dispatch!(signature.inputs[0].dtype, all, T => Ok(costed_kernel_fn("plain", elementwise_ns(signature, 0), move |call| {
        let inputs = call.inputs.iter().map(elements::<T>).collect::<Result<Vec<_>, OpError>>()?;
        elementwise::add_n(call.par, &inputs, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}
