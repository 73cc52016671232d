//! `L2Normalization`: vectors scaled to length 1.

use crate::prelude::*;
use mxrt_kernels::norm::l2_normalization;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "L2Normalization",
    doc: "Divides by the Euclidean norm: of a whole instance, of the channels at each place, or of \
        the places of each channel.",
    hidden_outputs: |_| 1,
    attrs: &[
        AttrDef::new("eps", AttrKind::Float, "1.00000001e-10", "Added to the sum of squares."),
        AttrDef::new(
            "mode",
            AttrKind::Enum(&["channel", "instance", "spatial"]),
            "instance",
            "What has norm 1 afterwards.",
        ),
    ],
    bind,
    form,
    rewrites: &Rewrites { row_wise: rows_of_data, ..Rewrites::NONE },
    ..OpDef::BASE
}];

/// The axes before, of and after those that get norm 1.
fn split(attrs: &Attrs, signature: &Signature<'_>) -> Result<[usize; 3], OpError> {
    let shape = &signature.inputs[0].shape;
    let mode = attrs.str("mode");
    let least = if mode == "instance" { 1 } else { 3 };
    if shape.len() < least {
        return Err(shape_error(format!("data has shape {shape}; mode {mode} needs at least {least} axes")));
    }
    Ok(match mode {
        "channel" => [shape[0], shape[1], shape[2..].iter().product()],
        "spatial" => [shape[..2].iter().product(), shape[2..].iter().product(), 1],
        _ => [shape[0], shape[1..].iter().product(), 1],
    })
}

fn form(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let (split, eps) = (split(attrs, signature)?, attrs.float("eps"));
    for_floats(signature.inputs[0].dtype, KernelForm::UnitNorm { split, eps })
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (split, eps) = (split(attrs, signature)?, attrs.float("eps"));
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let x = elements::<T>(&call.inputs[0])?;
        l2_normalization(call.par, x, split, eps, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}
