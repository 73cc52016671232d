//! `_to_blocked` and `_from_blocked`: the borders between plain and blocked values.

use super::{infer_from_layout, is_bytes, shape_of, takes_lines};
use crate::prelude::*;
use crate::quantized::layer::rows;
use mxrt_kernels::blocked::{Blocked, BlockedMut, from_blocked, to_blocked};
use mxrt_kernels::int8::{from_pixels, to_pixels};

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_to_blocked",
        doc: "Copies a plain array into a blocked layout.",
        attrs: &[LAYOUTS, OUT_LAYOUT],
        infer_shape: |shapes| infer_from_layout(shapes),
        bind: bind_to,
        internal: true,
        ..OpDef::BASE
    },
    OpDef {
        name: "_from_blocked",
        doc: "Copies an array in a blocked layout into a plain one.",
        attrs: &[LAYOUTS, OUT_LAYOUT],
        infer_shape: |shapes| infer_from_layout(shapes),
        bind: bind_from,
        internal: true,
        rewrites: &Rewrites { lines: |_, signature| takes_lines(signature, 1), ..Rewrites::NONE },
        ..OpDef::BASE
    },
];

fn bind_to(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (_, output) = layouts(attrs)?;
    let (shape, isa) = (shape_of(Some(&output), signature)?, signature.options.isa);
    if is_bytes(signature.inputs[0].dtype) {
        return Ok(costed_kernel_fn("pixels", streaming_ns(signature), move |call| {
            let ([x], [y]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
            to_pixels(call.par, rows(x), shape, y.bytes_mut());
            Ok(())
        }));
    }
    Ok(costed_kernel_fn(isa.name(), streaming_ns(signature), move |call| {
        let ([x], [y]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        to_blocked(isa, x.as_slice()?, &mut BlockedMut::new(shape, y.as_mut_slice()?), call.par);
        Ok(())
    }))
}

fn bind_from(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (inputs, _) = layouts(attrs)?;
    let (shape, isa) = (shape_of(inputs.first(), signature)?, signature.options.isa);
    if is_bytes(signature.inputs[0].dtype) {
        return Ok(costed_kernel_fn("pixels", streaming_ns(signature), move |call| {
            let ([x], [y]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
            from_pixels(call.par, rows(x), shape, y.bytes_mut());
            Ok(())
        }));
    }
    Ok(costed_kernel_fn(isa.name(), streaming_ns(signature), move |call| {
        let ([x], [y]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        from_blocked(isa, Blocked::new(shape, x.as_slice()?), y.as_mut_slice()?, call.par);
        Ok(())
    }))
}
