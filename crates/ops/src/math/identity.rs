//! `_copy`, `zeros_like`, `ones_like` and related operators: arrays of the same shape.

use crate::prelude::*;
use crate::shape::bind_copy;

const SAME: OpDef = OpDef {
    ignores_unknown_attrs: true,
    bind: bind_copy,
    rewrites: &Rewrites { is_identity: |_| true, ..Rewrites::NONE },
    ..OpDef::BASE
};

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef { name: "_copy", aliases: &["identity"], doc: "A copy of the input.", ..SAME },
    OpDef { name: "_copyto", aliases: &["_npi_copyto"], doc: "A copy of the input.", ..SAME },
    OpDef { name: "_CrossDeviceCopy", doc: "A copy of the input, on another device.", ..SAME },
    OpDef {
        name: "BlockGrad",
        aliases: &["_sparse_stop_gradient", "stop_gradient"],
        doc: "The input unchanged; stops gradients in training.",
        ..SAME
    },
    OpDef {
        name: "_contrib_gradientmultiplier",
        doc: "The input unchanged; scales gradients in training.",
        attrs: &[
            AttrDef::new("scalar", AttrKind::Float, "1", "For training.").wide(),
            AttrDef::new("is_int", AttrKind::Bool, "True", "For training."),
        ],
        ignores_unknown_attrs: false,
        ..SAME
    },
    OpDef {
        name: "_identity_with_attr_like_rhs",
        doc: "lhs unchanged; rhs only gives its shape.",
        inputs: Inputs::Fixed(&["lhs", "rhs"]),
        ..SAME
    },
    OpDef {
        name: "zeros_like",
        aliases: &["_sparse_zeros_like"],
        doc: "Zeros in the shape and dtype of the input.",
        ignores_unknown_attrs: true,
        bind: |_, signature| bind_fill(0.0, signature),
        form: |_, signature| fill_form(0.0, signature),
        ..OpDef::BASE
    },
    OpDef {
        name: "ones_like",
        doc: "Ones in the shape and dtype of the input.",
        ignores_unknown_attrs: true,
        bind: |_, signature| bind_fill(1.0, signature),
        form: |_, signature| fill_form(1.0, signature),
        ..OpDef::BASE
    },
];

/// The form of one value everywhere.
pub(crate) fn fill_form(value: f64, signature: &Signature<'_>) -> MaybeForm {
    for_all(signature.outputs[0].dtype, KernelForm::Range { start: value, step: 0.0, repeat: 1 })
}

/// A kernel that writes one value everywhere.
pub(crate) fn bind_fill(value: f64, signature: &Signature<'_>) -> BoundKernel {
    dispatch!(signature.outputs[0].dtype, all, T => Ok(kernel_fn(signature, move |call| {
        elements_mut::<T>(&mut call.outputs[0])?.fill(T::from_f64(value));
        Ok(())
    })))
}
