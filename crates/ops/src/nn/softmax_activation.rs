//! `SoftmaxActivation`: softmax over the last axis, or over channels.

use super::softmax::{bind_softmax, softmax_form};
use super::softmax_output::of_one_axis;
use crate::prelude::*;
use mxrt_kernels::softmax::SoftmaxParams;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "SoftmaxActivation",
    doc: "Softmax along the last axis, or with mode channel along axis 1.",
    attrs: &[AttrDef::new(
        "mode",
        AttrKind::Enum(&["channel", "instance"]),
        "instance",
        "What is normalised together.",
    )],
    bind: |attrs, signature| bind_softmax(SoftmaxParams::default(), split(attrs, signature)?, signature),
    form: |attrs, signature| softmax_form(SoftmaxParams::default(), split(attrs, signature)?, signature),
    rewrites: &Rewrites {
        row_wise: |attrs, signature, divided| rows_of_data(attrs, signature, divided) && is_within_rows(-1, signature),
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

/// The axes around that of the softmax.
fn split(attrs: &Attrs, signature: &Signature<'_>) -> Result<[usize; 3], OpError> {
    let shape = &signature.inputs[0].shape;
    if let (Some(split), "instance") = (of_one_axis(signature), attrs.str("mode")) {
        return Ok(split);
    }
    if shape.len() < 2 {
        return Err(shape_error(format!("data has shape {shape}; a batch axis and at least one more are needed")));
    }
    Ok(match attrs.str("mode") {
        "channel" if shape.len() < 3 => {
            return Err(shape_error(format!("data has shape {shape}; mode channel needs at least 3 axes")));
        }
        "channel" => [shape[0], shape[1], shape[2..].iter().product()],
        _ => [shape[..shape.len() - 1].iter().product(), shape[shape.len() - 1], 1],
    })
}
