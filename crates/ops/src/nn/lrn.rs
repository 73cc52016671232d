//! `LRN`: local response normalisation across channels.

use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::norm::{LrnParams, lrn};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "LRN",
    doc: "Divides by (knorm + alpha / nsize * sum of squares over nsize neighbouring channels) ^ \
        beta.",
    hidden_outputs: |_| 1,
    attrs: &[
        AttrDef::new("alpha", AttrKind::Float, "9.99999975e-05", "Scale of the sum of squares."),
        AttrDef::new("beta", AttrKind::Float, "0.75", "Exponent."),
        AttrDef::new("knorm", AttrKind::Float, "2", "Offset."),
        AttrDef::required("nsize", AttrKind::IntFrom(0), "Number of channels in the window; odd.").unsigned(),
    ],
    bind,
    form,
    rewrites: &Rewrites { row_wise: rows_of_data, ..Rewrites::NONE },
    ..OpDef::BASE
}];

/// Parameters, and the axes around the channels.
fn params(attrs: &Attrs, signature: &Signature<'_>) -> Result<(LrnParams, [usize; 3]), OpError> {
    let shape = &signature.inputs[0].shape;
    let params = LrnParams {
        size: attrs.count("nsize"),
        alpha: attrs.float("alpha"),
        beta: attrs.float("beta"),
        knorm: attrs.float("knorm"),
    };
    if params.size.is_multiple_of(2) {
        return Err(value_error(format!("nsize must be odd, got {}", params.size)));
    }
    if shape.len() != 4 {
        return Err(shape_error(format!("data must have 4 axes (batch, channel, height, width), got {shape}")));
    }
    Ok((params, [shape[0], shape[1], shape[2] * shape[3]]))
}

fn form(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let (params, split) = params(attrs, signature)?;
    for_floats(signature.inputs[0].dtype, KernelForm::ResponseNorm { params, split })
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let (params, split) = params(attrs, signature)?;
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let x = elements::<T>(&call.inputs[0])?;
        lrn(call.par, params, x, split, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}
