//! Operators that map every element: a row each in the table of functions of one number (`unary.rs`
//! of the kernels).

use crate::prelude::*;
use mxrt_kernels::elementwise::{self, Unary};

/// The operators of the rows that name one.
macro_rules! operators {
    (
        $($function:ident $([$name:literal $($alias:literal)*])? $doc:literal $code:tt)*
        => with parameters $($others:tt)*
    ) => {
        /// Rows of the table.
        pub static OPS: &[OpDef] = &[$($(OpDef {
            name: $name,
            aliases: &[$($alias),*],
            doc: concat!("Element by element: ", $doc),
            ignores_unknown_attrs: true,
            bind: |_, signature| bind_unary(Unary::$function, signature),
            rewrites: &Rewrites {
                elementwise: |_| Some(Elementwise::Unary(Unary::$function)),
                ..Rewrites::NONE
            },
            ..OpDef::BASE
        },)?)*];
    };
}
mxrt_kernels::unary_functions!(operators);

/// The form of a function of every element of input 0.
pub(crate) fn unary_form(function: Unary, signature: &Signature<'_>) -> MaybeForm {
    for_numeric(signature.inputs[0].dtype, KernelForm::of_function(Elementwise::Unary(function)))
}

/// A kernel that maps every element of input 0.
pub(crate) fn bind_unary(function: Unary, signature: &Signature<'_>) -> BoundKernel {
    let in_place = if signature.outputs[..1] == signature.inputs[..1] { vec![0] } else { Vec::new() };
    let cost = elementwise_ns(signature, unary_picoseconds(function, signature));
    dispatch!(signature.inputs[0].dtype, numeric, T => {
        Ok(in_place_kernel_fn("plain", cost, in_place, move |call| {
            let y = elements_mut(&mut call.outputs[0])?;
            match call.shared {
                Some(_) => elementwise::unary_inplace::<T>(call.par, function, y),
                None => elementwise::unary(call.par, function, elements::<T>(&call.inputs[0])?, y),
            }
            Ok(())
        }))
    })
}
