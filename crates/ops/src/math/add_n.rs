//! `add_n`: the sum of any number of arrays.

use crate::execution::in_single;
use crate::prelude::*;
use mxrt_kernels::elementwise::{self, Binary};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "add_n",
    aliases: &["ElementWiseSum", "_sparse_ElementWiseSum", "_sparse_add_n"],
    doc: "The sum of all inputs, element by element.",
    inputs: Inputs::Variadic { count: "num_args", prefix: "arg", named: |_| None },
    attrs: &[AttrDef::required("num_args", AttrKind::IntFrom(1), "Number of inputs.").unlisted()],
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

fn bind(_: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    // A sum of two is rounded once in any case.
    if signature.inputs.len() > 2 { in_single(signature, sum) } else { sum(signature) }
}

fn sum(signature: &Signature<'_>) -> BoundKernel {
    dispatch!(signature.inputs[0].dtype, all, T => Ok(costed_kernel_fn("plain", elementwise_ns(signature, 0), move |call| {
        let inputs = call.inputs.iter().map(elements::<T>).collect::<Result<Vec<_>, OpError>>()?;
        elementwise::add_n(call.par, &inputs, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f16s};

    #[test]
    fn half_precision_is_summed_in_single_precision() {
        let terms = [2048.0, 1.0, 1.0, 1.0];
        let test = terms.iter().fold(OpTest::new("add_n").attr("num_args", "4"), |test, v| test.f16([1], &[*v]));
        // 2051 lies between two numbers; in half precision 2048 + 1 is 2048.
        assert_eq!(f16s(&test.run(), [1]), [2052.0]);
    }
}
