//! `_to_blocked` and `_from_blocked`: the borders between plain and blocked values.

use crate::core::*;
use mxrt_engine::OpError;
use mxrt_kernels::conv_fast::{Blocked, BlockedMut, from_blocked, to_blocked};

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_to_blocked",
        doc: "Copies a plain array into a blocked layout.",
        attrs: &[LAYOUTS, OUT_LAYOUT],
        infer_shape: |s| {
            let (_, out) = layouts(s.attrs)?;
            match (s.input(0), out) {
                (Some(x), Layout::Blocked(l)) if !x.is_empty() => s.set_output(0, l.physical(x[0])),
                _ => Ok(()),
            }
        },
        bind: bind_to,
        internal: true,
        ..OpDef::BASE
    },
    OpDef {
        name: "_from_blocked",
        doc: "Copies an array in a blocked layout into a plain one.",
        attrs: &[LAYOUTS, OUT_LAYOUT],
        infer_shape: |s| {
            let (inputs, _) = layouts(s.attrs)?;
            match (s.input(0), inputs.first()) {
                (Some(x), Some(Layout::Blocked(l))) if !x.is_empty() => s.set_output(0, l.logical(x[0])),
                _ => Ok(()),
            }
        },
        bind: bind_from,
        internal: true,
        ..OpDef::BASE
    },
];

fn images(signature: &Signature<'_>) -> usize {
    signature.inputs.first().and_then(|t| t.shape.first().copied()).unwrap_or(0)
}

fn bind_to(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let (_, Layout::Blocked(layout)) = layouts(attrs)? else { return Err(value_error("the output must be blocked")) };
    let (shape, isa) = (layout.shape(images(signature)), signature.options.isa);
    Ok(kernel_fn(signature, move |call| {
        let x = call.inputs[0].as_slice::<f32>()?;
        to_blocked(isa, x, &mut BlockedMut::new(shape, call.outputs[0].as_mut_slice()?), call.par);
        Ok(())
    }))
}

fn bind_from(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let (inputs, _) = layouts(attrs)?;
    let Some(Layout::Blocked(layout)) = inputs.first() else { return Err(value_error("the input must be blocked")) };
    let (shape, isa) = (layout.shape(images(signature)), signature.options.isa);
    Ok(kernel_fn(signature, move |call| {
        let x = Blocked::new(shape, call.inputs[0].as_slice::<f32>()?);
        from_blocked(isa, x, call.outputs[0].as_mut_slice()?, call.par);
        Ok(())
    }))
}
