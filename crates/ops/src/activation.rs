//! `Activation`: relu, sigmoid, tanh, softrelu, softsign.

use crate::core::*;
use mxrt_engine::{FailureKind, OpError};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "Activation",
    doc: "Applies an activation function element-wise to the input.",
    attrs: &[AttrDef::required(
        "act_type",
        AttrKind::Enum(&["relu", "sigmoid", "softrelu", "softsign", "tanh"]),
        "Activation function to be applied.",
    )],
    bind,
    ..OpDef::BASE
}];

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let f: fn(f32) -> f32 = match attrs.str("act_type") {
        "relu" => |x| if x > 0.0 { x } else { 0.0 },
        "sigmoid" => |x| 1.0 / (1.0 + (-x).exp()),
        "tanh" => f32::tanh,
        other => return Err(OpError::new(FailureKind::NotImplemented, format!("act_type {other}"))),
    };
    Ok(kernel_fn(signature, move |call| {
        let x = call.inputs[0].as_slice::<f32>()?;
        for (y, x) in call.outputs[0].as_mut_slice::<f32>()?.iter_mut().zip(x) {
            *y = f(*x);
        }
        Ok(())
    }))
}
