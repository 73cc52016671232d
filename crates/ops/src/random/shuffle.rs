//! `_shuffle`: rows in random order.

use super::key;
use crate::prelude::*;
use mxrt_kernels::random::permutation;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_shuffle",
    aliases: &["_npi_shuffle", "shuffle"],
    doc: "The slices along the first axis in random order.",
    ignores_unknown_attrs: true,
    bind,
    form: |_, _| Ok(Some(KernelForm::Draw(DrawForm::Shuffle))),
    random: true,
    ..OpDef::BASE
}];

fn bind(_: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let rows = signature.inputs[0].shape.first().copied().unwrap_or(1);
    let row_bytes = signature.inputs[0].bytes().checked_div(rows).unwrap_or(0).max(1);
    Ok(kernel_fn(signature, move |call| {
        let RandomKey { seed, position } = key(call)?;
        let mut order = Scratch::<usize>::new(call.par, rows);
        permutation(seed, position, &mut order);
        let x = call.inputs[0].bytes();
        for (to, from) in call.outputs[0].bytes_mut().chunks_mut(row_bytes).zip(order.iter()) {
            to.copy_from_slice(&x[from * row_bytes..][..row_bytes]);
        }
        Ok(())
    }))
}
